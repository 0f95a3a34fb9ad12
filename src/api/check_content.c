/* Checks of the head, second part, and of the body: the content that is sent and the form that is wanted back
 * (checks.h). */
#include "api/checks.h"
#include "base/must.h"
#include "http/target.h"

#include "base/banned.h"

enum { ANONYMOUS_BODY_MAX = 16 * 1024 }; /* callers without credentials send small bodies only */

static const struct {
    unsigned kind;
    const char *type, *range;
} media[] = {
    {ACCEPT_JSON, "application/json", "application/*"},   {ACCEPT_CSV, "text/csv", "text/*"},
    {ACCEPT_EVENT_STREAM, "text/event-stream", "text/*"}, {ACCEPT_PLAIN, "text/plain", "text/*"},
    {ACCEPT_YAML, "application/yaml", "application/*"},
};

/* One media range of an Accept header, q=0 refuses. Earlier ranges win; q values beyond 0 do not reorder. */
static unsigned accept_one(struct str range, unsigned offers)
{
    struct str rest = range;
    struct str type = str_trim(str_cut(&rest, ';'));
    while (rest.len) {
        struct str parameter = str_trim(str_cut(&rest, ';'));
        if (str_starts(parameter, "q=0") && !str_is(parameter, "q=0.") &&
            strspn(parameter.ptr + 2, "0.") >= parameter.len - 2)
            return 0;
    }
    if (str_is(type, "*/*"))
        return offers & -offers;
    for (size_t i = 0; i < LENGTH_OF(media); i++)
        if (offers & media[i].kind &&
            (str_equal_nocase(type, str_of(media[i].type)) || str_is(type, media[i].range)))
            return media[i].kind;
    if (str_equal_nocase(type, STR("application/problem+json")) ||
        (offers & ACCEPT_PLAIN && str_equal_nocase(type, STR("application/openmetrics-text"))))
        return offers & -offers;
    return 0;
}

bool check_accept(struct call *c)
{
    struct str rest = http_header(c->x, "Accept");
    unsigned offers = c->info->accepts;
    c->accept = offers & -offers;
    if (!rest.ptr || !str_trim(rest).len)
        return true;
    while (rest.len)
        if ((c->accept = accept_one(str_trim(str_cut(&rest, ',')), offers)))
            return true;
    struct strbuf known = {0};
    for (size_t i = 0; i < LENGTH_OF(media); i++)
        if (offers & media[i].kind)
            strbuf_addf(&known, "%s%s", known.len ? " or " : "", media[i].type);
    call_fail(c, ERR_REQUEST_NOT_ACCEPTABLE, "this call answers %.*s", STR_ARG(strbuf_str(&known)));
    strbuf_free(&known);
    return false;
}

static bool is_json_type(struct str value)
{
    struct str rest = value;
    struct str type = str_trim(str_cut(&rest, ';'));
    if (!str_equal_nocase(type, STR("application/json")))
        return false;
    struct str parameter = str_trim(rest);
    return !parameter.len || str_equal_nocase(parameter, STR("charset=utf-8")) ||
           str_equal_nocase(parameter, STR("charset=\"utf-8\""));
}

bool check_body_head(struct call *c)
{
    struct http_exchange *x = c->x;
    struct str coding = http_header(x, "Content-Encoding");
    bool any = x->body_declared > 0 || x->body.len || x->body_too_large;
    if (any && x->method != HTTP_GET && x->method != HTTP_HEAD &&
        !is_json_type(http_header(x, "Content-Type"))) {
        call_fail(c, ERR_REQUEST_UNSUPPORTED_MEDIA_TYPE, "the body must be application/json in UTF-8");
        return false;
    }
    if (coding.ptr && !str_equal_nocase(coding, STR("identity"))) {
        call_fail(c, ERR_REQUEST_UNSUPPORTED_MEDIA_TYPE,
                  "the body has a Content-Encoding; send it as it is, without one");
        return false;
    }
    if (call_is_anonymous(c) && x->body_max > ANONYMOUS_BODY_MAX)
        x->body_max = ANONYMOUS_BODY_MAX;
    if (x->body_too_large || x->body_declared > x->body_max) {
        call_fail(c, ERR_REQUEST_PAYLOAD_TOO_LARGE, "the body is larger than %lld bytes (%s)",
                  (long long)x->body_max,
                  call_is_anonymous(c) ? "of a caller without credentials" : "server.body_max_bytes");
        return false;
    }
    return true;
}

static const struct json empty_object = {.type = JSON_OBJECT};

bool check_body(struct call *c)
{
    struct err err;
    const struct route_body *body = route_bodies_of(c->api->bodies, c->route_number);
    c->body = &empty_object;
    if (c->x->method == HTTP_GET || c->x->method == HTTP_HEAD)
        return true;
    if (c->x->body.len && json_parse(c->x->arena, c->x->body, &c->body, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    if (!body->described) {
        if (c->body->type == JSON_OBJECT && !c->body->count)
            return true;
        call_fail(c, ERR_REQUEST_MALFORMED, "this call takes no body");
        return false;
    }
    struct schema_violation v;
    if (c->body->holds_null)
        schema_drop_nulls(body->described, c->body);
    if (schema_check(body->checked, c->body, &v))
        return true;
    call_fail(c, ERR_REQUEST_MALFORMED, "%s", v.text);
    return false;
}

static bool is_known(const struct call *c, struct str name)
{
    for (const char *const *known = c->info->query; *known; known++)
        if (target_name_is(c->x->arena, name, str_of(*known)))
            return true;
    return false;
}

bool check_query(struct call *c)
{
    enum { NAME_SHOWN_MAX = 40 };
    const char *const *query = c->info->query;
    struct strbuf known = {0};
    for (struct str rest = c->info->is_list ? c->x->query : STR_ABSENT; rest.len;) {
        struct str pair = str_cut(&rest, '&'), name = str_cut(&pair, '=');
        if (!name.len || is_known(c, name))
            continue;
        for (size_t i = 0; query[i]; i++)
            strbuf_addf(&known, "%s%s", i ? ", " : "; this list takes ", query[i]);
        call_fail(c, ERR_REQUEST_MALFORMED, "there is no query parameter %.*s%.*s",
                  (int)(name.len < NAME_SHOWN_MAX ? name.len : NAME_SHOWN_MAX), name.ptr,
                  STR_ARG(strbuf_str(&known)));
        strbuf_free(&known);
        return false;
    }
    return true;
}
