/* Receivers of deliveries, and how many deliveries each gets at a time, over all lanes of all nodes.
 *
 * The state of a receiver is a row of `targets`. A batch that claims or ends streams of a receiver holds the
 * lock of that row; an index counts how many streams are claimed. So no two batches give away the same slot.
 * Batches that change streams in other ways (a job has one more event) lock no receiver: for them it is
 * unknown and admits no stream.
 *
 * A stream that has to wait for a slot must not stand before streams that need not wait. The claim that meets
 * it sets its phase to 3 (waits for a slot), and the batch that ends a stream of the receiver readies as many
 * waiting streams as have a slot then. Streams of a closed receiver get the time at which it may be tried
 * again. No stream is left behind for ever: now and then the holder of the duties readies the first stream of
 * every receiver of which none is claimed (a claim skips a stream while another batch holds its lock). */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum {
    LOOK_MS = 10000,          /* between looks for those left behind */
    REWRITE_MS = 600000,      /* a row that is in use shows it */
    FORGET_MS = 6 * 600000,   /* one that is not goes */
    FORGET_MAX = 1000,        /* at a time */
    PHASE_WAITS_FOR_SLOT = 3, /* in the column `phase`: ready, and waits for a slot */
};
_Static_assert(TASK_WAITING == 0 && TASK_READY == 1 && TASK_LEASED == 2, "the statements go by these");

/* --- loading ---------------------------------------------------------------------------------------- */

struct receiver_list {
    struct receiver **receivers;
    size_t count;
};

static void count_wanted(struct receiver *x, void *arg)
{
    *(size_t *)arg += x->unknown && x->wanted;
}

static void add_wanted(struct receiver *x, void *arg)
{
    struct receiver_list *list = arg;
    if (x->unknown && x->wanted)
        list->receivers[list->count++] = x;
}

void postgres_want_receiver(const struct task *t)
{
    if (t && t->receiver)
        t->receiver->wanted = true;
}

/* Receivers, and how many of each are in memory as claimed: before anything is decided the active ones. */
static void add_receivers(struct pg_params *p, const struct receiver_list *list)
{
    params_array(p, COLUMN_INT, list->count);
    for (size_t i = 0; i < list->count; i++)
        params_add_int(p, list->receivers[i]->id);
    params_array_end(p);
    params_array(p, COLUMN_INT, list->count);
    for (size_t i = 0; i < list->count; i++)
        params_add_int(p, list->receivers[i]->active);
    params_array_end(p);
}

static enum err_code take_waiting(struct postgres_store *s, size_t result, struct err *err)
{
    const PGresult *r = link_result(&s->link, result);
    for (int i = 0; i < PQntuples(r); i++) {
        struct task *t;
        if (postgres_add_task(s, r, i, &t, err) != ERR_OK)
            return err->code;
        t->stored_waits_for_slot = true;
    }
    return ERR_OK;
}

static void take_receivers(struct postgres_store *s, size_t states, size_t claimed)
{
    struct live *live = s->base.live;
    const PGresult *r = link_result(&s->link, claimed);
    for (int i = 0; i < PQntuples(r); i++) {
        struct receiver *x = live_receiver(live, value_int(r, i, 0));
        int64_t n = value_int(r, i, 1);
        if (x)
            x->elsewhere = n > x->active ? (uint32_t)(n - x->active) : 0;
    }
    r = link_result(&s->link, states);
    for (int i = 0; i < PQntuples(r); i++) {
        struct receiver *x = live_receiver(live, value_int(r, i, 0));
        struct receiver_state state = {(uint32_t)value_int(r, i, 1), (uint32_t)value_int(r, i, 2),
                                       value_int(r, i, 3)};
        if (!x)
            continue;
        x->stored_ms = value_int(r, i, 4);
        live_receiver_known(live, x, &state, x->elsewhere, s->load_now_ms);
    }
}

/* A round trip of its own, in batches that have to do with deliveries only: rows are locked in the order of
 * their keys, then counted and looked through by statements that see what the former holders did. */
enum err_code postgres_load_targets(struct postgres_store *s, struct err *err)
{
    struct pg_link *l = &s->link;
    struct receiver_list list = {0};
    size_t count = 0;
    live_each_receiver(s->base.live, count_wanted, &count);
    if (!count)
        return ERR_OK;
    list.receivers = ARENA_ARRAY(s->scratch, struct receiver *, count);
    live_each_receiver(s->base.live, add_wanted, &list);
    struct pg_params *p = link_params(l);
    add_receivers(p, &list);
    params_int(p, s->load_now_ms);
    link_send(l, PG_RECEIVERS_NEW);
    add_receivers(link_params(l), &list);
    size_t states = link_send(l, PG_RECEIVERS);
    add_receivers(link_params(l), &list);
    size_t claimed = link_send(l, PG_RECEIVERS_CLAIMED);
    add_receivers(p = link_params(l), &list);
    params_int(p, live_receiver_usual(s->base.live));
    size_t waiting = link_send(l, PG_RECEIVERS_WAITING);
    if (link_run(l, "receivers", err) != ERR_OK || take_waiting(s, waiting, err) != ERR_OK)
        return err->code;
    take_receivers(s, states, claimed);
    link_clear(l);
    return ERR_OK;
}

/* --- writing ---------------------------------------------------------------------------------------- */

bool postgres_waits_for_slot(const struct postgres_store *s, const struct task_row *row)
{
    const struct task *t = row->target ? live_find(s->base.live, row->id) : NULL;
    return t && task_waits_for_slot(t);
}

int64_t postgres_slot_wait_phase(void)
{
    return PHASE_WAITS_FOR_SLOT;
}

struct writing {
    struct receiver_list receivers;
    struct task **tasks;
    size_t task_count;
    int64_t now_ms;
};

static bool is_changed(const struct receiver *x, int64_t now_ms)
{
    return !x->unknown && (x->slots != x->stored.slots || x->failures != x->stored.failures ||
                           x->open_again_ms != x->stored.open_again_ms || now_ms - x->stored_ms > REWRITE_MS);
}

static void add_changed(struct receiver *x, void *arg)
{
    struct writing *w = arg;
    if (is_changed(x, w->now_ms))
        w->receivers.receivers[w->receivers.count++] = x;
}

static void add_moved(struct task *t, void *arg)
{
    struct writing *w = arg;
    if (task_is_news_of_slots(t))
        w->tasks[w->task_count++] = t;
}

static void send_states(struct postgres_store *s, const struct writing *w)
{
    struct pg_params *p = link_params(&s->link);
    for (int column = 0; column < 4; column++) {
        params_array(p, COLUMN_INT, w->receivers.count);
        for (size_t i = 0; i < w->receivers.count; i++) {
            const struct receiver *x = w->receivers.receivers[i];
            params_add_int(p, column == 0   ? x->id
                              : column == 1 ? x->slots
                              : column == 2 ? x->failures
                                            : x->open_again_ms);
        }
        params_array_end(p);
    }
    params_int(p, w->now_ms);
    link_send(&s->link, PG_RECEIVERS_CHANGE);
}

/* Where a stream stands that the batch did not change, but that lost or got a slot. */
static void place_of(const struct task *t, int64_t *ret_phase, int64_t *ret_due_ms)
{
    *ret_due_ms = t->row.due_ms;
    *ret_phase = !t->waits_for_slot ? TASK_READY : t->receiver->slots ? PHASE_WAITS_FOR_SLOT : TASK_WAITING;
    if (*ret_phase == TASK_WAITING)
        *ret_due_ms = t->receiver->open_again_ms;
}

static void send_places(struct postgres_store *s, const struct writing *w)
{
    struct pg_params *p = link_params(&s->link);
    for (int column = 0; column < 3; column++) {
        params_array(p, COLUMN_INT, w->task_count);
        for (size_t i = 0; i < w->task_count; i++) {
            int64_t phase, due_ms;
            place_of(w->tasks[i], &phase, &due_ms);
            params_add_int(p, column == 0 ? w->tasks[i]->row.id : column == 1 ? phase : due_ms);
        }
        params_array_end(p);
    }
    link_send(&s->link, PG_TASKS_PLACE);
}

/* Behind what was put aside there may be more; and what was let in can be claimed. */
void postgres_send_targets(struct postgres_store *s, int64_t now_ms)
{
    struct live *live = s->base.live;
    struct writing w = {.now_ms = now_ms};
    w.receivers.receivers = ARENA_ARRAY(s->scratch, struct receiver *, live_receiver_count(live) + 1);
    s->base.look_again = false;
    live_each_receiver(live, add_changed, &w);
    if (w.receivers.count)
        send_states(s, &w);
    if (!live_has_news_of_slots(live))
        return;
    w.tasks = ARENA_ARRAY(s->scratch, struct task *, live_size(live));
    live_each(live, add_moved, &w);
    send_places(s, &w);
    s->base.look_again = true;
}

/* --- the holder of the duties ------------------------------------------------------------------------ */

enum err_code postgres_tend_targets(struct postgres_store *s, struct err *err)
{
    struct pg_link *l = &s->link;
    int64_t now_ms = pg_mono_ms();
    if (now_ms - s->targets_tended_ms < LOOK_MS)
        return ERR_OK;
    s->targets_tended_ms = now_ms;
    link_params(l);
    link_send(l, PG_RECEIVERS_LEFT_BEHIND);
    struct pg_params *p = link_params(l);
    params_int(p, (pg_mono_us() + s->base.clock_minus_mono_us) / 1000 - FORGET_MS);
    params_int(p, FORGET_MAX);
    link_send(l, PG_RECEIVERS_FORGET);
    enum err_code code = link_run(l, "receivers", err);
    link_clear(l);
    return code;
}
