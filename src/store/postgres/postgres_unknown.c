/* A commit whose answer was lost: did it happen?
 *
 * COMMIT was sent, or may have been, and then the connection broke or no answer came in time. The transaction
 * is then one of three: committed, rolled back, or still open, because its server process has not read COMMIT
 * yet, or is at it. A guess is not allowed: accepted work must be neither refused nor done twice.
 *
 * First, the old server process is ended and waited for. After that nothing can happen to the transaction any
 * more. The process is named by its number and its start time, so that no later process of that number is
 * meant. A process that is not there any more has ended by itself.
 *
 * Second, the row of our lane is read. Every commit writes its batch's number there, in the same transaction
 * as everything else: the number is there exactly when the transaction is.
 *
 * The row is read FOR UPDATE: should a lock of the old transaction be left for a moment, we wait for it. When
 * the lane was given away meanwhile, or the database does not answer until the batch's time is over
 * (postgres_commit.c), the result stays unknown, and the answer says so (STORAGE_UNAVAILABLE): the caller
 * learns the result by asking again, with the same idempotency key or token. Nothing in this process depends
 * on the result, so no thread has to stop: the next batch reads what it needs, and a COMMIT that arrives
 * after a later one of its lane is refused. */
#include <poll.h>

#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum { PAUSE_MS = 50 };

enum outcome { OUTCOME_OPEN, OUTCOME_COMMITTED, OUTCOME_NOT_COMMITTED, OUTCOME_LOST };

static void send_questions(struct postgres_store *s, int64_t pid, int64_t started, size_t *ret_ended,
                           size_t *ret_batch)
{
    struct pg_link *l = &s->link;
    struct pg_params *p = link_params(l);
    params_int(p, pid);
    params_int(p, started);
    params_int(p, l->timeout_ms / 2 + 1);
    *ret_ended = link_send_sql(l, "SELECT pg_terminate_backend(pid,$3::bigint) FROM pg_stat_activity "
                                  "WHERE pid=$1::bigint AND backend_start=$2::timestamptz");
    p = link_params(l);
    params_int(p, s->base.id_slot);
    params_int(p, s->lane_token);
    *ret_batch = link_send_sql(l, "SELECT batch FROM lanes WHERE slot=$1::bigint AND token=$2 FOR UPDATE");
}

static enum outcome ask(struct postgres_store *s, int64_t pid, int64_t started)
{
    struct pg_link *l = &s->link;
    struct err ignored; /* the question is asked again */
    l->retry_at_ms = 0; /* callers wait for this answer: the pause is shorter than the usual one */
    if (link_open(l, &ignored) != ERR_OK)
        return OUTCOME_OPEN;
    size_t ended, batch;
    send_questions(s, pid, started, &ended, &batch);
    if (link_run(l, "the result of a commit", &ignored) != ERR_OK)
        return OUTCOME_OPEN;
    enum outcome outcome = OUTCOME_OPEN;
    bool is_gone = PQntuples(link_result(l, ended)) == 0 || value_int(link_result(l, ended), 0, 0);
    if (is_gone && PQntuples(link_result(l, batch)) == 0)
        outcome = OUTCOME_LOST;
    else if (is_gone)
        outcome =
            value_int(link_result(l, batch), 0, 0) == s->batch ? OUTCOME_COMMITTED : OUTCOME_NOT_COMMITTED;
    link_clear(l);
    return outcome;
}

enum err_code postgres_find_out(struct postgres_store *s, int64_t pid, int64_t started, int64_t until_ms,
                                struct err *err)
{
    enum outcome outcome;
    s->link.until_ms = until_ms;
    while ((outcome = ask(s, pid, started)) == OUTCOME_OPEN && pg_mono_ms() < until_ms)
        poll(NULL, 0, PAUSE_MS);
    s->link.until_ms = 0;
    if (outcome == OUTCOME_COMMITTED)
        return ERR_OK;
    if (outcome == OUTCOME_NOT_COMMITTED) {
        err->conflict = true; /* nothing was written: load and decide again */
        return err->code;
    }
    err_set(err, ERR_STORAGE_UNAVAILABLE,
            "the connection to the database broke during a commit, and it could not be found out whether it "
            "happened (%s); ask again",
            outcome == OUTCOME_LOST ? "the lane was given to another node meanwhile"
                                    : "the database does not answer");
    err->retry_after_s = 1;
    return err->code;
}
