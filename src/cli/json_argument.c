#include "cli/json_argument.h"

#include <errno.h>
#include <stdio.h>

#include "base/must.h"

#include "base/banned.h"

static enum err_code read_all(const char *name, FILE *file, struct strbuf *out, struct err *err)
{
    char bytes[16384];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) {
        strbuf_add(out, bytes, n);
        if (out->len > ARGUMENT_BYTES_MAX)
            return err_set(err, ERR_CONFIG_INVALID, "%.160s is larger than %d MiB", name,
                           ARGUMENT_BYTES_MAX >> 20);
    }
    if (ferror(file))
        return err_set(err, ERR_CONFIG_INVALID, "cannot read %.160s: %s", name, strerror(errno));
    return ERR_OK;
}

enum err_code file_argument_read(const char *path, struct strbuf *out, struct err *err)
{
    if (strcmp(path, "-") == 0)
        return read_all("stdin", stdin, out, err);
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(err, ERR_CONFIG_INVALID, "cannot read %.160s: %s", path, strerror(errno));
    enum err_code code = read_all(path, file, out, err);
    fclose(file);
    return code;
}

static enum err_code read_argument(const char *text, struct strbuf *out, struct err *err)
{
    if (strcmp(text, "-") == 0 || text[0] == '@')
        return file_argument_read(text[0] == '@' ? text + 1 : text, out, err);
    strbuf_add_text(out, text);
    return ERR_OK;
}

enum err_code json_argument_write(const struct flags *f, enum flag_id id, const char *key,
                                  struct json_writer *w, struct err *err)
{
    struct strbuf bytes CLEANUP(strbuf_free) = {0};
    const char *flag = flag_table[id].name;
    const struct json *root;
    struct err fault;
    if (!flags_has(f, id))
        return ERR_OK;
    struct arena *a = arena_new(16384);
    enum err_code code = read_argument(f->value[id], &bytes, err);
    if (code == ERR_OK && json_parse(a, strbuf_str(&bytes), &root, &fault) != ERR_OK)
        code = err_set(err, ERR_CONFIG_INVALID, "--%s is no JSON: %.180s", flag, fault.detail);
    else if (code == ERR_OK && root->type != JSON_OBJECT)
        code = err_set(err, ERR_CONFIG_INVALID, "--%s must be a JSON object such as {\"n\":1}", flag);
    if (code == ERR_OK) {
        jw_key(w, key);
        jw_raw(w, root->source);
    }
    arena_free(a);
    return code;
}
