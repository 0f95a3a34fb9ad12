#include "domains/runner/exercise.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

enum { SLICE_US = 1000, PAGE_BYTES = 4096, FILE_CHUNK_BYTES = 16 * 1024, NICENESS = 10 };

enum exercise_place { EXERCISE_WAITING, EXERCISE_IN_HAND, EXERCISE_DONE };

struct exercise {
    enum work_behaviour what;
    int64_t cpu_us_left;
    size_t file_bytes;
    void *block; /* held until the end */
    enum exercise_place place;
    bool abandoned; /* its job ended while the thread had it in hand: the thread frees it */
    bool failed;
    TAILQ_ENTRY(exercise) link; /* while waiting */
};

struct exerciser {
    pthread_mutex_t lock; /* guards everything below, and place, abandoned, failed, block */
    pthread_cond_t changed;
    TAILQ_HEAD(, exercise) waiting;
    int blocks_held;
    bool stop, running;
    pthread_t thread;
    int scratch_fd;
    struct exercise_count count;
};

static int64_t thread_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static int64_t burn_slice(int64_t us)
{
    static volatile uint64_t sink; /* keeps the loop from being optimised away */
    int64_t begun = thread_cpu_us(), now = begun;
    while (now - begun < us) {
        for (int i = 0; i < 256; i++)
            sink = hash_mix(sink + 1);
        now = thread_cpu_us();
    }
    return now - begun;
}

static void *touch_block(void)
{
    char *block =
        mmap(NULL, EXERCISE_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL; /* a machine short of memory is spared, the job only waits */
    for (size_t at = 0; at < EXERCISE_BLOCK_BYTES; at += PAGE_BYTES)
        ((volatile char *)block)[at] = (char)at;
    return block;
}

/* Chunk n holds bytes no other chunk holds, so a lost or misplaced write is seen. */
static void fill_chunk(unsigned char *chunk, size_t number)
{
    for (size_t i = 0; i < FILE_CHUNK_BYTES; i += sizeof(uint64_t)) {
        uint64_t word = hash_mix(number * FILE_CHUNK_BYTES + i);
        memcpy(chunk + i, &word, sizeof word);
    }
}

static bool write_and_compare(int fd, size_t bytes)
{
    unsigned char wanted[FILE_CHUNK_BYTES], found[FILE_CHUNK_BYTES];
    size_t chunks = (bytes + FILE_CHUNK_BYTES - 1) / FILE_CHUNK_BYTES;
    for (size_t n = 0; n < chunks; n++) {
        fill_chunk(wanted, n);
        if (pwrite(fd, wanted, sizeof wanted, (off_t)(n * sizeof wanted)) != sizeof wanted)
            return false;
    }
    for (size_t n = 0; n < chunks; n++) {
        fill_chunk(wanted, n);
        if (pread(fd, found, sizeof found, (off_t)(n * sizeof found)) != sizeof found ||
            memcmp(wanted, found, sizeof found) != 0)
            return false;
    }
    return true;
}

static bool use_file(int fd, size_t bytes)
{
    bool same = fd >= 0 && write_and_compare(fd, bytes);
    return fd >= 0 && ftruncate(fd, 0) == 0 && same; /* the room on the disk is given back either way */
}

static void free_block(struct exerciser *x, struct exercise *e)
{
    if (!e->block)
        return;
    munmap(e->block, EXERCISE_BLOCK_BYTES);
    e->block = NULL;
    x->blocks_held--;
}

/* Takes the lock back before it returns. True when nothing is left to do. */
static bool work_slice_unlocked(struct exerciser *x, struct exercise *e)
{
    void *block = NULL;
    bool sound = true;
    int64_t burnt_us = 0;
    pthread_mutex_unlock(&x->lock);
    if (e->what == BEHAVE_BURN_CPU)
        burnt_us = burn_slice(e->cpu_us_left < SLICE_US ? e->cpu_us_left : SLICE_US);
    else if (e->what == BEHAVE_TOUCH_MEMORY)
        block = touch_block();
    else
        sound = use_file(x->scratch_fd, e->file_bytes);
    pthread_mutex_lock(&x->lock);

    e->cpu_us_left -= burnt_us;
    x->count.cpu_us += (uint64_t)burnt_us;
    x->count.blocks += block != NULL;
    x->count.files += e->what == BEHAVE_WRITE_FILE && sound;
    e->failed = !sound;
    if (block && x->blocks_held < EXERCISE_BLOCKS_HELD_MAX) {
        e->block = block;
        x->blocks_held++;
    } else if (block) {
        munmap(block, EXERCISE_BLOCK_BYTES);
    }
    return e->what != BEHAVE_BURN_CPU || e->cpu_us_left <= 0;
}

static void *exerciser_thread(void *self)
{
    struct exerciser *x = self;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    pthread_mutex_lock(&x->lock);
    while (!x->stop) {
        struct exercise *e = TAILQ_FIRST(&x->waiting);
        if (!e) {
            pthread_cond_wait(&x->changed, &x->lock);
            continue;
        }
        TAILQ_REMOVE(&x->waiting, e, link);
        e->place = EXERCISE_IN_HAND;
        bool done = work_slice_unlocked(x, e);
        if (e->abandoned) {
            free_block(x, e);
            free(e);
        } else if (done) {
            e->place = EXERCISE_DONE;
        } else {
            e->place = EXERCISE_WAITING; /* the others come first: no exercise keeps the thread */
            TAILQ_INSERT_TAIL(&x->waiting, e, link);
        }
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

struct exerciser *exerciser_new(int scratch_fd)
{
    struct exerciser *x = must_alloc(sizeof *x);
    TAILQ_INIT(&x->waiting);
    x->scratch_fd = scratch_fd;
    MUST(pthread_mutex_init(&x->lock, NULL) == 0 && pthread_cond_init(&x->changed, NULL) == 0);
    return x;
}

struct exerciser *exerciser_free(struct exerciser *x)
{
    if (!x)
        return NULL;
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    if (x->running)
        pthread_join(x->thread, NULL);
    MUST(TAILQ_EMPTY(&x->waiting) && x->blocks_held == 0);
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    free(x);
    return NULL;
}

static bool start_thread(struct exerciser *x)
{
    if (x->running)
        return true;
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals stay with the event loop */
    x->running = pthread_create(&x->thread, &attr, exerciser_thread, x) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return x->running;
}

struct exercise *exercise_begin(struct exerciser *x, enum work_behaviour what, int64_t cpu_us,
                                size_t file_bytes)
{
    if (what != BEHAVE_BURN_CPU && what != BEHAVE_TOUCH_MEMORY && what != BEHAVE_WRITE_FILE)
        return NULL;
    if (!start_thread(x))
        return NULL; /* no thread to be had: the job only waits */
    const int64_t cpu_us_max = EXERCISE_CPU_MS_MAX * 1000;
    struct exercise *e = must_alloc(sizeof *e);
    e->what = what;
    e->cpu_us_left = cpu_us < cpu_us_max ? cpu_us : cpu_us_max;
    e->file_bytes = file_bytes < EXERCISE_FILE_BYTES_MAX ? file_bytes : EXERCISE_FILE_BYTES_MAX;
    pthread_mutex_lock(&x->lock);
    TAILQ_INSERT_TAIL(&x->waiting, e, link);
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return e;
}

bool exercise_end(struct exerciser *x, struct exercise *e)
{
    if (!e)
        return true;
    pthread_mutex_lock(&x->lock);
    bool sound = !e->failed;
    if (e->place == EXERCISE_WAITING)
        TAILQ_REMOVE(&x->waiting, e, link);
    free_block(x, e);
    e->abandoned = true;
    bool ours = e->place != EXERCISE_IN_HAND;
    pthread_mutex_unlock(&x->lock);
    if (ours)
        free(e);
    return sound;
}

struct exercise_count exerciser_count(struct exerciser *x)
{
    pthread_mutex_lock(&x->lock);
    struct exercise_count count = x->count;
    pthread_mutex_unlock(&x->lock);
    return count;
}
