/* Work that is not handed out: of suspended clients, and of queues that their client has paused. Its lists
 * leave the heaps of their queues until it may go on. */
#include <stdlib.h>

#include "base/must.h"
#include "store/live_internal.h"

#include "base/banned.h"

/* A client, or one queue of it. */
struct suspended {
    struct map_node node;
    int64_t client;
    size_t queue_len; /* 0: all of them */
    char queue[];
};

static uint64_t hash_of(int64_t client, struct str queue)
{
    return live_id_hash(client) ^ (queue.len ? live_text_hash(queue) : 0);
}

static struct suspended *find(const struct live *l, int64_t client, struct str queue)
{
    for (struct map_node *n = map_first(&l->suspended, hash_of(client, queue)); n; n = map_next(n)) {
        struct suspended *s = CONTAINER_OF(n, struct suspended, node);
        if (s->client == client && str_equal((struct str){s->queue, s->queue_len}, queue))
            return s;
    }
    return NULL;
}

bool live_is_paused(const struct live *l, int64_t client, struct str queue)
{
    return l->paused && find(l, client, queue);
}

bool live_is_held(const struct live *l, int64_t client, struct str queue)
{
    return l->suspended.count && (find(l, client, STR("")) || live_is_paused(l, client, queue));
}

bool live_has_suspended(const struct live *l)
{
    return l->suspended.count > l->paused;
}

bool live_has_paused(const struct live *l)
{
    return l->paused > 0;
}

static void move_list(struct live *l, const struct ready_queue *q, int64_t client)
{
    struct ready_list *list = ready_find_list(q, client);
    if (!list || list->delivers)
        return;
    list->suspended = live_is_held(l, client, str_of(q->name));
    ready_list_changed(l, list); /* it has tasks, so it stays */
}

struct moving {
    struct live *live;
    int64_t client;
};

static void move_in_queue(struct map_node *n, void *arg)
{
    const struct moving *m = arg;
    move_list(m->live, CONTAINER_OF(n, struct ready_queue, node), m->client);
}

/* False: nothing changes. */
static bool set(struct live *l, int64_t client, struct str queue, bool suspended)
{
    struct suspended *s = find(l, client, queue);
    if ((s != NULL) == suspended)
        return false;
    if (suspended) {
        s = must_alloc(sizeof *s + queue.len + 1);
        s->client = client;
        s->queue_len = queue.len;
        memcpy(s->queue, queue.ptr, queue.len);
        map_put(&l->suspended, &s->node, hash_of(client, queue));
    } else {
        map_remove(&l->suspended, &s->node);
        free(s);
    }
    return true;
}

void live_suspend(struct live *l, int64_t client, bool suspended)
{
    if (set(l, client, STR(""), suspended))
        map_each(&l->queues, move_in_queue, &(struct moving){l, client});
}

void live_pause(struct live *l, int64_t client, struct str queue, bool paused)
{
    if (!set(l, client, queue, paused))
        return;
    l->paused += paused ? 1 : (size_t)-1;
    struct ready_queue *q = ready_find_queue(l, queue);
    if (q)
        move_list(l, q, client);
}

static void free_one(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct suspended, node));
}

static void resume_list(struct map_node *n, void *arg)
{
    struct ready_list *list = CONTAINER_OF(n, struct ready_list, node);
    list->suspended = false;
    ready_list_changed(arg, list);
}

static void resume_queue(struct map_node *n, void *arg)
{
    map_each(&CONTAINER_OF(n, struct ready_queue, node)->by_client, resume_list, arg);
}

void live_resume_all(struct live *l)
{
    if (!l->suspended.count)
        return;
    map_drain(&l->suspended, free_one, NULL);
    l->paused = 0;
    map_each(&l->queues, resume_queue, l);
}

void live_suspended_free(struct live *l)
{
    map_drain(&l->suspended, free_one, NULL);
    map_free(&l->suspended);
}
