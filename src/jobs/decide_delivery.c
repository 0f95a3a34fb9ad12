/* Actions on an existing webhook: a test, another try of a delivery, a new secret, enabling. */
#include "jobs/client_commands.h"
#include "jobs/deliver.h"
#include "lifecycle/delivery_lifecycle.h"

#include "base/banned.h"

static void load_webhook_command(struct unit *u, struct command *base)
{
    struct webhook_command *c = (struct webhook_command *)base;
    unit_prefetch(u, &table_webhook_row, &(struct webhook_row){.id = c->id});
    if (c->action == WEBHOOK_REDELIVER)
        unit_prefetch(u, &table_delivery_row, &(struct delivery_row){.id = c->delivery_id});
}

static void send_test(struct unit *u, struct webhook_command *c, const struct webhook_row *hook)
{
    struct delivery_row *d = deliver_new(u, hook->client, hook->id, 0, 0);
    deliver_append(u, d);
    c->delivery_id = d->id;
    c->delivery_low = (uint64_t)d->low;
}

static void enable(struct unit *u, struct webhook_row *hook)
{
    if (hook->enabled && !hook->failing_since_ms)
        return;
    hook->enabled = 1;
    hook->failing_since_ms = 0;
    unit_update(u, &table_webhook_row, hook);
}

/* Both secrets sign until the rotation is over, so that a receiver can change at its leisure. */
static void rotate(struct unit *u, const struct webhook_command *c, struct webhook_row *hook)
{
    hook->former = hook->secret;
    hook->secret = arena_str(u->arena, (struct str){(const char *)c->secret, sizeof c->secret});
    hook->rotated_ms = u->now_ms;
    unit_update(u, &table_webhook_row, hook);
}

static enum err_code redeliver(struct unit *u, const struct webhook_command *c,
                               const struct webhook_row *hook, struct err *err)
{
    struct delivery_row *d = unit_row(u, &table_delivery_row, &(struct delivery_row){.id = c->delivery_id});
    if (!d || (uint64_t)d->low != c->delivery_low || d->webhook != hook->id)
        return err_set(err, ERR_WEBHOOK_NOT_FOUND, "the webhook has no delivery with this id");
    enum delivery_state to;
    if (!delivery_move((enum delivery_state)d->state, DELIVERY_ON_REDELIVER, &to))
        return ERR_OK; /* it waits to be sent already */
    d->state = to;
    unit_update(u, &table_delivery_row, d);
    deliver_append_again(u, d);
    return ERR_OK;
}

static enum err_code decide_webhook_command(struct unit *u, struct command *base, struct err *err)
{
    struct webhook_command *c = (struct webhook_command *)base;
    struct webhook_row *hook = unit_row(u, &table_webhook_row, &(struct webhook_row){.id = c->id});
    if (!hook || (uint64_t)hook->low != c->low)
        return err_set(err, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
    if (hook->client != c->client)
        return err_set(err, ERR_AUTH_FORBIDDEN, "the webhook belongs to another client");
    if (!hook->enabled && (c->action == WEBHOOK_TEST || c->action == WEBHOOK_REDELIVER))
        return err_set(err, ERR_WEBHOOK_CONFLICT, "the webhook is disabled; enable it first");
    switch (c->action) {
    case WEBHOOK_TEST:
        send_test(u, c, hook);
        return ERR_OK;
    case WEBHOOK_ENABLE:
        enable(u, hook);
        return ERR_OK;
    case WEBHOOK_ROTATE:
        rotate(u, c, hook);
        return ERR_OK;
    case WEBHOOK_REDELIVER:
        return redeliver(u, c, hook, err);
    }
    return ERR_OK;
}

const struct command_type webhook_command_type = {"webhook", load_webhook_command, decide_webhook_command};
