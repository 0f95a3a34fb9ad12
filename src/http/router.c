/* A tree of path segments. A lookup walks it once, literal child first; it steps back only where a
 * literal segment led nowhere and a {name} beside it may still fit. No memory is taken on the way. */
#include "http/router.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

/* One segment at its place: a literal, {name} or {name}:suffix (text = the suffix). */
struct node {
    bool is_param;
    struct str text;
    struct node *child, *next; /* children in order of rank: literals, {name}:suffix, {name} */
    const struct route *routes[HTTP_METHOD_COUNT];
    bool has_routes;
};

struct router {
    struct arena *arena;
    struct node root;
};

static bool is_param(struct str segment)
{
    return segment.len && segment.ptr[0] == '{';
}

/* The text behind the '}' of a {name} segment. */
static struct str suffix_of(struct str segment)
{
    (void)str_cut(&segment, '}');
    return segment;
}

static int rank(const struct node *n)
{
    return !n->is_param ? 0 : n->text.len ? 1 : 2;
}

static struct node *child_for(struct router *r, struct node *parent, struct str segment)
{
    bool param = is_param(segment);
    struct str text = param ? suffix_of(segment) : segment;
    MUST(!param || memchr(segment.ptr, '}', segment.len));
    MUST(param || !memchr(segment.ptr, '{', segment.len));
    for (struct node *n = parent->child; n; n = n->next)
        if (n->is_param == param && str_equal(n->text, text))
            return n;
    struct node *fresh = ARENA_NEW(r->arena, struct node);
    fresh->is_param = param;
    fresh->text = text;
    struct node **at = &parent->child;
    while (*at && rank(*at) <= rank(fresh))
        at = &(*at)->next;
    fresh->next = *at;
    *at = fresh;
    return fresh;
}

static void add_route(struct router *r, const struct route *route)
{
    struct str rest = str_of(route->pattern);
    MUST(rest.len && rest.ptr[0] == '/');
    rest.ptr++;
    rest.len--;
    struct node *node = &r->root;
    for (bool more = true; more;) {
        more = rest.len && memchr(rest.ptr, '/', rest.len);
        struct str segment = str_cut(&rest, '/');
        MUST(!more || !is_param(segment) || !suffix_of(segment).len);
        node = child_for(r, node, segment);
    }
    MUST(!node->routes[route->method]); /* two routes for one method and path */
    node->routes[route->method] = route;
    node->has_routes = true;
}

struct router *router_new(const struct route *routes, size_t count)
{
    struct router *r = must_alloc(sizeof *r);
    r->arena = arena_new(16 * 1024);
    for (size_t i = 0; i < count; i++)
        add_route(r, &routes[i]);
    return r;
}

struct router *router_free(struct router *r)
{
    if (r) {
        arena_free(r->arena);
        free(r);
    }
    return NULL;
}

/* Dot segments are never a name: some proxies would have resolved them. */
static bool fits(const struct node *n, struct str segment)
{
    if (!n->is_param)
        return str_equal(n->text, segment);
    if (segment.len <= n->text.len || str_is(segment, ".") || str_is(segment, ".."))
        return false;
    return memcmp(segment.ptr + segment.len - n->text.len, n->text.ptr, n->text.len) == 0;
}

static const struct node *find(const struct node *parent, struct str rest)
{
    bool last = !rest.len || !memchr(rest.ptr, '/', rest.len);
    struct str segment = str_cut(&rest, '/');
    for (const struct node *n = parent->child; n; n = n->next) {
        if (!fits(n, segment))
            continue;
        const struct node *hit = last ? (n->has_routes ? n : NULL) : find(n, rest);
        if (hit)
            return hit;
    }
    return NULL;
}

static bool allows(const struct node *n, int method)
{
    return n->routes[method] || (method == HTTP_HEAD && n->routes[HTTP_GET]);
}

static void list_allowed(const struct node *n, char *out, size_t size)
{
    size_t len = 0;
    for (int m = 0; m < HTTP_OTHER; m++) {
        if (!allows(n, m))
            continue;
        struct str name = str_of(http_method_text((enum http_method)m));
        MUST(len + 2 + name.len < size);
        if (len) {
            memcpy(out + len, ", ", 2);
            len += 2;
        }
        memcpy(out + len, name.ptr, name.len);
        len += name.len;
    }
    out[len] = 0;
}

void router_find(const struct router *r, enum http_method method, struct str path,
                 struct route_match *ret_match)
{
    *ret_match = (struct route_match){.path = path};
    if (!path.len || path.ptr[0] != '/')
        return;
    const struct node *n = find(&r->root, (struct str){path.ptr + 1, path.len - 1});
    if (!n)
        return;
    ret_match->path_known = true;
    ret_match->route = n->routes[method];
    if (!ret_match->route && method == HTTP_HEAD)
        ret_match->route = n->routes[HTTP_GET];
    if (!ret_match->route)
        list_allowed(n, ret_match->allow, sizeof ret_match->allow);
}

/* The literal parts of the pattern are the same in the path, so both are walked from name to name. */
struct str route_param(const struct route_match *m, const char *name)
{
    const char *pattern = m->route->pattern, *brace;
    struct str path = m->path;
    for (size_t name_len = strlen(name); (brace = strchr(pattern, '{'));) {
        const char *close = strchr(brace, '}');
        struct str rest = {path.ptr + (brace - pattern), path.len - (size_t)(brace - pattern)};
        const char *slash = memchr(rest.ptr, '/', rest.len);
        size_t len = slash ? (size_t)(slash - rest.ptr) : rest.len;
        if ((size_t)(close - brace) == name_len + 1 && memcmp(brace + 1, name, name_len) == 0)
            return (struct str){rest.ptr, slash ? len : len - strlen(close + 1)};
        path = (struct str){rest.ptr + len, rest.len - len};
        pattern = close + 1;
    }
    return STR_ABSENT;
}
