#include "api/followers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

struct followed {
    struct map_node node;
    int64_t job;
    uint32_t count;
    _Atomic uint64_t news;
};

struct followers {
    pthread_mutex_t lock;
    struct map jobs;
    _Atomic uint32_t count;
    _Atomic uint64_t elsewhere; /* news of other nodes */
};

struct followers *followers_new(void)
{
    struct followers *f = must_alloc(sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void free_followed(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct followed, node));
}

struct followers *followers_free(struct followers *f)
{
    if (!f)
        return NULL;
    map_drain(&f->jobs, free_followed, NULL);
    map_free(&f->jobs);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return NULL;
}

static struct followed *find(struct followers *f, int64_t job)
{
    for (struct map_node *n = map_first(&f->jobs, hash_mix((uint64_t)job)); n; n = map_next(n)) {
        struct followed *j = CONTAINER_OF(n, struct followed, node);
        if (j->job == job)
            return j;
    }
    return NULL;
}

struct followed *followers_join(struct followers *f, int64_t job)
{
    pthread_mutex_lock(&f->lock);
    struct followed *j = find(f, job);
    if (!j) {
        j = must_alloc(sizeof *j);
        j->job = job;
        map_put(&f->jobs, &j->node, hash_mix((uint64_t)job));
    }
    j->count++;
    atomic_fetch_add(&f->count, 1);
    pthread_mutex_unlock(&f->lock);
    return j;
}

void followers_leave(struct followers *f, struct followed *j)
{
    pthread_mutex_lock(&f->lock);
    atomic_fetch_sub(&f->count, 1);
    if (--j->count == 0) {
        map_remove(&f->jobs, &j->node);
        free(j);
    }
    pthread_mutex_unlock(&f->lock);
}

uint64_t followed_news(const struct followed *j)
{
    return atomic_load(&j->news);
}

static bool announce(struct followers *f, int64_t id)
{
    struct followed *j = find(f, id);
    if (j)
        atomic_fetch_add(&j->news, 1);
    return j != NULL;
}

bool followers_publish(struct followers *f, const struct unit *u)
{
    if (!u->notices.count || !atomic_load(&f->count))
        return false;
    bool any = false;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < u->notices.count; i++) {
        const struct notice *n = &u->notices.list[i];
        any |= n->kind->subject && announce(f, n->kind->subject(n->row));
    }
    pthread_mutex_unlock(&f->lock);
    return any;
}

bool followers_look_again(struct followers *f)
{
    atomic_fetch_add(&f->elsewhere, 1);
    return atomic_load(&f->count) != 0;
}

uint64_t followers_elsewhere(const struct followers *f)
{
    return atomic_load(&f->elsewhere);
}
