/* Keys that tokens are signed with. */
#include <inttypes.h>

#include "base/clock.h"
#include "cli/doctor.h"
#include "cli/token_internal.h"
#include "tokens/issuer_keys.h"
#include "tokens/key_files.h"

#include "base/banned.h"

enum { DAY_SECONDS = 86400 };

/* Of a set that could be read. */
static struct finding look_at_signer(const struct doctor *d, const struct key_place *p,
                                     const struct key_set *s)
{
    int64_t now = clock_wall_ms(&clock_system) / 1000;
    const struct key_record *signer = key_set_signer(s, now);
    struct token_key key CLEANUP(token_key_free) = {0};
    struct err err;
    if (!signer)
        return finding(FINDING_FAIL, "set the clock, or `weir token rotate`", "no key signs at this time");
    if (key_files_private(p, signer, &key, &err) != ERR_OK)
        return finding(FINDING_FAIL, "nothing can be signed until this is right", "%.240s", err.detail);
    int64_t days = (now - signer->not_before) / DAY_SECONDS;
    if (days >= d->settings.tokens_rotation_days && signer == &s->keys[s->count - 1])
        return finding(FINDING_WARN, "weir token rotate", "%s has signed for %" PRId64 " days", signer->kid,
                       days);
    if (!p->passphrase.ptr && strcmp(p->environment, "dev") != 0)
        return finding(FINDING_WARN, "set tokens.key_passphrase, then rotate twice",
                       "%s signs; private keys lie in clear", signer->kid);
    return finding(FINDING_OK, "", "%s signs, %zu listed", signer->kid, s->count);
}

struct finding doctor_token_keys(const struct doctor *d)
{
    const struct key_place place = {.data_dir = d->settings.data_dir,
                                    .environment = d->settings.environment,
                                    .passphrase = str_of(d->settings.tokens_key_passphrase)};
    struct key_set s CLEANUP(key_set_free) = {0};
    struct key_files_version version;
    struct err err;
    enum err_code code = key_files_load(&place, &s, &version, &err);
    if (code == ERR_OK)
        return look_at_signer(d, &place, &s);
    if (code == ERR_AUTH_KEY_NOT_FOUND)
        return finding(FINDING_OK, "", "none yet; `weir token mint` makes one");
    return finding(FINDING_FAIL, "restore DATA/keys from your copy", "%.240s", err.detail);
}

/* The keys that the server kept of its last fetches, and those in files. */
struct finding doctor_issuers(const struct doctor *d)
{
    int64_t now = clock_wall_ms(&clock_system) / 1000;
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct issuer_keys *k;
    bool all = true;
    struct err err;
    if (!d->settings.tokens_issuers)
        return finding(FINDING_OK, "", "%s", "");
    if (token_issuers_open(&d->settings, now, &k, &err) != ERR_OK)
        return finding(FINDING_FAIL, "no server starts with it", "%.240s", err.detail);
    for (size_t i = 0; i < issuer_keys_count(k); i++) {
        struct issuer_state s;
        issuer_keys_state(k, i, now, &s);
        all = all && s.fresh;
        strbuf_addf(&text, "%s%.60s: ", i ? "; " : "", s.issuer.ptr);
        if (s.age_seconds < 0)
            strbuf_add_text(&text, "no keys were fetched yet");
        else if (s.from_url)
            strbuf_addf(&text, "%zu keys, %" PRId64 " s old%s", s.key_count, s.age_seconds,
                        s.fresh ? "" : ", too old");
        else
            strbuf_addf(&text, "%zu keys in a file", s.key_count);
    }
    issuer_keys_free(k);
    return finding(all ? FINDING_OK : FINDING_WARN,
                   all ? "" : "is the server running, and does the issuer answer? its tokens are refused",
                   "%s", text.ptr);
}
