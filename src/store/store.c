#include "store/store.h"

#include "base/banned.h"

struct store *store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
    return NULL;
}

int64_t store_clock_us(struct store *s, int64_t mono_us)
{
    enum { SET_BACK_US = 2000000 }; /* by so much it is no correction: it was set */
    int64_t now = mono_us + atomic_load(&s->clock_minus_mono_us), last = atomic_load(&s->clock_last_us);
    while (now > last || now <= last - SET_BACK_US)
        if (atomic_compare_exchange_weak(&s->clock_last_us, &last, now))
            return now;
    return last;
}

void store_forget(struct store *s)
{
    live_clear(s->live);
    idem_clear(&s->idem);
    counts_clear(&s->counts);
    timers_clear(&s->timers);
}

enum err_code store_read_rows(struct reader *r, struct load_row *rows, size_t count, struct arena *a,
                              struct err *err)
{
    if (r->ops->reader_rows)
        return r->ops->reader_rows(r, rows, count, a, err);
    for (size_t i = 0; i < count; i++)
        if (r->ops->reader_row(r, rows[i].table, rows[i].row, a, &rows[i].found, err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

struct following {
    struct log_place *place;
    size_t left;
    store_follow_fn *fn;
    void *arg;
};

static bool follow_chunk(int64_t number, struct str chunk, void *arg)
{
    struct following *f = arg;
    bool is_known = number == f->place->chunk;
    struct log_place at = {.chunk = number, .offset = is_known ? f->place->offset : LOG_FIRST_OFFSET};
    if (is_known && chunk.len <= at.offset)
        return true;
    if (!f->left || !f->fn(at, chunk, f->arg))
        return false;
    *f->place = (struct log_place){.chunk = number, .offset = chunk.len};
    return --f->left > 0;
}

enum err_code store_follow(struct reader *r, struct log_place *place, size_t max, store_follow_fn *fn,
                           void *arg, struct err *err)
{
    if (r->ops->reader_follow)
        return r->ops->reader_follow(r, place, max, fn, arg, err);
    struct following f = {.place = place, .left = max, .fn = fn, .arg = arg};
    return r->ops->reader_scan_log(r, place->chunk, follow_chunk, &f, err);
}
