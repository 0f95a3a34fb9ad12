#include "api/route_bodies.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/must.h"
#include "schema/embedded.h"

#include "base/banned.h"

struct route_bodies {
    size_t count;
    struct openapi **files; /* in the order of embedded_contracts */
    struct route_body *bodies;
};

static struct openapi *find(const struct route_bodies *c, const char *name)
{
    size_t i = 0;
    while (i < c->count && strcmp(embedded_contracts[i].name, name) != 0)
        i++;
    MUST(i < c->count); /* files and routes come from the same folder */
    return c->files[i];
}

static enum err_code load_files(struct route_bodies *c, struct err *err)
{
    while (embedded_contracts[c->count].name)
        c->count++;
    c->files = must_alloc(c->count * sizeof *c->files);
    for (size_t i = 0; i < c->count; i++)
        if (openapi_load(embedded_contracts[i].json, &c->files[i], err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static enum err_code compile_body(const struct route_bodies *c, const struct route_info *info,
                                  struct route_body *ret_body, struct err *err)
{
    if (!info->body)
        return ERR_OK;
    struct openapi *file = find(c, info->contract);
    enum err_code code = openapi_schema(file, info->body, &ret_body->described, err);
    ret_body->checked = ret_body->described;
    if (code == ERR_OK && info->checked_body)
        code = openapi_schema(file, info->checked_body, &ret_body->checked, err);
    return code;
}

enum err_code route_bodies_new(struct route_bodies **ret_bodies, struct err *err)
{
    struct route_bodies *c = must_alloc(sizeof *c);
    enum err_code code = load_files(c, err);
    c->bodies = must_alloc(api_route_count * sizeof *c->bodies);
    for (size_t i = 0; i < api_route_count && code == ERR_OK; i++)
        code = compile_body(c, api_routes[i].info, &c->bodies[i], err);
    if (code != ERR_OK) {
        route_bodies_free(c);
        return code;
    }
    *ret_bodies = c;
    return ERR_OK;
}

struct route_bodies *route_bodies_free(struct route_bodies *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        openapi_free(c->files[i]);
    free(c->files);
    free(c->bodies);
    free(c);
    return NULL;
}

const struct route_body *route_bodies_of(const struct route_bodies *c, size_t route_number)
{
    return &c->bodies[route_number];
}

const struct schema *route_bodies_schema(const struct route_bodies *c, const char *contract,
                                         const char *pointer)
{
    const struct schema *schema = NULL;
    struct err err;
    MUST(openapi_schema(find(c, contract), pointer, &schema, &err) == ERR_OK);
    return schema;
}
