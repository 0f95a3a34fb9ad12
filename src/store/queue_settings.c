#include "store/queue_settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/must.h"

#include "base/banned.h"

struct set_queue {
    struct map_node node;
    struct queue_row row;
    char name[]; /* of the row */
};

static uint64_t hash_of(int64_t client, struct str queue)
{
    return hash_mix((uint64_t)client ^ hash_secret(queue.ptr, queue.len));
}

static struct set_queue *find(const struct queue_settings *q, int64_t client, struct str queue)
{
    for (struct map_node *n = map_first(&q->rows, hash_of(client, queue)); n; n = map_next(n)) {
        struct set_queue *s = CONTAINER_OF(n, struct set_queue, node);
        if (s->row.client == client && str_equal(s->row.queue, queue))
            return s;
    }
    return NULL;
}

const struct queue_row *queue_settings_find(const struct queue_settings *q, int64_t client, struct str queue)
{
    const struct set_queue *s = q->rows.count ? find(q, client, queue) : NULL;
    return s ? &s->row : NULL;
}

void queue_settings_put(struct queue_settings *q, const struct queue_row *row)
{
    struct set_queue *s = find(q, row->client, row->queue);
    if (!s) {
        s = must_alloc(sizeof *s + row->queue.len + 1);
        memcpy(s->name, row->queue.ptr, row->queue.len);
        map_put(&q->rows, &s->node, hash_of(row->client, row->queue));
    }
    s->row = *row;
    s->row.queue = (struct str){s->name, row->queue.len};
}

static void free_one(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct set_queue, node));
}

void queue_settings_remove(struct queue_settings *q, const struct queue_row *row)
{
    struct set_queue *s = find(q, row->client, row->queue);
    if (!s)
        return;
    map_remove(&q->rows, &s->node);
    free(s);
}

struct each {
    int64_t client;
    void (*fn)(const struct queue_row *row, void *arg);
    void *arg;
};

static void call_one(struct map_node *n, void *arg)
{
    const struct each *e = arg;
    const struct set_queue *s = CONTAINER_OF(n, struct set_queue, node);
    if (s->row.client == e->client)
        e->fn(&s->row, e->arg);
}

void queue_settings_each(const struct queue_settings *q, int64_t client,
                         void (*fn)(const struct queue_row *row, void *arg), void *arg)
{
    struct each e = {client, fn, arg};
    map_each(&q->rows, call_one, &e);
}

void queue_settings_free(struct queue_settings *q)
{
    map_drain(&q->rows, free_one, NULL);
    map_free(&q->rows);
}
