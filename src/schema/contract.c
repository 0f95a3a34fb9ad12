#include "schema/contract.h"

#include <stdlib.h>

#include "base/must.h"
#include "schema/embedded.h"

#include "base/banned.h"

struct contract {
    struct arena *arena;
    const struct json *root;
};

enum err_code contract_load(struct str text, struct contract **ret_contract, struct err *err)
{
    struct contract *c = must_alloc(sizeof *c);
    c->arena = arena_new(64 * 1024);
    bool is_json =
        text.len && text.ptr[0] == '{'; /* JSON is YAML, too, but is read much faster as what it is */
    if ((is_json ? json_parse : yaml_to_json)(c->arena, text, &c->root, err) != ERR_OK) {
        contract_free(c);
        return err->code;
    }
    *ret_contract = c;
    return ERR_OK;
}

struct contract *contract_free(struct contract *c)
{
    if (c) {
        arena_free(c->arena);
        free(c);
    }
    return NULL;
}

enum err_code contract_schema(struct contract *c, const char *pointer, const struct schema **ret_schema,
                              struct err *err)
{
    return schema_compile_at(c->arena, c->root, pointer, ret_schema, err);
}

const struct json *contract_document(const struct contract *c)
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

struct str contract_embedded(const char *name)
{
    return embedded_text(embedded_contracts, name);
}
