#include "store/counts.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/must.h"
#include "store/row_rules.h"

#include "base/banned.h"

static struct counted_client *find(const struct counts_table *t, int64_t client)
{
    for (struct map_node *n = map_first(&t->by_client, hash_mix((uint64_t)client)); n; n = map_next(n)) {
        struct counted_client *c = CONTAINER_OF(n, struct counted_client, node);
        if (c->client == client)
            return c;
    }
    return NULL;
}

struct client_counts *counts_find(const struct counts_table *t, int64_t client)
{
    struct counted_client *c = find(t, client);
    return c ? &c->counts : NULL;
}

struct client_counts *counts_of(struct counts_table *t, int64_t client)
{
    MUST(client > 0 && client < CLIENT_NUMBER_MAX);
    struct counted_client *c = find(t, client);
    if (c)
        return &c->counts;
    if (t->made_count == t->made_capacity) {
        t->made_capacity = t->made_capacity ? t->made_capacity * 2 : 64;
        t->made = must_realloc(t->made, t->made_capacity * sizeof *t->made);
    }
    c = must_alloc(sizeof *c);
    c->client = client;
    map_put(&t->by_client, &c->node, hash_mix((uint64_t)client));
    t->made[t->made_count++] = c;
    return &c->counts;
}

int64_t counts_unfinished(const struct client_counts *c)
{
    int64_t n = 0;
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        n += job_state_is_final((enum job_state)i) ? 0 : c->by_state[i];
    return n;
}

void counts_remove(struct counts_table *t, int64_t client)
{
    struct counted_client *c = find(t, client);
    for (size_t i = 0; c && i < t->made_count; i++)
        if (t->made[i] == c) {
            t->made[i] = t->made[--t->made_count];
            map_remove(&t->by_client, &c->node);
            free(c);
            return;
        }
}

void counts_drop_idle(struct counts_table *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->made_count; i++) {
        struct counted_client *c = t->made[i];
        if (counts_unfinished(&c->counts)) {
            t->made[kept++] = c;
            continue;
        }
        map_remove(&t->by_client, &c->node);
        free(c);
    }
    t->made_count = kept;
}

void counts_clear(struct counts_table *t)
{
    for (size_t i = 0; i < t->made_count; i++)
        free(t->made[i]);
    t->made_count = 0;
    map_clear(&t->by_client);
}

void counts_free(struct counts_table *t)
{
    counts_clear(t);
    map_free(&t->by_client);
    free(t->made);
    *t = (struct counts_table){0};
}

struct str counts_bytes(const struct client_counts *c)
{
    return (struct str){(const char *)c, sizeof *c};
}

void counts_from_bytes(struct client_counts *c, struct str bytes)
{
    *c = (struct client_counts){0};
    if (bytes.len)
        memcpy(c, bytes.ptr, bytes.len < sizeof *c ? bytes.len : sizeof *c);
}

void counts_add(struct client_counts *c, struct str bytes)
{
    struct client_counts more;
    counts_from_bytes(&more, bytes);
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        c->by_state[i] += more.by_state[i];
    for (int i = 0; i < WORK_KIND_COUNT; i++)
        c->by_kind[i] += more.by_kind[i];
}
