#include "api/engine/signal_schemas.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "schema/schema.h"

#include "base/banned.h"

struct signal_schemas {
    struct arena *arena;
    const struct schema *of[SIGNAL_TYPE_COUNT];
};

static enum err_code compile(struct signal_schemas *s, enum signal_type t, const struct embedded_file *files,
                             struct err *err)
{
    char name[64];
    const struct json *root;
    struct err inner;
    snprintf(name, sizeof name, "%s.v1", signal_schema(t));
    struct str text = embedded_text(files, name);
    if (!text.ptr)
        return err_set(err, ERR_CONFIG_INVALID, "signal schema %s is not there", name);
    if (json_parse(s->arena, text, &root, &inner) != ERR_OK ||
        schema_compile(s->arena, root, root, &s->of[t], &inner) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "signal schema %s: %s", name, inner.detail);
    return ERR_OK;
}

enum err_code signal_schemas_new(const struct embedded_file *files, struct signal_schemas **ret_schemas,
                                 struct err *err)
{
    struct signal_schemas *s = must_alloc(sizeof *s);
    s->arena = arena_new(16 * 1024);
    for (int t = 0; t < SIGNAL_TYPE_COUNT; t++)
        if (compile(s, (enum signal_type)t, files, err) != ERR_OK) {
            signal_schemas_free(s);
            return err->code;
        }
    *ret_schemas = s;
    return ERR_OK;
}

struct signal_schemas *signal_schemas_free(struct signal_schemas *s)
{
    if (s) {
        arena_free(s->arena);
        free(s);
    }
    return NULL;
}

bool signal_schema_fits(const struct signal_schemas *s, enum signal_type t, const struct json *payload,
                        char ret_fault[SIGNAL_FAULT_MAX])
{
    struct schema_violation v;
    MUST((unsigned)t < SIGNAL_TYPE_COUNT);
    if (schema_check(s->of[t], payload, &v))
        return true;
    snprintf(ret_fault, SIGNAL_FAULT_MAX, "%s", v.text);
    return false;
}
