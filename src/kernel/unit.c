#include "kernel/unit_internal.h"

#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"
#include "store/row_rules.h"

#include "base/banned.h"

void unit_start(struct unit *u)
{
    struct unit fresh = {.store = u->store,
                         .arena = u->arena,
                         .settings = u->settings,
                         .ids = u->ids,
                         .random = u->random,
                         .owners = u->owners,
                         .timer_kinds = u->timer_kinds,
                         .reader = u->reader,
                         .notices = {.costly = u->notices.costly},
                         .census = u->census,
                         .rows = u->rows,
                         .wanted = {.known = u->wanted.known, .next_due_ms = INT64_MAX},
                         .nearest_timer_ms = INT64_MAX};
    *u = fresh;
    arena_reset(u->arena);
    map_clear(&u->rows);
    map_clear(&u->wanted.known);
    u->row_tail = &u->row_list;
    log_builder_start(&u->log, u->arena, u->store->next_chunk, u->store->open_bytes);
}

static uint64_t key_hash(const struct table *t, const void *row)
{
    uint64_t h = HASH_FNV_START ^ t->number;
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            h = hash_mix(h ^ (uint64_t)row_int(row, c));
        } else {
            struct str s = row_str(row, c);
            h = hash_fnv1a(h, s.ptr, s.len);
        }
    }
    return hash_mix(h);
}

static bool same_key(const struct table *t, const void *a, const void *b)
{
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        bool same =
            c->type == COLUMN_INT ? row_int(a, c) == row_int(b, c) : str_equal(row_str(a, c), row_str(b, c));
        if (!same)
            return false;
    }
    return true;
}

static struct unit_row *find_hashed(const struct unit *u, const struct table *t, const void *key,
                                    uint64_t hash)
{
    for (struct map_node *n = map_first(&u->rows, hash); n; n = map_next(n)) {
        struct unit_row *r = CONTAINER_OF(n, struct unit_row, node);
        if (r->table == t && same_key(t, r->row, key))
            return r;
    }
    return NULL;
}

static struct unit_row *add_hashed(struct unit *u, const struct table *t, void *row, uint64_t hash)
{
    struct unit_row *r = ARENA_NEW(u->arena, struct unit_row);
    r->table = t;
    r->row = row;
    map_put(&u->rows, &r->node, hash);
    *u->row_tail = r;
    u->row_tail = &r->next;
    return r;
}

struct unit_row *unit_find_row(const struct unit *u, const struct table *t, const void *key)
{
    return find_hashed(u, t, key, key_hash(t, key));
}

struct unit_row *unit_add_row(struct unit *u, const struct table *t, void *row)
{
    return add_hashed(u, t, row, key_hash(t, row));
}

bool unit_has(struct unit *u, const struct table *t, const void *key)
{
    return unit_find_row(u, t, key) != NULL;
}

/* NULL: it could not be read, and load_err tells why. */
static struct unit_row *want(struct unit *u, const struct table *t, const void *key)
{
    uint64_t hash = key_hash(t, key);
    struct unit_row *r = find_hashed(u, t, key, hash);
    if (r)
        return r;
    void *row = arena_room(u->arena, t->row_size);
    memcpy(row, key, t->row_size);
    if (u->store->shared)
        return unit_prefetch_later(u, t, row);
    bool found = false;
    struct err err;
    if (u->store->ops->fetch(u->store, t, row, u->arena, &found, &err) != ERR_OK) {
        if (u->load_err.code == ERR_OK)
            u->load_err = err;
        return NULL;
    }
    r = add_hashed(u, t, row, hash);
    r->stored = r->exists = found;
    return r;
}

static void *loaded(struct unit *u, struct unit_row *r)
{
    while (r->pending) /* perhaps there was no room for it before; the first that waits always comes */
        unit_load_all(u, 0);
    return r->exists ? r->row : NULL;
}

void *unit_prefetch(struct unit *u, const struct table *t, const void *key)
{
    struct unit_row *r = want(u, t, key);
    if (!r || (r->pending && !u->wanted.at_once))
        return NULL;
    return loaded(u, r);
}

void *unit_row(struct unit *u, const struct table *t, const void *key)
{
    struct unit_row *r = unit_find_row(u, t, key);
    MUST(r);
    return loaded(u, r);
}

void *unit_fetch(struct unit *u, const struct table *t, const void *key)
{
    struct unit_row *r = want(u, t, key);
    return r ? loaded(u, r) : NULL;
}

struct range_rows {
    struct unit *unit;
    const struct table *table;
    struct unit_row **rows;
    size_t count, capacity;
};

static struct unit_row *know_row(struct unit *u, const struct table *t, const void *row)
{
    struct unit_row *r = unit_find_row(u, t, row);
    if (r)
        return r;
    char *copy = arena_room(u->arena, t->row_size);
    memcpy(copy, row, t->row_size);
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].type != COLUMN_INT) {
            struct str *text = (struct str *)(void *)(copy + t->columns[i].offset);
            *text = arena_str(u->arena, *text);
        }
    r = unit_add_row(u, t, copy);
    r->stored = r->exists = true;
    return r;
}

static void add_to_range(struct range_rows *g, struct unit_row *r)
{
    g->rows = unit_grow(g->unit, g->rows, g->count, &g->capacity, sizeof *g->rows);
    g->rows[g->count++] = r;
}

static bool take_of_range(const void *row, void *arg)
{
    struct range_rows *g = arg;
    add_to_range(g, know_row(g->unit, g->table, row));
    return true;
}

/* What this batch adds is not in the store yet. */
static void take_inserted(struct range_rows *g, const void *from)
{
    const struct column *first = &g->table->columns[0], *second = &g->table->columns[1];
    if (!g->unit->inserted[g->table->number])
        return;
    for (struct unit_row *r = g->unit->row_list; r; r = r->next)
        if (r->table == g->table && r->exists && !r->stored &&
            row_int(r->row, first) == row_int(from, first) &&
            row_int(r->row, second) >= row_int(from, second))
            add_to_range(g, r);
}

void unit_each_of_range(struct unit *u, const struct table *t, const void *from, size_t max,
                        void (*fn)(struct unit *u, void *row, void *arg), void *arg)
{
    struct range_rows g = {.unit = u, .table = t};
    struct err err;
    if (u->wanted.row_count)
        unit_load_all(u, 0);
    if (u->store->ops->range(u->store, t, from, max, take_of_range, &g, &err) != ERR_OK) {
        if (u->load_err.code == ERR_OK)
            u->load_err = err;
        return;
    }
    take_inserted(&g, from);
    for (size_t i = 0; i < g.count && i < max; i++)
        if (g.rows[i]->exists)
            fn(u, g.rows[i]->row, arg);
}

void unit_insert(struct unit *u, const struct table *t, void *row)
{
    struct unit_row *r = unit_find_row(u, t, row);
    if (!r) {
        r = unit_add_row(u, t, row);
    } else {
        MUST(!r->exists);
        r->row = row;
        r->replaced = r->stored;
    }
    r->exists = r->dirty = true;
    u->inserted[t->number]++;
}

void unit_update(struct unit *u, const struct table *t, void *row)
{
    struct unit_row *r = unit_find_row(u, t, row);
    MUST(r && r->exists);
    r->row = row;
    r->dirty = true;
}

void unit_delete(struct unit *u, const struct table *t, const void *key)
{
    struct unit_row *r = unit_find_row(u, t, key);
    MUST(r && r->exists);
    r->exists = false;
}

/* --- live tasks -------------------------------------------------------------------------------- */

struct task *unit_task(struct unit *u, int64_t id)
{
    struct task *t = live_find(u->store->live, id);
    return t || !u->store->shared ? t : unit_fetch_task(u, id);
}

struct task *unit_task_about(struct unit *u, int64_t id, int64_t subject)
{
    const struct task *about = subject ? live_find(u->store->live, subject) : NULL;
    return about && about->about_loaded ? live_find(u->store->live, id) : unit_task(u, id);
}

static struct task_touch *touch(struct unit *u, struct task *t)
{
    if (t->touch)
        return t->touch;
    struct task_touch *x = ARENA_ROOM(u->arena, struct task_touch, 1);
    *x = (struct task_touch){.task = t,
                             .before = t->row,
                             .worker_before = t->row.worker,
                             .run_until_before = t->run_until_ms,
                             .next = u->touches};
    u->touches = x;
    t->touch = x;
    return x;
}

struct task *unit_task_add(struct unit *u, const struct task_row *row)
{
    struct task *t = live_task_new(u->store->live, row);
    unit_know_task(u, row->id);
    touch(u, t)->is_new = true;
    return t;
}

void unit_task_touch(struct unit *u, struct task *t)
{
    touch(u, t);
}

void unit_task_move(struct unit *u, struct task *t, enum task_trigger on)
{
    enum task_phase to;
    touch(u, t);
    MUST(task_move((enum task_phase)t->row.state, on, &to));
    t->row.state = to;
}

void unit_task_place(struct unit *u, struct task *t)
{
    if (t->touch && t->touch->ended) /* its owner would not go on with it */
        return;
    live_place(u->store->live, t, u->now_ms);
}

void unit_task_progress(struct unit *u, struct task *t, struct str progress)
{
    struct task_touch *x = touch(u, t);
    if (t->row.progress.ptr != x->before.progress.ptr) /* told twice in this batch */
        live_free_str(t->row.progress);
    t->row.progress = live_copy_str(progress);
}

void unit_task_end(struct unit *u, struct task *t)
{
    touch(u, t)->ended = true;
    unit_know_task(u, t->row.id);
    live_take(u->store->live, t);
}

/* --- the rest ---------------------------------------------------------------------------------- */

int64_t unit_id(struct unit *u)
{
    return unit_id_at(u, u->now_ms);
}

int64_t unit_uuid_tail(struct unit *u)
{
    uint64_t random;
    u->random->bytes(u->random->self, &random, sizeof random);
    return (int64_t)uuid_v7_low_of(random);
}

struct uuid unit_uuid_v4(struct unit *u)
{
    uint8_t random[sizeof(struct uuid)];
    u->random->bytes(u->random->self, random, sizeof random);
    return uuid_v4_of(random);
}

int64_t unit_id_at(struct unit *u, int64_t at_ms)
{
    int64_t id = uuid_v7_next_key(u->ids, at_ms);
    if (u->store->shared) { /* every lane of every node has ids of its own */
        id += (u->store->id_slot - id % STORE_ID_SLOTS + STORE_ID_SLOTS) % STORE_ID_SLOTS;
        u->ids->last_key = id;
    }
    u->store->last_id = id;
    return id;
}

void *unit_grow(struct unit *u, void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t want = *capacity ? *capacity * 2 : 64;
    void *bigger = arena_room(u->arena, want * size);
    if (count)
        memcpy(bigger, array, count * size);
    *capacity = want;
    return bigger;
}

void unit_list(struct unit *u, int64_t client, uint8_t bucket, int64_t id, bool removed)
{
    u->list = unit_grow(u, u->list, u->list_count, &u->list_capacity, sizeof *u->list);
    u->list[u->list_count++] = (struct list_entry){client, id, bucket, removed};
}

void unit_idem_add(struct unit *u, uint64_t hash, int64_t job)
{
    u->idem_add = unit_grow(u, u->idem_add, u->idem_add_count, &u->idem_add_capacity, sizeof *u->idem_add);
    u->idem_add[u->idem_add_count++] = (struct idem_entry){hash, job};
    idem_put(&u->store->idem, hash, job);
}

void unit_idem_drop(struct unit *u, uint64_t hash, int64_t job)
{
    u->idem_drop =
        unit_grow(u, u->idem_drop, u->idem_drop_count, &u->idem_drop_capacity, sizeof *u->idem_drop);
    u->idem_drop[u->idem_drop_count++] = (struct idem_entry){hash, job};
    idem_remove(&u->store->idem, hash, job);
}

/* As the store has them; of a shared one none: there a batch counts what it adds. */
static struct client_counts stored_counts(struct unit *u, int64_t client)
{
    struct client_counts counts = {0};
    const struct client_counts *known = counts_find(&u->store->counts, client);
    if (known || u->store->shared)
        return known ? *known : counts;
    struct stats_row row = {.client = client};
    struct err err;
    bool found = false;
    if (u->store->ops->fetch(u->store, &table_stats_row, &row, u->arena, &found, &err) != ERR_OK) {
        if (u->load_err.code == ERR_OK)
            u->load_err = err;
    } else if (found) {
        counts_from_bytes(&counts, row.counts);
    }
    return counts;
}

/* Of a shared store, read once a batch for the client that is asked about. */
static const struct client_counts *committed_counts(struct unit *u, int64_t client)
{
    struct stats_row row = {.client = client};
    struct err err;
    bool found = false;
    if (u->known_counts && u->known_client == client)
        return u->known_counts;
    if (u->store->ops->fetch(u->store, &table_stats_row, &row, u->arena, &found, &err) != ERR_OK &&
        u->load_err.code == ERR_OK)
        u->load_err = err;
    u->known_client = client;
    u->known_counts = ARENA_NEW(u->arena, struct client_counts);
    counts_from_bytes(u->known_counts, found ? row.counts : STR(""));
    return u->known_counts;
}

void unit_read_counts(struct unit *u, int64_t client, struct client_counts *ret)
{
    struct stats_row key = {.client = client};
    const struct unit_row *r = unit_find_row(u, &table_stats_row, &key);
    if (r)
        counts_from_bytes(ret, r->exists ? ((const struct stats_row *)r->row)->counts : STR(""));
    else
        *ret = stored_counts(u, client);
    if (u->store->shared)
        counts_add(ret, counts_bytes(committed_counts(u, client)));
}

struct client_counts *unit_counts(struct unit *u, int64_t client)
{
    struct stats_row key = {.client = client};
    struct unit_row *r = unit_find_row(u, &table_stats_row, &key);
    if (!r) {
        struct stats_row *row = ARENA_NEW(u->arena, struct stats_row);
        struct client_counts *copy = ARENA_NEW(u->arena, struct client_counts);
        *copy = stored_counts(u, client);
        row->client = client;
        row->counts = counts_bytes(copy);
        r = unit_add_row(u, &table_stats_row, row);
        r->stored = r->exists = true; /* inserted with the client, deleted with one that did nothing */
    }
    r->dirty = true;
    return (struct client_counts *)(uintptr_t)((struct stats_row *)r->row)->counts.ptr;
}

void unit_count_move(struct unit *u, int64_t client, enum job_state from, enum job_state to)
{
    struct client_counts *counts = unit_counts(u, client);
    if (from != JOB_NO_STATE) {
        counts->by_state[from]--;
        u->counted.moved[from]--;
    }
    if (to != JOB_NO_STATE) {
        counts->by_state[to]++;
        u->counted.moved[to]++;
    }
}

void unit_notify(struct unit *u, const struct notice_kind *kind, const void *row)
{
    struct notices *n = &u->notices;
    n->list = unit_grow(u, n->list, n->count, &n->capacity, sizeof *n->list);
    n->list[n->count++] = (struct notice){kind, row};
    n->hints |= kind->hints;
}

void unit_free_rows(struct unit *u)
{
    map_free(&u->rows);
    map_free(&u->wanted.known);
}
