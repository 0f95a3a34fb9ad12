/* weir token mint, verify. */
#include "base/must.h"
#include "base/time_text.h"
#include "cli/table.h"
#include "cli/token_internal.h"
#include "tokens/token_mint.h"
#include "tokens/token_verify.h"

#include "base/banned.h"

static void arena_drop(struct arena **a)
{
    *a = arena_free(*a);
}

/* --- mint -------------------------------------------------------------------------------------- */

/* False: told. */
static bool read_order(const struct invocation *in, struct token_order *ret_order)
{
    const char *const *value = in->flags->value;
    int64_t ttl_ms = 0;
    if (!value[FLAG_SUB] || !value[FLAG_ROLE]) {
        cli_fault("usage: weir token mint --sub NAME --role ROLE[,ROLE]");
        return false;
    }
    if (value[FLAG_TTL] && (!duration_parse(str_of(value[FLAG_TTL]), &ttl_ms) || ttl_ms < 1000)) {
        cli_fault("--ttl must be a time such as 90s, 30m or 8h");
        return false;
    }
    *ret_order = (struct token_order){.subject = str_of(value[FLAG_SUB]),
                                      .roles = str_of(value[FLAG_ROLE]),
                                      .tenant = str_of(value[FLAG_TENANT]),
                                      .projects = str_of(value[FLAG_PROJECT]),
                                      .audience = str_of(value[FLAG_AUD]),
                                      .ttl_seconds = ttl_ms / 1000};
    return true;
}

static void show_token(const struct invocation *in, struct str token, const char *kid)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    if (!in->json) {
        printf("%.*s\n", STR_ARG(token));
        return;
    }
    jw_start(&w, &text);
    jw_object(&w);
    encode_str(&w, "token", token);
    encode_text(&w, "kid", kid);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

int command_token_mint(const struct invocation *in)
{
    struct token_tool t CLEANUP(token_tool_free) = {0};
    struct token_key key CLEANUP(token_key_free) = {0};
    struct strbuf token CLEANUP(strbuf_free) = {0};
    struct token_order order;
    struct err err;
    char kid[KEY_ID_MAX + 1];
    int code = token_tool_open(in, &t);
    if (code != CLI_OK)
        return code;
    if (!read_order(in, &order))
        return CLI_USAGE;
    if (order.audience.ptr) /* tokens for another server of this issuer may be minted here, too */
        t.policy.audiences = order.audience;
    if (key_files_signer(&t.place, TOKEN_ALG_ES256, str_of(t.actor), t.now, kid, &key, &err) != ERR_OK)
        return cli_err(&err);
    if (token_mint(&order, &t.policy, str_of(kid), &key, t.now, &token, &err) != ERR_OK) {
        cli_fault("%s", err.detail);
        return err.code == ERR_REQUEST_MALFORMED ? CLI_USAGE : CLI_FAILED;
    }
    show_token(in, strbuf_str(&token), kid);
    return CLI_OK;
}

/* --- verify ------------------------------------------------------------------------------------ */

/* One line; spaces around it do not count. Longer than any token is as good as that. */
static struct str read_token(char *buffer, size_t size)
{
    size_t len = fread(buffer, 1, size, stdin);
    while (len && strchr(" \t\r\n", buffer[len - 1]))
        len--;
    struct str token = {buffer, len};
    while (token.len && strchr(" \t\r\n", token.ptr[0]))
        token.ptr++, token.len--;
    return token;
}

struct fact { /* of a verdict: a text or a list */
    const char *name;
    bool show;
    struct str text;
    const struct str *items;
    size_t count;
};

static struct str joined(struct arena *a, const struct str *items, size_t count)
{
    struct str text = STR("");
    for (size_t i = 0; i < count; i++)
        text = arena_printf(a, "%.*s%s%.*s", STR_ARG(text), i ? "," : "", STR_ARG(items[i]));
    return text;
}

static void write_facts(const struct fact *facts, size_t count)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    for (size_t i = 0; i < count; i++) {
        const struct fact *f = &facts[i];
        if (!f->show)
            continue;
        jw_key(&w, f->name);
        if (!f->items) {
            jw_str(&w, f->text);
            continue;
        }
        jw_array(&w);
        for (size_t k = 0; k < f->count; k++)
            jw_str(&w, f->items[k]);
        jw_array_end(&w);
    }
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

static void show_facts(const struct fact *facts, size_t count, struct arena *a)
{
    struct text_table *table = text_table_new(NULL, 2);
    for (size_t i = 0; i < count; i++) {
        const struct fact *f = &facts[i];
        if (!f->show)
            continue;
        text_table_add(table, str_of(f->name));
        text_table_add(table, f->items ? joined(a, f->items, f->count) : f->text);
    }
    text_table_show_and_free(table);
}

static struct str time_of(struct arena *a, int64_t seconds)
{
    char text[TIME_TEXT_MAX];
    return seconds ? arena_str(a, time_text_ms(seconds * 1000, text)) : STR_ABSENT;
}

/* Claims only of a good token: claims of an unverified token mean nothing. */
static void show_verdict(const struct invocation *in, const struct token_verdict *v, struct arena *a)
{
    const struct token_claims *c = &v->claims;
    bool good = v->reason == TOKEN_OK, named = v->kid.ptr != NULL;
    const struct fact facts[] = {
        {"verdict", true, good ? STR("good") : STR("refused")},
        {"reason", true, str_of(token_reason_name(v->reason))},
        {"meaning", true, str_of(token_reason_text(v->reason))},
        {"claim", v->claim != NULL, str_of(v->claim)},
        {"code", true, str_of(token_reason_wire(v->reason))},
        {"kid", named, v->kid},
        {"alg", named, str_of(token_alg_facts[v->alg].name)},
        {"sub", good, c->subject},
        {"roles", good, STR_ABSENT, c->roles, c->role_count},
        {"tenant_id", good, c->tenant_id},
        {"project_scope", good, STR("*"), c->every_project ? NULL : c->projects, c->project_count},
        {"session_id", good, c->session_id},
        {"iss", good, c->issuer},
        {"aud", good, STR_ABSENT, c->audiences, c->audience_count},
        {"iat", good, time_of(a, c->issued_at)},
        {"nbf", good && c->not_before, time_of(a, c->not_before)},
        {"exp", good, time_of(a, c->expires_at)},
        {"jti", good, c->jti},
    };
    if (in->json)
        write_facts(facts, LENGTH_OF(facts));
    else
        show_facts(facts, LENGTH_OF(facts), a);
}

int command_token_verify(const struct invocation *in)
{
    struct token_tool t CLEANUP(token_tool_free) = {0};
    struct arena *a CLEANUP(arena_drop) = arena_new(16384);
    char buffer[2 * TOKEN_BYTES_MAX];
    struct token_verdict verdict;
    int code = token_tool_open(in, &t);
    if (code != CLI_OK)
        return code;
    struct issuer_keys *issuers;
    struct err err;
    if (token_issuers_open(&t.settings, t.now, &issuers, &err) != ERR_OK)
        return cli_err(&err);
    struct token_verifier v = {.keys = key_ring_new(&t.place),
                               .blocklist = blocklist_new(1), /* a server's own; none is lasting */
                               .jtis = jti_table_new(1),
                               .outside = issuers,
                               .outside_jtis = jti_table_new(1),
                               .known_roles = STR(TOKEN_KNOWN_ROLES),
                               .policy = t.policy};
    token_verify(&v, read_token(buffer, sizeof buffer), t.now, a, &verdict);
    show_verdict(in, &verdict, a);
    key_ring_free(v.keys);
    blocklist_free(v.blocklist);
    jti_table_free(v.jtis);
    jti_table_free(v.outside_jtis);
    issuer_keys_free(issuers);
    return (int)exit_code_of_status(token_reason_status(verdict.reason));
}
