#include "store/hooks.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "lifecycle/delivery_lifecycle.h"

#include "base/banned.h"

_Static_assert(JOB_EVENT_COUNT < 31, "a bit per event, and one more");

uint32_t hook_event_bits(struct str events)
{
    uint32_t bits = 0;
    while (events.len) {
        struct str name = str_cut(&events, ',');
        enum job_event e;
        if (str_is(name, "*") || str_is(name, "job.*"))
            bits |= (UINT32_C(1) << JOB_EVENT_COUNT) - 1;
        if (str_is(name, "*") || str_is(name, webhook_event_text(WEBHOOK_EVENT_DISABLED)))
            bits |= HOOK_HEARS_DISABLED;
        if (job_event_parse(name, &e))
            bits |= UINT32_C(1) << e;
    }
    return bits;
}

static struct client_hooks *find(const struct hooks *h, int64_t client)
{
    for (struct map_node *n = map_first(&h->by_client, hash_mix((uint64_t)client)); n; n = map_next(n)) {
        struct client_hooks *c = CONTAINER_OF(n, struct client_hooks, node);
        if (c->client == client)
            return c;
    }
    return NULL;
}

const struct client_hooks *hooks_of(const struct hooks *h, int64_t client)
{
    return h->by_client.count ? find(h, client) : NULL;
}

static struct hook *find_hook(struct client_hooks *c, int64_t id)
{
    for (size_t i = 0; c && i < c->count; i++)
        if (c->hooks[i].id == id)
            return &c->hooks[i];
    return NULL;
}

static struct hook *add_hook(struct hooks *h, int64_t client)
{
    struct client_hooks *c = find(h, client);
    if (!c) {
        c = must_alloc(sizeof *c);
        c->client = client;
        map_put(&h->by_client, &c->node, hash_mix((uint64_t)client));
    }
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? c->capacity * 2 : 4;
        c->hooks = must_realloc(c->hooks, c->capacity * sizeof *c->hooks);
    }
    return &c->hooks[c->count++];
}

void hooks_put(struct hooks *h, const struct webhook_row *row)
{
    struct hook *hook = find_hook(find(h, row->client), row->id);
    if (!hook)
        hook = add_hook(h, row->client);
    *hook =
        (struct hook){.id = row->id, .events = hook_event_bits(row->events), .enabled = row->enabled != 0};
}

static void free_client(struct map_node *n, void *arg)
{
    (void)arg;
    struct client_hooks *c = CONTAINER_OF(n, struct client_hooks, node);
    free(c->hooks);
    free(c);
}

void hooks_remove(struct hooks *h, const struct webhook_row *row)
{
    struct client_hooks *c = find(h, row->client);
    struct hook *hook = find_hook(c, row->id);
    if (!hook)
        return;
    size_t behind = (size_t)(c->hooks + c->count - hook) - 1;
    memmove(hook, hook + 1, behind * sizeof *hook);
    if (--c->count)
        return;
    map_remove(&h->by_client, &c->node);
    free_client(&c->node, NULL);
}

void hooks_free(struct hooks *h)
{
    map_drain(&h->by_client, free_client, NULL);
    map_free(&h->by_client);
}
