/* cli/flags.h - every flag there is, in one list, and the arguments of main() sorted into them.
 *
 * A flag has one meaning and one shape in all commands; which command takes it stands in the table of
 * cli.c. `--name VALUE` and `--name=VALUE` are the same, `--` ends the flags, the last one given wins. */
#ifndef WEIR_CLI_FLAGS_H
#define WEIR_CLI_FLAGS_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* X(id, name, short form or 0, name of its value or NULL for a switch, help) */
#define FLAG_LIST(X)                                                                                         \
    X(LISTEN, "listen", 0, "HOST:PORT", "address to serve on (server.listen)")                               \
    X(PORT, "port", 0, "N", "port to serve on; the host stays that of server.listen")                        \
    X(TYPE, "type", 0, "TYPE", "EXECUTE, DEFERRED or EMIT_EVENT; default EXECUTE, or DEFERRED with --at")    \
    X(KIND, "kind", 0, "NAME", "your own name for the work, such as mail.send")                              \
    X(WORK_KIND, "work-kind", 0, "KIND", "simulated work of the catalog, such as SUCCESS_FAST")              \
    X(RETRY, "retry", 0, "auto|manual", "who retries a failure; default auto, on queue `default` manual")    \
    X(AT, "at", 0, "TIME", "run at 2030-01-01T06:00:00Z, or after +90s, +2h30m, +1d")                        \
    X(QUEUE, "queue", 0, "NAME", "queue; `default` is served by the built-in runner")                        \
    X(PAYLOAD, "payload", 0, "JSON", "object for the worker; @FILE reads a file, - reads stdin")             \
    X(PRIORITY, "priority", 0, "0..9", "higher is claimed first; default 4")                                 \
    X(CALLBACK, "callback", 0, "URL", "is sent every event of the job")                                      \
    X(IDEMPOTENCY_KEY, "idempotency-key", 0, "TEXT", "makes the call safe to repeat")                        \
    X(MAX_RUNTIME_MS, "max-runtime-ms", 0, "N", "longest run of one attempt")                                \
    X(MAX_RETRIES, "max-retries", 0, "N", "how often a failed job may be retried")                           \
    X(QUEUE_TTL, "queue-ttl", 0, "SECONDS", "CANCELED, reason expired, when nobody claims it for so long")   \
    X(WAIT, "wait", 0, NULL, "follow the job until it is final, as `job watch` does")                        \
    X(TIMEOUT, "timeout", 0, "TIME", "stop waiting after 30s, 5m, ... with exit code 6")                     \
    X(STATE, "state", 0, "STATE", "only jobs in this state")                                                 \
    X(OUTCOME, "outcome", 0, "OUTCOME", "only jobs that ended SUCCESS, FAILED or CANCELED")                  \
    X(CREATED_AFTER, "created-after", 0, "TIME", "only jobs created later than 2030-01-01T06:00:00Z")        \
    X(CREATED_BEFORE, "created-before", 0, "TIME", "only jobs created earlier than this")                    \
    X(RETENTION, "retention", 0, "SECONDS", "finished jobs of the queue leave so long after their end")      \
    X(YES, "yes", 'y', NULL, "do it without asking")                                                         \
    X(LIMIT, "limit", 0, "N",                                                                                \
      "jobs on a page, 1 to 200; rows of the inbox; default 50; events, default all")                        \
    X(FOLLOW, "follow", 0, NULL, "wait for more, until interrupted")                                         \
    X(AFTER, "after", 0, "PLACE", "go on behind an event that was seen; its place is told with it")          \
    X(INTERVAL, "interval", 0, "TIME", "time between two looks, such as 500ms or 5s; default 1s")            \
    X(ONCE, "once", 0, NULL, "one look, printed as tables; what is no terminal gets it anyway")              \
    X(CURSOR, "cursor", 0, "CURSOR", "go on where an earlier page ended")                                    \
    X(ALL, "all", 0, NULL, "every page")                                                                     \
    X(WITH_KEY, "with-key", 0, NULL, "make an API key too, ready to export")                                 \
    X(ROTATE, "rotate", 0, NULL, "make a new key; the one in use works on for keys.overlap_seconds")         \
    X(SCOPE, "scope", 0, "SCOPE[,SCOPE]", "what it may do: submit, work, read, admin; default all")          \
    X(NAME, "name", 0, "TEXT", "what people call it")                                                        \
    X(EXPIRES, "expires", 0, "TIME", "its life, such as 12h or 30d; default and most keys.ttl_seconds")      \
    X(OPERATOR_TOKEN, "operator-token", 0, "TOKEN", "default WEIR_OPERATOR_TOKEN; for clients and keys")     \
    X(JOBS, "jobs", 0, "N", "how many jobs to send; default 1000")                                           \
    X(FOR, "for", 0, "TIME", "send for 10m, 1h, ... instead of a number of jobs")                            \
    X(RATE, "rate", 0, "R", "jobs a second; default as fast as they end")                                    \
    X(MIX, "mix", 0, "all|KIND[:WEIGHT],...", "what to send; default all, long kinds rarely")                \
    X(SEED, "seed", 0, "S", "repeats the sequence of an earlier run")                                        \
    X(TIME_SCALE, "time-scale", 0, "F", "the server's runner.time_scale; default learnt from a first job")   \
    X(SLACK, "slack", 0, "TIME", "how much longer than planned a run may take; default 2s")                  \
    X(RESTART, "restart", 0, "DIR", "kills the core that works on DIR, for SCHEDULED_LATE_RECOVERY")         \
    X(EXPECT, "expect", 0, "KIND=STATE,...", "expect another end, to see that a surprise is told")           \
    X(SUB, "sub", 0, "NAME", "who the token is for")                                                         \
    X(ROLE, "role", 0, "ROLE[,ROLE]", "what its bearer is; the first is its main role")                      \
    X(TENANT, "tenant", 0, "TENANT", "whose runs it may touch")                                              \
    X(PROJECT, "project", 0, "P[,P]", "projects it may touch; default *, every one")                         \
    X(ENVIRONMENT, "environment", 0, "NAME", "environment of the run; default dev")                          \
    X(PLAN, "plan", 0, "PLAN_ID", "only runs of this plan")                                                  \
    X(RUN_ID, "run-id", 0, "ID", "name of the run; makes the call safe to repeat")                           \
    X(PARAMS, "params", 0, "JSON", "object every step gets; @FILE reads a file, - reads stdin")              \
    X(STEP, "step", 0, "STEP_ID", "the step the signal is about")                                            \
    X(OVERRIDE, "override", 0, "JSON", "of inject-override: object for the step's next attempt")             \
    X(TARGET, "target", 0, "JSON", "of update-target: the step's new target, an object")                     \
    X(SIGNAL_ID, "signal-id", 0, "UUID", "makes the signal safe to repeat; default a new one")               \
    X(PENDING, "pending", 0, NULL, "only what is accepted and not yet processed")                            \
    X(WATCH, "watch", 0, NULL, "draw the run until it ends, as `run watch` does")                            \
    X(TOKEN, "token", 0, "TOKEN", "default WEIR_TOKEN; on the server's machine one is made with --data")     \
    X(TTL, "ttl", 0, "TIME", "life of the token, such as 30m or 8h; default 1h")                             \
    X(AUD, "aud", 0, "AUDIENCE", "who it is for; default the first of tokens.audience")                      \
    X(ALG, "alg", 0, "ALG", "RS256, RS384, RS512, ES256, ES384 or ES512; default as before, or ES256")       \
    X(REASON, "reason", 0, "TEXT", "kept with the revoked key")                                              \
    X(FORCE, "force", 0, NULL, "replace the database that is there; it is kept aside")                       \
    X(ACCEPT_LOSS, "accept-loss", 0, NULL, "start a store that has lost commits; what is missing is logged") \
    X(ORIGIN, "origin", 0, NULL, "also show where each value comes from")                                    \
    X(STORE, "store", 0, "URL", "sqlite:FILE or postgres://...; default sqlite:DATA/weir.db")                \
    X(FROM, "from", 0, "URL", "store to copy; its server must be stopped")                                   \
    X(TO, "to", 0, "URL", "store to copy into: an empty one, or where a copy broke off")                     \
    X(DATA, "data", 0, "DIR", "data directory; default WEIR_DATA or ./data")                                 \
    X(CONFIG, "config", 0, "FILE", "settings in YAML")                                                       \
    X(SET, "set", 0, "KEY=VALUE", "one setting; may be repeated")                                            \
    X(URL, "url", 0, "URL", "server; default WEIR_URL or http://127.0.0.1:8080")                             \
    X(CA, "ca", 0, "FILE", "authority of an https server's certificate; default WEIR_CA or the system's")    \
    X(CLIENT_CERT, "client-cert", 0, "FILE",                                                                 \
      "certificate to show an https server; default WEIR_CLIENT_CERT")                                       \
    X(CLIENT_KEY, "client-key", 0, "FILE", "its private key; default WEIR_CLIENT_KEY")                       \
    X(KEY, "key", 0, "API_KEY", "default WEIR_API_KEY")                                                      \
    X(OUTPUT, "output", 'o', "table|json", "how to print the answer")                                        \
    X(QUIET, "quiet", 'q', NULL, "no hints; only the answer itself")                                         \
    X(VERSION, "version", 0, NULL, "same as `weir version`")                                                 \
    X(HELP, "help", 'h', NULL, "show this text")

#define X(id, name, short_form, value, help) FLAG_##id,
enum flag_id { FLAG_LIST(X) FLAG_COUNT };
#undef X

__extension__ typedef unsigned __int128 flag_set; /* of FLAG_BITs */
_Static_assert(FLAG_COUNT <= 128, "a command's flags are a set of 128 bits");

#define FLAG_BIT(id) ((flag_set)1 << FLAG_##id)

struct flag {
    const char *name;
    char short_form;
    const char *value; /* NULL: a switch */
    const char *help;
};
extern const struct flag flag_table[FLAG_COUNT];
/* The same as a command means it: of one that uses it for something of its own (flags.c lists them), value
 * and help are that command's. */
struct flag flag_of_command(enum flag_id id, const char *command);

enum { FLAG_SETS_MAX = 128, FLAG_WORDS_MAX = 16 };

struct flags {
    const char *value[FLAG_COUNT]; /* NULL: absent; a switch that was given: "" */
    const char *sets[FLAG_SETS_MAX];
    size_t set_count;
    const char *words[FLAG_WORDS_MAX]; /* what is no flag: command and arguments */
    size_t word_count;
    struct str
        unknown; /* of a parse that failed: name of the flag that there is not; absent: another fault */
};

/* Texts are borrowed from argv. ERR_CONFIG_INVALID with one clear line on any fault. */
MUST_CHECK enum err_code flags_parse(int argc, char **argv, struct flags *ret_flags, struct err *err);
static inline bool flags_has(const struct flags *f, enum flag_id id)
{
    return f->value[id] != NULL;
}
flag_set flags_given(const struct flags *f);
int flag_find(struct str name); /* its id; -1: there is none */

/* Overwrites secrets in argv (keys, tokens, passwords in store URLs, secret settings), of equal length. What
 * was parsed from it before has lost them, too. */
void flags_hide_secrets(int argc, char **argv);
char **flags_keep(int argc, char **argv); /* a copy to parse instead, ended by NULL */
void flags_drop(char ***kept);            /* overwritten and freed */

/* The flag's value as an integer; ERR_CONFIG_INVALID names the flag. Absent: *ret is left alone. */
MUST_CHECK enum err_code flags_int(const struct flags *f, enum flag_id id, int64_t min, int64_t max,
                                   int64_t *ret, struct err *err);
/* "1500ms", "30s", "5m", "2h30m", "30d", or plain seconds; a larger unit comes first; at most a year. */
bool duration_parse(struct str text, int64_t *ret_ms);

#endif
