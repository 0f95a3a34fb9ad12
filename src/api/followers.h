/* api/followers.h - the jobs and runs that are followed live, so that a commit wakes streams only when one
 * of theirs changed, and a stream reads the store only when its own did. Both are named by their
 * numbers, which come from one row. */
#ifndef WEIR_API_FOLLOWERS_H
#define WEIR_API_FOLLOWERS_H

#include "kernel/unit.h"

struct followers;
struct followed; /* one job, or one run; shared by all its followers */

struct followers *followers_new(void);
struct followers *followers_free(struct followers *f);
struct followed *followers_join(struct followers *f, int64_t job); /* any thread */
void followers_leave(struct followers *f, struct followed *j);
/* A number that rises when there is news of it: an event, or progress. Look at it before the store. */
uint64_t followed_news(const struct followed *j);
/* Another node wrote something, perhaps about a followed job: all followers look again. True: there are some.
 * */
bool followers_look_again(struct followers *f);
uint64_t followers_elsewhere(const struct followers *f); /* how often that was */
/* Commit thread: true when a followed job changed. Costs one atomic read while there are no followers. */
bool followers_publish(struct followers *f, const struct unit *u);

#endif
