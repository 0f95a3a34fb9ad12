/* Keys that tokens are signed with. */
#include <inttypes.h>

#include "base/clock.h"
#include "cli/doctor.h"
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
