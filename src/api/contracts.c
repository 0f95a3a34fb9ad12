#include "api/contracts.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/must.h"
#include "schema/embedded.h"

#include "base/banned.h"

struct contracts {
    size_t count;
    struct contract **files; /* in the order of embedded_contracts */
    struct route_body *bodies;
};

static struct contract *find(const struct contracts *c, const char *name)
{
    size_t i = 0;
    while (i < c->count && strcmp(embedded_contracts[i].name, name) != 0)
        i++;
    MUST(i < c->count); /* files and routes come from the same folder */
    return c->files[i];
}

static enum err_code load_files(struct contracts *c, struct err *err)
{
    while (embedded_contracts[c->count].name)
        c->count++;
    c->files = must_alloc(c->count * sizeof *c->files);
    for (size_t i = 0; i < c->count; i++)
        if (contract_load(embedded_contracts[i].json, &c->files[i], err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static enum err_code compile_body(const struct contracts *c, const struct route_info *info,
                                  struct route_body *ret_body, struct err *err)
{
    if (!info->body)
        return ERR_OK;
    struct contract *file = find(c, info->contract);
    enum err_code code = contract_schema(file, info->body, &ret_body->described, err);
    ret_body->checked = ret_body->described;
    if (code == ERR_OK && info->checked_body)
        code = contract_schema(file, info->checked_body, &ret_body->checked, err);
    return code;
}

enum err_code contracts_new(struct contracts **ret_contracts, struct err *err)
{
    struct contracts *c = must_alloc(sizeof *c);
    enum err_code code = load_files(c, err);
    c->bodies = must_alloc(api_route_count * sizeof *c->bodies);
    for (size_t i = 0; i < api_route_count && code == ERR_OK; i++)
        code = compile_body(c, api_routes[i].info, &c->bodies[i], err);
    if (code != ERR_OK) {
        contracts_free(c);
        return code;
    }
    *ret_contracts = c;
    return ERR_OK;
}

struct contracts *contracts_free(struct contracts *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        contract_free(c->files[i]);
    free(c->files);
    free(c->bodies);
    free(c);
    return NULL;
}

const struct route_body *contracts_body(const struct contracts *c, size_t route_number)
{
    return &c->bodies[route_number];
}

const struct schema *contracts_schema(const struct contracts *c, const char *contract, const char *pointer)
{
    const struct schema *schema = NULL;
    struct err err;
    MUST(contract_schema(find(c, contract), pointer, &schema, &err) == ERR_OK);
    return schema;
}
