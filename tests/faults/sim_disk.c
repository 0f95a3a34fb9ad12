/* tests/faults/sim_disk.c - the running disk: records what happens to it, and fails when told to.
 */
#include "faults/sim_disk.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "faults/sim_disk_inside.h"
#include "base/must.h"
#include "base/banned.h"

enum { SIM_LIE = -1 }; /* disk_gate: say "done", do nothing */

struct sim_disk *sim_disk_of(struct sim_state *image)
{
    struct sim_disk *d = must_alloc(sizeof *d);
    MUST(pthread_mutex_init(&d->lock, NULL) == 0);
    d->base = sim_state_clone(image);
    d->now = *image;
    d->now.running = true;
    *image = (struct sim_state){.files = NULL};
    for (size_t i = 0; i < d->now.files_len; i++) {
        struct sim_file *f = d->now.files[i];
        f->live = sim_content_clone(&f->durable);
        if (f->id >= d->files_made)
            d->files_made = f->id + 1;
    }
    return d;
}

struct sim_disk *sim_disk_new(void)
{
    struct sim_state empty = {.files = NULL};
    return sim_disk_of(&empty);
}

void sim_disk_free(struct sim_disk *d)
{
    if (!d)
        return;
    MUST(d->handles_open == 0);
    for (size_t i = 0; i < d->trace_len; i++) {
        free(d->trace[i]->data);
        free(d->trace[i]);
    }
    free(d->trace);
    sim_state_free(&d->now);
    sim_state_free(&d->base);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* --- the trace ------------------------------------------------------------------------------- */

static struct sim_op *trace_add(struct sim_disk *d, struct sim_op op)
{
    if (d->trace_len == d->trace_cap) {
        d->trace_cap = d->trace_cap ? d->trace_cap * 2 : 256;
        d->trace = must_realloc(d->trace, d->trace_cap * sizeof(struct sim_op *));
    }
    struct sim_op *kept = must_alloc(sizeof *kept);
    *kept = op;
    kept->seq = d->trace_len;
    if (op.data) {
        kept->data = must_alloc(op.len);
        memcpy(kept->data, op.data, op.len);
    }
    d->trace[d->trace_len++] = kept;
    return kept;
}

static void disk_do(struct sim_disk *d, struct sim_op op)
{
    sim_state_apply(&d->now, trace_add(d, op));
}

static void mark(struct sim_disk *d, enum sim_op_kind kind, uint64_t n)
{
    pthread_mutex_lock(&d->lock);
    trace_add(d, (struct sim_op){.kind = kind, .mark = n});
    pthread_mutex_unlock(&d->lock);
}

void sim_disk_begun(struct sim_disk *d, uint64_t n)
{
    mark(d, SIM_OP_BEGUN, n);
}
void sim_disk_acked(struct sim_disk *d, uint64_t n)
{
    mark(d, SIM_OP_ACKED, n);
}

/* --- faults ---------------------------------------------------------------------------------- */

const char *sim_call_text(enum sim_call call)
{
#define X(name, text) [SIM_CALL_##name] = text,
    static const char *const texts[] = {SIM_CALLS(X)};
#undef X
    return texts[call];
}

void sim_disk_fault(struct sim_disk *d, const struct sim_fault *f)
{
    pthread_mutex_lock(&d->lock);
    MUST(d->faults_len < SIM_FAULTS_MAX);
    d->faults[d->faults_len] = *f;
    if (f->nth == 0)
        d->faults[d->faults_len].nth = 1;
    d->fault_seen[d->faults_len++] = 0;
    pthread_mutex_unlock(&d->lock);
}

void sim_disk_heal(struct sim_disk *d)
{
    pthread_mutex_lock(&d->lock);
    d->faults_len = 0;
    d->limit_bytes = 0;
    pthread_mutex_unlock(&d->lock);
}

void sim_disk_watch(struct sim_disk *d, sim_moment_fn *fn, void *arg)
{
    d->watch = fn;
    d->watch_arg = arg;
}

uint64_t sim_disk_faults_hit(const struct sim_disk *d)
{
    return d->faults_hit;
}
uint64_t sim_disk_calls(const struct sim_disk *d, enum sim_call call)
{
    return d->calls[call];
}

/* The fault that strikes this call, or NULL. Every matching fault counts the call. */
static const struct sim_fault *fault_strikes(struct sim_disk *d, enum sim_call call, enum sim_file_kind kind)
{
    const struct sim_fault *hit = NULL;
    for (size_t i = 0; i < d->faults_len; i++) {
        const struct sim_fault *f = &d->faults[i];
        if (f->call != call || (f->files != 0 && !(f->files & (unsigned)kind)))
            continue;
        uint64_t seen = ++d->fault_seen[i];
        if (!hit && seen >= f->nth && (f->times == 0 || seen < f->nth + f->times))
            hit = f;
    }
    return hit;
}

static int gate(struct sim_disk *d, enum sim_call call, enum sim_file_kind kind, bool *ret_evict)
{
    d->calls[call]++;
    if (d->dead)
        return SQLITE_IOERR;
    const struct sim_fault *f = fault_strikes(d, call, kind);
    if (!f)
        return SQLITE_OK;
    d->faults_hit++;
    *ret_evict = f->evict;
    return f->code == SQLITE_OK ? SIM_LIE : f->code;
}

int disk_gate(struct sim_disk *d, enum sim_call call, enum sim_file_kind kind)
{
    bool evict = false;
    int rc = gate(d, call, kind, &evict);
    return rc == SIM_LIE ? SQLITE_OK : rc;
}

void sim_disk_limit(struct sim_disk *d, int64_t bytes)
{
    pthread_mutex_lock(&d->lock);
    d->limit_bytes = bytes;
    pthread_mutex_unlock(&d->lock);
}

int64_t sim_disk_used(const struct sim_disk *d)
{
    int64_t used = 0;
    for (size_t i = 0; i < d->now.files_len; i++)
        if (!d->now.files[i]->deleted)
            used += d->now.files[i]->live.size;
    return used;
}

static bool room_for(const struct sim_disk *d, const struct sim_file *f, int64_t end)
{
    int64_t more = end - f->live.size;
    return d->limit_bytes == 0 || more <= 0 || sim_disk_used(d) + more <= d->limit_bytes;
}

/* --- what the VFS calls ---------------------------------------------------------------------- */

int disk_open(struct sim_disk *d, const char *name, enum sim_file_kind kind, bool create,
              struct sim_file **ret_file)
{
    int rc = disk_gate(d, SIM_CALL_OPEN, kind);
    if (rc != SQLITE_OK)
        return rc;
    struct sim_file *f = name ? sim_state_by_name(&d->now, name) : NULL;
    if (!name) {
        f = sim_file_new(UINT32_MAX, NULL, kind); /* temporary: lives and dies with its handle */
    } else if (!f) {
        if (!create)
            return SQLITE_CANTOPEN;
        disk_do(d, (struct sim_op){.kind = SIM_OP_CREATE,
                                   .file = d->files_made++,
                                   .file_kind = kind,
                                   .len = strlen(name) + 1,
                                   .data = (uint8_t *)(uintptr_t)name});
        f = sim_state_by_name(&d->now, name);
    }
    *ret_file = f;
    return SQLITE_OK;
}

int disk_read(struct sim_disk *d, struct sim_file *f, int64_t offset, void *out, size_t len)
{
    int rc = disk_gate(d, SIM_CALL_READ, f->kind);
    if (rc != SQLITE_OK)
        return rc;
    size_t got = sim_content_read(&f->live, offset, out, len);
    memset((uint8_t *)out + got, 0, len - got);
    return got == len ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static void write_now(struct sim_disk *d, struct sim_file *f, int64_t offset, const void *data, size_t len)
{
    if (!f->name) {
        sim_content_write(&f->live, offset, data, len);
        return;
    }
    disk_do(d, (struct sim_op){.kind = SIM_OP_WRITE,
                               .file = f->id,
                               .offset = offset,
                               .len = len,
                               .data = (uint8_t *)(uintptr_t)data});
}

int disk_write(struct sim_disk *d, struct sim_file *f, int64_t offset, const void *data, size_t len)
{
    bool evict = false;
    int rc = gate(d, SIM_CALL_WRITE, f->kind, &evict);
    if (rc == SIM_LIE)
        return SQLITE_OK;
    if (rc == SQLITE_OK && !room_for(d, f, offset + (int64_t)len)) {
        d->faults_hit++;
        rc = SQLITE_FULL;
    }
    if (rc != SQLITE_OK && (d->dead || len < 2))
        return rc;
    write_now(d, f, offset, data, rc == SQLITE_OK ? len : len / 2);
    return rc;
}

int disk_truncate(struct sim_disk *d, struct sim_file *f, int64_t size)
{
    bool evict = false;
    int rc = gate(d, SIM_CALL_TRUNCATE, f->kind, &evict);
    if (rc != SQLITE_OK)
        return rc == SIM_LIE ? SQLITE_OK : rc;
    if (!f->name)
        sim_content_truncate(&f->live, size);
    else
        disk_do(d, (struct sim_op){.kind = SIM_OP_TRUNCATE, .file = f->id, .offset = size});
    return SQLITE_OK;
}

int disk_sync(struct sim_disk *d, struct sim_file *f, bool directory_too)
{
    bool evict = false;
    int rc = gate(d, SIM_CALL_SYNC, f->kind, &evict);
    if (rc == SIM_LIE || !f->name || d->dead)
        return rc == SIM_LIE ? SQLITE_OK : rc;
    if (rc == SQLITE_OK)
        disk_do(d, (struct sim_op){.kind = SIM_OP_SYNC, .file = f->id, .at_once = directory_too});
    else
        disk_do(d, (struct sim_op){.kind = SIM_OP_SYNC_FAILED, .file = f->id, .at_once = evict});
    return rc;
}

int disk_delete(struct sim_disk *d, const char *name, bool sync_directory)
{
    struct sim_file *f = sim_state_by_name(&d->now, name);
    int rc = disk_gate(d, SIM_CALL_DELETE, f ? f->kind : SIM_FILE_OTHER);
    if (rc != SQLITE_OK)
        return rc;
    if (!f)
        return SQLITE_IOERR_DELETE_NOENT;
    disk_do(d, (struct sim_op){.kind = SIM_OP_DELETE, .file = f->id, .at_once = sync_directory});
    return SQLITE_OK;
}

struct sim_disk *sim_disk_power_cut(struct sim_disk *d, enum sim_cut_mode mode, uint64_t seed)
{
    pthread_mutex_lock(&d->lock);
    d->dead = true;
    struct sim_state after = sim_state_cut(&d->now, mode, seed);
    pthread_mutex_unlock(&d->lock);
    return sim_disk_of(&after);
}

struct sim_disk *sim_disk_copy(struct sim_disk *d)
{
    pthread_mutex_lock(&d->lock);
    struct sim_state same = sim_state_cut(&d->now, SIM_CUT_KEEP_ALL, 0);
    pthread_mutex_unlock(&d->lock);
    return sim_disk_of(&same);
}

int64_t sim_disk_file_size(struct sim_disk *d, const char *name)
{
    pthread_mutex_lock(&d->lock);
    const struct sim_file *f = sim_state_by_name(&d->now, name);
    int64_t size = f ? f->live.size : -1;
    pthread_mutex_unlock(&d->lock);
    return size;
}

bool sim_disk_file_digest(struct sim_disk *d, const char *name, uint64_t *ret_digest)
{
    pthread_mutex_lock(&d->lock);
    const struct sim_file *f = sim_state_by_name(&d->now, name);
    if (f)
        *ret_digest = sim_content_digest(&f->live);
    pthread_mutex_unlock(&d->lock);
    return f != NULL;
}
