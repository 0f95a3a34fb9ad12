/* Paths and queries. Properties:
 *   - a decoded path is UTF-8, has no NUL, is not longer, and has as many slashes as the raw one;
 *   - a path encoded byte for byte decodes to itself;
 *   - a query value is UTF-8 without NUL, and asking twice gives the same. */
#include "base/arena.h"
#include "base/must.h"
#include "http/target.h"

#include "base/banned.h"

static size_t slashes(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '/';
    return n;
}

static void check_text(struct str s)
{
    MUST(str_is_utf8(s));
    MUST(!s.len || !memchr(s.ptr, 0, s.len));
}

static bool is_visible_ascii(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < 0x21 || s.ptr[i] > 0x7E)
            return false;
    return true;
}

static void check_path(struct arena *a, struct str raw)
{
    struct str path, again;
    struct err err;
    if (target_decode_path(a, raw, &path, &err) != ERR_OK)
        return;
    check_text(path);
    MUST(path.len <= raw.len && slashes(path) == slashes(raw));
    struct strbuf encoded = {0};
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == '/')
            strbuf_add_char(&encoded, '/');
        else
            strbuf_addf(&encoded, "%%%02X", (unsigned char)path.ptr[i]);
    }
    if (encoded.len) {
        MUST(target_decode_path(a, strbuf_str(&encoded), &again, &err) == ERR_OK);
        MUST(str_equal(path, again));
    }
    strbuf_free(&encoded);
}

static void check_query(struct arena *a, struct str query, struct str name)
{
    struct str first, second;
    struct err err;
    enum err_code code = target_query(a, query, name, &first, &err);
    MUST(target_query(a, query, name, &second, &err) == code);
    if (code != ERR_OK)
        return;
    MUST(str_equal(first, second) && !first.ptr == !second.ptr);
    check_text(first);
    MUST(first.len <= query.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    if (!size || !is_visible_ascii(bytes)) /* the head parser lets nothing else through */
        return 0;
    struct arena *a = arena_new(1024);
    struct str query = bytes, path = str_cut(&query, '?');
    if (path.len)
        check_path(a, path);
    check_query(a, query, STR("a"));
    check_query(a, query, STR("limit"));
    arena_free(a);
    return 0;
}
