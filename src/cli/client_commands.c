/* weir client ...: clients and their keys. Secrets are printed only where they are the answer. */
#include "base/must.h"
#include "cli/columns.h"
#include "cli/server_call.h"
#include "fields/job_fields.h"

#include "base/banned.h"

static void print_and_free(struct text_table *t)
{
    text_table_print(t, stdout, 0, terminal_colour(stdout)); /* a cut secret is of no use */
    text_table_free(t);
}

static void show_key(const struct json *key)
{
    static const char *const names[] = {"key_id", "created_at", "expires_at", "api_key"};
    struct text_table *t = text_table_new(NULL, 2);
    text_table_pairs(t, key, names, LENGTH_OF(names));
    print_and_free(t);
}

static void print_text(const struct json *value)
{
    printf("%.*s\n", STR_ARG(value ? value->text : STR_ABSENT));
}

static struct str keys_path(struct arena *a, struct str client_id, const char *verb)
{
    struct strbuf id CLEANUP(strbuf_free) = {0};
    http_escape(&id, client_id);
    return arena_printf(a, "/v1/clients/%.*s/keys%s", STR_ARG(strbuf_str(&id)), verb);
}

/* ---- client create ---- */

/* `key` may be NULL; its secret is printed elsewhere. */
static void show_client(const struct json *client, const struct json *key)
{
    static const char *const client_names[] = {"client_id", "webhook_secret", "created_at"};
    static const char *const key_names[] = {"key_id", "expires_at"};
    struct text_table *t = text_table_new(NULL, 2);
    text_table_pairs(t, client, client_names, LENGTH_OF(client_names));
    text_table_pairs(t, key, key_names, LENGTH_OF(key_names));
    print_and_free(t);
}

static void show_client_with_key(const struct invocation *in, const struct json *client,
                                 const struct json *key)
{
    const struct json *secret = json_get(key, "api_key");
    if (in->json) {
        printf("{\"client\":%.*s,\"key\":%.*s}\n", STR_ARG(client->source), STR_ARG(key->source));
        return;
    }
    if (!in->quiet) {
        show_client(client, key);
        putchar('\n');
    }
    printf("export WEIR_API_KEY=%.*s\n", STR_ARG(secret ? secret->text : STR_ABSENT));
    cli_note(in, "\nThe key is shown only now. Run the line above, then: weir job submit --work-kind "
                 "SUCCESS_FAST --wait");
}

static int add_first_key(const struct invocation *in, const struct json *client)
{
    struct server_answer made CLEANUP(server_answer_free) = {0};
    struct arena *a = arena_new(512);
    const struct json *id = json_get(client, "client_id");
    struct server_call call = {
        .method = "POST", .path = keys_path(a, id ? id->text : STR(""), ""), .bearer = server_operator(in)};
    int code = server_call(in, &call, &made);
    if (code == CLI_OK)
        show_client_with_key(in, client, made.json);
    else
        show_client(client, NULL); /* it exists; its id must not be lost */
    arena_free(a);
    return code;
}

int command_client_create(const struct invocation *in)
{
    struct server_answer made CLEANUP(server_answer_free) = {0};
    struct server_call call = {.method = "POST",
                               .path = STR("/v1/clients"),
                               .bearer = server_operator(in),
                               .advice = server_advice_operator,
                               .idempotency_key = in->flags->value[FLAG_IDEMPOTENCY_KEY]};
    int code = server_call(in, &call, &made);
    if (code != CLI_OK)
        return code;
    const struct json *id = json_get(made.json, "client_id");
    if (flags_has(in->flags, FLAG_WITH_KEY))
        return add_first_key(in, made.json);
    if (in->json)
        server_print_json(&made);
    else if (in->quiet)
        print_text(id);
    else
        show_client(made.json, NULL);
    if (!in->json && id)
        cli_note(in, "\nThe secret is shown only now. Next: weir client key create %.*s", STR_ARG(id->text));
    return CLI_OK;
}

/* ---- client key ... ---- */

static int show_new_key(const struct invocation *in, const struct server_answer *made)
{
    const struct json *secret = json_get(made->json, "api_key");
    bool known = !secret || secret->type == JSON_NULL;
    if (in->json)
        server_print_json(made);
    else if (in->quiet && !known)
        print_text(secret);
    else
        show_key(made->json);
    if (known)
        cli_note(
            in,
            "\nThe client has such a key already and it was shown then; --rotate replaces it, --name makes "
            "another.");
    else if (!in->json)
        cli_note(in, "\nThe key is shown only now. Next: export WEIR_API_KEY=...");
    return CLI_OK;
}

/* A first key needs no credentials, and the ones lying around may be another client's: a refusal of
 * those is not the last word. */
static int create_key(const struct invocation *in, struct server_call *call, struct server_answer *ret_made)
{
    int code = server_try(in, call, ret_made);
    bool refused = ret_made->http.status == 401 || ret_made->http.status == 403;
    if (code != CLI_OK || !refused || !call->bearer || server_key_is_flag(in))
        return code == CLI_OK
                   ? server_judge(ret_made, call->bearer ? server_advice_key : server_advice_no_key)
                   : code;
    struct server_answer first = *ret_made;
    struct server_call open = *call;
    open.bearer = NULL;
    code = server_try(in, &open, ret_made);
    if (code == CLI_OK && ret_made->http.status >= 400)
        code = server_judge(&first, server_advice_key);
    server_answer_free(&first);
    return code;
}

static void add_list(struct json_writer *w, const char *name, const char *value)
{
    struct str rest = value ? str_of(value) : STR_ABSENT;
    if (!value)
        return;
    jw_key(w, name);
    jw_array(w);
    while (rest.len)
        jw_str(w, str_trim(str_cut(&rest, ',')));
    jw_array_end(w);
}

/* The body of a new key, or of one that is renewed (`key_id` may be NULL). False: told. */
static bool add_wish(const struct invocation *in, const char *key_id, struct strbuf *out)
{
    const char *expires = in->flags->value[FLAG_EXPIRES];
    int64_t life_ms = 0;
    struct json_writer w;
    if (expires && (!duration_parse(str_of(expires), &life_ms) || life_ms < 1000)) {
        cli_fault("--expires needs a time such as 12h or 30d, not \"%.60s\"", expires);
        return false;
    }
    jw_start(&w, out);
    jw_object(&w);
    if (flags_has(in->flags, FLAG_ROTATE))
        encode_bool(&w, "rotate", true);
    encode_text_if(&w, "key_id", key_id);
    encode_text_if(&w, "name", in->flags->value[FLAG_NAME]);
    add_list(&w, "scopes", in->flags->value[FLAG_SCOPE]);
    add_list(&w, "queues", in->flags->value[FLAG_QUEUE]);
    if (expires)
        encode_int(&w, "expires_in_seconds", life_ms / 1000);
    jw_object_end(&w);
    return true;
}

int command_client_key_create(const struct invocation *in)
{
    struct server_answer made CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    if (!add_wish(in, NULL, &body))
        return CLI_USAGE;
    struct arena *a = arena_new(512);
    struct server_call call = {
        .method = "POST",
        .path = keys_path(a, str_of(in->args[0]), ""),
        .body = strbuf_str(&body),
        .bearer = server_operator_or_key(in),
        .idempotency_key = in->flags->value[FLAG_IDEMPOTENCY_KEY],
    };
    int code = create_key(in, &call, &made);
    arena_free(a);
    return code == CLI_OK ? show_new_key(in, &made) : code;
}

static void add_words(struct text_table *t, const struct json *list)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        strbuf_addf(&text, "%s%.*s", text.len ? "," : "", STR_ARG(j->text));
    text_table_add(t, text.len ? strbuf_str(&text) : STR("all"));
}

static void add_scopes(struct text_table *t, const struct json *key)
{
    add_words(t, json_get(key, MEMBER(key, scopes)));
}

static void add_queues(struct text_table *t, const struct json *key)
{
    add_words(t, json_get(key, MEMBER(key, queues)));
}

static const struct list_column key_columns[] = {
    {"!KEY_ID", MEMBER(key, key_id)},
    {"NAME", MEMBER(key, name)},
    {"STATE", MEMBER(key, state)},
    {"SCOPES", .cell = add_scopes},
    {"QUEUES", .cell = add_queues},
    {"EXPIRES_AT", MEMBER(key, expires_at)},
    {"LAST_USED_AT", MEMBER(key, last_used_at)},
};

/* One call about the keys of the command's client. */
static int keys_call(const struct invocation *in, const char *method, const char *verb, struct str body,
                     struct server_answer *ret_answer)
{
    struct arena *a = arena_new(512);
    struct server_call call = {.method = method,
                               .path = keys_path(a, str_of(in->args[0]), verb),
                               .body = body,
                               .bearer = server_operator_or_key(in)};
    int code = server_call(in, &call, ret_answer);
    arena_free(a);
    return code;
}

static void show_keys(const struct json *answer)
{
    columns_show(key_columns, LENGTH_OF(key_columns), json_get(answer, "items"));
}

int command_client_key_list(const struct invocation *in)
{
    struct server_answer found CLEANUP(server_answer_free) = {0};
    int code = keys_call(in, "GET", "", STR_ABSENT, &found);
    return code == CLI_OK ? server_show(in, &found, show_keys) : code;
}

int command_client_key_renew(const struct invocation *in)
{
    struct server_answer made CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    if (!add_wish(in, in->arg_count > 1 ? in->args[1] : NULL, &body))
        return CLI_USAGE;
    int code = keys_call(in, "POST", "/renew", strbuf_str(&body), &made);
    return code == CLI_OK ? show_new_key(in, &made) : code;
}

int command_client_key_revoke(const struct invocation *in)
{
    struct server_answer done CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    jw_object(&w);
    encode_text(&w, "key_id", in->args[1]);
    jw_object_end(&w);
    int code = keys_call(in, "POST", "/revoke", strbuf_str(&body), &done);
    if (code == CLI_OK && in->json)
        server_print_json(&done);
    else if (code == CLI_OK)
        printf("revoked %s\n", in->args[1]);
    return code;
}
