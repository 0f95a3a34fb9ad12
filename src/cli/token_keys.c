/* weir token keys, rotate, revoke-key: the key set of the data directory. */
#include <pwd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/time_text.h"
#include "cli/table.h"
#include "cli/token_internal.h"

#include "base/banned.h"

enum { DAY_SECONDS = 86400 };

static void name_actor(char out[TOKEN_ACTOR_MAX])
{
    char buffer[1024];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found)
        snprintf(out, TOKEN_ACTOR_MAX, "%s", found->pw_name);
    else
        snprintf(out, TOKEN_ACTOR_MAX, "uid %u", (unsigned)geteuid());
}

void token_tool_free(struct token_tool *t)
{
    settings_free(&t->settings);
}

enum err_code token_issuers_open(const struct settings *s, int64_t now, struct issuer_keys **ret_keys,
                                 struct err *err)
{
    char own[SETTINGS_ISSUER_MAX];
    struct issuer_rules rules = {.data_dir = s->data_dir,
                                 .refresh_seconds = s->tokens_jwks_refresh_seconds,
                                 .max_age_seconds = s->tokens_jwks_max_age_seconds};
    settings_tokens_issuer(s, own);
    return issuer_keys_open(s->tokens_issuers, str_of(own), &rules, now, ret_keys, err);
}

int token_tool_open(const struct invocation *in, struct token_tool *ret_tool)
{
    struct token_tool *t = ret_tool;
    const struct settings *s = &t->settings;
    struct err err;
    int code = cli_settings(in, &t->settings);
    if (code != CLI_OK)
        return code;
    settings_tokens_issuer(s, t->issuer);
    t->place = (struct key_place){
        .data_dir = s->data_dir,
        .environment = s->environment,
        .passphrase = str_of(s->tokens_key_passphrase),
        .rules = {s->tokens_overlap_seconds, s->tokens_history_days * DAY_SECONDS},
    };
    t->policy = (struct token_policy){
        .issuer = str_of(t->issuer),
        .audiences = str_of(s->tokens_audience),
        .required = TOKEN_FOR_ANY,
        .skew_seconds = s->tokens_skew_seconds,
        .ttl_seconds_max = s->tokens_max_ttl_seconds,
    };
    name_actor(t->actor);
    t->now = clock_wall_ms(&clock_system) / 1000;
    return token_agents_parse(str_of(s->tokens_agent_roles), &t->policy, &err) == ERR_OK ? CLI_OK
                                                                                         : cli_err(&err);
}

static struct str time_or_absent(int64_t seconds, char out[TIME_TEXT_MAX])
{
    return seconds ? time_text_ms(seconds * 1000, out) : STR_ABSENT;
}

static enum tone tone_of(enum key_state state)
{
    switch (state) {
    case KEY_SIGNING:
        return TONE_GOOD;
    case KEY_PENDING:
    case KEY_VERIFYING:
        return TONE_BUSY;
    case KEY_REVOKED:
        return TONE_BAD;
    case KEY_RETIRED:
    case KEY_STATE_COUNT:
        break;
    }
    return TONE_DIM;
}

static void show_keys(const struct key_set *s, int64_t now)
{
    static const char *const headings[] = {"!KID", "ALG", "STATE", "SIGNS FROM", "VERIFIES UNTIL", "REVOKED"};
    struct text_table *table = text_table_new(headings, LENGTH_OF(headings));
    for (size_t i = s->count; i-- > 0;) { /* newest first */
        const struct key_record *k = &s->keys[i];
        enum key_state state = key_set_state(s, k, now);
        char from[TIME_TEXT_MAX], until[TIME_TEXT_MAX], revoked[TIME_TEXT_MAX];
        text_table_add(table, str_of(k->kid));
        text_table_add(table, str_of(token_alg_facts[k->key.alg].name));
        text_table_add_tone(table, str_of(key_state_name(state)), tone_of(state));
        text_table_add(table, time_or_absent(k->not_before, from));
        text_table_add(table, time_or_absent(k->retires_at, until));
        if (k->revoked_at)
            text_table_addf(table, "%.*s by %s: %s", STR_ARG(time_or_absent(k->revoked_at, revoked)),
                            k->revoked_by, k->revoked_reason);
        else
            text_table_add(table, STR_ABSENT);
    }
    text_table_show_and_free(table);
}

static void write_key(const struct key_set *s, const struct key_record *k, int64_t now, struct json_writer *w)
{
    char created[TIME_TEXT_MAX], from[TIME_TEXT_MAX], until[TIME_TEXT_MAX], revoked[TIME_TEXT_MAX];
    const struct {
        const char *name;
        struct str text;
    } members[] = {
        {"kid", str_of(k->kid)},
        {"alg", str_of(token_alg_facts[k->key.alg].name)},
        {"state", str_of(key_state_name(key_set_state(s, k, now)))},
        {"created_at", time_or_absent(k->created_at, created)},
        {"created_by", str_of(k->created_by)},
        {"not_before", time_or_absent(k->not_before, from)},
        {"retires_at", time_or_absent(k->retires_at, until)},
        {"revoked_at", time_or_absent(k->revoked_at, revoked)},
        {"revoked_by", k->revoked_at ? str_of(k->revoked_by) : STR_ABSENT},
        {"revoked_reason", k->revoked_at ? str_of(k->revoked_reason) : STR_ABSENT},
    };
    jw_object(w);
    for (size_t i = 0; i < LENGTH_OF(members); i++)
        encode_str(w, members[i].name, members[i].text);
    jw_object_end(w);
}

static void write_keys(const struct key_set *s, int64_t now)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "environment", s->environment);
    jw_key(&w, "keys");
    jw_array(&w);
    for (size_t i = s->count; i-- > 0;)
        write_key(s, &s->keys[i], now, &w);
    jw_array_end(&w);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

int command_token_keys(const struct invocation *in)
{
    struct token_tool t CLEANUP(token_tool_free) = {0};
    struct key_set s CLEANUP(key_set_free) = {0};
    struct key_files_version version;
    struct err err;
    int code = token_tool_open(in, &t);
    if (code != CLI_OK)
        return code;
    if (key_files_load(&t.place, &s, &version, &err) != ERR_OK)
        return cli_err(&err);
    if (in->json)
        write_keys(&s, t.now);
    else
        show_keys(&s, t.now);
    const struct key_record *signer = key_set_signer(&s, t.now);
    bool due = signer && t.now - signer->not_before > t.settings.tokens_rotation_days * DAY_SECONDS &&
               signer == &s.keys[s.count - 1];
    if (due)
        cli_note(in, "The key that signs is older than %lld days: weir token rotate",
                 (long long)t.settings.tokens_rotation_days);
    return CLI_OK;
}

static void tell_change(const struct invocation *in, const struct token_tool *t, const char *kid,
                        const struct key_record *made)
{
    char from[TIME_TEXT_MAX];
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    time_or_absent(made->not_before, from);
    if (!in->json) {
        if (kid)
            printf("revoked %s\n", kid);
        if (made->kid[0])
            printf("%s signs from %s\n", made->kid, made->not_before <= t->now ? "now on" : from);
        return;
    }
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "revoked", kid);
    encode_text(&w, "kid", made->kid[0] ? made->kid : NULL);
    encode_str(&w, "not_before", time_or_absent(made->not_before, from));
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

/* The algorithm asked for, else that of the newest key, else ES256. False: told. */
static bool choose_alg(const struct invocation *in, const struct token_tool *t, enum token_alg *ret_alg)
{
    const char *asked = in->flags->value[FLAG_ALG];
    struct key_set s CLEANUP(key_set_free) = {0};
    struct key_files_version version;
    struct err ignored; /* the rotation itself will tell */
    *ret_alg = TOKEN_ALG_ES256;
    if (asked && !token_alg_parse(str_of(asked), ret_alg)) {
        cli_fault("--alg must be RS256, RS384, RS512, ES256, ES384 or ES512");
        return false;
    }
    if (!asked && key_files_load(&t->place, &s, &version, &ignored) == ERR_OK && s.count)
        *ret_alg = s.keys[s.count - 1].key.alg;
    return true;
}

int command_token_rotate(const struct invocation *in)
{
    struct token_tool t CLEANUP(token_tool_free) = {0};
    struct key_record made;
    enum token_alg alg;
    struct err err;
    int code = token_tool_open(in, &t);
    if (code != CLI_OK)
        return code;
    if (!choose_alg(in, &t, &alg))
        return CLI_USAGE;
    if (key_files_rotate(&t.place, alg, str_of(t.actor), t.now, &made, &err) != ERR_OK)
        return cli_err(&err);
    tell_change(in, &t, NULL, &made);
    cli_note(in, "Tokens of the former key stay good for %lld seconds more.",
             (long long)(t.place.rules.overlap_seconds + made.not_before - t.now));
    return CLI_OK;
}

int command_token_revoke_key(const struct invocation *in)
{
    struct token_tool t CLEANUP(token_tool_free) = {0};
    struct key_record made;
    struct err err;
    const char *given = in->flags->value[FLAG_REASON];
    struct str reason = given ? str_of(given) : STR("not given");
    int code = token_tool_open(in, &t);
    if (code != CLI_OK)
        return code;
    if (!token_name_is_sound(reason) || reason.len > KEY_REASON_MAX || !str_is_utf8(reason)) {
        cli_fault("--reason is 1 to %d bytes of text", KEY_REASON_MAX);
        return CLI_USAGE;
    }
    if (key_files_revoke(&t.place, str_of(in->args[0]), str_of(t.actor), reason, t.now, &made, &err) !=
        ERR_OK)
        return cli_err(&err);
    tell_change(in, &t, in->args[0], &made);
    return CLI_OK;
}
