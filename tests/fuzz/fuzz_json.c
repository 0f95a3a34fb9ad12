/* Any bytes as JSON. Oracles: the canonical text reads back as the same value and is a fixed point;
 * the source of each value parses to that value; jansson gives the same verdict where it has one.
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/must.h"
#include "jansson_oracle.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_canonical(struct arena *a, const struct json *root)
{
    struct strbuf first = {0}, second = {0};
    const struct json *again;
    struct err err;
    json_canonical(root, NULL, &first);
    MUST(json_parse(a, strbuf_str(&first), &again, &err) == ERR_OK);
    MUST(json_equal(root, again) && json_equal(again, root));
    json_canonical(again, NULL, &second);
    MUST(str_equal(strbuf_str(&first), strbuf_str(&second)));
    strbuf_free(&first);
    strbuf_free(&second);
}

static void check_sources(struct arena *a, const struct json *j, int *budget)
{
    for (; j && (*budget)-- > 0; j = j->next) {
        const struct json *alone;
        struct err err;
        MUST(json_parse(a, j->source, &alone, &err) == ERR_OK);
        MUST(json_equal(j, alone));
        check_sources(a, j->child, budget);
    }
}

static void check_oracle(bool accepted, const struct err *err, const uint8_t *data, size_t size)
{
    char *text = NULL;
    if (memchr(data, 0, size))
        return; /* it takes a NUL behind a number for the end of the input */
    switch (oracle_json((const char *)data, size, &text)) {
    case ORACLE_ACCEPT: /* its depth goes further than ours */
        MUST(accepted || strstr(err->detail, "nested too deep"));
        break;
    case ORACLE_REJECT:
        MUST(!accepted);
        break;
    case ORACLE_OUT_OF_RANGE:
    case ORACLE_NUL_IN_KEY:
        break;
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(4096);
    const struct json *root;
    struct err err = {0};
    enum err_code code = json_parse(a, (struct str){(const char *)data, size}, &root, &err);
    if (code == ERR_OK) {
        int budget = 100;
        check_canonical(a, root);
        check_sources(a, root, &budget);
    } else {
        MUST(code == ERR_REQUEST_MALFORMED);
        MUST(str_starts(str_of(err.detail), "line "));
        MUST(str_is_utf8(str_of(err.detail)));
    }
    check_oracle(code == ERR_OK, &err, data, size);
    arena_free(a);
    return 0;
}
