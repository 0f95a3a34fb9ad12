/* api/reads.h - an HTTP thread's view of the store: one reader each, one snapshot per round of its loop.
 *
 * Beginning and ending a snapshot takes two file locks and a look at an index that is seldom in the CPU's
 * cache. So a snapshot begun for one request serves the next ones of the same round too.
 *
 * Promise:   no request sees a state older than an answer given before the request was sent. A client that
 *            was answered by thread 1 may ask thread 2 at once, whose snapshot is from before. Therefore the
 *            kernel raises store->commits after each durable write, before any answer of it and before
 *            anything of it is published (revoked keys, events for streams); a kept snapshot is used again
 *            only while that number is the one it began with.
 * The log:   the store's write-ahead log starts over only in an instant in which no reader stands on an older
 *            state. So no snapshot is kept while the loop sleeps; and while the log is longer than
 *            READS_LOG_PAGES_MAX none is kept from one request to the next. Otherwise the log would grow for
 *            ever under reads and writes at once.
 * Failure:   no snapshot is kept after a failed read: the backend may have ended it already.
 * Threads:   each has its own. A handler begins once, reads as much as it likes and ends nothing; rows that
 *            it read before a second begin may be of an older state. */
#ifndef WEIR_API_READS_H
#define WEIR_API_READS_H

#include "store/store.h"

enum { READS_LOG_PAGES_MAX = 12000 }; /* half as much again as a busy store lets it grow to by itself */

struct reads;

struct reads *reads_new(struct store *s);
struct reads *reads_free(struct reads *r); /* after the HTTP threads ended; NULL is fine */

/* This thread's reader inside a snapshot; NULL with err set when the store cannot be read. */
struct reader *reads_begin(struct reads *r, struct err *err);
/* A callback of a request has returned: ends the snapshot unless it may be kept. */
void reads_request_end(struct reads *r);
/* Ends this thread's snapshot, if there is one: at the end of a round, and after a read that failed. */
void reads_end(struct reads *r);
/* Commit thread: how long the log is now. */
void reads_log_pages(struct reads *r, int64_t pages);

#endif
