/* The memory backend: same verbs, nothing durable. For deciders' tests and simulation. One mutex guards
 * it, so that readers on other threads see whole batches. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "store/memory/memory_internal.h"

#include "base/banned.h"

static uint64_t key_hash(const struct table *t, const void *row)
{
    uint64_t h = HASH_FNV_START;
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            int64_t v = row_int(row, c);
            h = hash_fnv1a(h, &v, sizeof v);
        } else {
            struct str s = row_str(row, c);
            h = hash_fnv1a(h, s.ptr, s.len);
        }
    }
    return hash_mix(h);
}

int memory_key_compare(const struct table *t, const void *a, const void *b)
{
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            int64_t x = row_int(a, c), y = row_int(b, c);
            if (x != y)
                return x < y ? -1 : 1;
            continue;
        }
        struct str x = row_str(a, c), y = row_str(b, c);
        size_t n = x.len < y.len ? x.len : y.len;
        int order = n ? memcmp(x.ptr, y.ptr, n) : 0;
        if (order || x.len != y.len)
            return order ? order : x.len < y.len ? -1 : 1;
    }
    return 0;
}

static struct memory_row *find(struct memory_store *s, const struct table *t, const void *key)
{
    for (struct map_node *n = map_first(&s->rows[t->number], key_hash(t, key)); n; n = map_next(n)) {
        struct memory_row *r = CONTAINER_OF(n, struct memory_row, node);
        if (memory_key_compare(t, r->row, key) == 0)
            return r;
    }
    return NULL;
}

static struct str *text_at(const struct column *c, void *row)
{
    return (struct str *)(void *)((char *)row + c->offset);
}

static void own_text(const struct column *c, void *row)
{
    struct str *s = text_at(c, row);
    if (!s->ptr)
        return;
    char *copy = must_alloc(s->len + 1);
    memcpy(copy, s->ptr, s->len);
    s->ptr = copy;
}

static void free_text(const struct column *c, void *row)
{
    free((char *)(uintptr_t)text_at(c, row)->ptr);
}

static void free_row(struct memory_row *r)
{
    for (unsigned i = 0; i < r->table->column_count; i++)
        if (r->table->columns[i].type != COLUMN_INT)
            free_text(&r->table->columns[i], r->row);
    free(r->row);
    free(r);
}

static void insert_row(struct memory_store *s, const struct table *t, const void *row)
{
    struct memory_row *r = must_alloc(sizeof *r);
    r->table = t;
    r->row = must_alloc(t->row_size);
    memcpy(r->row, row, t->row_size);
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].type != COLUMN_INT)
            own_text(&t->columns[i], r->row);
    map_put(&s->rows[t->number], &r->node, key_hash(t, row));
}

static void update_row(struct memory_row *r, const void *row)
{
    for (unsigned i = r->table->fixed_count; i < r->table->column_count; i++) {
        const struct column *c = &r->table->columns[i];
        if (c->type == COLUMN_INT) {
            *(int64_t *)(void *)((char *)r->row + c->offset) = row_int(row, c);
            continue;
        }
        free_text(c, r->row);
        *text_at(c, r->row) = row_str(row, c);
        own_text(c, r->row);
    }
}

static struct memory_idem *find_idem(struct memory_store *s, int64_t job)
{
    for (struct map_node *n = map_first(&s->idem, hash_mix((uint64_t)job)); n; n = map_next(n)) {
        struct memory_idem *x = CONTAINER_OF(n, struct memory_idem, node);
        if (x->entry.job == job)
            return x;
    }
    return NULL;
}

/* Whether the row of change i is there once the changes before it are made. */
static bool exists_before(struct memory_store *s, const struct change_set *c, size_t i)
{
    const struct row_change *change = &c->rows[i];
    while (i-- > 0)
        if (c->rows[i].table == change->table &&
            memory_key_compare(change->table, c->rows[i].row, change->row) == 0)
            return c->rows[i].op != ROW_DELETE;
    return find(s, change->table, change->row) != NULL;
}

/* Refuses a set that would fail half way before anything is changed. */
static enum err_code check_changes(struct memory_store *s, const struct change_set *c, struct err *err)
{
    for (size_t i = 0; i < c->row_count; i++) {
        bool exists = exists_before(s, c, i);
        if (exists == (c->rows[i].op == ROW_INSERT))
            return err_set(err, exists ? ERR_STORAGE_DB_ERROR : ERR_STORE_CORRUPT, "row of %s %s",
                           c->rows[i].table->name, exists ? "exists already" : "does not exist");
    }
    if (c->chunk_count && s->chunk_count && c->first_chunk <= s->chunks[s->chunk_count - 1].number)
        return err_set(err, ERR_STORAGE_DB_ERROR, "log chunk %lld exists already", (long long)c->first_chunk);
    for (size_t i = 0; i < c->idem_add_count; i++)
        if (find_idem(s, c->idem_add[i].job))
            return err_set(err, ERR_STORAGE_DB_ERROR, "an idempotency entry exists already");
    return ERR_OK;
}

static void write_row(struct memory_store *s, const struct row_change *change)
{
    struct memory_row *r = find(s, change->table, change->row);
    if (change->op == ROW_INSERT) {
        insert_row(s, change->table, change->row);
    } else if (change->op == ROW_UPDATE) {
        update_row(r, change->row);
    } else {
        map_remove(&s->rows[change->table->number], &r->node);
        free_row(r);
    }
}

static void write_log(struct memory_store *s, const struct change_set *c)
{
    for (size_t i = 0; i < c->chunk_count; i++) {
        if (s->chunk_count == s->chunk_capacity) {
            s->chunk_capacity = s->chunk_capacity ? s->chunk_capacity * 2 : 64;
            s->chunks = must_realloc(s->chunks, s->chunk_capacity * sizeof *s->chunks);
        }
        char *copy = must_alloc(c->chunks[i].len);
        memcpy(copy, c->chunks[i].ptr, c->chunks[i].len);
        s->chunks[s->chunk_count++] =
            (struct memory_chunk){c->first_chunk + (int64_t)i, {copy, c->chunks[i].len}};
    }
    size_t kept = 0;
    for (size_t i = 0; c->drop_chunks_below && i < s->chunk_count; i++) {
        if (s->chunks[i].number < c->drop_chunks_below)
            free((char *)(uintptr_t)s->chunks[i].data.ptr);
        else
            s->chunks[kept++] = s->chunks[i];
    }
    if (c->drop_chunks_below)
        s->chunk_count = kept;
}

static uint64_t list_hash(const struct list_entry *e)
{
    return hash_mix(hash_mix((uint64_t)e->owner_key << 8 | e->bucket) ^ (uint64_t)e->id);
}

static struct memory_listed *find_listed(struct memory_store *s, const struct list_entry *e)
{
    for (struct map_node *n = map_first(&s->list, list_hash(e)); n; n = map_next(n)) {
        struct memory_listed *x = CONTAINER_OF(n, struct memory_listed, node);
        if (x->entry.owner_key == e->owner_key && x->entry.bucket == e->bucket && x->entry.id == e->id)
            return x;
    }
    return NULL;
}

static void write_list(struct memory_store *s, const struct list_entry *e)
{
    struct memory_listed *x = find_listed(s, e);
    if (e->removed && x) {
        map_remove(&s->list, &x->node);
        free(x);
    } else if (!e->removed && !x) {
        x = must_alloc(sizeof *x);
        x->entry = *e;
        map_put(&s->list, &x->node, list_hash(e));
    }
}

static void write_idem(struct memory_store *s, const struct change_set *c)
{
    for (size_t i = 0; i < c->idem_add_count; i++) {
        struct memory_idem *x = must_alloc(sizeof *x);
        x->entry = c->idem_add[i];
        map_put(&s->idem, &x->node, hash_mix((uint64_t)x->entry.job));
    }
    for (size_t i = 0; i < c->idem_drop_count; i++) {
        struct memory_idem *x = find_idem(s, c->idem_drop[i].job);
        if (!x)
            continue;
        map_remove(&s->idem, &x->node);
        free(x);
    }
}

static void write_number(struct memory_store *s, const struct store_number *m)
{
    if (strcmp(m->name, STORE_NUMBER_NEXT_CHUNK) == 0) {
        if (s->base.next_chunk < m->value)
            s->base.next_chunk = m->value;
        return;
    }
    size_t i = 0;
    while (i < s->number_count && strcmp(s->numbers[i].name, m->name) != 0)
        i++;
    if (i == s->number_count) {
        s->numbers = must_realloc(s->numbers, ++s->number_count * sizeof *s->numbers);
        MUST(strlen(m->name) < sizeof s->numbers[i].name);
        memcpy(s->numbers[i].name, m->name, strlen(m->name) + 1);
    }
    s->numbers[i].value = m->value;
}

static enum err_code memory_commit(struct store *base, const struct change_set *c, struct err *err)
{
    struct memory_store *s = (struct memory_store *)base;
    pthread_mutex_lock(&s->lock);
    enum err_code code = check_changes(s, c, err);
    if (code == ERR_OK) {
        for (size_t i = 0; i < c->row_count; i++)
            write_row(s, &c->rows[i]);
        write_log(s, c);
        for (size_t i = 0; i < c->list_count; i++)
            write_list(s, &c->list[i]);
        write_idem(s, c);
        base->next_chunk = c->first_chunk + (int64_t)c->chunk_count;
        if (c->drop_chunks_below)
            base->first_chunk = c->drop_chunks_below;
        for (size_t i = 0; i < c->number_count; i++)
            write_number(s, &c->numbers[i]);
    }
    pthread_mutex_unlock(&s->lock);
    return code;
}

static enum err_code memory_tend(struct store *s, bool idle, struct err *err)
{
    (void)s;
    (void)idle;
    (void)err;
    return ERR_OK;
}

static enum err_code memory_probe(struct store *s, struct err *err)
{
    (void)s;
    (void)err;
    return ERR_OK;
}

void memory_fetch_locked(struct memory_store *s, const struct table *t, void *row, struct arena *a,
                         bool *ret_found)
{
    struct memory_row *r = find(s, t, row);
    *ret_found = r != NULL;
    if (r) {
        memcpy(row, r->row, t->row_size);
        for (unsigned i = 0; i < t->column_count; i++)
            if (t->columns[i].type != COLUMN_INT) {
                struct str *text = text_at(&t->columns[i], row);
                *text = arena_str(a, *text);
            }
    }
}

static enum err_code memory_fetch(struct store *base, const struct table *t, void *row, struct arena *a,
                                  bool *ret_found, struct err *err)
{
    (void)err;
    struct memory_store *s = (struct memory_store *)base;
    pthread_mutex_lock(&s->lock);
    memory_fetch_locked(s, t, row, a, ret_found);
    pthread_mutex_unlock(&s->lock);
    return ERR_OK;
}

static void free_node(struct map_node *n, void *arg)
{
    (void)arg;
    free_row(CONTAINER_OF(n, struct memory_row, node));
}

static void free_listed(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct memory_listed, node));
}

static void free_idem(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct memory_idem, node));
}

static void memory_close(struct store *base)
{
    struct memory_store *s = (struct memory_store *)base;
    for (unsigned i = 0; i < table_count; i++) {
        map_drain(&s->rows[i], free_node, NULL);
        map_free(&s->rows[i]);
    }
    for (size_t i = 0; i < s->chunk_count; i++)
        free((char *)(uintptr_t)s->chunks[i].data.ptr);
    free(s->chunks);
    free(s->numbers);
    map_drain(&s->list, free_listed, NULL);
    map_free(&s->list);
    map_drain(&s->idem, free_idem, NULL);
    map_free(&s->idem);
    live_free(base->live);
    idem_free(&base->idem);
    counts_free(&base->counts);
    hooks_free(&base->hooks);
    timers_free(&base->timers);
    queue_settings_free(&base->queues);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct store_ops store_memory_ops = {
    .name = "memory",
    .fetch = memory_fetch,
    .commit = memory_commit,
    .tend = memory_tend,
    .probe = memory_probe,
    .close = memory_close,
    .reader_open = memory_reader_open,
    .reader_close = memory_reader_close,
    .reader_begin = memory_reader_begin,
    .reader_end = memory_reader_end,
    .reader_row = memory_reader_row,
    .reader_chunk = memory_reader_chunk,
    .reader_list = memory_reader_list,
    .reader_live = memory_reader_live,
    .reader_jobs = memory_reader_jobs,
    .reader_scan = memory_reader_scan,
    .range = memory_range,
    .reader_range = memory_reader_range,
    .reader_scan_log = memory_reader_scan_log,
    .reader_of_client = memory_reader_of_client,
    .reader_scan_list = memory_reader_scan_list,
    .reader_scan_idem = memory_reader_scan_idem,
    .reader_number = memory_reader_number,
};

struct store *store_open_memory(void)
{
    struct memory_store *s = must_alloc(sizeof *s);
    s->base.ops = &store_memory_ops;
    s->base.live = live_new();
    s->base.next_chunk = s->base.first_chunk = 1;
    s->base.next_client = 1;
    s->base.next_tenant = TENANT_NUMBER_FIRST;
    pthread_mutex_init(&s->lock, NULL);
    return &s->base;
}
