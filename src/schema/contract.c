#include "schema/contract.h"

#include <stdlib.h>

#include "base/must.h"
#include "schema/embedded.h"

#include "base/banned.h"

struct component {
    const char *name;
    const struct schema *schema;
};

struct contract {
    struct arena *arena;
    const struct json *root;
    struct contract_operation *operations;
    size_t operation_count;
    struct component *components;
    size_t component_count;
};

static const char *const methods[] = {"get", "put", "post", "delete", "patch"};

/* Path items and bodies may stand elsewhere in the document. */
static const struct json *follow(const struct contract *c, const struct json *j)
{
    const struct json *ref = json_get(j, "$ref");
    if (!ref || ref->type != JSON_STRING || !str_starts(ref->text, "#/"))
        return j;
    struct str rest = {ref->text.ptr + 2, ref->text.len - 2};
    j = c->root;
    while (j && rest.len) {
        struct str name = str_cut(&rest, '/');
        j = json_get(j, arena_copy(c->arena, name.ptr, name.len));
    }
    return j;
}

/* servers[0].url as a prefix of all paths: "/" and "" add nothing, "/v1/" adds "/v1". */
static struct str base_path(const struct json *root)
{
    const struct json *servers = json_get(root, "servers");
    const struct json *url = servers ? json_get(servers->child, "url") : NULL;
    struct str s = url && url->type == JSON_STRING ? url->text : STR("");
    while (s.len && s.ptr[s.len - 1] == '/')
        s.len--;
    return s;
}

static const char *upper(struct arena *a, const char *method)
{
    char *text = arena_copy(a, method, strlen(method));
    for (char *p = text; *p; p++)
        *p = (char)(*p - 'a' + 'A');
    return text;
}

static enum err_code load_body(struct contract *c, const struct json *operation,
                               struct contract_operation *op, struct err *err)
{
    const struct json *body = json_get(operation, "requestBody");
    if (!body)
        return ERR_OK;
    body = follow(c, body);
    const struct json *required = json_get(body, "required");
    op->body_required = required && required->type == JSON_TRUE;
    const struct json *media = json_get(json_get(body, "content"), "application/json");
    const struct json *schema = json_get(media, "schema");
    if (!schema)
        return err_set(err, ERR_CONFIG_INVALID, "%s: its body has no application/json schema",
                       op->operation_id);
    const struct json *check = json_get(media, "x-weir-check");
    struct err inner;
    enum err_code code = schema_compile(c->arena, c->root, schema, &op->request_body, &inner);
    op->checked_body = op->request_body;
    if (code == ERR_OK && check)
        code = schema_compile(c->arena, c->root, check, &op->checked_body, &inner);
    if (code != ERR_OK)
        return err_set(err, code, "%s: %s", op->operation_id, inner.detail);
    return ERR_OK;
}

/* Those of the path item, then those of the operation. */
static void load_query(struct contract *c, const struct json *item, const struct json *operation,
                       struct contract_operation *op)
{
    const struct json *lists[] = {json_get(item, "parameters"), json_get(operation, "parameters")};
    size_t count = 0;
    for (size_t i = 0; i < LENGTH_OF(lists); i++)
        count += lists[i] ? lists[i]->count : 0;
    op->query = ARENA_ARRAY(c->arena, const char *, count + 1);
    for (size_t i = 0; i < LENGTH_OF(lists); i++)
        for (const struct json *p = lists[i] ? lists[i]->child : NULL; p; p = p->next) {
            const struct json *in = json_get(follow(c, p), "in"), *name = json_get(follow(c, p), "name");
            if (in && name && str_is(in->text, "query"))
                op->query[op->query_count++] = arena_copy(c->arena, name->text.ptr, name->text.len);
        }
    op->is_list = strcmp(op->method, "GET") == 0 &&
                  (op->query_count > 1 || str_starts(str_of(op->operation_id), "list"));
}

static enum err_code load_operation(struct contract *c, const struct json *item, const char *method,
                                    const struct json *operation, struct err *err)
{
    struct str path = item->key;
    const struct json *id = json_get(operation, "operationId");
    if (!id || id->type != JSON_STRING)
        return err_set(err, ERR_CONFIG_INVALID, "%s %.*s has no operationId", method, STR_ARG(path));
    struct contract_operation *op = &c->operations[c->operation_count];
    struct str base = base_path(c->root);
    op->operation_id = arena_copy(c->arena, id->text.ptr, id->text.len);
    if (contract_find(c, op->operation_id))
        return err_set(err, ERR_CONFIG_INVALID, "operationId %s is there twice", op->operation_id);
    op->method = upper(c->arena, method);
    op->path = arena_printf(c->arena, "%.*s%.*s", STR_ARG(base), STR_ARG(path)).ptr;
    c->operation_count++;
    load_query(c, item, operation, op);
    return load_body(c, operation, op, err);
}

static enum err_code load_operations(struct contract *c, struct err *err)
{
    const struct json *paths = json_get(c->root, "paths");
    if (!paths || paths->type != JSON_OBJECT)
        return err_set(err, ERR_CONFIG_INVALID, "a contract needs paths");
    c->operations = ARENA_ARRAY(c->arena, struct contract_operation, paths->count * LENGTH_OF(methods));
    for (const struct json *path = paths->child; path; path = path->next)
        for (size_t m = 0; m < LENGTH_OF(methods); m++) {
            const struct json *operation = json_get(path, methods[m]);
            enum err_code code = operation ? load_operation(c, path, methods[m], operation, err) : ERR_OK;
            if (code != ERR_OK)
                return code;
        }
    return ERR_OK;
}

static enum err_code load_components(struct contract *c, struct err *err)
{
    const struct json *schemas = json_get(json_get(c->root, "components"), "schemas");
    if (!schemas)
        return ERR_OK;
    c->components = ARENA_ARRAY(c->arena, struct component, schemas->count);
    for (const struct json *j = schemas->child; j; j = j->next) {
        struct component *part = &c->components[c->component_count++];
        struct err inner;
        part->name = arena_copy(c->arena, j->key.ptr, j->key.len);
        enum err_code code = schema_compile(c->arena, c->root, j, &part->schema, &inner);
        if (code != ERR_OK)
            return err_set(err, code, "%s: %s", part->name, inner.detail);
    }
    return ERR_OK;
}

enum err_code contract_load(struct str yaml, struct contract **ret_contract, struct err *err)
{
    struct contract *c = must_alloc(sizeof *c);
    c->arena = arena_new(64 * 1024);
    enum err_code code = yaml_to_json(c->arena, yaml, &c->root, err);
    if (code == ERR_OK)
        code = load_components(c, err);
    if (code == ERR_OK)
        code = load_operations(c, err);
    if (code != ERR_OK) {
        contract_free(c);
        return code;
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

const struct contract_operation *contract_operations(const struct contract *c, size_t *ret_count)
{
    *ret_count = c->operation_count;
    return c->operations;
}

const struct contract_operation *contract_find(const struct contract *c, const char *operation_id)
{
    for (size_t i = 0; i < c->operation_count; i++)
        if (strcmp(c->operations[i].operation_id, operation_id) == 0)
            return &c->operations[i];
    return NULL;
}

const struct schema *contract_component(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->component_count; i++)
        if (strcmp(c->components[i].name, name) == 0)
            return c->components[i].schema;
    return NULL;
}

const struct json *contract_document(const struct contract *c)
{
    return c->root;
}

struct str contract_embedded(const char *name)
{
    for (const struct embedded_file *f = embedded_contracts; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return (struct str){f->text, f->len};
    return STR_ABSENT;
}

const char *const *contract_names(void)
{
    return embedded_contract_names;
}
