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

/* Takes the turn if it may be lent now. If not, and somebody has to take up what is queued, *ret_wake. */
static bool borrow(struct kernel *k, bool *ret_wake)
{
    pthread_mutex_lock(&k->lock);
    atomic_store_explicit(&k->unannounced, false, memory_order_relaxed);
    bool idle = k->sleeping && !k->stopping;
    bool lent = k->config.lends_turns && idle && k->queue.count == 1 && k->disk_is_quick &&
                pthread_mutex_trylock(&k->turn) == 0;
    *ret_wake = !lent && k->sleeping && k->queue.first;
    if (*ret_wake)
        k->sleeping = false;
    pthread_mutex_unlock(&k->lock);
    return lent;
}

/* Gives the turn back. The commit thread is woken if it has to: for what came meanwhile, for a timer that is
 * due before it would look, to end the process. */
static void give_back(struct kernel *k)
{
    int64_t next_ms = k->lost.code == ERR_OK ? steady_now(k) + kernel_idle_ms(k) : INT64_MIN;
    pthread_mutex_unlock(&k->turn);
    pthread_mutex_lock(&k->lock);
    k->stats.lent_turns++;
    bool wake = k->sleeping && (k->queue.first || next_ms < k->sleep_until_ms);
    if (wake)
        k->sleeping = false;
    pthread_mutex_unlock(&k->lock);
    if (wake)
        pthread_cond_signal(&k->wake);
}

void kernel_round_end(struct kernel *k)
{
    if (!atomic_load_explicit(&k->unannounced, memory_order_relaxed))
        return;
    bool wake;
    if (borrow(k, &wake)) {
        k->is_lent = true;
        if (k->config.watch.lends)
            k->config.watch.lends(k->config.watch.self);
        kernel_step(k);
        kernel_tend(k);
        k->is_lent = false;
        give_back(k);
    } else if (wake) {
        pthread_cond_signal(&k->wake);
    }
}
