/* tests/faults/sim_disk_inside.h - the running disk as the VFS and the harness see it.
 *
 * Calls named disk_* expect the caller to hold d->lock and answer with SQLite result codes. */
#ifndef WEIR_TESTS_SIM_DISK_INSIDE_H
#define WEIR_TESTS_SIM_DISK_INSIDE_H

#include <pthread.h>

#include "faults/sim_image.h"

enum { SIM_FAULTS_MAX = 8 };

struct sim_disk {
    pthread_mutex_t lock;
    struct sim_state base; /* the content at the start: the trace goes on from there */
    struct sim_state now;
    struct sim_op **trace;
    size_t trace_len, trace_cap;
    struct sim_fault faults[SIM_FAULTS_MAX];
    uint64_t fault_seen[SIM_FAULTS_MAX];
    size_t faults_len;
    uint64_t faults_hit;
    uint64_t calls[SIM_CALL_COUNT];
    int64_t limit_bytes;
    uint32_t files_made;
    unsigned handles_open;
    bool dead;
    sim_moment_fn *watch; /* set while nothing runs */
    void *watch_arg;
};

struct sim_disk *sim_disk_of(struct sim_state *image); /* takes the image */

int disk_open(struct sim_disk *d, const char *name, enum sim_file_kind kind, bool create,
              struct sim_file **ret_file);
int disk_read(struct sim_disk *d, struct sim_file *f, int64_t offset, void *out, size_t len);
int disk_write(struct sim_disk *d, struct sim_file *f, int64_t offset, const void *data, size_t len);
int disk_truncate(struct sim_disk *d, struct sim_file *f, int64_t size);
int disk_sync(struct sim_disk *d, struct sim_file *f, bool directory_too);
int disk_delete(struct sim_disk *d, const char *name, bool sync_directory);
/* SQLITE_OK to go on; anything else is what the call must answer. */
int disk_gate(struct sim_disk *d, enum sim_call call, enum sim_file_kind kind);

#endif
