/* tests/faults/sim_image.h - what a disk holds: files, and the changes it has not yet made durable.
 *
 * Content is made of shared 4 KiB blocks copied when written, so that a copy of a whole disk costs
 * a few pointers and one run can be cut at every operation. Only the simulator includes this file;
 * tests use sim_disk.h. */
#ifndef WEIR_TESTS_SIM_IMAGE_H
#define WEIR_TESTS_SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/sim_disk.h"

enum { SIM_SECTOR_BYTES = 512, SIM_BLOCK_BYTES = 4096 };

struct sim_block;

struct sim_content {
    struct sim_block **blocks; /* NULL entry: a block of zeros */
    size_t blocks_len;
    int64_t size;
};

void sim_content_write(struct sim_content *c, int64_t offset, const void *data, size_t len);
void sim_content_truncate(struct sim_content *c, int64_t size);
size_t sim_content_read(const struct sim_content *c, int64_t offset, void *out, size_t len);
uint64_t sim_content_digest(const struct sim_content *c);
struct sim_content sim_content_clone(const struct sim_content *c);
void sim_content_free(struct sim_content *c);

enum sim_op_kind {
    SIM_OP_CREATE,
    SIM_OP_DELETE,
    SIM_OP_WRITE,
    SIM_OP_TRUNCATE,
    SIM_OP_SYNC,
    SIM_OP_SYNC_FAILED, /* the waiting writes are forgotten, as Linux does */
    SIM_OP_BEGUN,       /* marks of the workload, not changes of the disk */
    SIM_OP_ACKED,
};

/* One step of a run. A disk's trace owns it; everything else borrows it. */
struct sim_op {
    enum sim_op_kind kind;
    enum sim_file_kind file_kind; /* CREATE */
    uint32_t file;
    bool at_once;   /* DELETE: durable now; SYNC: the directory too; SYNC_FAILED: cache evicted */
    uint64_t seq;   /* position in the trace */
    uint64_t mark;  /* BEGUN, ACKED */
    int64_t offset; /* WRITE; TRUNCATE: the new size */
    size_t len;
    uint8_t *data; /* WRITE; CREATE: the name with its NUL */
};

struct sim_file {
    uint32_t id;
    enum sim_file_kind kind;
    char *name; /* NULL: a temporary file, never durable */
    bool entry_durable, deleted, gone;
    struct sim_content durable, live; /* live: the content that reads see; kept by running disks only */
    const struct sim_op **pending;    /* writes and truncates since the last sync, in order */
    size_t pending_len, pending_cap;
    struct sim_locks *locks; /* owned by sim_vfs.c; running disks only */
};

struct sim_state {
    struct sim_file **files;
    size_t files_len, files_cap;
    bool running; /* keeps `live` up to date */
};

struct sim_file *sim_file_new(uint32_t id, const char *name, enum sim_file_kind kind);
void sim_file_free(struct sim_file *f);

struct sim_file *sim_state_by_name(const struct sim_state *s, const char *name);
void sim_state_apply(struct sim_state *s, const struct sim_op *op);
bool sim_state_is_settled(const struct sim_state *s);        /* nothing waits: every cut looks the same */
struct sim_state sim_state_clone(const struct sim_state *s); /* durable content only, not running */
void sim_state_free(struct sim_state *s);

/* A possible content of the disk after power fails now. The seed decides; the same seed, the same disk. */
struct sim_state sim_state_cut(const struct sim_state *s, enum sim_cut_mode mode, uint64_t seed);

uint64_t sim_next(uint64_t *seed); /* a small generator: reproducible, not secret */

#endif
