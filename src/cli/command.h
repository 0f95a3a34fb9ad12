/* cli/command.h - what a command is, and what it is given when it runs. */
#ifndef WEIR_CLI_COMMAND_H
#define WEIR_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/exit_code.h"
#include "cli/flags.h"
#include "config/settings.h"

struct invocation;
typedef int command_fn(const struct invocation *in); /* gives the exit code */

struct command {
    const char *name;      /* "job submit": noun and verb, one space between */
    const char *arguments; /* for the usage line: "JOB_ID" */
    const char *help;      /* one line */
    flag_set flags;        /* FLAG_BITs it takes beside FLAGS_COMMON, or shows of them */
    uint8_t args_min, args_max;
    command_fn *run;
};

/* Taken everywhere, so that an alias or a script may always give them. */
#define FLAGS_COMMON                                                                                         \
    (FLAG_BIT(URL) | FLAG_BIT(CA) | FLAG_BIT(CLIENT_CERT) | FLAG_BIT(CLIENT_KEY) | FLAG_BIT(KEY) |           \
     FLAG_BIT(OUTPUT) | FLAG_BIT(DATA) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) | FLAG_BIT(QUIET) |                \
     FLAG_BIT(VERSION) | FLAG_BIT(HELP))

struct invocation {
    const struct command *command;
    const struct flags *flags;
    const char *const *args; /* behind the command's words; args_count of them */
    size_t arg_count;
    bool json;
    bool quiet;
    int argc; /* of main() */
    char **argv;
};

/* A table of commands ends with a NULL name, the list of tables (command_tables.c) with NULL. Help shows the
 * commands in this order. */
extern const struct command *const command_tables[];
extern const struct command job_commands[], run_commands[];
enum { COMMANDS_MAX = 200 };
#define EACH_COMMAND(c)                                                                                      \
    for (const struct command *const *table_ = command_tables; *table_; table_++)                            \
        for (const struct command *c = *table_; c->name; c++)

/* Longest command whose words begin `words`; NULL when none does. */
const struct command *command_find(const char *const *words, size_t count, size_t *ret_used);
/* No command has these words: says which one was probably meant; gives CLI_USAGE. */
int command_refuse(const char *const *words, size_t count);
/* The first `words_wanted` words of `name`, as a str. */
struct str command_head(const char *name, size_t words_wanted);

/* Prints help for the commands that begin with these words (none: all). False when there are none. */
bool help_print(FILE *out, const char *const *words, size_t count);

/* "weir: ..." on stderr. */
void cli_fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A hint on stderr, unless --quiet. */
void cli_note(const struct invocation *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Tells the error on stderr and gives its exit code. */
int cli_err(const struct err *err);

/* Settings from file, environment and flags, checked. On a fault: told on stderr, and the exit code
 * is given; CLI_OK otherwise. Free with settings_free in both cases. */
int cli_settings(const struct invocation *in, struct settings *ret_settings);
/* Tells a bad configuration, with its code, and gives its exit code. */
int cli_settings_err(const struct err *err);
/* The same without words; ERR_CONFIG_INVALID. */
MUST_CHECK enum err_code cli_settings_load(const struct invocation *in, struct settings *ret_settings,
                                           struct err *err);

/* The functions of the tables. */
command_fn command_serve, command_help, command_version, command_config_show, command_config_markdown;
command_fn command_client_create, command_client_key_create, command_client_key_list,
    command_client_key_renew, command_client_key_revoke, command_client_list, command_client_suspend,
    command_client_resume, command_client_purge_jobs, command_client_delete;
command_fn command_job_submit, command_job_get, command_job_list, command_job_cancel, command_job_retry,
    command_job_report, command_job_watch, command_job_explain;
command_fn command_queue_list, command_queue_show, command_queue_pause, command_queue_resume,
    command_queue_purge, command_queue_set;
command_fn command_verify, command_backup, command_restore, command_store_copy, command_store_events,
    command_store_inbox, command_doctor, command_clock_accept, command_traffic, command_top;
command_fn command_run_plan_put, command_run_plan_get, command_run_plan_list, command_run_start,
    command_run_get, command_run_list, command_run_events, command_run_watch, command_run_signal,
    command_run_signals, command_run_decision, command_run_approve, command_run_reject, command_run_alerts;
command_fn command_token_mint, command_token_verify, command_token_keys, command_token_rotate,
    command_token_revoke_key;

#endif
