/* tests/faults/sim_cuts.c - one run, then a power cut at every operation of it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "faults/sim_disk_inside.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/banned.h"

/* A walk along a trace: the disk as it was before operation `at`. */
struct walk {
    const struct sim_disk *disk;
    struct sim_state state;
    size_t at;
    uint64_t begun, acked;
    bool marked; /* the workload has said something by now */
};

struct run {
    const struct sim_cut_plan *plan;
    sim_check_fn *check;
    void *ctx;
    struct sim_cut_report *report;
    uint32_t images;       /* per operation where something waits */
    unsigned share, parts; /* this process cuts at every operation n with n % parts == share */
    uint64_t *sound;       /* digests of disks and promises found sound by this process; 0: none */
};

enum { PARTS_MAX = 4, SOUND_MAX = 1 << 20 };

static void walk_marks(struct walk *w)
{
    for (; w->at < w->disk->trace_len; w->at++) {
        const struct sim_op *op = w->disk->trace[w->at];
        if (op->kind == SIM_OP_BEGUN)
            w->begun = op->mark;
        else if (op->kind == SIM_OP_ACKED)
            w->acked = op->mark;
        else
            return;
        w->marked = true;
    }
}

static struct walk walk_start(const struct sim_disk *d)
{
    struct walk w = {.disk = d, .state = sim_state_clone(&d->base)};
    walk_marks(&w);
    return w;
}

/* Goes over one operation and the marks behind it: the cut then knows all that was promised by the
 * time it came. false at the end. */
static bool walk_step(struct walk *w)
{
    if (w->at >= w->disk->trace_len)
        return false;
    sim_state_apply(&w->state, w->disk->trace[w->at++]);
    walk_marks(w);
    return true;
}

static void count(struct sim_cut_report *r, const struct sim_cut *cut, enum sim_verdict verdict)
{
    r->verdicts[verdict]++;
    r->by_mode[cut->mode]++;
    r->cuts++;
}

static enum sim_verdict judge(struct run *run, const struct sim_cut *cut, struct sim_disk *disk)
{
    char why[256] = "";
    sim_disk_mount(disk);
    enum sim_verdict verdict = run->check(disk, cut, run->ctx, why);
    sim_disk_mount(NULL);
    struct sim_cut_report *r = run->report;
    if (verdict != SIM_SOUND && sim_unsound(r) == 0) {
        r->first = *cut;
        memcpy(r->why, why, sizeof r->why);
    }
    count(r, cut, verdict);
    return verdict;
}

/* The power fails again while the disk of `cut` is being recovered. */
static void recut(struct run *run, const struct sim_cut *cut, const struct sim_disk *disk)
{
    if (disk->trace_len == 0)
        return;
    uint64_t seed = cut->seed ^ UINT64_C(0xC07C07);
    size_t stop = 1 + (size_t)(sim_next(&seed) % disk->trace_len);
    struct walk w = walk_start(disk);
    while (w.at < stop && walk_step(&w))
        ;
    struct sim_cut again = *cut;
    again.depth = 2;
    again.mode = (enum sim_cut_mode)(sim_next(&seed) % SIM_CUT_MODE_COUNT);
    again.seed = sim_next(&seed);
    struct sim_state after = sim_state_cut(&w.state, again.mode, again.seed);
    struct sim_disk *second = sim_disk_of(&after);
    judge(run, &again, second);
    run->report->recuts++;
    sim_disk_free(second);
    sim_state_free(&w.state);
}

/* What a verdict follows from: every byte of the disk, and what was promised. Never 0. */
static uint64_t sound_key(const struct sim_state *found, const struct sim_cut *cut)
{
    uint64_t key = hash_mix(cut->acked) ^ hash_mix(~cut->begun);
    for (size_t i = 0; i < found->files_len; i++) {
        const struct sim_file *f = found->files[i];
        key = hash_fnv1a(key, f->name, strlen(f->name));
        key = hash_mix(key ^ sim_content_digest(&f->durable));
    }
    return key | 1;
}

/* Where the key is, or would be. */
static uint64_t *sound_place(uint64_t *sound, uint64_t key)
{
    uint64_t at = key >> 1;
    while (sound[at % SOUND_MAX] != 0 && sound[at % SOUND_MAX] != key)
        at++;
    return &sound[at % SOUND_MAX];
}

static void cut_here(struct run *run, const struct walk *w, uint64_t point, uint32_t image)
{
    uint64_t seed = run->plan->seed ^ (point << 20) ^ image;
    struct sim_cut cut = {.acked = w->acked, .begun = w->begun, .point = point, .depth = 1};
    cut.mode = (enum sim_cut_mode)((point + image) % SIM_CUT_MODE_COUNT);
    cut.seed = sim_next(&seed);
    struct sim_state after = sim_state_cut(&w->state, cut.mode, cut.seed);
    bool again = run->plan->recut_each > 0 && (point * 7 + image) % run->plan->recut_each == 0;
    uint64_t key = sound_key(&after, &cut), *place = sound_place(run->sound, key);
    if (*place == key && !again) { /* the very same disk once more */
        count(run->report, &cut, SIM_SOUND);
        run->report->same++;
        sim_state_free(&after);
        return;
    }
    struct sim_disk *disk = sim_disk_of(&after);
    if (judge(run, &cut, disk) == SIM_SOUND)
        *place = key;
    if (again)
        recut(run, &cut, disk);
    sim_disk_free(disk);
}

/* Where nothing waits every cut leaves the same disk, so one is enough there. */
static uint32_t images_at(const struct sim_cut_plan *plan, const struct walk *w, uint32_t images)
{
    if (!w->marked && plan->start == SIM_START_UNCUT)
        return 0;
    bool once = sim_state_is_settled(&w->state) || (!w->marked && plan->start == SIM_START_ONCE);
    return once ? 1 : images;
}

static uint32_t images_per_operation(const struct sim_disk *d, const struct sim_cut_plan *plan,
                                     uint64_t *ret_operations)
{
    uint64_t cuts[] = {0, 0, 0}; /* operations that have none, one, and as many as it takes */
    struct walk w = walk_start(d);
    do {
        cuts[images_at(plan, &w, 2)]++;
    } while (walk_step(&w));
    sim_state_free(&w.state);
    *ret_operations = cuts[1] + cuts[2] - 1;
    if (cuts[2] == 0 || plan->cuts <= cuts[1] + cuts[2])
        return 1;
    return (uint32_t)((plan->cuts - cuts[1] + cuts[2] - 1) / cuts[2]);
}

static void cut_share(struct run *run, const struct sim_disk *d)
{
    struct walk w = walk_start(d);
    uint64_t point = 0;
    bool stop = false;
    run->sound = must_alloc(SOUND_MAX * sizeof *run->sound);
    do {
        uint32_t here = images_at(run->plan, &w, run->images);
        for (uint32_t i = 0; point % run->parts == run->share && i < here && !stop; i++) {
            cut_here(run, &w, point, i);
            stop = run->plan->stop_at_first && sim_unsound(run->report) > 0;
        }
        point++;
    } while (!stop && walk_step(&w));
    free(run->sound);
    sim_state_free(&w.state);
}

static void report_add(struct sim_cut_report *sum, const struct sim_cut_report *part)
{
    bool earlier = sim_unsound(sum) == 0 || part->first.point < sum->first.point;
    if (sim_unsound(part) > 0 && earlier) {
        sum->first = part->first;
        memcpy(sum->why, part->why, sizeof sum->why);
    }
    sum->cuts += part->cuts;
    sum->recuts += part->recuts;
    sum->same += part->same;
    for (int i = 0; i < SIM_VERDICT_COUNT; i++)
        sum->verdicts[i] += part->verdicts[i];
    for (int i = 0; i < SIM_CUT_MODE_COUNT; i++)
        sum->by_mode[i] += part->by_mode[i];
}

/* Leaks of the checks are found in the process that made them. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static pid_t start_share(const struct run *run, const struct sim_disk *d)
{
    pid_t child = fork();
    MUST(child >= 0);
    if (child > 0)
        return child;
    struct run own = *run;
    static const struct sim_disk *volatile kept __attribute__((unused)); /* the parent's, no leak of ours */
    kept = d;
    cut_share(&own, d);
    _exit(__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() ? 1 : 0);
}

static void end_share(struct sim_cut_report *sum, struct sim_cut_report *part, pid_t child)
{
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    if (status != 0) { /* a check that crashes or leaks is a check that fails */
        part->cuts++;
        part->verdicts[SIM_UNREADABLE]++;
        snprintf(part->why, sizeof part->why, "a process that checked ended with status %d", status);
    }
    report_add(sum, part);
}

/* The checks run in processes of their own, one per CPU, so that one that crashes is counted; their
 * reports are shared memory. */
static void cut_everywhere(struct run *run, const struct sim_disk *d)
{
    pid_t children[PARTS_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct sim_cut_report *sum = run->report;
    struct sim_cut_report *parts =
        mmap(NULL, PARTS_MAX * sizeof *parts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(parts != MAP_FAILED);
    run->images = images_per_operation(d, run->plan, &sum->operations);
    run->parts = run->plan->stop_at_first || cpus < 2 ? 1 : (unsigned)cpus;
    if (run->parts > PARTS_MAX)
        run->parts = PARTS_MAX;
    fflush(NULL);
    for (run->share = 0; run->share < run->parts; run->share++) {
        run->report = &parts[run->share];
        children[run->share] = start_share(run, d);
    }
    for (unsigned i = 0; i < run->parts; i++)
        end_share(sum, &parts[i], children[i]);
    munmap(parts, PARTS_MAX * sizeof *parts);
}

struct sim_cut_report sim_run_cuts(const struct sim_cut_plan *plan, sim_workload_fn *workload,
                                   sim_check_fn *check, void *ctx)
{
    struct sim_cut_report report = {.operations = 0};
    struct run run = {.plan = plan, .check = check, .ctx = ctx, .report = &report};
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct sim_disk *d = sim_disk_new();
    sim_disk_mount(d);
    workload(d, ctx);
    sim_disk_mount(NULL);
    cut_everywhere(&run, d);
    sim_disk_free(d);
    clock_gettime(CLOCK_MONOTONIC, &to);
    report.seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    return report;
}

uint64_t sim_unsound(const struct sim_cut_report *r)
{
    return r->cuts - r->verdicts[SIM_SOUND];
}

void sim_report_print(FILE *out, const char *title, const struct sim_cut_report *r)
{
#define X(name, text) [SIM_##name] = text,
    static const char *const verdicts[] = {SIM_VERDICTS(X)};
#undef X
#define X(name, text) [SIM_CUT_##name] = text,
    static const char *const modes[] = {SIM_CUT_MODES(X)};
#undef X
    fprintf(out,
            "%s: %llu operations, %llu cuts (%llu during recovery, %llu with a disk found before) in %.1f s;",
            title, (unsigned long long)r->operations, (unsigned long long)r->cuts,
            (unsigned long long)r->recuts, (unsigned long long)r->same, r->seconds);
    for (int v = 0; v < SIM_VERDICT_COUNT; v++)
        if (r->verdicts[v] > 0)
            fprintf(out, " %llu %s;", (unsigned long long)r->verdicts[v], verdicts[v]);
    if (sim_unsound(r) > 0)
        fprintf(out, " first at operation %llu (%s, seed %llx, depth %u, %llu acked of %llu): %s",
                (unsigned long long)r->first.point, modes[r->first.mode], (unsigned long long)r->first.seed,
                r->first.depth, (unsigned long long)r->first.acked, (unsigned long long)r->first.begun,
                r->why);
    fprintf(out, "\n");
}
