/* Events of runs as deferred rows (sqlite_deferred_rows.h). The events of a run lie together, so the next one
 * of each of a thousand runs belongs on a page of its own. Where a commit has much for a run (a batch, a
 * large payload) a page takes it all: it is written to its place at once.
 *
 * A block's content, for each event: its run, its number, how many bytes follow (uint32_t), and in these its
 * other columns (store/row_bytes.h). */
#include "base/varint.h"
#include "store/row_bytes.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    GROUP_BYTES = 16 << 20, /* of ten thousand busy runs each has some ten events in it */
    GROUP_BLOCKS = 8192,
    EVENT_BYTES = 96, /* of an event beside its texts, about */
};

static size_t size(const void *row)
{
    const struct run_event_row *e = row;
    return EVENT_BYTES + e->payload.len + e->step.len + e->name.len + e->plan.len + e->version.len;
}

static void put_event(struct strbuf *b, const struct run_event_row *e)
{
    static const char no_length[sizeof(uint32_t)];
    const struct table *t = &table_run_event_row;
    varint_put(b, (uint64_t)e->run);
    varint_put(b, (uint64_t)e->seq);
    size_t at = b->len;
    strbuf_add(b, no_length, sizeof no_length);
    row_bytes_put(b, t, t->key_count, t->column_count, e);
    uint32_t len = (uint32_t)(b->len - at - sizeof len);
    memcpy(b->ptr + at, &len, sizeof len);
}

static void encode(struct strbuf *b, const void *const *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_event(b, rows[i]);
}

static bool decode(struct str content, struct waiting_set *into)
{
    while (content.len) {
        uint64_t run, seq;
        if (!varint_take(&content, &run) || !varint_take(&content, &seq) || content.len < sizeof(uint32_t))
            return false;
        struct waiting_row w = {.run = (int64_t)run, .key = (int64_t)seq, .bytes = content.ptr};
        struct str packed = waiting_bytes(w.bytes);
        content = (struct str){packed.ptr, content.len - sizeof(uint32_t)};
        if (packed.len > content.len || !waiting_put(into, &w))
            return false;
        content = (struct str){content.ptr + packed.len, content.len - packed.len};
    }
    return true;
}

static bool unpack(const struct waiting_row *w, void *row)
{
    const struct table *t = &table_run_event_row;
    struct run_event_row *e = row;
    struct str packed = waiting_bytes(w->bytes);
    e->run = w->run;
    e->seq = w->key;
    return row_bytes_take(&packed, t, t->key_count, t->column_count, e) && !packed.len;
}

const struct deferred_kind deferred_run_events = {
    .table = &table_run_event_row,
    .area = "deferred_run_events",
    .what = "events of runs",
    .group_bytes = GROUP_BYTES,
    .group_blocks = GROUP_BLOCKS,
    .has_bytes = true,
    .rises = true,
    .size = size,
    .encode = encode,
    .decode = decode,
    .unpack = unpack,
};
