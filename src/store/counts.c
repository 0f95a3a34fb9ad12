#include "store/counts.h"

#include <stdlib.h>

#include "base/must.h"
#include "store/row_rules.h"

#include "base/banned.h"

struct client_counts *counts_of(struct counts_table *t, int64_t client)
{
    MUST(client > 0 && client < CLIENT_NUMBER_MAX);
    size_t i = (size_t)client;
    if (i >= t->capacity) {
        size_t capacity = t->capacity ? t->capacity : 64;
        while (capacity <= i)
            capacity *= 2;
        t->clients = must_realloc(t->clients, capacity * sizeof *t->clients);
        memset(t->clients + t->capacity, 0, (capacity - t->capacity) * sizeof *t->clients);
        t->capacity = capacity;
    }
    if (t->clients[i])
        return t->clients[i];
    if (t->made_count == t->made_capacity) {
        t->made_capacity = t->made_capacity ? t->made_capacity * 2 : 64;
        t->made = must_realloc(t->made, t->made_capacity * sizeof *t->made);
    }
    t->made[t->made_count++] = client;
    t->clients[i] = must_alloc(sizeof *t->clients[i]);
    return t->clients[i];
}

void counts_clear(struct counts_table *t)
{
    for (size_t i = 0; i < t->made_count; i++) {
        free(t->clients[t->made[i]]);
        t->clients[t->made[i]] = NULL;
    }
    t->made_count = 0;
}

void counts_free(struct counts_table *t)
{
    counts_clear(t);
    free(t->clients);
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
