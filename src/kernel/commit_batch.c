/* One batch: take what waits, load, decide, commit, answer. */
#include "base/log.h"
#include "base/must.h"
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum {
    BATCH_WEIGHT_MAX = 1000,     /* commands, or items of bulk calls: later commands do not wait long */
    BATCH_CRITICAL_PERCENT = 75, /* the most that critical ones get while others wait */
    BATCH_TRIES_MAX = 100,       /* of one that meets others' changes; store.timeout_ms ends it before */
    INCONSISTENT_TRIES_MAX = 5,  /* and of what looks like damage, before it is taken for it */
    QUICK_COMMIT_US = 1000,      /* longer than this, no HTTP thread waits for the disk by itself */
    FAILED_PAUSE_MS = 200,       /* after a failed commit, before timers try again */
    FAILURE_LOG_MS = 1000,
};

static const struct batch_room whole_batch = {UNIT_BYTES_MAX, BATCH_WEIGHT_MAX};

/* More waits than a batch holds: critical commands first; the others get a quarter of the batch at least. */
static void take_in_turn(struct lane *l, struct batch_room *room, struct command_list *batch)
{
    struct kernel *k = l->kernel;
    struct batch_room urgent = {room->bytes * BATCH_CRITICAL_PERCENT / 100,
                                room->weight * BATCH_CRITICAL_PERCENT / 100};
    room->bytes -= urgent.bytes;
    room->weight -= urgent.weight;
    for (int kind = kinds_of(l); kind-- > 0;)
        waiting_take(&k->queue[kind][CRITICAL], &urgent, batch);
    room->bytes += urgent.bytes;
    room->weight += urgent.weight;
    for (int kind = kinds_of(l); kind-- > 0;)
        waiting_take(&k->queue[kind][ORDINARY], room, batch);
}

static void take_batch(struct lane *l, struct command_list *batch)
{
    struct kernel *k = l->kernel;
    struct batch_room room = whole_batch;
    pthread_mutex_lock(&k->lock);
    l->ending = k->stopping;
    ended_leases_forget(&k->ended_leases, steady_now(k));
    bool all = true;
    for (int kind = kinds_of(l); kind-- > 0 && all;)
        all = waiting_take_both(&k->queue[kind][CRITICAL], &k->queue[kind][ORDINARY], &room, batch);
    if (!all)
        take_in_turn(l, &room, batch);
    pthread_mutex_unlock(&k->lock);
}

/* The commands that did not fit into this batch go back to the front, in order. */
static void put_back(struct kernel *k, struct command_list *rest)
{
    if (!rest->first)
        return;
    struct command_list kinds[LANE_KINDS][URGENCIES];
    struct command *c;
    for (int i = 0; i < LANE_KINDS * URGENCIES; i++)
        list_init(&kinds[i / URGENCIES][i % URGENCIES]);
    while ((c = list_take(rest)))
        list_add(&kinds[kind_of(k, c)][urgency_of(c)], c);
    pthread_mutex_lock(&k->lock);
    for (int i = 0; i < LANE_KINDS * URGENCIES; i++)
        waiting_put_back(&k->queue[i / URGENCIES][i % URGENCIES], &kinds[i / URGENCIES][i % URGENCIES]);
    pthread_mutex_unlock(&k->lock);
}

void lane_decide_one(struct lane *l, struct command *c)
{
    c->err = (struct err){.code = ERR_OK};
    c->park_until_ms = 0;
    memset((char *)c + c->type->answer_at, 0, c->type->answer_bytes);
    if (l->unit.load_err.code != ERR_OK) {
        c->err = l->unit.load_err;
        c->result = c->err.code;
        return;
    }
    c->result = c->type->decide(&l->unit, c, &c->err);
    if (c->received_us && !c->parked && (!l->unit.oldest_us || c->received_us < l->unit.oldest_us))
        l->unit.oldest_us = c->received_us;
}

/* All that is wanted is loaded, and of a shared store locked. */
static void lane_note_held(struct lane *l)
{
    int64_t now_ms = is_shared(l) ? steady_now(l->kernel) : l->unit.now_ms;
    if (now_ms > l->unit.locked_at_ms)
        l->unit.locked_at_ms = now_ms;
}

/* Load steps, until nothing new is wanted. Commands that do not fit stay in `batch`. */
static void load_batch(struct lane *l, struct command_list *batch, struct command_list *loaded)
{
    struct command *c;
    while (batch->first && arena_bytes(l->unit.arena) < UNIT_BYTES_MAX) {
        c = list_take(batch);
        if (c->type->load)
            c->type->load(&l->unit, c);
        list_add(loaded, c);
    }
    if (is_shared(l))
        shared_load(l, loaded);
    lane_note_held(l);
}

/* Decides; commands that park go to `parks`, the rest to `decided`. */
static void decide_batch(struct lane *l, struct command_list *loaded, struct command_list *decided,
                         struct command_list *parks)
{
    struct command *c;
    /* A shared store's rows come together: commands whose rows had no room come next. */
    while ((!is_shared(l) || !decided->first || arena_bytes(l->unit.arena) < UNIT_BYTES_MAX) &&
           (c = list_take(loaded))) {
        if (is_shared(l))
            shared_load_rest(l, c);
        lane_decide_one(l, c);
        list_add(c->park_until_ms ? parks : decided, c);
        c->parked = c->park_until_ms != 0;
    }
}

static void fail_all(struct command_list *decided, const struct err *err)
{
    for (struct command *c = decided->first; c; c = c->next) {
        c->err = *err;
        c->result = err->code;
    }
}

void kernel_log_failure(struct kernel *k, const char *what, const struct err *err)
{
    int64_t now = steady_now(k);
    pthread_mutex_lock(&k->lock);
    bool again = now - k->failure_logged_ms < FAILURE_LOG_MS;
    if (!again)
        k->failure_logged_ms = now;
    pthread_mutex_unlock(&k->lock);
    if (!again)
        log_line(LOG_ERROR, what, "error_code", LOG_TEXT(err_wire(err->code)), "error_message",
                 LOG_TEXT(err->detail), NULL);
}

/* Work of another lane after this answer gets a later time, also within one millisecond. */
static void note_last_id(struct lane *l)
{
    int64_t known = atomic_load(&l->kernel->last_id);
    while (known < l->ids.last_key &&
           !atomic_compare_exchange_weak(&l->kernel->last_id, &known, l->ids.last_key))
        continue;
}

static void committed(struct lane *l)
{
    const struct kernel_watch *w = &l->kernel->config.watch;
    note_last_id(l);
    if (l->unit.wrote) /* before anybody hears of it: kept snapshots are old from now on (api/reads.h) */
        atomic_fetch_add(&l->kernel->config.store->commits, 1);
    if (!w->committed)
        return;
    pthread_mutex_lock(&l->kernel->publish);
    w->committed(w->self, &l->unit);
    pthread_mutex_unlock(&l->kernel->publish);
}

static void note_commit(struct lane *l, size_t commands, const struct err *err, int64_t took_us)
{
    struct kernel *k = l->kernel;
    bool ok = err->code == ERR_OK;
    pthread_mutex_lock(&k->lock);
    k->stats.batches += commands || !ok || l->unit.wrote; /* to look what there is to do is none */
    k->stats.commands += commands;
    k->stats.commit_errors += !ok;
    k->stats.last_commit_us = took_us;
    if (!ok || l->unit.wrote) { /* an empty batch says nothing about the disk */
        k->stats.storing = ok;
        k->disk_is_quick = ok && took_us < QUICK_COMMIT_US;
    }
    pthread_mutex_unlock(&k->lock);
}

enum err_code lane_commit(struct lane *l, struct command_list *decided, struct err *ret_err)
{
    struct err err = {.code = ERR_OK};
    int64_t before = clock_mono_us(l->kernel->config.clock);
    enum err_code code = l->unit.load_err.code;
    heart_waits(l->heart, true); /* for the disk, or a remote database: the loop does not count as hung */
    if (code == ERR_OK)
        code = unit_commit(&l->unit, &err);
    else
        err = l->unit.load_err; /* commands whose rows could not be read may be half decided */
    heart_waits(l->heart, false);
    *ret_err = err;
    if (code != ERR_OK)
        unit_abort(&l->unit);
    if (err.conflict) { /* no result is told: the batch is decided again */
        pthread_mutex_lock(&l->kernel->lock);
        l->kernel->stats.conflicts++;
        pthread_mutex_unlock(&l->kernel->lock);
        return code;
    }
    if (code == ERR_OK) {
        committed(l);
    } else {
        fail_all(decided, &err);
        l->timers_paused_until_ms = l->unit.steady_ms + FAILED_PAUSE_MS;
        kernel_log_failure(l->kernel, "commit_failed", &err);
    }
    note_commit(l, decided->count, &err, clock_mono_us(l->kernel->config.clock) - before);
    return code;
}

static size_t answer(struct lane *l, struct command_list *decided)
{
    const struct kernel_watch *w = &l->kernel->config.watch;
    void (*end)(void *self) = l->is_inline && w->inline_batch_end ? w->inline_batch_end : w->batch_end;
    size_t n = decided->count;
    struct command *c;
    if (!n)
        return 0;
    pthread_mutex_lock(&l->kernel->publish);
    while ((c = list_take(decided)))
        c->done(c);
    if (end)
        end(w->self);
    pthread_mutex_unlock(&l->kernel->publish);
    return n;
}

/* The first lane's: it alone has duties. A jump is told once, and when it is over. */
static void look_at_wall(struct lane *l)
{
    struct kernel *k = l->kernel;
    struct unit *u = &l->unit;
    enum wall_state before = k->wall.state;
    int64_t wall_us = u->now_us, mono_us = clock_mono_us(k->config.clock);
    if (atomic_exchange(&k->accepts_wall, false))
        wall_guard_accept(&k->wall, wall_us, mono_us);
    int64_t now_us = wall_guard_look(&k->wall, wall_us, mono_us);
    if (!is_shared(l)) /* there the database says what time it is */
        u->now_us = now_us;
    u->may_delete = wall_guard_may_delete(&k->wall, mono_us);
    if (k->wall.state != before)
        log_line(k->wall.state == WALL_RIGHT ? LOG_INFO : LOG_ERROR, "clock", "state",
                 LOG_TEXT(wall_state_text(k->wall.state)), "off_by_ms",
                 LOG_INT((wall_us - mono_us - k->wall.offset_us) / 1000), "deletes", LOG_INT(u->may_delete),
                 "advice", LOG_TEXT(wall_advice(k->wall.state)), NULL);
}

void lane_start_unit(struct lane *l)
{
    struct kernel *k = l->kernel;
    struct unit *u = &l->unit;
    unit_start(u);
    int64_t last_id = atomic_load(&k->last_id);
    if (l->ids.last_key < last_id)
        l->ids.last_key = last_id;
    int64_t steady_us = steady_now_us(k);
    u->now_us = is_shared(l) ? steady_us : clock_wall_us(k->config.clock);
    if (l == &k->lanes[0])
        look_at_wall(l);
    u->now_ms = u->locked_at_ms = u->now_us / 1000;
    u->steady_ms = steady_us / 1000;
    u->steady_ceil_ms = (steady_us + 999) / 1000;
    u->sheds_low_priority = atomic_load_explicit(&k->sheds_low_priority, memory_order_relaxed);
    u->defers_retries = atomic_load_explicit(&k->defers_retries, memory_order_relaxed);
}

void lane_tell_fatal(struct lane *l, enum err_code code, const struct err *err)
{
    const struct kernel_watch *w = &l->kernel->config.watch;
    if (code != ERR_STORE_FSYNC || !w->fatal)
        return;
    l->lost = *err;
    if (!l->is_inline) /* else the HTTP thread answers first, then wakes the commit thread, which tells */
        w->fatal(w->self, &l->lost);
}

/* Once through: load, decide, commit. Commands that did not fit stay in `batch`. */
static enum err_code run_batch(struct lane *l, struct command_list *batch, struct command_list *decided,
                               struct command_list *parks, bool trusts_reads, struct err *ret_why)
{
    lane_start_unit(l);
    l->unit.trusts_reads = trusts_reads;
    struct command_list loaded;
    list_init(&loaded);
    bool timers = lane_has_timers(l); /* before the load, which may take its time */
    load_batch(l, batch, &loaded);
    if (timers && l->unit.load_err.code == ERR_OK)
        timers_decide(&l->unit, BATCH_TIMERS_MAX);
    decide_batch(l, &loaded, decided, parks);
    list_prepend(batch, &loaded);
    if (!is_shared(l)) /* a claim may wait for a command behind it in its own batch */
        parked_add(l, parks);
    parked_decide(l, decided);
    return lane_commit(l, decided, ret_why);
}

/* The batch meets others' changes again and again, or waits for the lock of another with each try. The
 * callers get an answer before long, by the time limit of the store. */
static bool tries_again(const struct lane *l, int tries, int64_t since_us)
{
    const struct kernel_config *c = &l->kernel->config;
    return tries < BATCH_TRIES_MAX &&
           clock_mono_us(c->clock) - since_us < c->settings->store_timeout_ms * 1000;
}

size_t lane_step(struct lane *l)
{
    struct command_list batch, decided, parks;
    struct err why;
    list_init(&batch);
    list_init(&decided);
    list_init(&parks);
    duties_before_batch(l);
    take_batch(l, &batch);
    parked_join(l, &batch);
    int64_t since_us = clock_mono_us(l->kernel->config.clock);
    enum err_code code = run_batch(l, &batch, &decided, &parks, false, &why);
    for (int tries = 1; why.conflict && tries_again(l, tries, since_us); tries++) {
        shared_undecide(&parks, &batch);
        shared_undecide(&decided, &batch);
        shared_pause(l, tries);
        bool trusts_reads = why.code == ERR_STORE_CORRUPT && tries >= INCONSISTENT_TRIES_MAX;
        code = run_batch(l, &batch, &decided, &parks, trusts_reads, &why);
    }
    if (why.conflict) {
        err_set(&why, code = ERR_STORAGE_DB_ERROR,
                "others changed the same again and again; nothing was done");
        why.retry_after_s = 1;
        fail_all(&decided, &why);
        note_commit(l, decided.count, &why, 0);
    }
    put_back(l->kernel, &batch);
    parked_add(l, &parks);
    if (code == ERR_OK && is_shared(l))
        shared_tell(l);
    duties_after_batch(l);
    size_t n = answer(l, &decided);
    lane_tell_fatal(l, code, &why);
    return n;
}

size_t kernel_step(struct kernel *k)
{
    pthread_mutex_lock(&k->lock);
    lane_take_news(&k->lanes[0]);
    pthread_mutex_unlock(&k->lock);
    return lane_step(&k->lanes[0]);
}
