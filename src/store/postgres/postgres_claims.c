/* Claims of a batch: one statement for all that ask for the same queues of the same client. */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum { CLAIM_MAX = 1024 };

struct claim_group {
    const struct load_claim *claim; /* the first of those that are alike */
    int64_t max;                    /* of all of them */
    size_t result;
};

struct pg_claims {
    struct claim_group *groups;
    size_t count;
};

static bool names_queue(const struct load_claim *c, struct str queue)
{
    for (size_t i = 0; i < c->queue_count; i++)
        if (str_equal(c->queues[i], queue))
            return true;
    return false;
}

static bool is_alike(const struct load_claim *a, const struct load_claim *b)
{
    if (a->client != b->client || a->queue_count != b->queue_count)
        return false;
    for (size_t i = 0; i < a->queue_count; i++)
        if (!str_equal(a->queues[i], b->queues[i]))
            return false;
    return true;
}

static bool can_meet(const struct load_claim *a, const struct load_claim *b)
{
    if (a->client && b->client && a->client != b->client)
        return false;
    for (size_t i = 0; i < a->queue_count; i++)
        if (names_queue(b, a->queues[i]))
            return true;
    return false;
}

static struct claim_group *group_of(struct pg_claims *c, const struct load_claim *claim)
{
    for (size_t i = 0; i < c->count; i++)
        if (is_alike(c->groups[i].claim, claim))
            return &c->groups[i];
    struct claim_group *g = &c->groups[c->count++];
    g->claim = claim;
    return g;
}

/* Rows that an earlier statement of the batch has locked are given to a later statement, too, so it asks for
 * that many more. */
static int64_t limit_of(const struct pg_claims *c, size_t group)
{
    int64_t limit = c->groups[group].max;
    for (size_t i = 0; i < group; i++)
        if (can_meet(c->groups[i].claim, c->groups[group].claim))
            limit += c->groups[i].max;
    return limit > CLAIM_MAX ? CLAIM_MAX : limit;
}

/* Suspended clients and paused queues are read again before anything is decided, when the store number of the
 * webhooks has changed. */
static enum pg_statement statement_of(const struct postgres_store *s, const struct load_claim *c)
{
    static const enum pg_statement statements[2][2][2] = {
        /* by suspended ones, many queues, one client */
        {{PG_CLAIM, PG_CLAIM_OF_CLIENT}, {PG_CLAIM_MANY, PG_CLAIM_MANY_OF_CLIENT}},
        {{PG_ALLOWED_CLAIM, PG_ALLOWED_CLAIM_OF_CLIENT},
         {PG_ALLOWED_CLAIM_MANY, PG_ALLOWED_CLAIM_MANY_OF_CLIENT}},
    };
    const struct live *l = s->base.live;
    bool looks = live_has_suspended(l) || (!c->client && live_has_paused(l));
    return statements[looks][c->queue_count > 1][c->client != 0];
}

static size_t send_claim(struct postgres_store *s, const struct load_claim *c, int64_t limit)
{
    struct pg_params *p = link_params(&s->link);
    if (c->queue_count > 1)
        params_texts(p, c->queues, c->queue_count);
    else
        params_text(p, c->queues[0]);
    params_int(p, limit);
    if (c->client)
        params_int(p, c->client);
    return link_send(&s->link, statement_of(s, c));
}

/* The claim without the queues that its client has paused. */
static const struct load_claim *without_paused(struct postgres_store *s, const struct load_claim *c)
{
    if (!c->client || !live_has_paused(s->base.live))
        return c;
    struct load_claim *copy = ARENA_NEW(s->scratch, struct load_claim);
    struct str *queues = ARENA_ARRAY(s->scratch, struct str, c->queue_count);
    *copy = *c;
    copy->queues = queues;
    copy->queue_count = 0;
    for (size_t i = 0; i < c->queue_count; i++)
        if (!live_is_paused(s->base.live, c->client, c->queues[i]))
            queues[copy->queue_count++] = c->queues[i];
    return copy;
}

struct pg_claims *postgres_send_claims(struct postgres_store *s, const struct load_set *l)
{
    struct pg_claims *c = ARENA_NEW(s->scratch, struct pg_claims);
    c->groups = ARENA_ARRAY(s->scratch, struct claim_group, l->claim_count);
    for (size_t i = 0; i < l->claim_count; i++) {
        const struct load_claim *claim = without_paused(s, &l->claims[i]);
        if (claim->max && claim->queue_count)
            group_of(c, claim)->max += claim->max;
    }
    for (size_t i = 0; i < c->count; i++)
        c->groups[i].result = send_claim(s, c->groups[i].claim, limit_of(c, i));
    return c;
}

enum err_code postgres_take_claims(struct postgres_store *s, const struct pg_claims *c, struct err *err)
{
    for (size_t i = 0; i < c->count; i++) {
        const PGresult *r = link_result(&s->link, c->groups[i].result);
        for (int row = 0; row < PQntuples(r); row++) {
            struct task *t;
            if (postgres_add_task(s, r, row, &t, err) != ERR_OK)
                return err->code;
            postgres_want_receiver(t);
        }
    }
    return ERR_OK;
}
