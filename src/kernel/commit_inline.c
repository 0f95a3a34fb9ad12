/* Inline commits: the HTTP thread that posted the only waiting command commits it while the commit thread
 * sleeps.
 *
 * A commit takes 0.3 ms on a quick disk. Waking the commit thread and being woken by it would add a quarter
 * to that, and a single client or an idle worker would see all of it as latency. Under load the commit thread
 * is awake and takes whole batches, so nothing is committed inline.
 *
 * The price: the HTTP thread serves no other connection meanwhile. A commit is therefore inline only while
 * the disk is quick and one command waits. The watcher is told, so that another thread takes over the HTTP
 * loop if the disk stops (http/loop_takeover.c). */
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum { INLINE_WEIGHT_MAX = 64 };

/* A bulk call keeps a thread busy for as long as dozens of requests take: it is left to the commit thread. */
static bool has_heavy(const struct kernel *k)
{
    return k->queue[FOR_ANY][ORDINARY].new_weight > INLINE_WEIGHT_MAX;
}

/* Takes the lane's turn for an inline commit. When that is not possible and commands are queued, *ret_wake is
 * the lane to wake. */
static bool take_lane(struct kernel *k, struct lane **ret_wake)
{
    struct lane *l = &k->lanes[0];
    pthread_mutex_lock(&k->lock);
    atomic_store_explicit(&k->unannounced, false, memory_order_relaxed);
    bool idle = l->sleeping && !k->stopping;
    bool taken = k->config.commits_inline && !is_shared(l) && idle && queue_count(k, FOR_ANY) == 1 &&
                 !has_heavy(k) && k->disk_is_quick && pthread_mutex_trylock(&l->turn) == 0;
    *ret_wake = !taken && !is_queue_empty(k) ? kernel_wake_one(k, queue_count(k, FOR_FIRST) != 0) : NULL;
    pthread_mutex_unlock(&k->lock);
    return taken;
}

/* Gives the turn back and wakes the commit thread when it has work: commands that came meanwhile, a timer
 * that is due before the thread would look, or the end of the process. */
static void give_lane_back(struct kernel *k)
{
    struct lane *l = &k->lanes[0];
    int64_t next_ms = l->lost.code == ERR_OK ? steady_now(k) + lane_idle_ms(l) : INT64_MIN;
    pthread_mutex_unlock(&l->turn);
    pthread_mutex_lock(&k->lock);
    k->stats.inline_commits++;
    bool wake = l->sleeping && (!is_queue_empty(k) || next_ms < l->sleep_until_ms);
    if (wake)
        l->sleeping = false;
    pthread_mutex_unlock(&k->lock);
    if (wake)
        pthread_cond_signal(&l->wake);
}

void kernel_round_end(struct kernel *k)
{
    if (!atomic_load_explicit(&k->unannounced, memory_order_relaxed))
        return;
    struct lane *l = &k->lanes[0], *wake;
    if (take_lane(k, &wake)) {
        l->is_inline = true;
        if (k->config.watch.inline_begins)
            k->config.watch.inline_begins(k->config.watch.self);
        lane_step(l);
        lane_tend(l);
        l->is_inline = false;
        give_lane_back(k);
    } else if (wake) {
        pthread_cond_signal(&wake->wake);
    }
}
