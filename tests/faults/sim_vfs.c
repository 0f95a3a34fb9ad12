/* tests/faults/sim_vfs.c - the simulated disk as SQLite sees it: files, locks, shared memory.
 *
 * Locks and shared memory belong to the file and are never durable: a reboot starts without them.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "faults/sim_disk_inside.h"
#include "base/must.h"
#include "base/banned.h"

enum { SHM_REGIONS_MAX = 64, CHECKPOINT_SLOT = 1 };

struct sim_handle;

/* Shared by every handle of a file; made with the first, freed with the last. */
struct sim_locks {
    unsigned handles, shared;
    const struct sim_handle *reserved, *exclusive;
    bool pending;
    unsigned shm_users;
    void *shm[SHM_REGIONS_MAX];
    unsigned shm_shared[SQLITE_SHM_NLOCK];
    const struct sim_handle *shm_exclusive[SQLITE_SHM_NLOCK];
};

struct sim_handle {
    sqlite3_file base;
    struct sim_disk *disk;
    struct sim_file *file;
    struct sim_locks *locks; /* also file->locks */
    int level;               /* SQLITE_LOCK_... */
    bool read_only, delete_on_close, persist_wal, shm_mapped;
    bool sync_directory; /* with the first sync, as SQLite on Linux does for a new journal or WAL */
    unsigned shm_shared_mask;
};

static pthread_mutex_t mount_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_disk *mounted;

static struct sim_handle *handle_of(sqlite3_file *file)
{
    return (struct sim_handle *)file;
}
static void enter(struct sim_handle *h)
{
    pthread_mutex_lock(&h->disk->lock);
}
static int leave(struct sim_handle *h, int rc)
{
    pthread_mutex_unlock(&h->disk->lock);
    return rc;
}

static struct sim_disk *mounted_disk(void)
{
    pthread_mutex_lock(&mount_lock);
    struct sim_disk *d = mounted;
    pthread_mutex_unlock(&mount_lock);
    return d;
}

/* --- content --------------------------------------------------------------------------------- */

static int sim_read(sqlite3_file *file, void *out, int len, sqlite3_int64 offset)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    return leave(h, disk_read(h->disk, h->file, offset, out, (size_t)len));
}

static int sim_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 offset)
{
    struct sim_handle *h = handle_of(file);
    if (h->read_only)
        return SQLITE_READONLY;
    enter(h);
    return leave(h, disk_write(h->disk, h->file, offset, data, (size_t)len));
}

static int sim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    return leave(h, disk_truncate(h->disk, h->file, size));
}

static int sim_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    struct sim_handle *h = handle_of(file);
    enter(h);
    int rc = disk_sync(h->disk, h->file, h->sync_directory);
    if (rc == SQLITE_OK)
        h->sync_directory = false;
    return leave(h, rc);
}

static int sim_file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    *ret_size = h->file->live.size;
    return leave(h, h->disk->dead ? SQLITE_IOERR : SQLITE_OK);
}

/* --- locks of the rollback journal; in WAL mode every connection holds SHARED ------------------
 */

static bool may_share(const struct sim_locks *l)
{
    return !l->pending && !l->exclusive;
}

static int lock_exclusive(struct sim_handle *h)
{
    struct sim_locks *l = h->locks;
    if ((l->reserved && l->reserved != h) || (l->pending && h->level < SQLITE_LOCK_PENDING))
        return SQLITE_BUSY;
    l->pending = true;
    h->level = SQLITE_LOCK_PENDING;
    if (l->shared > 1) /* our own is one of them */
        return SQLITE_BUSY;
    l->exclusive = h;
    h->level = SQLITE_LOCK_EXCLUSIVE;
    return SQLITE_OK;
}

static int lock_up(struct sim_handle *h, int level)
{
    struct sim_locks *l = h->locks;
    if (h->level >= level)
        return SQLITE_OK;
    if (h->level == SQLITE_LOCK_NONE) {
        if (!may_share(l))
            return SQLITE_BUSY;
        l->shared++;
        h->level = SQLITE_LOCK_SHARED;
    }
    if (level == SQLITE_LOCK_RESERVED) {
        if (l->reserved && l->reserved != h)
            return SQLITE_BUSY;
        l->reserved = h;
        h->level = SQLITE_LOCK_RESERVED;
    }
    return level == SQLITE_LOCK_EXCLUSIVE ? lock_exclusive(h) : SQLITE_OK;
}

static void lock_down(struct sim_handle *h, int level)
{
    struct sim_locks *l = h->locks;
    if (h->level <= level)
        return;
    if (l->exclusive == h)
        l->exclusive = NULL;
    if (h->level >= SQLITE_LOCK_PENDING)
        l->pending = false;
    if (l->reserved == h)
        l->reserved = NULL;
    if (level == SQLITE_LOCK_NONE)
        l->shared--;
    h->level = level;
}

static int sim_lock(sqlite3_file *file, int level)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    return leave(h, h->disk->dead ? SQLITE_IOERR_LOCK : lock_up(h, level));
}

static int sim_unlock(sqlite3_file *file, int level)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    lock_down(h, level);
    return leave(h, SQLITE_OK);
}

static int sim_check_reserved(sqlite3_file *file, int *ret_reserved)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    *ret_reserved = h->locks->reserved != NULL;
    return leave(h, SQLITE_OK);
}

/* --- shared memory of the WAL index ------------------------------------------------------------
 */

static int sim_shm_map(sqlite3_file *file, int region, int bytes, int extend, void volatile **ret_at)
{
    struct sim_handle *h = handle_of(file);
    *ret_at = NULL;
    enter(h);
    struct sim_locks *l = h->locks;
    int rc = disk_gate(h->disk, SIM_CALL_SHM_MAP, h->file->kind);
    if (rc != SQLITE_OK)
        return leave(h, rc);
    MUST(region < SHM_REGIONS_MAX);
    if (!h->shm_mapped) {
        h->shm_mapped = true;
        l->shm_users++;
    }
    if (!l->shm[region] && extend)
        l->shm[region] = must_alloc((size_t)bytes);
    *ret_at = l->shm[region];
    return leave(h, SQLITE_OK);
}

static int shm_take(struct sim_handle *h, int slot, bool exclusive)
{
    struct sim_locks *l = h->locks;
    unsigned bit = 1u << slot;
    unsigned others = l->shm_shared[slot] - (h->shm_shared_mask & bit ? 1u : 0u);
    if (l->shm_exclusive[slot] && l->shm_exclusive[slot] != h)
        return SQLITE_BUSY;
    if (exclusive && others > 0)
        return SQLITE_BUSY;
    if (exclusive) {
        l->shm_exclusive[slot] = h;
    } else if (!(h->shm_shared_mask & bit)) {
        h->shm_shared_mask |= bit;
        l->shm_shared[slot]++;
    }
    return SQLITE_OK;
}

static void shm_give(struct sim_handle *h, int slot)
{
    struct sim_locks *l = h->locks;
    unsigned bit = 1u << slot;
    if (l->shm_exclusive[slot] == h)
        l->shm_exclusive[slot] = NULL;
    if (h->shm_shared_mask & bit) {
        h->shm_shared_mask &= ~bit;
        l->shm_shared[slot]--;
    }
}

static void tell_moment(const struct sim_handle *h, enum sim_moment m)
{
    if (h->disk->watch)
        h->disk->watch(m, h->disk->watch_arg);
}

static int sim_shm_lock(sqlite3_file *file, int first, int count, int flags)
{
    struct sim_handle *h = handle_of(file);
    int rc = SQLITE_OK;
    if (first == CHECKPOINT_SLOT && count == 1) /* a recovery takes more */
        tell_moment(h, flags & SQLITE_SHM_LOCK ? SIM_CHECKPOINT_LOCK : SIM_CHECKPOINT_OVER);
    enter(h);
    bool take = flags & SQLITE_SHM_LOCK;
    if (take && h->disk->dead)
        return leave(h, SQLITE_IOERR_SHMLOCK);
    for (int slot = first; slot < first + count && rc == SQLITE_OK; slot++) {
        if (!take) {
            shm_give(h, slot);
            continue;
        }
        rc = shm_take(h, slot, flags & SQLITE_SHM_EXCLUSIVE);
        for (int back = first; rc != SQLITE_OK && back < slot; back++)
            shm_give(h, back); /* all of the range or none */
    }
    return leave(h, rc);
}

static void sim_shm_barrier(sqlite3_file *file)
{
    struct sim_handle *h = handle_of(file);
    enter(h);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    leave(h, SQLITE_OK);
}

static int sim_shm_unmap(sqlite3_file *file, int delete_it)
{
    (void)delete_it; /* the last one out takes it away in any case: who comes next recovers */
    struct sim_handle *h = handle_of(file);
    enter(h);
    struct sim_locks *l = h->locks;
    if (!h->shm_mapped)
        return leave(h, SQLITE_OK);
    for (int slot = 0; slot < SQLITE_SHM_NLOCK; slot++)
        shm_give(h, slot);
    h->shm_mapped = false;
    if (--l->shm_users == 0)
        for (int i = 0; i < SHM_REGIONS_MAX; i++) {
            free(l->shm[i]);
            l->shm[i] = NULL;
        }
    return leave(h, SQLITE_OK);
}

/* No memory maps: SQLite has no page to fetch. It gives all back when a checkpoint has found the WAL's header
 * changed, which is how a test learns of that moment. */
static int sim_fetch(sqlite3_file *file, sqlite3_int64 offset, int len, void **ret_at)
{
    (void)file;
    (void)offset;
    (void)len;
    *ret_at = NULL;
    return SQLITE_OK;
}

static int sim_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *at)
{
    (void)offset;
    if (!at)
        tell_moment(handle_of(file), SIM_HEADER_READ);
    return SQLITE_OK;
}

/* --- what kind of file -------------------------------------------------------------------------
 */

static int sim_file_control(sqlite3_file *file, int op, void *arg)
{
    struct sim_handle *h = handle_of(file);
    int *flag = arg;
    if (op == SQLITE_FCNTL_POWERSAFE_OVERWRITE) {
        *flag = 1;
        return SQLITE_OK;
    }
    if (op != SQLITE_FCNTL_PERSIST_WAL)
        return SQLITE_NOTFOUND;
    if (*flag >= 0)
        h->persist_wal = *flag != 0;
    *flag = h->persist_wal;
    return SQLITE_OK;
}

static int sim_sector_size(sqlite3_file *file)
{
    (void)file;
    return SIM_SECTOR_BYTES;
}

static int sim_device(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int sim_close(sqlite3_file *file)
{
    struct sim_handle *h = handle_of(file);
    sim_shm_unmap(file, 0);
    enter(h);
    lock_down(h, SQLITE_LOCK_NONE);
    if (--h->locks->handles == 0) {
        free(h->locks);
        h->file->locks = NULL;
    }
    if (!h->file->name)
        sim_file_free(h->file);
    else if (h->delete_on_close)
        disk_delete(h->disk, h->file->name, false);
    h->disk->handles_open--;
    return leave(h, SQLITE_OK);
}

static const sqlite3_io_methods sim_methods = {
    .iVersion = 3,
    .xClose = sim_close,
    .xRead = sim_read,
    .xWrite = sim_write,
    .xTruncate = sim_truncate,
    .xSync = sim_sync,
    .xFileSize = sim_file_size,
    .xLock = sim_lock,
    .xUnlock = sim_unlock,
    .xCheckReservedLock = sim_check_reserved,
    .xFileControl = sim_file_control,
    .xSectorSize = sim_sector_size,
    .xDeviceCharacteristics = sim_device,
    .xShmMap = sim_shm_map,
    .xShmLock = sim_shm_lock,
    .xShmBarrier = sim_shm_barrier,
    .xShmUnmap = sim_shm_unmap,
    .xFetch = sim_fetch,
    .xUnfetch = sim_unfetch,
};

/* --- the VFS -----------------------------------------------------------------------------------
 */

static enum sim_file_kind kind_of(int flags)
{
    if (flags & SQLITE_OPEN_MAIN_DB)
        return SIM_FILE_DB;
    if (flags & SQLITE_OPEN_WAL)
        return SIM_FILE_WAL;
    return flags & SQLITE_OPEN_MAIN_JOURNAL ? SIM_FILE_JOURNAL : SIM_FILE_OTHER;
}

static void handle_open(struct sim_handle *h, struct sim_disk *d, struct sim_file *f, int flags)
{
    if (!f->locks)
        f->locks = must_alloc(sizeof *f->locks);
    f->locks->handles++;
    d->handles_open++;
    h->base.pMethods = &sim_methods;
    h->disk = d;
    h->file = f;
    h->locks = f->locks;
    h->read_only = flags & SQLITE_OPEN_READONLY;
    h->sync_directory = (flags & SQLITE_OPEN_CREATE) && (f->kind & (SIM_FILE_WAL | SIM_FILE_JOURNAL));
    h->delete_on_close = flags & SQLITE_OPEN_DELETEONCLOSE;
}

static int sim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    (void)vfs;
    struct sim_handle *h = handle_of(file);
    memset(h, 0, sizeof *h);
    struct sim_disk *d = mounted_disk();
    if (!d)
        return SQLITE_CANTOPEN;
    struct sim_file *f = NULL;
    pthread_mutex_lock(&d->lock);
    int rc = disk_open(d, name, kind_of(flags), flags & SQLITE_OPEN_CREATE, &f);
    if (rc == SQLITE_OK)
        handle_open(h, d, f, flags);
    pthread_mutex_unlock(&d->lock);
    if (rc == SQLITE_OK && ret_flags)
        *ret_flags = flags;
    return rc;
}

static int sim_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    (void)vfs;
    struct sim_disk *d = mounted_disk();
    if (!d)
        return SQLITE_IOERR_DELETE;
    pthread_mutex_lock(&d->lock);
    int rc = disk_delete(d, name, sync_directory != 0);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static int sim_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_yes)
{
    (void)vfs;
    struct sim_disk *d = mounted_disk();
    *ret_yes = 0;
    if (!d)
        return SQLITE_IOERR_ACCESS;
    pthread_mutex_lock(&d->lock);
    const struct sim_file *f = sim_state_by_name(&d->now, name);
    /* As SQLite on Linux: an empty file does not exist. */
    *ret_yes = f && (flags != SQLITE_ACCESS_EXISTS || f->live.size > 0);
    pthread_mutex_unlock(&d->lock);
    return SQLITE_OK;
}

static int sim_full_path(sqlite3_vfs *vfs, const char *name, int out_len, char *out)
{
    (void)vfs;
    int len = snprintf(out, (size_t)out_len, "%s", name);
    return len < out_len ? SQLITE_OK : SQLITE_CANTOPEN;
}

static sqlite3_vfs *real_vfs(void)
{
    return sqlite3_vfs_find(NULL);
}

static int sim_randomness(sqlite3_vfs *vfs, int len, char *out)
{
    (void)vfs;
    return real_vfs()->xRandomness(real_vfs(), len, out);
}

static int sim_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    return real_vfs()->xSleep(real_vfs(), microseconds);
}

static int sim_time(sqlite3_vfs *vfs, double *ret_day)
{
    (void)vfs;
    return real_vfs()->xCurrentTime(real_vfs(), ret_day);
}

static int sim_last_error(sqlite3_vfs *vfs, int len, char *out)
{
    (void)vfs;
    (void)len;
    (void)out;
    return 0;
}

static int sim_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret_ms)
{
    (void)vfs;
    return real_vfs()->xCurrentTimeInt64(real_vfs(), ret_ms);
}

static sqlite3_vfs sim_vfs = {
    .iVersion = 2,
    .szOsFile = sizeof(struct sim_handle),
    .mxPathname = 512,
    .zName = SIM_VFS_NAME,
    .xOpen = sim_open,
    .xDelete = sim_delete,
    .xAccess = sim_access,
    .xFullPathname = sim_full_path,
    .xRandomness = sim_randomness,
    .xSleep = sim_sleep,
    .xCurrentTime = sim_time,
    .xGetLastError = sim_last_error,
    .xCurrentTimeInt64 = sim_time_ms,
};

void sim_disk_mount(struct sim_disk *d)
{
    if (!sqlite3_vfs_find(SIM_VFS_NAME))
        MUST(sqlite3_vfs_register(&sim_vfs, 0) == SQLITE_OK);
    pthread_mutex_lock(&mount_lock);
    mounted = d;
    pthread_mutex_unlock(&mount_lock);
}
