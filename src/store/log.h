/* store/log.h - the append-only event log: how an event looks in bytes, and how events become chunks.
 *
 * Chunk:   8 bytes FNV-1a checksum of the rest, then events one behind the other, at most
 *          LOG_CHUNK_BYTES (one leaf page) unless one event alone is longer. Chunk numbers rise by one
 *          in commit order; this order is what subscribers follow.
 * Open:    the last chunk of a store may be open (store->open_bytes): the next commit adds its events behind
 *          those that are there. No event ever moves, and a chunk that is not the last never changes.
 * Event:   u16 length of the whole, u8 event, u8 prev state, u8 next state, u8 work kind, u32 seq,
 *          i64 job, i64 at_us, u32 attempt, 16 bytes event id, then `extra` (a JSON object or nothing).
 *          Numbers are little endian.
 * Ref:     chunk number << 16 | offset in the chunk; eight bytes each in tasks.refs and ends.refs.
 * There is append and read; nothing edits. */
#ifndef WEIR_STORE_LOG_H
#define WEIR_STORE_LOG_H

#include "base/arena.h"
#include "base/uuid.h"
#include "lifecycle/job_lifecycle.h"

enum {
    LOG_CHUNK_BYTES = 4000,
    LOG_EXTRA_BYTES_MAX = 2048, /* reasons are cut to fit before they get here */
    EVENT_HEAD_BYTES = 46,
};

struct event {
    int64_t job;
    uint32_t seq; /* 1, 2, ... per job */
    enum job_event event;
    enum job_state prev, next; /* JOB_NO_STATE before the first */
    int64_t at_us;             /* strictly rising per job */
    uint32_t attempt;
    uint8_t kind; /* enum work_kind: the scenario */
    struct uuid id;
    struct str extra;
};

struct log_builder {
    struct arena *arena;
    int64_t first_chunk;
    size_t first_offset; /* 0: the first chunk is new; else it goes on from here, and chunks[0] is the rest */
    size_t open_bytes;   /* of the store's open chunk, as long as it can take the next event */
    struct str *chunks;  /* finished ones */
    size_t chunk_count, chunk_capacity;
    char *open; /* the one being filled, or NULL */
    size_t open_len;
};

/* `open_bytes`: how long the chunk before `next_chunk` is when it is open, else 0. */
void log_builder_start(struct log_builder *b, struct arena *a, int64_t next_chunk, size_t open_bytes);
uint64_t log_append(struct log_builder *b, const struct event *e); /* gives the ref */
void log_builder_finish(struct log_builder *b);
/* The store's open chunk gets no more events. False: it has got some from this builder. */
bool log_builder_leave_open_chunk(struct log_builder *b);

static inline int64_t log_ref_chunk(uint64_t ref)
{
    return (int64_t)(ref >> 16);
}
static inline size_t log_ref_offset(uint64_t ref)
{
    return (size_t)(ref & 0xFFFF);
}
uint64_t log_ref_at(struct str refs, size_t index);
static inline size_t log_ref_count(struct str refs)
{
    return refs.len / sizeof(uint64_t);
}

enum { LOG_FIRST_OFFSET = 8 }; /* of a chunk's events: the checksum is before them */
/* Events behind the `len` bytes of a chunk that has room for them; its checksum goes along. */
void log_chunk_extend(char *chunk, size_t len, struct str events);
/* Sound checksum and length. */
bool log_chunk_is_sound(struct str chunk);
/* Borrows from the chunk. False on anything that is not a whole, legal event. */
bool event_decode(struct str chunk, size_t offset, struct event *ret_event, size_t *ret_next_offset);
/* One event on its own, as the `kept` table holds it; decode it with offset 0. */
struct str event_encode_in(struct arena *a, const struct event *e);

#endif
