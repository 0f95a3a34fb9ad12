/* The table of commands, and how a command line becomes one of them. */
#include "cli/cli.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/must.h"
#include "cli/command.h"
#include "cli/suggest.h"

#include "base/banned.h"

#define SERVER   (FLAG_BIT(URL) | FLAG_BIT(KEY) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET))
#define LOCAL    (FLAG_BIT(DATA) | FLAG_BIT(STORE) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) | FLAG_BIT(OUTPUT))
#define TOKENS   (FLAG_BIT(DATA) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET))
#define KEYS     (SERVER | FLAG_BIT(OPERATOR_TOKEN))
#define WISH     (FLAG_BIT(SCOPE) | FLAG_BIT(QUEUE) | FLAG_BIT(NAME) | FLAG_BIT(EXPIRES))
#define OPERATOR (FLAG_BIT(URL) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET) | FLAG_BIT(OPERATOR_TOKEN))
#define RUNS                                                                                                 \
    (FLAG_BIT(URL) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET) | FLAG_BIT(TOKEN) | FLAG_BIT(TENANT) |               \
     FLAG_BIT(ROLE) | FLAG_BIT(SUB) | FLAG_BIT(DATA))
#define PAGES (FLAG_BIT(LIMIT) | FLAG_BIT(CURSOR) | FLAG_BIT(ALL))
#define FILTERS                                                                                              \
    (FLAG_BIT(STATE) | FLAG_BIT(TYPE) | FLAG_BIT(KIND) | FLAG_BIT(WORK_KIND) | FLAG_BIT(QUEUE) |             \
     FLAG_BIT(OUTCOME) | FLAG_BIT(CREATED_AFTER) | FLAG_BIT(CREATED_BEFORE))
#define BULK (FILTERS | FLAG_BIT(LIMIT) | FLAG_BIT(YES))

const struct command command_table[] = {
    {"serve", "", "run the server until SIGTERM or Ctrl-C",
     FLAG_BIT(LISTEN) | FLAG_BIT(PORT) | FLAG_BIT(DATA) | FLAG_BIT(STORE) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) |
         FLAG_BIT(ACCEPT_LOSS) | FLAG_BIT(QUIET),
     0, 0, command_serve},

    {"client create", "", "make a client; --with-key makes its first API key too",
     KEYS | FLAG_BIT(WITH_KEY) | FLAG_BIT(IDEMPOTENCY_KEY), 0, 0, command_client_create},
    {"client list", "", "show all clients, the oldest first", OPERATOR | PAGES | FLAG_BIT(STATE), 0, 0,
     command_client_list},
    {"client suspend", "CLIENT_ID", "refuse its keys and hand out none of its work", OPERATOR, 1, 1,
     command_client_suspend},
    {"client resume", "CLIENT_ID", "let a suspended client go on", OPERATOR, 1, 1, command_client_resume},
    {"client purge-jobs", "CLIENT_ID", "cancel all its unfinished jobs", OPERATOR, 1, 1,
     command_client_purge_jobs},
    {"client delete", "CLIENT_ID", "remove its keys, secret and webhooks for good", OPERATOR, 1, 1,
     command_client_delete},
    {"client key create", "CLIENT_ID", "make an API key; shown once",
     KEYS | WISH | FLAG_BIT(ROTATE) | FLAG_BIT(IDEMPOTENCY_KEY), 1, 1, command_client_key_create},
    {"client key list", "CLIENT_ID", "show the keys of a client, without secrets", KEYS, 1, 1,
     command_client_key_list},
    {"client key renew", "CLIENT_ID [KEY_ID]", "replace a key, the one in use unless named, by a new one",
     KEYS | WISH, 1, 2, command_client_key_renew},
    {"client key revoke", "CLIENT_ID KEY_ID", "refuse a key from now on", KEYS, 2, 2,
     command_client_key_revoke},

    {"job submit", "", "hand in a job",
     SERVER | FLAG_BIT(TYPE) | FLAG_BIT(KIND) | FLAG_BIT(WORK_KIND) | FLAG_BIT(AT) | FLAG_BIT(QUEUE) |
         FLAG_BIT(PAYLOAD) | FLAG_BIT(PRIORITY) | FLAG_BIT(CALLBACK) | FLAG_BIT(IDEMPOTENCY_KEY) |
         FLAG_BIT(MAX_RUNTIME_MS) | FLAG_BIT(MAX_RETRIES) | FLAG_BIT(RETRY) | FLAG_BIT(QUEUE_TTL) |
         FLAG_BIT(WAIT) | FLAG_BIT(TIMEOUT),
     0, 0, command_job_submit},
    {"job get", "JOB_ID", "show a job", SERVER, 1, 1, command_job_get},
    {"job list", "", "show jobs, newest first",
     SERVER | FILTERS | FLAG_BIT(LIMIT) | FLAG_BIT(CURSOR) | FLAG_BIT(ALL), 0, 0, command_job_list},
    {"job cancel", "[JOB_ID]", "cancel a job, waiting or running, or all that match filters", SERVER | BULK,
     0, 1, command_job_cancel},
    {"job retry", "[JOB_ID]", "queue a failed job again, or all that match filters", SERVER | BULK, 0, 1,
     command_job_retry},
    {"job report", "JOB_ID", "show what happened to a final job", SERVER, 1, 1, command_job_report},
    {"job watch", "JOB_ID", "follow a job's events until it is final", SERVER | FLAG_BIT(TIMEOUT), 1, 1,
     command_job_watch},
    {"job explain", "JOB_ID", "say what a job waits for", SERVER, 1, 1, command_job_explain},

    {"queue list", "", "show your queues; with --operator-token those of all clients",
     SERVER | PAGES | FLAG_BIT(OPERATOR_TOKEN), 0, 0, command_queue_list},
    {"queue show", "QUEUE", "show a queue and its defaults", SERVER, 1, 1, command_queue_show},
    {"queue pause", "QUEUE", "hand out none of its jobs; submits go on", SERVER, 1, 1, command_queue_pause},
    {"queue resume", "QUEUE", "hand out its jobs again", SERVER, 1, 1, command_queue_resume},
    {"queue purge", "QUEUE", "cancel its QUEUED jobs", SERVER | FLAG_BIT(YES), 1, 1, command_queue_purge},
    {"queue set", "QUEUE", "set what its jobs are given that do not say",
     SERVER | FLAG_BIT(RETRY) | FLAG_BIT(MAX_RETRIES) | FLAG_BIT(QUEUE_TTL) | FLAG_BIT(RETENTION), 1, 1,
     command_queue_set},

    {"run plan put", "FILE", "store a version of a plan, JSON or YAML; - reads stdin", RUNS, 1, 1,
     command_run_plan_put},
    {"run plan get", "PLAN_ID [VERSION]", "show a plan's steps; the newest version unless given", RUNS, 1, 2,
     command_run_plan_get},
    {"run plan list", "[PLAN_ID]", "show plans and their versions, newest first", RUNS | PAGES, 0, 1,
     command_run_plan_list},
    {"run start", "PLAN_ID [VERSION]", "start a run of a plan; the newest version unless given",
     RUNS | FLAG_BIT(PROJECT) | FLAG_BIT(ENVIRONMENT) | FLAG_BIT(PARAMS) | FLAG_BIT(RUN_ID) | FLAG_BIT(WAIT) |
         FLAG_BIT(WATCH) | FLAG_BIT(TIMEOUT),
     1, 2, command_run_start},
    {"run get", "RUN_ID", "show a run and its steps, now or earlier", RUNS | FLAG_BIT(AT), 1, 1,
     command_run_get},
    {"run list", "", "show runs, newest first",
     RUNS | PAGES | FLAG_BIT(STATE) | FLAG_BIT(PLAN) | FLAG_BIT(PROJECT), 0, 0, command_run_list},
    {"run events", "RUN_ID", "show what happened in a run",
     RUNS | FLAG_BIT(AFTER) | FLAG_BIT(FOLLOW) | FLAG_BIT(LIMIT), 1, 1, command_run_events},
    {"run watch", "RUN_ID", "draw a run's steps as they go, until it ends", RUNS | FLAG_BIT(TIMEOUT), 1, 1,
     command_run_watch},
    {"run signal", "RUN_ID TYPE", "steer a run: pause, resume, cancel, retry-step, skip-step, ...",
     RUNS | FLAG_BIT(PAYLOAD) | FLAG_BIT(STEP) | FLAG_BIT(REASON) | FLAG_BIT(PARAMS) | FLAG_BIT(OVERRIDE) |
         FLAG_BIT(TARGET) | FLAG_BIT(FORCE) | FLAG_BIT(SIGNAL_ID),
     2, 2, command_run_signal},
    {"run signals", "RUN_ID [SIGNAL_ID]", "show who sent which signals and what was decided",
     RUNS | PAGES | FLAG_BIT(PENDING), 1, 2, command_run_signals},
    {"run decision", "POLICY_DECISION_ID", "show the record of a decision about a signal", RUNS, 1, 1,
     command_run_decision},
    {"run approve", "POLICY_DECISION_ID", "let a signal that is held be applied", RUNS | FLAG_BIT(REASON), 1,
     1, command_run_approve},
    {"run reject", "POLICY_DECISION_ID", "refuse a signal that is held", RUNS | FLAG_BIT(REASON), 1, 1,
     command_run_reject},
    {"run alerts", "[RUN_ID]", "show what somebody should look at", RUNS | PAGES, 0, 1, command_run_alerts},

    {"token mint", "", "sign a token with the key set of the data directory, made on first use",
     TOKENS | FLAG_BIT(SUB) | FLAG_BIT(ROLE) | FLAG_BIT(TENANT) | FLAG_BIT(PROJECT) | FLAG_BIT(TTL) |
         FLAG_BIT(AUD),
     0, 0, command_token_mint},
    {"token verify", "", "read a token from stdin and say whether it is good, or why not", TOKENS, 0, 0,
     command_token_verify},
    {"token keys", "", "show every key, also the retired and revoked ones", TOKENS, 0, 0, command_token_keys},
    {"token rotate", "", "make a new key; it signs in a minute, the former one verifies for hours",
     TOKENS | FLAG_BIT(ALG), 0, 0, command_token_rotate},
    {"token revoke-key", "KID", "refuse every token of a key from now on", TOKENS | FLAG_BIT(REASON), 1, 1,
     command_token_revoke_key},

    {"traffic", "", "send a mix of all work kinds and check every outcome; exit code 1 on a surprise",
     KEYS | FLAG_BIT(JOBS) | FLAG_BIT(FOR) | FLAG_BIT(RATE) | FLAG_BIT(MIX) | FLAG_BIT(SEED) |
         FLAG_BIT(TIME_SCALE) | FLAG_BIT(SLACK) | FLAG_BIT(RESTART) | FLAG_BIT(EXPECT),
     0, 0, command_traffic},

    {"verify", "", "replay the whole log and compare it with what is stored", LOCAL | FLAG_BIT(QUIET), 0, 0,
     command_verify},
    {"backup", "FILE", "write a verified copy of the database, also beside a running server",
     LOCAL | FLAG_BIT(QUIET), 1, 1, command_backup},
    {"restore", "FILE", "put a backup in place; the server must be stopped",
     LOCAL | FLAG_BIT(FORCE) | FLAG_BIT(QUIET), 1, 1, command_restore},
    {"store copy", "", "copy a stopped server's store into another, SQLite or PostgreSQL",
     FLAG_BIT(FROM) | FLAG_BIT(TO) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET), 0, 0, command_store_copy},
    {"store events", "", "show every event of every job in the order they became visible",
     LOCAL | FLAG_BIT(FOLLOW) | FLAG_BIT(AFTER) | FLAG_BIT(LIMIT) | FLAG_BIT(QUIET), 0, 0,
     command_store_events},
    {"store inbox", "", "show what applications put into the database that is no job yet",
     LOCAL | FLAG_BIT(LIMIT) | FLAG_BIT(QUIET), 0, 0, command_store_inbox},
    {"doctor", "", "check this machine, its data directory and the server", LOCAL | FLAG_BIT(URL), 0, 0,
     command_doctor},
    {"clock accept", "", "say that the server's clock, which has jumped, is right", OPERATOR, 0, 0,
     command_clock_accept},
    {"top", "", "watch processes, queues, pressure, rates and latencies of a server",
     SERVER | FLAG_BIT(OPERATOR_TOKEN) | FLAG_BIT(TOKEN) | FLAG_BIT(INTERVAL) | FLAG_BIT(ONCE), 0, 0,
     command_top},
    {"config show", "", "show every setting and its value", LOCAL | FLAG_BIT(ORIGIN), 0, 0,
     command_config_show},
    {"config markdown", "", "print the manual of all settings", 0, 0, 0, command_config_markdown},
    {"version", "", "show version, schema and build", FLAG_BIT(OUTPUT), 0, 0, command_version},
    {"help", "[COMMAND]", "show help for a command", 0, 0, 3, command_help},
};
const size_t command_count = LENGTH_OF(command_table);

void cli_fault(const char *fmt, ...)
{
    va_list ap;
    fflush(stdout); /* so that on a terminal the answer comes first */
    fputs("weir: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void cli_note(const struct invocation *in, const char *fmt, ...)
{
    va_list ap;
    if (in->quiet)
        return;
    fflush(stdout);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int cli_err(const struct err *err)
{
    cli_fault("%s", err->detail);
    return (int)exit_code_of_err(err->code);
}

static size_t words_in(const char *name)
{
    size_t n = 1;
    for (; *name; name++)
        n += *name == ' ';
    return n;
}

struct str command_head(const char *name, size_t words_wanted)
{
    size_t len = 0;
    for (size_t seen = 0; name[len]; len++)
        if (name[len] == ' ' && ++seen == words_wanted)
            break;
    return (struct str){name, len};
}

/* A command keeps its former name as an alias. */
static const char *present_name(const char *word)
{
    return strcmp(word, "simulate") == 0 ? "traffic" : word;
}

/* How many of the words stand at the beginning of the command's name, one behind the other. */
static size_t words_shared(const char *name, const char *const *words, size_t count)
{
    struct str rest = str_of(name);
    size_t n = 0;
    while (n < count && rest.len && str_is(str_cut(&rest, ' '), present_name(words[n])))
        n++;
    return n;
}

const struct command *command_find(const char *const *words, size_t count, size_t *ret_used)
{
    const struct command *best = NULL;
    size_t best_used = 0;
    for (size_t i = 0; i < command_count; i++) {
        size_t all = words_in(command_table[i].name);
        if (all > best_used && words_shared(command_table[i].name, words, count) == all) {
            best = &command_table[i];
            best_used = all;
        }
    }
    *ret_used = best_used;
    return best;
}

int command_refuse(const char *const *words, size_t count)
{
    const char *candidates[LENGTH_OF(command_table)];
    char texts[LENGTH_OF(command_table)][SUGGEST_WORD_MAX];
    size_t depth = 0, n = 0;
    for (size_t i = 0; i < command_count; i++) {
        size_t shared = words_shared(command_table[i].name, words, count);
        depth = shared > depth ? shared : depth;
    }
    if (depth == count) { /* "weir job": a noun alone */
        help_print(stderr, words, count);
        return CLI_USAGE;
    }
    for (size_t i = 0; i < command_count; i++) {
        const char *name = command_table[i].name;
        if (words_shared(name, words, count) != depth || words_in(name) <= depth)
            continue;
        struct str head = command_head(name, depth + 1);
        size_t skip = depth ? command_head(name, depth).len + 1 : 0;
        snprintf(texts[n], sizeof texts[n], "%.*s", (int)(head.len - skip), head.ptr + skip);
        candidates[n] = texts[n];
        n++;
    }
    const char *near = suggest_nearest(str_of(words[depth]), candidates, n);
    fputs("weir: unknown command \"weir", stderr);
    for (size_t i = 0; i <= depth; i++)
        fprintf(stderr, " %.40s", words[i]);
    fputs("\"", stderr);
    if (near) {
        fputs("; did you mean \"weir", stderr);
        for (size_t i = 0; i < depth; i++)
            fprintf(stderr, " %s", words[i]);
        fprintf(stderr, " %s\"?", near);
    } else {
        fputs("; `weir help` lists them all", stderr);
    }
    fputc('\n', stderr);
    return CLI_USAGE;
}

/* The command has no such flag: says which one of its own was probably meant; gives CLI_USAGE. */
static int refuse_flag(const struct command *c, struct str name)
{
    const char *own[FLAG_COUNT];
    size_t count = 0;
    for (int i = 0; i < FLAG_COUNT; i++)
        if ((c->flags | FLAGS_COMMON) & (flag_set)1 << i)
            own[count++] = flag_table[i].name;
    const char *near = suggest_nearest(name, own, count);
    int shown = (int)(name.len < SUGGEST_WORD_MAX ? name.len : SUGGEST_WORD_MAX);
    if (near)
        cli_fault("weir %s takes no --%.*s; did you mean --%s?", c->name, shown, name.ptr, near);
    else
        cli_fault("weir %s takes no --%.*s; see `weir %s --help`", c->name, shown, name.ptr, c->name);
    return CLI_USAGE;
}

/* False: a flag or argument does not belong to the command; told. */
static bool check_use(const struct invocation *in)
{
    const struct command *c = in->command;
    flag_set foreign = flags_given(in->flags) & ~(c->flags | FLAGS_COMMON);
    for (int i = 0; foreign && i < FLAG_COUNT; i++)
        if (foreign & (flag_set)1 << i) {
            refuse_flag(c, str_of(flag_table[i].name));
            return false;
        }
    if (in->arg_count < c->args_min) {
        cli_fault("usage: weir %s %s", c->name, c->arguments);
        return false;
    }
    if (in->arg_count > c->args_max) {
        cli_fault("unexpected argument \"%.60s\"; usage: weir %s%s%s", in->args[c->args_max], c->name,
                  *c->arguments ? " " : "", c->arguments);
        return false;
    }
    return true;
}

/* Output that could not be written is a failure, unless one has been told already. */
static int flushed(int code)
{
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (lost && code == CLI_OK)
        cli_fault("cannot write the output");
    return lost && code == CLI_OK ? CLI_FAILED : code;
}

static int run(const struct command *command, const struct flags *f, size_t used, int argc, char **argv)
{
    const char *output = f->value[FLAG_OUTPUT];
    struct invocation in = {
        .command = command,
        .flags = f,
        .args = f->words + used,
        .arg_count = f->word_count - used,
        .json = output && strcmp(output, "json") == 0,
        .quiet = flags_has(f, FLAG_QUIET),
        .argc = argc,
        .argv = argv,
    };
    return check_use(&in) ? command->run(&in) : CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
    struct flags f;
    struct err err;
    size_t used;
    if (flags_parse(argc, argv, &f, &err) != ERR_OK) {
        const struct command *named = f.unknown.ptr ? command_find(f.words, f.word_count, &used) : NULL;
        return named ? refuse_flag(named, f.unknown) : cli_err(&err);
    }
    if (!f.word_count && flags_has(&f, FLAG_VERSION))
        f.words[f.word_count++] = "version";
    const struct command *command = command_find(f.words, f.word_count, &used);
    bool wants_help = flags_has(&f, FLAG_HELP) || !f.word_count;
    if (wants_help && help_print(stdout, f.words, command ? used : f.word_count))
        return flushed(CLI_OK);
    if (!command)
        return command_refuse(f.words, f.word_count);
    char **kept CLEANUP(flags_drop) = NULL;
    if (command->run != command_serve) { /* which reads its settings in another process */
        kept = flags_keep(argc, argv);
        flags_hide_secrets(argc, argv);
        MUST(flags_parse(argc, kept, &f, &err) == ERR_OK);
        if (f.word_count == 0)
            f.words[f.word_count++] = "version";
    }
    return flushed(run(command, &f, used, argc, argv));
}
