/* Readers of the memory backend: a snapshot is the lock, held from begin to end. */
#include <stdlib.h>

#include "base/must.h"
#include "store/memory/memory_internal.h"

#include "base/banned.h"

enum err_code memory_reader_open(struct store *base, struct reader **ret_reader, struct err *err)
{
    (void)err;
    struct reader *r = must_alloc(sizeof *r);
    r->store = base;
    r->ops = base->ops;
    *ret_reader = r;
    return ERR_OK;
}

void memory_reader_close(struct reader *r)
{
    free(r);
}

static struct memory_store *of(struct reader *r)
{
    return (struct memory_store *)r->store;
}

enum err_code memory_reader_begin(struct reader *r, struct err *err)
{
    (void)err;
    pthread_mutex_lock(&of(r)->lock);
    return ERR_OK;
}

void memory_reader_end(struct reader *r)
{
    pthread_mutex_unlock(&of(r)->lock);
}

enum err_code memory_reader_row(struct reader *r, const struct table *t, void *row, struct arena *a,
                                bool *ret_found, struct err *err)
{
    (void)err;
    memory_fetch_locked(of(r), t, row, a, ret_found);
    return ERR_OK;
}

enum err_code memory_reader_chunk(struct reader *r, int64_t number, struct arena *a, struct str *ret_chunk,
                                  struct err *err)
{
    (void)err;
    *ret_chunk = STR_ABSENT;
    for (size_t i = 0; i < of(r)->chunk_count; i++)
        if (of(r)->chunks[i].number == number)
            *ret_chunk = arena_str(a, of(r)->chunks[i].data);
    return ERR_OK;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

static void keep_newest(int64_t *all, size_t count, const struct list_query *q, int64_t *ret_ids,
                        size_t *ret_count)
{
    qsort(all, count, sizeof *all, newest_first);
    *ret_count = count < q->limit ? count : q->limit;
    memcpy(ret_ids, all, *ret_count * sizeof *all);
    free(all);
}

enum err_code memory_reader_list(struct reader *r, const struct list_query *q, int64_t *ret_ids,
                                 size_t *ret_count, struct err *err)
{
    (void)err;
    struct map *m = &of(r)->list;
    int64_t *all = must_alloc((m->count + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *node = m->slots[i]; node; node = node->next) {
            const struct list_entry *e = &CONTAINER_OF(node, struct memory_listed, node)->entry;
            if (e->owner_key == q->owner_key && e->bucket == q->bucket && e->id < q->below_id &&
                e->id >= q->from_id)
                all[n++] = e->id;
        }
    keep_newest(all, n, q, ret_ids, ret_count);
    return ERR_OK;
}

enum err_code memory_reader_live(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    (void)err;
    struct map *m = &of(r)->rows[TABLE_NUMBER_task_row];
    int64_t *all = must_alloc((m->count + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *node = m->slots[i]; node; node = node->next) {
            const struct task_row *t = CONTAINER_OF(node, struct memory_row, node)->row;
            if (task_is_job(t) && t->client == q->owner_key && t->id < q->below_id && t->id >= q->from_id &&
                (state < 0 || t->job_state == state) && (!q->queue.ptr || str_equal(q->queue, t->queue)))
                all[n++] = t->id;
        }
    keep_newest(all, n, q, ret_ids, ret_count);
    return ERR_OK;
}

enum err_code memory_reader_jobs(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    (void)err;
    struct map *m = &of(r)->rows[state < 0 ? TABLE_NUMBER_job_row : TABLE_NUMBER_task_row];
    int64_t *all = must_alloc((m->count + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *node = m->slots[i]; node; node = node->next) {
            const void *row = CONTAINER_OF(node, struct memory_row, node)->row;
            const struct task_row *t = state < 0 ? NULL : row;
            int64_t id = t ? t->id : ((const struct job_row *)row)->id;
            if (id < q->below_id && id >= q->from_id && (!t || (task_is_job(t) && t->job_state == state)))
                all[n++] = id;
        }
    keep_newest(all, n, q, ret_ids, ret_count);
    return ERR_OK;
}

static _Thread_local const struct table *sort_table;

static int by_key(const void *a, const void *b)
{
    return memory_key_compare(sort_table, *(void *const *)a, *(void *const *)b);
}

static enum err_code scan_where(struct reader *r, const struct table *t, const int64_t *client,
                                store_row_fn *fn, void *arg)
{
    struct map *m = &of(r)->rows[t->number];
    void **all = must_alloc((m->count + 1) * sizeof *all);
    size_t n = 0;
    const struct column *owner = NULL;
    for (unsigned i = 0; i < t->column_count; i++)
        if (str_is(str_of(t->columns[i].name), "client"))
            owner = &t->columns[i];
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *node = m->slots[i]; node; node = node->next) {
            void *row = CONTAINER_OF(node, struct memory_row, node)->row;
            if (!client || (owner && row_int(row, owner) == *client))
                all[n++] = row;
        }
    sort_table = t;
    qsort(all, n, sizeof *all, by_key);
    for (size_t i = 0; i < n && fn(all[i], arg); i++)
        continue;
    free(all);
    return ERR_OK;
}

enum err_code memory_reader_scan(struct reader *r, const struct table *t, store_row_fn *fn, void *arg,
                                 struct err *err)
{
    (void)err;
    return scan_where(r, t, NULL, fn, arg);
}

enum err_code memory_reader_of_client(struct reader *r, const struct table *t, int64_t client,
                                      store_row_fn *fn, void *arg, struct err *err)
{
    (void)err;
    return scan_where(r, t, &client, fn, arg);
}

struct memory_range {
    int64_t first, second;
    size_t left;
    const struct table *table;
    store_row_fn *fn;
    void *arg;
};

static bool take_of_range(const void *row, void *arg)
{
    struct memory_range *g = arg;
    int64_t first = row_int(row, &g->table->columns[0]);
    if (first != g->first || row_int(row, &g->table->columns[1]) < g->second)
        return first <= g->first;
    return g->left-- > 0 && g->fn(row, g->arg);
}

enum err_code memory_reader_range(struct reader *r, const struct table *t, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err)
{
    (void)err;
    struct memory_range g = {.first = row_int(from, &t->columns[0]),
                             .second = row_int(from, &t->columns[1]),
                             .left = max,
                             .table = t,
                             .fn = fn,
                             .arg = arg};
    return scan_where(r, t, NULL, take_of_range, &g);
}

enum err_code memory_range(struct store *base, const struct table *t, const void *from, size_t max,
                           store_row_fn *fn, void *arg, struct err *err)
{
    struct reader r = {.store = base, .ops = base->ops};
    pthread_mutex_lock(&((struct memory_store *)base)->lock);
    enum err_code code = memory_reader_range(&r, t, from, max, fn, arg, err);
    pthread_mutex_unlock(&((struct memory_store *)base)->lock);
    return code;
}

enum err_code memory_reader_scan_log(struct reader *r, int64_t from, store_chunk_fn *fn, void *arg,
                                     struct err *err)
{
    (void)err;
    for (size_t i = 0; i < of(r)->chunk_count; i++)
        if (of(r)->chunks[i].number >= from && !fn(of(r)->chunks[i].number, of(r)->chunks[i].data, arg))
            break;
    return ERR_OK;
}

static int listed_order(const void *a, const void *b)
{
    const struct list_entry *x = *(const struct list_entry *const *)a,
                            *y = *(const struct list_entry *const *)b;
    if (x->owner_key != y->owner_key)
        return x->owner_key < y->owner_key ? -1 : 1;
    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

enum err_code memory_reader_scan_list(struct reader *r, store_list_fn *fn, void *arg, struct err *err)
{
    (void)err;
    struct map *m = &of(r)->list;
    const struct list_entry **all = must_alloc((m->count + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *node = m->slots[i]; node; node = node->next)
            all[n++] = &CONTAINER_OF(node, struct memory_listed, node)->entry;
    qsort(all, n, sizeof *all, listed_order);
    for (size_t i = 0; i < n && fn(all[i], arg); i++)
        continue;
    free(all);
    return ERR_OK;
}

static int idem_order(const void *a, const void *b)
{
    const struct idem_entry *x = *(const struct idem_entry *const *)a,
                            *y = *(const struct idem_entry *const *)b;
    return x->job < y->job ? -1 : x->job > y->job;
}

enum err_code memory_reader_number(struct reader *r, const char *name, int64_t *ret_value, struct err *err)
{
    (void)err;
    const struct memory_store *s = (const struct memory_store *)r->store;
    *ret_value = strcmp(name, STORE_NUMBER_NEXT_CHUNK) == 0 ? s->base.next_chunk : 0;
    for (size_t i = 0; i < s->number_count; i++)
        if (strcmp(s->numbers[i].name, name) == 0)
            *ret_value = s->numbers[i].value;
    return ERR_OK;
}

enum err_code memory_reader_scan_idem(struct reader *r, store_idem_fn *fn, void *arg, struct err *err)
{
    (void)err;
    struct map *m = &of(r)->idem;
    const struct idem_entry **all = must_alloc((m->count + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *node = m->slots[i]; node; node = node->next)
            all[n++] = &CONTAINER_OF(node, struct memory_idem, node)->entry;
    qsort(all, n, sizeof *all, idem_order);
    for (size_t i = 0; i < n && fn(all[i], arg); i++)
        continue;
    free(all);
    return ERR_OK;
}
