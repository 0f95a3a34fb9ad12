#include "unit/jobs/deliver_calls.h"

#include <stdio.h>

#include "base/banned.h"

static char queue_names[DELIVERY_SLOTS][DELIVERY_QUEUE_MAX];
static struct str queues[DELIVERY_SLOTS];

static void name_queues(const char *kind)
{
    for (int i = 0; i < DELIVERY_SLOTS; i++) {
        snprintf(queue_names[i], sizeof queue_names[i], "~%s.%d", kind, i);
        queues[i] = str_of(queue_names[i]);
    }
}

struct claim_command *claim_unstarted(struct rig *r, const char *kind, uint32_t max)
{
    struct claim_command *c = ARENA_NEW(r->arena, struct claim_command);
    c->worker_id = str_of(kind);
    c->queues = queues;
    c->queue_count = DELIVERY_SLOTS;
    c->max = max;
    c->tasks = ARENA_ARRAY(r->arena, struct claimed_task, CLAIMED_MAX);
    name_queues(kind);
    rig_post(r, &c->base, &claim_command_type);
    rig_step(r);
    return c;
}

struct claim_command *claim_from(struct rig *r, const char *kind, uint32_t max)
{
    struct claim_command *c = claim_unstarted(r, kind, max);
    for (uint32_t i = 0; i < c->task_count; i++)
        rig_post_work(r, &start_command_type, &c->tasks[i], true);
    rig_step(r);
    return c;
}

struct claim_command *claim_some(struct rig *r, uint32_t max)
{
    return claim_from(r, "deliver", max);
}

struct claim_command *claim_letters(struct rig *r)
{
    return claim_from(r, "replay", CLAIMED_MAX);
}

struct claim_command *claim_all(struct rig *r)
{
    return claim_some(r, CLAIMED_MAX);
}

enum err_code answer(struct rig *r, const struct claimed_task *t, int64_t status)
{
    return answer_later(r, t, status, 0);
}

enum err_code answer_later(struct rig *r, const struct claimed_task *t, int64_t status,
                           int64_t retry_after_ms)
{
    struct worker_command *c = ARENA_NEW(r->arena, struct worker_command);
    struct worker_item *item = ARENA_NEW(r->arena, struct worker_item);
    *item = (struct worker_item){.id = t->id, .token = t->token, .low = t->low};
    item->outcome = (struct task_outcome){.success = status >= 200 && status < 300,
                                          .status = status,
                                          .duration_ms = 7,
                                          .retry_after_ms = retry_after_ms,
                                          .error_code = status ? STR("http_status") : STR("timeout"),
                                          .retryable = status != 410};
    c->items = item;
    c->item_count = 1;
    rig_post(r, &c->base, &finish_command_type);
    rig_step(r);
    return item->code;
}

struct delivery_row row_of(struct rig *r, int64_t id)
{
    struct delivery_row row = {.id = id};
    assert_true(rig_row(r, &table_delivery_row, &row));
    return row;
}

int64_t new_webhook(struct rig *r, int64_t client, const char *url, const char *events)
{
    struct create_webhook_command *c = ARENA_NEW(r->arena, struct create_webhook_command);
    c->client = client;
    c->url = str_of(url);
    c->events = str_of(events);
    memcpy(c->fingerprint, url, 8);
    rig_post(r, &c->base, &create_webhook_command_type);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    return c->id;
}

struct claim_command *claim_slot(struct rig *r, const char *kind, uint32_t slot)
{
    struct claim_command *c = ARENA_NEW(r->arena, struct claim_command);
    name_queues(kind);
    c->worker_id = STR("gateway");
    c->queues = &queues[slot];
    c->queue_count = 1;
    c->max = 2;
    c->start = true;
    c->tasks = ARENA_ARRAY(r->arena, struct claimed_task, 2);
    rig_post(r, &c->base, &claim_command_type);
    rig_step(r);
    return c;
}

struct webhook_row webhook_of(struct rig *r, int64_t id)
{
    struct webhook_row row = {.id = id};
    assert_true(rig_row(r, &table_webhook_row, &row));
    return row;
}

enum err_code try_ask(struct rig *r, int64_t client, int64_t hook, enum webhook_action action,
                      int64_t delivery)
{
    struct webhook_command *c = ARENA_NEW(r->arena, struct webhook_command);
    c->action = action;
    c->client = client;
    c->id = hook;
    c->low = (uint64_t)webhook_of(r, hook).low;
    if (delivery) {
        c->delivery_id = delivery;
        c->delivery_low = (uint64_t)row_of(r, delivery).low;
    }
    rig_post(r, &c->base, &webhook_command_type);
    rig_step(r);
    return c->base.result;
}

void ask(struct rig *r, int64_t client, int64_t hook, enum webhook_action action, int64_t delivery)
{
    assert_int_equal(try_ask(r, client, hook, action, delivery), ERR_OK);
}

void send_test(struct rig *r, int64_t client, int64_t hook)
{
    ask(r, client, hook, WEBHOOK_TEST, 0);
}
