/* tests/faults/sim_image.c - blocks, files, waiting writes, and what survives a power cut. */
#include "faults/sim_image.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/banned.h"

struct sim_block {
    atomic_uint refs;
    atomic_uint_fast64_t digest; /* 0: not taken since the last write */
    uint8_t bytes[SIM_BLOCK_BYTES];
};

uint64_t sim_next(uint64_t *seed)
{
    *seed += UINT64_C(0x9E3779B97F4A7C15);
    return hash_mix(*seed);
}

static bool chance(uint64_t *seed, unsigned of_256)
{
    return (sim_next(seed) >> 32) % 256 < of_256;
}

/* --- content --------------------------------------------------------------------------------- */

/* Blocks come and go by the thousand: a thread keeps some instead of asking for zeroed memory
 * again. */
enum { SPARE_BLOCKS_MAX = 1024 };
static _Thread_local struct sim_block *spare[SPARE_BLOCKS_MAX];
static _Thread_local size_t spare_count;

static struct sim_block *block_new(const struct sim_block *like)
{
    struct sim_block *b = spare_count > 0 ? spare[--spare_count] : must_alloc(sizeof *b);
    atomic_init(&b->refs, 1);
    atomic_init(&b->digest, 0);
    if (like)
        memcpy(b->bytes, like->bytes, sizeof b->bytes);
    else
        memset(b->bytes, 0, sizeof b->bytes);
    return b;
}

static void block_release(struct sim_block *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    if (spare_count < SPARE_BLOCKS_MAX)
        spare[spare_count++] = b;
    else
        free(b);
}

/* The block for writing: nobody else sees it. */
static struct sim_block *content_own(struct sim_content *c, size_t index)
{
    struct sim_block *b = c->blocks[index];
    if (b && atomic_load(&b->refs) == 1) {
        atomic_store(&b->digest, 0);
        return b;
    }
    struct sim_block *own = block_new(b);
    block_release(b);
    c->blocks[index] = own;
    return own;
}

static void content_grow(struct sim_content *c, size_t blocks)
{
    if (blocks <= c->blocks_len)
        return;
    size_t cap = c->blocks_len < 16 ? 16 : c->blocks_len * 2;
    if (cap < blocks)
        cap = blocks;
    c->blocks = must_realloc(c->blocks, cap * sizeof(struct sim_block *));
    memset(c->blocks + c->blocks_len, 0, (cap - c->blocks_len) * sizeof(struct sim_block *));
    c->blocks_len = cap;
}

void sim_content_write(struct sim_content *c, int64_t offset, const void *data, size_t len)
{
    MUST(offset >= 0);
    const uint8_t *from = data;
    size_t at = (size_t)offset;
    content_grow(c, (at + len + SIM_BLOCK_BYTES - 1) / SIM_BLOCK_BYTES);
    if ((int64_t)(at + len) > c->size)
        c->size = (int64_t)(at + len);
    while (len > 0) {
        size_t inside = at % SIM_BLOCK_BYTES, piece = SIM_BLOCK_BYTES - inside;
        if (piece > len)
            piece = len;
        memcpy(content_own(c, at / SIM_BLOCK_BYTES)->bytes + inside, from, piece);
        from += piece, at += piece, len -= piece;
    }
}

void sim_content_truncate(struct sim_content *c, int64_t size)
{
    MUST(size >= 0);
    size_t keep = ((size_t)size + SIM_BLOCK_BYTES - 1) / SIM_BLOCK_BYTES;
    for (size_t i = keep; i < c->blocks_len; i++) {
        block_release(c->blocks[i]);
        c->blocks[i] = NULL;
    }
    size_t inside = (size_t)size % SIM_BLOCK_BYTES;
    if (inside != 0 && keep <= c->blocks_len && c->blocks[keep - 1])
        memset(content_own(c, keep - 1)->bytes + inside, 0, SIM_BLOCK_BYTES - inside);
    c->size = size; /* growing leaves a hole of zeros */
}

size_t sim_content_read(const struct sim_content *c, int64_t offset, void *out, size_t len)
{
    uint8_t *to = out;
    size_t got = 0, at = (size_t)offset;
    while (got < len && (int64_t)at < c->size) {
        size_t inside = at % SIM_BLOCK_BYTES, piece = SIM_BLOCK_BYTES - inside;
        if (piece > len - got)
            piece = len - got;
        if (piece > (size_t)c->size - at)
            piece = (size_t)c->size - at;
        size_t index = at / SIM_BLOCK_BYTES;
        const struct sim_block *b = index < c->blocks_len ? c->blocks[index] : NULL;
        if (b)
            memcpy(to + got, b->bytes + inside, piece);
        else
            memset(to + got, 0, piece);
        got += piece, at += piece;
    }
    return got;
}

/* Shared blocks do not change, so each is read for its digest once, whatever disks it is part of.
 */
static uint64_t block_digest(struct sim_block *b)
{
    uint64_t digest = atomic_load(&b->digest), word;
    if (digest != 0)
        return digest;
    for (size_t at = 0; at < SIM_BLOCK_BYTES; at += sizeof word) {
        memcpy(&word, b->bytes + at, sizeof word);
        digest = hash_mix(digest ^ word) + at;
    }
    atomic_store(&b->digest, digest);
    return digest;
}

uint64_t sim_content_digest(const struct sim_content *c)
{
    static struct sim_block zeros;
    uint64_t digest = (uint64_t)c->size;
    for (size_t i = 0; i * SIM_BLOCK_BYTES < (size_t)c->size; i++) {
        struct sim_block *b = i < c->blocks_len ? c->blocks[i] : NULL;
        digest = hash_mix(digest ^ block_digest(b ? b : &zeros));
    }
    return digest;
}

struct sim_content sim_content_clone(const struct sim_content *c)
{
    size_t used = ((size_t)c->size + SIM_BLOCK_BYTES - 1) / SIM_BLOCK_BYTES;
    if (used > c->blocks_len)
        used = c->blocks_len;
    struct sim_content copy = {.blocks = NULL, .blocks_len = used, .size = c->size};
    if (used == 0)
        return copy;
    copy.blocks = must_alloc(used * sizeof(struct sim_block *));
    for (size_t i = 0; i < used; i++) {
        copy.blocks[i] = c->blocks[i];
        if (copy.blocks[i])
            atomic_fetch_add(&copy.blocks[i]->refs, 1);
    }
    return copy;
}

void sim_content_free(struct sim_content *c)
{
    for (size_t i = 0; i < c->blocks_len; i++)
        block_release(c->blocks[i]);
    free(c->blocks);
    *c = (struct sim_content){NULL, 0, 0};
}

/* --- files and states ------------------------------------------------------------------------ */

struct sim_file *sim_file_new(uint32_t id, const char *name, enum sim_file_kind kind)
{
    struct sim_file *f = must_alloc(sizeof *f);
    f->id = id;
    f->kind = kind;
    f->name = name ? must_strdup(name) : NULL;
    return f;
}

void sim_file_free(struct sim_file *f)
{
    sim_content_free(&f->durable);
    sim_content_free(&f->live);
    free(f->pending);
    free(f->name);
    free(f);
}

static void state_add(struct sim_state *s, struct sim_file *f)
{
    if (s->files_len == s->files_cap) {
        s->files_cap = s->files_cap ? s->files_cap * 2 : 8;
        s->files = must_realloc(s->files, s->files_cap * sizeof(struct sim_file *));
    }
    s->files[s->files_len++] = f;
}

static struct sim_file *state_by_id(const struct sim_state *s, uint32_t id)
{
    for (size_t i = s->files_len; i-- > 0;)
        if (s->files[i]->id == id)
            return s->files[i];
    return NULL;
}

struct sim_file *sim_state_by_name(const struct sim_state *s, const char *name)
{
    for (size_t i = s->files_len; i-- > 0;) {
        struct sim_file *f = s->files[i];
        if (!f->deleted && !f->gone && strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}

bool sim_state_is_settled(const struct sim_state *s)
{
    for (size_t i = 0; i < s->files_len; i++) {
        const struct sim_file *f = s->files[i];
        if (!f->gone && (f->deleted || !f->entry_durable || f->pending_len > 0))
            return false;
    }
    return true;
}

static void pending_add(struct sim_file *f, const struct sim_op *op)
{
    if (f->pending_len == f->pending_cap) {
        f->pending_cap = f->pending_cap ? f->pending_cap * 2 : 16;
        f->pending = must_realloc(f->pending, f->pending_cap * sizeof(const struct sim_op *));
    }
    f->pending[f->pending_len++] = op;
}

static void content_apply(struct sim_content *c, const struct sim_op *op)
{
    if (op->kind == SIM_OP_WRITE)
        sim_content_write(c, op->offset, op->data, op->len);
    else
        sim_content_truncate(c, op->offset);
}

/* The name points to this file for good: an older one of the same name is gone. */
static void entry_sync(struct sim_state *s, struct sim_file *f)
{
    f->entry_durable = true;
    for (size_t i = 0; i < s->files_len; i++)
        if (s->files[i]->deleted && strcmp(s->files[i]->name, f->name) == 0)
            s->files[i]->gone = true;
}

static void directory_sync(struct sim_state *s)
{
    for (size_t i = 0; i < s->files_len; i++)
        if (s->files[i]->deleted)
            s->files[i]->gone = true;
        else
            s->files[i]->entry_durable = true;
}

static void file_sync(struct sim_state *s, struct sim_file *f, bool directory_too)
{
    for (size_t i = 0; i < f->pending_len; i++)
        content_apply(&f->durable, f->pending[i]);
    f->pending_len = 0;
    if (!f->deleted && !f->entry_durable)
        entry_sync(s, f);
    if (directory_too)
        directory_sync(s);
}

static void file_sync_failed(struct sim_state *s, struct sim_file *f, bool evict)
{
    f->pending_len = 0;
    if (!evict || !s->running)
        return;
    sim_content_free(&f->live);
    f->live = sim_content_clone(&f->durable);
}

void sim_state_apply(struct sim_state *s, const struct sim_op *op)
{
    if (op->kind == SIM_OP_BEGUN || op->kind == SIM_OP_ACKED)
        return;
    if (op->kind == SIM_OP_CREATE) {
        state_add(s, sim_file_new(op->file, (const char *)op->data, op->file_kind));
        return;
    }
    struct sim_file *f = state_by_id(s, op->file);
    MUST(f);
    switch (op->kind) {
    case SIM_OP_WRITE:
    case SIM_OP_TRUNCATE:
        pending_add(f, op);
        if (s->running)
            content_apply(&f->live, op);
        break;
    case SIM_OP_SYNC:
        file_sync(s, f, op->at_once);
        break;
    case SIM_OP_SYNC_FAILED:
        file_sync_failed(s, f, op->at_once);
        break;
    case SIM_OP_DELETE:
        f->deleted = true;
        f->gone = op->at_once || !f->entry_durable;
        break;
    case SIM_OP_CREATE:
    case SIM_OP_BEGUN:
    case SIM_OP_ACKED:
        break;
    }
}

static struct sim_file *file_copy_durable(const struct sim_file *f)
{
    struct sim_file *copy = sim_file_new(f->id, f->name, f->kind);
    copy->entry_durable = true;
    copy->durable = sim_content_clone(&f->durable);
    return copy;
}

struct sim_state sim_state_clone(const struct sim_state *s)
{
    MUST(sim_state_is_settled(s)); /* waiting writes belong to a trace and are not copied */
    struct sim_state copy = {.files = NULL};
    for (size_t i = 0; i < s->files_len; i++)
        if (!s->files[i]->gone)
            state_add(&copy, file_copy_durable(s->files[i]));
    return copy;
}

void sim_state_free(struct sim_state *s)
{
    for (size_t i = 0; i < s->files_len; i++)
        sim_file_free(s->files[i]);
    free(s->files);
    *s = (struct sim_state){.files = NULL};
}

/* --- the cut --------------------------------------------------------------------------------- */

/* How one file's waiting writes fare. */
struct cut_dice {
    enum sim_cut_mode mode;
    uint64_t limit;       /* PREFIX, TORN: the first write that is not kept whole */
    unsigned keep_of_256; /* WRITES, SECTORS */
    uint64_t *seed;
};

static void sector_garbage(struct sim_content *c, int64_t offset, size_t len, uint64_t *seed)
{
    uint8_t noise[SIM_SECTOR_BYTES];
    for (size_t i = 0; i < len; i++)
        noise[i] = (uint8_t)(sim_next(seed) >> 40);
    sim_content_write(c, offset, noise, len);
}

/* Each sector of the write on its own: whole, torn, garbage, or not at all. */
static void apply_sectors(struct sim_content *c, const struct sim_op *op, unsigned keep_of_256,
                          uint64_t *seed)
{
    for (size_t done = 0; done < op->len;) {
        int64_t at = op->offset + (int64_t)done;
        size_t piece = SIM_SECTOR_BYTES - (size_t)at % SIM_SECTOR_BYTES;
        if (piece > op->len - done)
            piece = op->len - done;
        if (chance(seed, 16))
            sector_garbage(c, at, piece, seed);
        else if (chance(seed, 32))
            sim_content_write(c, at, op->data + done, (size_t)(sim_next(seed) % (piece + 1)));
        else if (chance(seed, keep_of_256))
            sim_content_write(c, at, op->data + done, piece);
        done += piece;
    }
}

static void apply_by_dice(struct sim_content *c, const struct sim_op *op, struct cut_dice *dice)
{
    switch (dice->mode) {
    case SIM_CUT_DROP_ALL:
        break;
    case SIM_CUT_KEEP_ALL:
        content_apply(c, op);
        break;
    case SIM_CUT_PREFIX:
        if (op->seq < dice->limit)
            content_apply(c, op);
        break;
    case SIM_CUT_TORN:
        if (op->seq < dice->limit)
            content_apply(c, op);
        else if (op->seq == dice->limit && op->kind == SIM_OP_WRITE)
            apply_sectors(c, op, 128, dice->seed);
        break;
    case SIM_CUT_WRITES:
        if (chance(dice->seed, dice->keep_of_256))
            content_apply(c, op);
        break;
    case SIM_CUT_SECTORS:
        if (op->kind == SIM_OP_WRITE)
            apply_sectors(c, op, dice->keep_of_256, dice->seed);
        else if (chance(dice->seed, dice->keep_of_256))
            content_apply(c, op);
        break;
    case SIM_CUT_PER_FILE:
    case SIM_CUT_MODE_COUNT:
        MUST(!"resolved per file before");
    }
}

/* The seq of a waiting write, every one equally likely. */
static uint64_t pick_limit(const struct sim_state *s, const struct sim_file *only, uint64_t *seed)
{
    size_t total = 0;
    for (size_t i = 0; i < s->files_len; i++)
        if (!only || s->files[i] == only)
            total += s->files[i]->pending_len;
    size_t nth = total ? (size_t)(sim_next(seed) % total) : 0;
    for (size_t i = 0; i < s->files_len; i++) {
        const struct sim_file *f = s->files[i];
        if (only && f != only)
            continue;
        if (nth < f->pending_len)
            return f->pending[nth]->seq;
        nth -= f->pending_len;
    }
    return 0;
}

static struct cut_dice dice_for(const struct sim_state *s, const struct sim_file *f,
                                const struct cut_dice *all)
{
    if (all->mode != SIM_CUT_PER_FILE)
        return *all;
    static const enum sim_cut_mode own[] = {SIM_CUT_DROP_ALL, SIM_CUT_KEEP_ALL, SIM_CUT_PREFIX, SIM_CUT_TORN,
                                            SIM_CUT_SECTORS};
    struct cut_dice dice = *all;
    dice.mode = own[sim_next(all->seed) % LENGTH_OF(own)];
    dice.limit = pick_limit(s, f, all->seed);
    return dice;
}

/* Directory entries that wait for a sync stay or go by the same mode. */
static bool entry_survives(enum sim_cut_mode mode, uint64_t *seed)
{
    if (mode == SIM_CUT_DROP_ALL)
        return false;
    return mode == SIM_CUT_KEEP_ALL || chance(seed, 128);
}

static void file_cut(const struct sim_state *s, const struct sim_file *f, const struct cut_dice *all,
                     struct sim_state *into)
{
    struct sim_file *copy = file_copy_durable(f);
    struct cut_dice dice = dice_for(s, f, all);
    int64_t longest = copy->durable.size;
    for (size_t i = 0; i < f->pending_len; i++) {
        const struct sim_op *op = f->pending[i];
        apply_by_dice(&copy->durable, op, &dice);
        if (op->offset + (int64_t)op->len > longest)
            longest = op->offset + (int64_t)op->len;
    }
    /* The length may reach the disk without the data. */
    bool scattered = dice.mode == SIM_CUT_WRITES || dice.mode == SIM_CUT_SECTORS;
    if (scattered && chance(all->seed, 64) && longest > copy->durable.size)
        sim_content_truncate(&copy->durable, longest);
    state_add(into, copy);
}

struct sim_state sim_state_cut(const struct sim_state *s, enum sim_cut_mode mode, uint64_t seed)
{
    static const unsigned keep[] = {32, 128, 224};
    struct sim_state after = {.files = NULL};
    struct cut_dice dice = {.mode = mode, .seed = &seed};
    dice.limit = pick_limit(s, NULL, &seed);
    dice.keep_of_256 = keep[sim_next(&seed) % LENGTH_OF(keep)];
    /* Newest first: where a new file of a name survives, the deleted one before it does not. */
    for (size_t i = s->files_len; i-- > 0;) {
        const struct sim_file *f = s->files[i];
        if (f->gone || sim_state_by_name(&after, f->name))
            continue;
        if (!f->deleted && !f->entry_durable && !entry_survives(mode, &seed))
            continue;
        if (f->deleted && entry_survives(mode, &seed)) /* it is the deletion that survives */
            continue;
        file_cut(s, f, &dice, &after);
    }
    return after;
}
