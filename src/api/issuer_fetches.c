#include "api/issuer_fetches.h"

#include "api/metrics.h"
#include "api/token_auth.h"
#include "base/json_members.h"
#include "base/log.h"
#include "base/must.h"

#include "base/banned.h"

static int64_t now_of(const struct api *a)
{
    return clock_wall_ms(a->config.clock) / 1000;
}

static void take(struct api *a, struct issuer_keys *k, struct http_exchange *x)
{
    struct json_writer w;
    size_t index;
    const char *url;
    jw_start(&w, &x->reply_body);
    jw_object(&w);
    jw_key(&w, "fetches");
    jw_array(&w);
    if (issuer_keys_due(k, now_of(a), &index, &url)) {
        jw_object(&w);
        encode_int(&w, "id", (int64_t)index);
        encode_text(&w, "url", url);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
}

/* Once for each time a provider goes away, and once when it is back. */
static void tell(struct api *a, struct issuer_keys *k, size_t index, const struct err *fault)
{
    struct issuer_state state;
    issuer_keys_state(k, index, now_of(a), &state);
    if (fault)
        log_line(LOG_WARN, "issuer_keys_not_read", "issuer", LOG_STR(state.issuer), "age_seconds",
                 LOG_INT(state.age_seconds), "error_message", LOG_TEXT(fault->detail), NULL);
    else
        log_line(LOG_INFO, "issuer_keys_read", "issuer", LOG_STR(state.issuer), "keys",
                 LOG_INT((int64_t)state.key_count), NULL);
}

static void answer(struct api *a, struct issuer_keys *k, const struct json *said)
{
    const struct json *id = json_get(said, "id"), *body = json_get(said, "body"),
                      *error = json_get(said, "error");
    struct err err;
    int64_t index;
    bool told;
    if (!id || !json_to_int(id, &index) || index < 0 || index >= (int64_t)issuer_keys_count(k))
        return;
    bool came = body && body->type == JSON_STRING;
    enum err_code code = issuer_keys_put(k, (size_t)index, came ? body->text : STR_ABSENT,
                                         error && error->type == JSON_STRING ? error->text : STR("no answer"),
                                         now_of(a), &told, &err);
    if (told)
        tell(a, k, (size_t)index, code == ERR_OK ? NULL : &err);
}

bool issuer_fetches_serve(struct api *a, struct http_exchange *x)
{
    struct issuer_keys *k = token_auth_issuers(a->token_auth);
    const struct json *root;
    struct err err;
    if (!k || !x->over_unix_socket || x->method != HTTP_POST)
        return false;
    bool takes = str_is(x->path, ISSUERS_TAKE_PATH);
    if (!takes && !str_is(x->path, ISSUERS_ANSWER_PATH))
        return false;
    x->status = 200;
    x->content_type = "application/json";
    if (takes) {
        take(a, k, x);
    } else if (json_parse(x->arena, x->body, &root, &err) == ERR_OK) {
        answer(a, k, root);
        strbuf_add_text(&x->reply_body, "{}");
    } else {
        x->status = 400;
    }
    http_answer(x);
    return true;
}

void issuers_reload(struct api *a)
{
    struct issuer_keys *k = token_auth_issuers(a->token_auth);
    for (size_t i = 0; i < issuer_keys_count(k); i++) {
        struct err err;
        bool is_read;
        enum err_code code = issuer_keys_read(k, i, now_of(a), &is_read, &err);
        if (is_read)
            tell(a, k, i, code == ERR_OK ? NULL : &err);
    }
}

/* --- metrics --------------------------------------------------------------------------------------- */

static int64_t usable_keys(const struct issuer_state *s)
{
    return s->fresh ? (int64_t)s->key_count : 0;
}
static int64_t age(const struct issuer_state *s)
{
    return s->age_seconds;
}
static int64_t fetches(const struct issuer_state *s)
{
    return (int64_t)s->fetches;
}
static int64_t failures(const struct issuer_state *s)
{
    return (int64_t)s->failures;
}

void issuer_metrics(struct api *a, struct strbuf *out)
{
    static const struct {
        const char *name, *type, *help;
        int64_t (*value)(const struct issuer_state *s);
    } families[] = {
        {"weir_issuer_keys", "gauge", "Keys of an outside issuer that verify", usable_keys},
        {"weir_issuer_keys_age_seconds", "gauge", "Since they were read; -1: never", age},
        {"weir_issuer_fetches_total", "counter", "Times they were to be fetched", fetches},
        {"weir_issuer_failures_total", "counter", "Times they could not be read", failures},
    };
    struct issuer_keys *k = token_auth_issuers(a->token_auth);
    for (size_t f = 0; issuer_keys_count(k) && f < LENGTH_OF(families); f++) {
        metrics_head(out, families[f].name, families[f].type, families[f].help);
        for (size_t i = 0; i < issuer_keys_count(k); i++) {
            struct issuer_state state;
            struct json_writer w;
            issuer_keys_state(k, i, now_of(a), &state);
            strbuf_addf(out, "%s{issuer=", families[f].name);
            jw_start(&w, out); /* quotes as Prometheus does */
            jw_str(&w, state.issuer);
            strbuf_addf(out, "} %lld\n", (long long)families[f].value(&state));
        }
    }
}
