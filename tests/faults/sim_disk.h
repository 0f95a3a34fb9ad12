/* tests/faults/sim_disk.h - a disk in memory under SQLite that can lose power at any instant.
 *
 * kill -9 cannot show a missing fsync: the kernel keeps what the process wrote. This disk forgets.
 * It is an SQLite VFS named "sim-disk" (WAL and shared memory included, so one writer and several
 * readers of one process work on it) that keeps, for each file, what is durable and what still
 * waits for a sync, and records every operation. From ONE run the power is then cut at EVERY
 * operation: each time disks are built as they might be found afterwards, opened, and checked.
 *
 * What is assumed of a disk, as SQLite assumes it of Linux:
 *   - xSync makes the file's earlier writes durable, and the directory entry of a new file. The
 * first sync of a journal or WAL also syncs the directory: SQLite's VFS for Linux does that.
 *   - Until then each 512-byte sector of each write may be old, new, torn (a new head and an old
 * tail) or garbage, in any order and any combination; a file may be longer than its data.
 *   - Bytes outside a written range are never damaged (SQLITE_IOCAP_POWERSAFE_OVERWRITE).
 *   - A delete without directory sync may come undone.
 *   - A failed fsync forgets the waiting writes: a second fsync succeeds and they are still lost.
 *
 * Use: see sim_run_cuts() below, and test_sim_disk.c for a whole example.
 * Threads: a disk may be used by many; the harness runs in one, and forks a process per CPU for the
 * checks, so a workload must have ended its threads when it returns. */
#ifndef WEIR_TESTS_SIM_DISK_H
#define WEIR_TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_VFS_NAME "sim-disk"

struct sim_disk;

/* Which files of SQLite a fault concerns; bits, so that several may be named. */
enum sim_file_kind {
    SIM_FILE_DB = 1,
    SIM_FILE_WAL = 2,
    SIM_FILE_JOURNAL = 4,
    SIM_FILE_OTHER = 8,
    SIM_FILE_ANY = 15,
};

struct sim_disk *sim_disk_new(void);    /* empty */
void sim_disk_free(struct sim_disk *d); /* NULL is fine; a handle left open is a bug of the test */

/* Files opened through "sim-disk" from now on are this disk's (NULL: none, opening fails).
 * Registers the VFS the first time. File names are any text: the disk is one flat directory. */
void sim_disk_mount(struct sim_disk *d);

/* --- faults ---------------------------------------------------------------------------------- */

#define SIM_CALLS(X)                                                                                         \
    X(OPEN, "open")                                                                                          \
    X(READ, "read")                                                                                          \
    X(WRITE, "write")                                                                                        \
    X(TRUNCATE, "truncate")                                                                                  \
    X(SYNC, "sync")                                                                                          \
    X(DELETE, "delete")                                                                                      \
    X(SHM_MAP, "shm map")
#define X(name, text) SIM_CALL_##name,
enum sim_call { SIM_CALLS(X) SIM_CALL_COUNT };
#undef X

/* The nth matching call from now (1 = the next) fails with `code`, and `times` - 1 more after it.
 * A failing write leaves its first half. A failing sync forgets the waiting writes.
 * code 0 (SQLITE_OK) is a lying disk: it says "done" and does nothing. */
struct sim_fault {
    enum sim_call call;
    unsigned files; /* sim_file_kind bits; 0 = any */
    uint64_t nth;   /* 0 counts as 1 */
    uint64_t times; /* 0 = for ever */
    int code;       /* SQLITE_FULL, SQLITE_IOERR_FSYNC, ... */
    bool evict;     /* a failing sync: reads see the old bytes too (the page left the cache) */
};

void sim_disk_fault(struct sim_disk *d, const struct sim_fault *f); /* at most 8 at a time */
void sim_disk_heal(struct sim_disk *d);                             /* no faults, no limit */
uint64_t sim_disk_faults_hit(const struct sim_disk *d);             /* since the disk was made */
uint64_t sim_disk_calls(const struct sim_disk *d, enum sim_call call);
void sim_disk_limit(struct sim_disk *d, int64_t bytes); /* room for all files; 0 = endless */
int64_t sim_disk_used(const struct sim_disk *d);
const char *sim_call_text(enum sim_call call);

/* --- forced interleavings ---------------------------------------------------------------------- */

/* Moments of a checkpoint at which a test may hold a thread: `fn` is called there by that thread, with
 * nothing of the disk locked. */
enum sim_moment {
    SIM_CHECKPOINT_LOCK, /* about to take the lock of the one who checkpoints */
    SIM_HEADER_READ,     /* the WAL's length is known, how much of it is copied not yet */
    SIM_CHECKPOINT_OVER, /* all is copied and noted; about to give the lock back */
};
typedef void sim_moment_fn(enum sim_moment m, void *arg);
void sim_disk_watch(struct sim_disk *d, sim_moment_fn *fn, void *arg); /* NULL: none */

/* --- power cuts ------------------------------------------------------------------------------ */

#define SIM_CUT_MODES(X)                                                                                     \
    X(DROP_ALL, "drop all") /* nothing unsynced survives */                                                  \
    X(KEEP_ALL, "keep all") /* everything does */                                                            \
    X(PREFIX, "prefix")     /* the writes before some instant */                                             \
    X(TORN, "torn")         /* a prefix whose last write is torn */                                          \
    X(PER_FILE, "per file") /* each file has its own instant */                                              \
    X(WRITES, "writes")     /* each write survives or not */                                                 \
    X(SECTORS, "sectors")   /* each sector survives, is torn, is garbage or not */
#define X(name, text) SIM_CUT_##name,
enum sim_cut_mode { SIM_CUT_MODES(X) SIM_CUT_MODE_COUNT };
#undef X

/* Power fails now: every handle of `d` is dead (its calls fail), and a new disk holds what might be
 * found. Mount it to reboot. */
struct sim_disk *sim_disk_power_cut(struct sim_disk *d, enum sim_cut_mode mode, uint64_t seed);

/* The same as `keep all`, but `d` lives on: to look at a running disk without touching it. */
struct sim_disk *sim_disk_copy(struct sim_disk *d);
int64_t sim_disk_file_size(struct sim_disk *d, const char *name); /* -1: there is no such file */
/* A digest of a file's bytes as reads see them; false when there is no such file. */
bool sim_disk_file_digest(struct sim_disk *d, const char *name, uint64_t *ret_digest);

/* The workload tells what it has promised: numbers that only grow. Commit n was begun, commit n was
 * acknowledged. After a cut everything acked must be there and nothing that was not begun. */
void sim_disk_begun(struct sim_disk *d, uint64_t n);
void sim_disk_acked(struct sim_disk *d, uint64_t n);

struct sim_cut {
    uint64_t acked, begun; /* as of the cut */
    uint64_t point;        /* how many operations of the run came before it */
    enum sim_cut_mode mode;
    uint64_t seed;
    unsigned depth; /* 2: the power failed again while the check recovered */
};

#define SIM_VERDICTS(X)                                                                                      \
    X(SOUND, "sound")                                                                                        \
    X(LOST, "lost an acknowledged commit")                                                                   \
    X(HALF, "holds half a commit")                                                                           \
    X(PHANTOM, "holds what nobody wrote")                                                                    \
    X(UNREADABLE, "cannot be read")
#define X(name, text) SIM_##name,
enum sim_verdict { SIM_VERDICTS(X) SIM_VERDICT_COUNT };
#undef X

/* Operations before the workload's first mark are the same in many workloads, and their recovery is slow. */
enum sim_start { SIM_START_AS_ALL, SIM_START_ONCE /* one cut at each operation */, SIM_START_UNCUT };

struct sim_cut_plan {
    uint64_t seed;
    uint32_t cuts;       /* at least so many in all; every operation is cut at least once, but for `start` */
    uint32_t recut_each; /* every so-many-th disk is also cut during its recovery; 0 = none */
    bool stop_at_first;  /* enough for a negative control */
    enum sim_start start;
};

struct sim_cut_report {
    uint64_t operations, cuts, recuts;
    uint64_t same; /* of the cuts: as one found sound before, by bytes and promise; not checked again */
    uint64_t verdicts[SIM_VERDICT_COUNT];
    uint64_t by_mode[SIM_CUT_MODE_COUNT];
    double seconds;
    struct sim_cut first; /* the first that was not sound */
    char why[256];
};

/* Runs on a mounted, empty disk; closes what it opened. Marks with sim_disk_begun and _acked. */
typedef void sim_workload_fn(struct sim_disk *d, void *ctx);
/* Opens the mounted disk `d`, says what it holds, and closes it. `why` is empty and may be filled.
 */
/* Runs in several processes at once: changes of ctx stay in each process. */
typedef enum sim_verdict sim_check_fn(struct sim_disk *d, const struct sim_cut *cut, void *ctx,
                                      char why[256]);

struct sim_cut_report sim_run_cuts(const struct sim_cut_plan *plan, sim_workload_fn *workload,
                                   sim_check_fn *check, void *ctx);
uint64_t sim_unsound(const struct sim_cut_report *r); /* how many cuts ended badly */
void sim_report_print(FILE *out, const char *title, const struct sim_cut_report *r);

#endif
