/* store/postgres/postgres_statements.h - every statement that is prepared, by number.
 *
 * The fixed ones are one list of name and SQL; those about rows are made from the tables' column lists
 * (store/rows.h), nine a table. A statement is prepared when a connection first sends it.
 * In SQL of the list, `@` stands for the columns of `tasks t`. */
#ifndef WEIR_STORE_POSTGRES_STATEMENTS_H
#define WEIR_STORE_POSTGRES_STATEMENTS_H

#include "store/rows.h"

/* Ids that one statement of a pipeline has found and a later one needs: a setting of the transaction carries
 * them, so that no round trip does. The later statement sees what was committed before the locks of the
 * earlier one were had, which one statement for both would not. */
#define PG_FOUND(name) "string_to_array(nullif(current_setting('weir." name "',true),''),',')::bigint[]"
#define PG_NOTE(name, from)                                                                                  \
    "(SELECT set_config('weir." name "',concat_ws(',',nullif(current_setting('weir." name                    \
    "',true),''),string_agg(id::text,',')),true) FROM " from ")"
/* Every task a batch has loaded: asked for, found by key, picked. */
#define PG_LOADED "$1::bigint[]||" PG_FOUND("keyed") "||" PG_FOUND("picked")
#define PG_PICK(rows)                                                                                        \
    "WITH t AS MATERIALIZED (" rows "),noted AS MATERIALIZED " PG_NOTE("picked", "t") " SELECT @ FROM "      \
                                                                                      "t,noted"
/* The best of several queues: candidates without locks, some more than are wanted because others may hold
 * them, then the best of those that can be locked. `+0` keeps the planner from the index of all ready ones: a
 * candidate is looked up by its id. */
#define PG_PICK_MANY(where)                                                                                  \
    PG_PICK("SELECT x.* FROM (SELECT c.id,c.priority,c.place FROM unnest($1::text[]) AS q(queue) "           \
            "CROSS JOIN LATERAL (SELECT id,priority,place FROM tasks WHERE tasks.queue=q.queue AND " where   \
            " ORDER BY priority DESC,place LIMIT $2::bigint*2+32) c ORDER BY priority DESC,place "           \
            "LIMIT $2::bigint*2+32) b JOIN tasks x ON x.id=b.id WHERE x.phase+0=1 "                          \
            "ORDER BY b.priority DESC,b.place LIMIT $2::bigint FOR UPDATE OF x SKIP LOCKED")

/* Work of suspended clients is not handed out (store/live.h); deliveries are. The subquery is run
 * once a statement, and asked only while there are some (PG_ALLOWED_...): every claim would pay for it. */
#define PG_NOT_SUSPENDED                                                                                     \
    " AND (target<>0 OR client<>ALL(ARRAY(SELECT s.client FROM client_states s WHERE s.state=1)))"

/* The same for a queue that its client has paused. Who claims for one client leaves the queue out instead
 * (postgres_claims.c). */
#define PG_NOT_PAUSED(name)                                                                                  \
    " AND (target<>0 OR client<>ALL(ARRAY(SELECT p.client FROM queues p WHERE p.queue=" name                 \
    " AND p.paused=1)))"

/* JOB_NO_STATE: it is no job's. */
#define PG_IS_JOB(of) of "job_state<7"

/* Unfinished jobs by client and queue. */
#define PG_COUNT_QUEUES(where)                                                                               \
    "SELECT client,queue,count(*) FILTER (WHERE job_state=1),count(*) FILTER (WHERE job_state IN (2,3)),"    \
    "count(*) FILTER (WHERE job_state=0),coalesce(min(last_us) FILTER (WHERE job_state=1),0) FROM tasks "    \
    "WHERE " where " GROUP BY client,queue"

#define PG_PICK_ONE(where)                                                                                   \
    PG_PICK("SELECT * FROM tasks WHERE queue=$1 AND " where " ORDER BY priority DESC,place "                 \
            "LIMIT $2::bigint FOR UPDATE SKIP LOCKED")

/* Each statement can use one index only, whatever the planner estimates: a plan that is made
 * while they are empty stays when they are full. That is what the conditions are for which seem to say
 * nothing: `id>0` opens the indexes by client to those who mean them (postgres_schema.c), and this one says
 * `phase=1` in a way that fits the index by client and not the other. */
#define PG_READY_OF_CLIENT "phase>0 AND phase<2"

/* Targets of a batch and how many streams of each it has as claimed; streams of one, by the index of those
 * that are claimed (phase 2) or wait for a slot (3). */
#define PG_RECEIVER_ARRAYS     "unnest($1::bigint[],$2::bigint[]) AS u(target,claimed)"
#define PG_OF_RECEIVER(phase_) "target=u.target AND target<>0 AND phase>1 AND phase=" phase_

/* X(name, SQL) */
#define PG_STATEMENTS(X)                                                                                     \
    X(BEGIN, "BEGIN")                                                                                        \
    X(SNAPSHOT, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")                                           \
    X(COMMIT, "COMMIT")                                                                                      \
    X(HOOKS_VERSION, "SELECT value FROM marks WHERE name='hooks'")                                           \
    X(HOOKS_CHANGED, "UPDATE marks SET value=value+1 WHERE name='hooks' RETURNING value")                    \
    X(HOOKS_UNCHANGED, "SELECT weir_check(value,$1,'hooks') FROM marks WHERE name='hooks'")                  \
    X(BLOCK, "SELECT nextval('log_numbers'),EXISTS(SELECT 1 FROM lanes WHERE node<>$1 "                      \
             "AND seen>now()-interval '30 s')")                                                              \
    X(LAST_CLIENT, "SELECT coalesce(max(num),0) FROM clients")                                               \
    X(LAST_TENANT, "SELECT greatest(coalesce(max(num),0),1073741823) FROM tenants")                          \
    X(KEYS, "WITH k AS MATERIALIZED (SELECT j.client,j.idem_key,j.id FROM unnest($1::bigint[],$2::text[]) "  \
            "AS u(client,idem_key) JOIN jobs j ON j.client=u.client AND j.idem_key=u.idem_key "              \
            "AND j.idem_key IS NOT NULL),noted AS MATERIALIZED " PG_NOTE(                                    \
                "keyed", "k") " SELECT k.client,k.idem_key,k.id FROM k,noted")                               \
    X(TASKS, "SELECT @ FROM tasks t WHERE " PG_IS_JOB("t.") " AND t.id=ANY($1::bigint[]||" PG_FOUND(         \
                 "keyed") ") ORDER BY t.id FOR UPDATE")                                                      \
    X(CLAIM, PG_PICK_ONE("phase=1"))                                                                         \
    X(CLAIM_OF_CLIENT, PG_PICK_ONE(PG_READY_OF_CLIENT " AND client=$3"))                                     \
    X(CLAIM_MANY, PG_PICK_MANY("phase=1"))                                                                   \
    X(CLAIM_MANY_OF_CLIENT, PG_PICK_MANY(PG_READY_OF_CLIENT " AND client=$3"))                               \
    X(ALLOWED_CLAIM, PG_PICK_ONE("phase=1" PG_NOT_SUSPENDED PG_NOT_PAUSED("$1")))                            \
    X(ALLOWED_CLAIM_OF_CLIENT, PG_PICK_ONE(PG_READY_OF_CLIENT " AND client=$3" PG_NOT_SUSPENDED))            \
    X(ALLOWED_CLAIM_MANY, PG_PICK_MANY("phase=1" PG_NOT_SUSPENDED PG_NOT_PAUSED("q.queue")))                 \
    X(ALLOWED_CLAIM_MANY_OF_CLIENT, PG_PICK_MANY(PG_READY_OF_CLIENT " AND client=$3" PG_NOT_SUSPENDED))      \
    X(DUE, PG_PICK("SELECT * FROM tasks WHERE phase=0 AND due_ms<=$1 ORDER BY due_ms LIMIT $2::bigint "      \
                   "FOR UPDATE SKIP LOCKED"))                                                                \
    X(DUE_TIMERS, "SELECT owner,kind,owner_kind,due_ms FROM timers WHERE due_ms<=$1 ORDER BY due_ms "        \
                  "LIMIT $2::bigint FOR UPDATE SKIP LOCKED")                                                 \
    X(NEXT_DUE, "SELECT least((SELECT min(due_ms) FROM tasks WHERE phase=0 AND due_ms>$1),"                  \
                "(SELECT min(due_ms) FROM timers WHERE due_ms>$1))")                                         \
    X(LAPSED, PG_PICK("SELECT * FROM tasks WHERE phase=2 AND (lease_ms<=$1 OR (state=3 AND "                 \
                      "started_ms<=$1-max_runtime_ms)) LIMIT $2::bigint FOR UPDATE SKIP LOCKED"))            \
    X(EXPIRED, PG_PICK("SELECT * FROM tasks WHERE phase=1 AND expire_ms>0 AND expire_ms<=$1 "                \
                       "ORDER BY expire_ms LIMIT $2::bigint FOR UPDATE SKIP LOCKED"))                        \
    X(STREAMS, "SELECT @ FROM tasks t WHERE t.id IN (SELECT s.id FROM unnest($1::bigint[]) AS u(id) "        \
               "JOIN tasks s ON s.id=u.id AND NOT " PG_IS_JOB(                                               \
                   "s.") " UNION SELECT s.id FROM unnest(" PG_LOADED ") AS u(id) "                           \
                         "JOIN tasks s ON s.subject=u.id AND s.subject<>0) ORDER BY t.id FOR UPDATE")        \
    X(STREAMS_ABOUT, "SELECT @ FROM tasks t WHERE t.subject<>0 AND t.subject=ANY(" PG_LOADED ") "            \
                     "ORDER BY t.id FOR UPDATE")                                                             \
    X(RECEIVERS_NEW,                                                                                         \
      "INSERT INTO targets(target,slots,failures,open_again_ms,seen_ms) SELECT u.target,1,0,0,"              \
      "$3 FROM " PG_RECEIVER_ARRAYS " WHERE NOT EXISTS(SELECT 1 FROM targets x "                             \
      "WHERE x.target=u.target) ORDER BY u.target ON CONFLICT DO NOTHING")                                   \
    X(RECEIVERS, "SELECT x.target,x.slots,x.failures,x.open_again_ms,x.seen_ms FROM " PG_RECEIVER_ARRAYS     \
                 " JOIN targets x ON x.target=u.target ORDER BY x.target FOR UPDATE OF x")                   \
    X(RECEIVERS_CLAIMED,                                                                                     \
      "SELECT u.target,(SELECT count(*) FROM tasks WHERE " PG_OF_RECEIVER("2") ") FROM " PG_RECEIVER_ARRAYS) \
    X(RECEIVERS_WAITING,                                                                                     \
      "SELECT @ FROM " PG_RECEIVER_ARRAYS " JOIN targets x ON x.target=u.target CROSS JOIN "                 \
      "LATERAL (SELECT * FROM tasks WHERE " PG_OF_RECEIVER(                                                  \
          "3") " ORDER BY place LIMIT "                                                                      \
               "greatest(0,u.claimed+least($3::bigint,greatest(x.slots,1)<<least(u.claimed,10)::int)"        \
               "-(SELECT count(*) FROM tasks WHERE " PG_OF_RECEIVER("2") ")) FOR UPDATE SKIP LOCKED) "       \
                                                                         "t WHERE u.claimed>0")              \
    X(RECEIVERS_CHANGE, "UPDATE targets x SET slots=u.slots,failures=u.failures,open_again_ms=u.again,"      \
                        "seen_ms=$5 FROM unnest($1::bigint[],$2::bigint[],$3::bigint[],$4::bigint[]) "       \
                        "AS u(target,slots,failures,again) WHERE x.target=u.target")                         \
    X(TASKS_PLACE, "UPDATE tasks t SET phase=u.phase,due_ms=u.due_ms FROM unnest($1::bigint[],"              \
                   "$2::bigint[],$3::bigint[]) AS u(id,phase,due_ms) WHERE t.id=u.id")                       \
    X(RECEIVERS_LEFT_BEHIND,                                                                                 \
      "WITH RECURSIVE u(target) AS ((SELECT target FROM tasks WHERE target<>0 AND phase>1 "                  \
      "ORDER BY target LIMIT 1) UNION ALL SELECT (SELECT n.target FROM tasks n WHERE n.target<>0 "           \
      "AND n.phase>1 AND n.target>u.target ORDER BY n.target LIMIT 1) FROM u WHERE u.target IS NOT NULL) "   \
      "UPDATE tasks SET phase=1 WHERE id=ANY(ARRAY(SELECT f.id FROM u CROSS JOIN LATERAL (SELECT id "        \
      "FROM tasks WHERE " PG_OF_RECEIVER("3") " ORDER BY place LIMIT 1 FOR UPDATE SKIP LOCKED) f "           \
                                              "WHERE NOT EXISTS(SELECT 1 FROM tasks WHERE " PG_OF_RECEIVER(  \
                                                  "2") ")))")                                                \
    X(RECEIVERS_FORGET, "DELETE FROM targets WHERE target=ANY(ARRAY(SELECT target FROM targets "             \
                        "WHERE seen_ms<$1 LIMIT $2::bigint FOR UPDATE SKIP LOCKED))")                        \
    X(COUNTS, "SELECT s.client,s.counts,d.counts FROM client_stats s LEFT JOIN client_deltas d "             \
              "ON d.client=s.client WHERE s.client=$1")                                                      \
    X(COUNTS_CHANGE,                                                                                         \
      "INSERT INTO client_deltas(client,counts) SELECT * FROM unnest($1::bigint[],$2::bytea[])")             \
    X(LOG_ADD, "INSERT INTO log(g,data) SELECT * FROM unnest($1::bigint[],$2::bytea[])")                     \
    X(LOG_DROP, "DELETE FROM log WHERE g<$1")                                                                \
    X(LIST_ADD, "INSERT INTO list(client,bucket,id) SELECT * FROM unnest($1::bigint[],$2::bigint[],"         \
                "$3::bigint[]) ON CONFLICT DO NOTHING")                                                      \
    X(LIST_DROP, "DELETE FROM list l USING unnest($1::bigint[],$2::bigint[],$3::bigint[]) "                  \
                 "AS u(client,bucket,id) WHERE l.client=u.client AND l.bucket=u.bucket AND l.id=u.id")       \
    X(LANE_BATCH, "WITH x AS (UPDATE lanes SET batch=$3,seen=now() WHERE slot=$1::bigint AND token=$2 "      \
                  "AND batch<$3 RETURNING 1) SELECT weir_check(count(*),1,'lanes') FROM x")                  \
    X(CHUNK, "SELECT data FROM log WHERE g=$1")                                                              \
    X(FOLLOW, "SELECT xid::text::bigint,g,data FROM log WHERE g>0 AND (xid,g)>($1::bigint::text::xid8,$2) "  \
              "AND xid<pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid,g LIMIT $3::bigint")             \
    X(TURN_IS_PAST, "SELECT ($1::bigint::text::xid8<pg_snapshot_xmax(pg_current_snapshot()))::int::bigint")  \
    X(LIST_JOBS, "SELECT id FROM jobs WHERE id>0 AND (client,id)<($1,$2) AND (client,id)>=($1,$3) "          \
                 "ORDER BY client DESC,id DESC LIMIT $4::bigint")                                            \
    X(LIST_ENDS, "SELECT id FROM ends WHERE id>0 AND (client,state,id)<($1,$5,$2) AND "                      \
                 "(client,state,id)>=($1,$5,$3) ORDER BY client DESC,state DESC,id DESC LIMIT $4::bigint")   \
    X(LIST_OTHER, "SELECT id FROM list WHERE client=$1 AND id<$2 AND id>=$3 AND bucket=$5::bigint "          \
                  "ORDER BY id DESC LIMIT $4::bigint")                                                       \
    X(LIVE,                                                                                                  \
      "SELECT id FROM tasks WHERE id>0 AND (client,id)<($1,$2) AND (client,id)>=($1,$3) AND " PG_IS_JOB(     \
          "") " "                                                                                            \
              "ORDER BY client DESC,id DESC LIMIT $4::bigint")                                               \
    X(LIVE_IN_STATE, "SELECT id FROM tasks WHERE id>0 AND (client,id)<($1,$2) AND (client,id)>=($1,$3) "     \
                     "AND job_state=$5 ORDER BY client DESC,id DESC LIMIT $4::bigint")                       \
    X(LIVE_IN_QUEUE,                                                                                         \
      "SELECT id FROM tasks WHERE id>0 AND (client,id)<($1,$2) AND (client,id)>=($1,$3) "                    \
      "AND " PG_IS_JOB("") " AND ($5::bigint<0 OR job_state=$5) AND queue=$6 ORDER BY client DESC,id DESC "  \
                           "LIMIT $4::bigint")                                                               \
    X(ALL_JOBS, "SELECT id FROM jobs WHERE id<$2 AND id>=$3 AND $1::bigint IS NOT NULL ORDER BY id DESC "    \
                "LIMIT $4::bigint")                                                                          \
    X(ALL_LIVE, "SELECT id FROM tasks WHERE id<$2 AND id>=$3 AND " PG_IS_JOB(                                \
                    "") " AND state=$5 AND "                                                                 \
                        "$1::bigint IS NOT NULL ORDER BY id DESC LIMIT $4::bigint")                          \
    X(QUEUES, PG_COUNT_QUEUES(PG_IS_JOB("")))                                                                \
    X(QUEUES_OF_CLIENT, PG_COUNT_QUEUES("id>0 AND client=$1 AND " PG_IS_JOB("")))

#define X(name, sql) PG_##name,
enum pg_statement {
    PG_STATEMENTS(X) PG_FIXED_COUNT,
};
#undef X

/* About rows: one by its key, many by their keys, each also with locks; and the three changes. */
enum pg_row_statement {
    PG_ROW,
    PG_ROW_LOCKED,
    PG_ROWS,
    PG_ROWS_LOCKED,
    PG_RANGE,     /* of a table with two numbers as its key (store.h: range) */
    PG_ROWS_SOME, /* as many as fit into so many bytes; of those that nobody locks */
    PG_INSERT,
    PG_UPDATE,
    PG_DELETE,
    PG_ROW_STATEMENTS
};
enum { PG_STATEMENTS_MAX = PG_FIXED_COUNT + TABLES_MAX * PG_ROW_STATEMENTS };

static inline enum pg_statement pg_of_table(const struct table *t, enum pg_row_statement kind)
{
    return (enum pg_statement)(PG_FIXED_COUNT + t->number * (unsigned)PG_ROW_STATEMENTS + kind);
}

/* The statement's text is added. */
void pg_statement_sql(enum pg_statement statement, struct strbuf *out);
/* Is a row of it changed in place by many? Then a batch that reads one locks it. */
bool pg_is_locked(const struct table *t);
/* "t.a,t.b,..."; the alias may be "". */
void pg_column_list(const struct table *t, const char *alias, unsigned from, struct strbuf *out);

#endif
