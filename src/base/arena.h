/* base/arena.h - memory that dies together: one arena per request or per batch.
 *
 * Owner:  the caller of arena_new; nothing inside is freed alone.
 * Fails:  never (base/must.h). A single arena is used by one thread at a time. */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena;

struct arena *arena_new(size_t first_chunk_bytes);
/* A reset keeps the chunks that were used since the last one, up to so many bytes: for an arena that is
 * filled and emptied all day. */
void arena_keep(struct arena *a, size_t bytes);
struct arena *arena_free(struct arena *a); /* NULL is fine; always returns NULL */
void arena_reset(struct arena *a); /* empties it, keeps the first chunk for reuse (more: arena_keep) */
size_t arena_bytes(const struct arena *a); /* handed out since the last reset */

void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned for any type */
void *arena_room(struct arena *a, size_t size);  /* the same, not zeroed: for what is written whole */
char *arena_copy(struct arena *a, const void *bytes, size_t len); /* adds a NUL behind it */
struct str arena_str(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (count)))
#define ARENA_ROOM(arena, type, count)  ((type *)arena_room((arena), sizeof(type) * (count)))

#endif
