#include "tokens/key_ring.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

struct key_ring {
    pthread_mutex_t lock;
    struct key_place place; /* data_dir NULL: nothing on disk */
    char *data_dir, *environment;
    struct key_set set;
    struct key_files_version version; /* of what `set` was read from */
    uint64_t changes;                 /* of it, seen */
    bool loaded;                      /* a manifest has been read */
    bool looking;                     /* a thread is at it */
    pthread_cond_t looked;            /* the look is over */
    int64_t looked_at, good_at;       /* seconds; 0: never */
    int64_t more_at;                  /* the second in which unknown keys were looked for, */
    unsigned more_looks;              /* so often */
    struct err fault;                 /* of the last look; ERR_OK: none */
};

struct key_ring *key_ring_new(const struct key_place *p)
{
    struct key_ring *r = must_alloc(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->looked, NULL);
    r->data_dir = must_strdup(p->data_dir);
    r->environment = must_strdup(p->environment);
    r->place = (struct key_place){.data_dir = r->data_dir, .environment = r->environment};
    return r;
}

struct key_ring *key_ring_of(struct key_set *s)
{
    struct key_ring *r = must_alloc(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->looked, NULL);
    r->set = *s;
    *s = (struct key_set){0};
    return r;
}

struct key_ring *key_ring_free(struct key_ring *r)
{
    if (!r)
        return NULL;
    key_set_free(&r->set);
    free(r->data_dir);
    free(r->environment);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->looked);
    free(r);
    return NULL;
}

static bool same_version(const struct key_files_version *a, const struct key_files_version *b)
{
    return a->modified_ns == b->modified_ns && a->bytes == b->bytes && a->inode == b->inode;
}

/* The result of one look at the disk. */
struct look {
    enum err_code code;
    struct err err;
    bool fresh; /* the manifest has changed: */
    struct key_set set;
    struct key_files_version version;
};

static struct look look_at_disk(const struct key_place *p, bool loaded, const struct key_files_version *known)
{
    struct look l = {0};
    l.code = key_files_version(p, &l.version, &l.err);
    if (l.code == ERR_AUTH_KEY_NOT_FOUND && !loaded)
        l.code = ERR_OK; /* none was ever made */
    else if (l.code == ERR_OK && !(loaded && same_version(&l.version, known))) {
        l.code = key_files_load(p, &l.set, &l.version, &l.err);
        l.fresh = l.code == ERR_OK;
    }
    return l;
}

static void apply(struct key_ring *r, struct look *l, int64_t now)
{
    r->fault = l->err;
    r->fault.code = l->code;
    if (l->code == ERR_OK)
        r->good_at = now;
    if (!l->fresh)
        return;
    key_set_free(&r->set);
    r->set = l->set;
    r->version = l->version;
    r->loaded = true;
    r->changes++;
}

/* One thread reads, the others go on with the keys they have: a long list of RSA keys takes long. */
static void look(struct key_ring *r, int64_t now)
{
    bool others_wait = !r->good_at; /* there is nothing they could go on with */
    struct key_files_version known = r->version;
    bool loaded = r->loaded;
    r->looking = true;
    if (!others_wait)
        pthread_mutex_unlock(&r->lock);
    struct look l = look_at_disk(&r->place, loaded, &known);
    if (!others_wait)
        pthread_mutex_lock(&r->lock);
    r->looking = false;
    apply(r, &l, now);
    pthread_cond_broadcast(&r->looked);
}

/* Once a second; a clock that was set back looks again, too. False: the keys are too old to be trusted. */
static bool refresh(struct key_ring *r, int64_t now)
{
    if (!r->data_dir)
        return true;
    if (now != r->looked_at && !r->looking) {
        r->looked_at = now;
        look(r, now);
    }
    return r->fault.code == ERR_OK || (r->good_at && now - r->good_at <= KEY_RING_STALE_SECONDS);
}

/* A key may be as young as its first token: younger than the look of this second, or than the one that is
 * under way. Unauthenticated callers can name keys that do not exist: looks for them are counted. */
static void look_for_young_key(struct key_ring *r, int64_t now)
{
    if (!r->data_dir)
        return;
    while (r->looking)
        pthread_cond_wait(&r->looked, &r->lock);
    if (r->more_at != now)
        r->more_looks = 0;
    r->more_at = now;
    if (r->more_looks++ < KEY_RING_MORE_LOOKS_MAX)
        look(r, now);
}

enum token_reason key_ring_find(struct key_ring *r, struct str kid, int64_t now, struct token_key *ret_key)
{
    pthread_mutex_lock(&r->lock);
    enum token_reason reason =
        refresh(r, now) ? key_set_lookup(&r->set, kid, now, ret_key) : TOKEN_KEYS_UNREADABLE;
    if (reason == TOKEN_KEY_UNKNOWN) {
        look_for_young_key(r, now);
        reason = key_set_lookup(&r->set, kid, now, ret_key);
    }
    pthread_mutex_unlock(&r->lock);
    return reason;
}

uint64_t key_ring_changes(struct key_ring *r, int64_t now)
{
    pthread_mutex_lock(&r->lock);
    if (r->data_dir && !r->looking) /* a new token still causes another look within this second */
        look(r, now);
    uint64_t changes = r->changes;
    pthread_mutex_unlock(&r->lock);
    return changes;
}

enum err_code key_ring_jwks(struct key_ring *r, int64_t now, struct strbuf *out, struct err *err)
{
    pthread_mutex_lock(&r->lock);
    enum err_code code = ERR_OK;
    if (refresh(r, now)) {
        key_set_write_jwks(&r->set, now, out);
    } else {
        *err = r->fault;
        code = err->code;
    }
    pthread_mutex_unlock(&r->lock);
    return code;
}
