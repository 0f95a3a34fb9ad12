/* A lone command: committed by the thread that brought it, in a turn that the sleeping commit thread lends.
 *
 * A commit takes 0.3 ms on a quick disk; waking the commit thread and being woken by it adds a quarter to
 * that, all of it in the latency that a single client and an idle worker see. Under load nothing changes: the
 * commit thread is awake then, and batches are what makes it fast.
 *
 * The price: the thread serves nobody else meanwhile. So a turn is lent only while the disk is quick, for one
 * command, and the watcher hears of it, to have somebody stand in should the disk stop (http/stand_in.c). */
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum { LENT_WEIGHT_MAX = 64 };

/* A bulk call keeps a thread busy for as long as dozens of requests take: it is left to the commit thread. */
static bool has_heavy(const struct kernel *k)
{
    return k->queue[FOR_ANY][ORDINARY].new_weight > LENT_WEIGHT_MAX;
}

/* Takes the turn if it may be lent now. If not, and somebody has to take up what is queued, *ret_wake. */
static bool borrow(struct kernel *k, struct lane **ret_wake)
{
    struct lane *l = &k->lanes[0];
    pthread_mutex_lock(&k->lock);
    atomic_store_explicit(&k->unannounced, false, memory_order_relaxed);
    bool idle = l->sleeping && !k->stopping;
    bool lent = k->config.lends_turns && !is_shared(l) && idle && queue_count(k, FOR_ANY) == 1 &&
                !has_heavy(k) && k->disk_is_quick && pthread_mutex_trylock(&l->turn) == 0;
    *ret_wake = !lent && !is_queue_empty(k) ? kernel_wake_one(k, queue_count(k, FOR_FIRST) != 0) : NULL;
    pthread_mutex_unlock(&k->lock);
    return lent;
}

/* Gives the turn back. The commit thread is woken if it has to: for what came meanwhile, for a timer that is
 * due before it would look, to end the process. */
static void give_back(struct kernel *k)
{
    struct lane *l = &k->lanes[0];
    int64_t next_ms = l->lost.code == ERR_OK ? steady_now(k) + lane_idle_ms(l) : INT64_MIN;
    pthread_mutex_unlock(&l->turn);
    pthread_mutex_lock(&k->lock);
    k->stats.lent_turns++;
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
    if (borrow(k, &wake)) {
        l->is_lent = true;
        if (k->config.watch.lends)
            k->config.watch.lends(k->config.watch.self);
        lane_step(l);
        lane_tend(l);
        l->is_lent = false;
        give_back(k);
    } else if (wake) {
        pthread_cond_signal(&wake->wake);
    }
}
