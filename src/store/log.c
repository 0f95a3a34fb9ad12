#include "store/log.h"

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

static char *put(char *p, const void *value, size_t len)
{
    memcpy(p, value, len);
    return p + len;
}

static size_t event_bytes(const struct event *e)
{
    return EVENT_HEAD_BYTES + e->extra.len;
}

static void event_encode(const struct event *e, char *p)
{
    uint16_t len = (uint16_t)event_bytes(e);
    uint8_t small[4] = {(uint8_t)e->event, (uint8_t)e->prev, (uint8_t)e->next, e->kind};
    p = put(p, &len, sizeof len);
    p = put(p, small, sizeof small);
    p = put(p, &e->seq, sizeof e->seq);
    p = put(p, &e->job, sizeof e->job);
    p = put(p, &e->at_us, sizeof e->at_us);
    p = put(p, &e->attempt, sizeof e->attempt);
    p = put(p, e->id.bytes, sizeof e->id.bytes);
    if (e->extra.len)
        put(p, e->extra.ptr, e->extra.len);
}

struct str event_encode_in(struct arena *a, const struct event *e)
{
    char *p = arena_alloc(a, event_bytes(e));
    event_encode(e, p);
    return (struct str){p, event_bytes(e)};
}

void log_builder_start(struct log_builder *b, struct arena *a, int64_t next_chunk, size_t open_bytes)
{
    *b = (struct log_builder){.arena = a, .first_chunk = next_chunk, .open_bytes = open_bytes};
}

/* Where in its chunk the bytes being filled begin. */
static size_t begin_of_open(const struct log_builder *b)
{
    return b->chunk_count ? 0 : b->first_offset;
}

static void close_chunk(struct log_builder *b)
{
    if (!b->open)
        return;
    if (b->chunk_count == b->chunk_capacity) {
        size_t capacity = b->chunk_capacity ? b->chunk_capacity * 2 : 16;
        struct str *chunks = ARENA_ARRAY(b->arena, struct str, capacity);
        if (b->chunk_count)
            memcpy(chunks, b->chunks, b->chunk_count * sizeof *chunks);
        b->chunks = chunks;
        b->chunk_capacity = capacity;
    }
    if (!begin_of_open(b)) {
        uint64_t sum = hash_fnv1a(HASH_FNV_START, b->open + LOG_FIRST_OFFSET, b->open_len - LOG_FIRST_OFFSET);
        memcpy(b->open, &sum, sizeof sum);
    }
    b->chunks[b->chunk_count++] = (struct str){b->open, b->open_len};
    b->open = NULL;
}

/* The store's open chunk, when the first event fits into it, or a new one. */
static void open_chunk(struct log_builder *b, size_t need)
{
    bool goes_on = b->open_bytes && b->open_bytes + need <= LOG_CHUNK_BYTES;
    if (goes_on) {
        b->first_chunk--;
        b->first_offset = b->open_bytes;
    }
    b->open_bytes = 0;
    b->open = arena_alloc(b->arena, LOG_CHUNK_BYTES - begin_of_open(b));
    b->open_len = goes_on ? 0 : LOG_FIRST_OFFSET;
}

uint64_t log_append(struct log_builder *b, const struct event *e)
{
    MUST(e->extra.len <= LOG_EXTRA_BYTES_MAX);
    size_t need = event_bytes(e);
    if (b->open && begin_of_open(b) + b->open_len + need > LOG_CHUNK_BYTES)
        close_chunk(b);
    if (!b->open)
        open_chunk(b, need);
    uint64_t ref =
        (uint64_t)(b->first_chunk + (int64_t)b->chunk_count) << 16 | (begin_of_open(b) + b->open_len);
    event_encode(e, b->open + b->open_len);
    b->open_len += need;
    return ref;
}

void log_builder_finish(struct log_builder *b)
{
    close_chunk(b);
}

bool log_builder_leave_open_chunk(struct log_builder *b)
{
    b->open_bytes = 0;
    return !b->first_offset;
}

uint64_t log_ref_at(struct str refs, size_t index)
{
    uint64_t ref;
    memcpy(&ref, refs.ptr + index * sizeof ref, sizeof ref);
    return ref;
}

void log_chunk_extend(char *chunk, size_t len, struct str events)
{
    uint64_t sum; /* of FNV-1a what was hashed so far is all that counts for what comes */
    memcpy(&sum, chunk, sizeof sum);
    sum = hash_fnv1a(sum, events.ptr, events.len);
    memcpy(chunk, &sum, sizeof sum);
    memcpy(chunk + len, events.ptr, events.len);
}

bool log_chunk_is_sound(struct str chunk)
{
    uint64_t sum;
    if (chunk.len < LOG_FIRST_OFFSET + EVENT_HEAD_BYTES)
        return false;
    memcpy(&sum, chunk.ptr, sizeof sum);
    return sum == hash_fnv1a(HASH_FNV_START, chunk.ptr + LOG_FIRST_OFFSET, chunk.len - LOG_FIRST_OFFSET);
}

static const char *take(const char *p, void *value, size_t len)
{
    memcpy(value, p, len);
    return p + len;
}

bool event_decode(struct str chunk, size_t offset, struct event *ret_event, size_t *ret_next_offset)
{
    uint16_t len;
    uint8_t small[4];
    if (offset > chunk.len || chunk.len - offset < EVENT_HEAD_BYTES)
        return false;
    const char *p = take(chunk.ptr + offset, &len, sizeof len);
    if (len < EVENT_HEAD_BYTES || len > chunk.len - offset)
        return false;
    p = take(p, small, sizeof small);
    if (small[0] >= JOB_EVENT_COUNT || small[1] > JOB_NO_STATE || small[2] >= JOB_STATE_COUNT)
        return false;
    struct event e = {.event = (enum job_event)small[0],
                      .prev = (enum job_state)small[1],
                      .next = (enum job_state)small[2],
                      .kind = small[3]};
    p = take(p, &e.seq, sizeof e.seq);
    p = take(p, &e.job, sizeof e.job);
    p = take(p, &e.at_us, sizeof e.at_us);
    p = take(p, &e.attempt, sizeof e.attempt);
    p = take(p, e.id.bytes, sizeof e.id.bytes);
    e.extra = (struct str){p, (size_t)(len - EVENT_HEAD_BYTES)};
    *ret_event = e;
    *ret_next_offset = offset + len;
    return true;
}
