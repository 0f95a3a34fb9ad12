/* Clients whose work is not handed out: their lists leave the heaps of their queues until they resume. */
#include <stdlib.h>

#include "base/must.h"
#include "store/live_internal.h"

#include "base/banned.h"

struct suspended {
    struct map_node node;
    int64_t client;
};

static struct suspended *find(const struct live *l, int64_t client)
{
    for (struct map_node *n = map_first(&l->suspended, live_id_hash(client)); n; n = map_next(n)) {
        struct suspended *s = CONTAINER_OF(n, struct suspended, node);
        if (s->client == client)
            return s;
    }
    return NULL;
}

bool live_is_suspended(const struct live *l, int64_t client)
{
    return l->suspended.count && find(l, client);
}

bool live_has_suspended(const struct live *l)
{
    return l->suspended.count > 0;
}

struct moving {
    struct live *live;
    int64_t client;
    bool suspended;
};

static void move_list(struct map_node *n, void *arg)
{
    const struct moving *m = arg;
    struct ready_list *list = ready_find_list(CONTAINER_OF(n, struct ready_queue, node), m->client);
    if (!list || list->delivers)
        return;
    list->suspended = m->suspended;
    ready_list_changed(m->live, list); /* it has tasks, so it stays */
}

void live_suspend(struct live *l, int64_t client, bool suspended)
{
    struct suspended *s = find(l, client);
    if ((s != NULL) == suspended)
        return;
    if (suspended) {
        s = must_alloc(sizeof *s);
        s->client = client;
        map_put(&l->suspended, &s->node, live_id_hash(client));
    } else {
        map_remove(&l->suspended, &s->node);
        free(s);
    }
    map_each(&l->queues, move_list, &(struct moving){l, client, suspended});
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
    map_each(&l->queues, resume_queue, l);
}

void live_suspended_free(struct live *l)
{
    map_drain(&l->suspended, free_one, NULL);
    map_free(&l->suspended);
}
