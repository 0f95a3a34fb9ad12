#include "schema/openapi.h"

#include <stdlib.h>

#include "base/must.h"
#include "schema/embedded.h"

#include "base/banned.h"

struct openapi {
    struct arena *arena;
    const struct json *root;
};

enum err_code openapi_load(struct str text, struct openapi **ret_openapi, struct err *err)
{
    struct openapi *c = must_alloc(sizeof *c);
    c->arena = arena_new(64 * 1024);
    bool is_json =
        text.len && text.ptr[0] == '{'; /* JSON is YAML, too, but is read much faster as what it is */
    if ((is_json ? json_parse : yaml_to_json)(c->arena, text, &c->root, err) != ERR_OK) {
        openapi_free(c);
        return err->code;
    }
    *ret_openapi = c;
    return ERR_OK;
}

struct openapi *openapi_free(struct openapi *c)
{
    if (c) {
        arena_free(c->arena);
        free(c);
    }
    return NULL;
}

enum err_code openapi_schema(struct openapi *c, const char *pointer, const struct schema **ret_schema,
                             struct err *err)
{
    return schema_compile_at(c->arena, c->root, pointer, ret_schema, err);
}

const struct json *openapi_document(const struct openapi *c)
{
    return c->root;
}

struct str embedded_text(const struct embedded_file *files, const char *name)
{
    for (; files->name; files++)
        if (strcmp(files->name, name) == 0)
            return files->text;
    return STR_ABSENT;
}

struct str openapi_embedded(const char *name)
{
    return embedded_text(embedded_contracts, name);
}
