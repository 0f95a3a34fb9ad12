/* api/key_uses.h - when API keys were last used: noted by HTTP threads, stored by the commit thread.
 *
 * A thread notes a key once a minute (its cache of keys, auth.c, knows when it did), so a request costs one
 * comparison. Noted uses are stored once a second, a bounded part at a time, in one transaction; a use within
 * a minute of the stored one is not written. So the stored time is up to a minute, and after a crash a second
 * more, behind the last use.
 *
 * Nodes:   of one database share the rows: it is the last use of all of them.
 * Memory:  fixed; while it is full a use is noted by a later request.
 * Threads: any may note; one at a time saves. */
#ifndef WEIR_API_KEY_USES_H
#define WEIR_API_KEY_USES_H

#include "kernel/unit.h"

enum { KEY_USE_MS = 60000, KEY_USES_MAX = 4096 };

struct key_uses;

struct key_uses *key_uses_new(void);
struct key_uses *key_uses_free(struct key_uses *k); /* NULL is fine; always returns NULL */

/* Whether a use now is worth a note, beside the last one. A clock that was set back makes it so. */
static inline bool key_use_is_news(int64_t last_ms, int64_t now_ms)
{
    return now_ms - last_ms >= KEY_USE_MS || now_ms < last_ms;
}
bool key_uses_note(struct key_uses *k, int64_t key, int64_t now_ms); /* false: there is no room now */
/* As rate_limit_save and rate_limit_saved. */
bool key_uses_save(struct key_uses *k, struct unit *u);
void key_uses_saved(struct key_uses *k, bool stored);

#endif
