/* cli/run_internal.h - what the files of `weir run` share. */
#ifndef WEIR_CLI_RUN_INTERNAL_H
#define WEIR_CLI_RUN_INTERNAL_H

#include "cli/pages.h"
#include "fields/engine_fields.h"

/* ---- run_access.c: who calls. The token is --token or WEIR_TOKEN; without one, and when the server is on
 * this machine, one that lives for minutes is signed with the keys of its data directory, as by `weir token
 * mint`. */
struct run_access {
    const struct invocation *in;
    const char *given;  /* NULL: made here */
    struct strbuf made; /* secret */
    int64_t made_at_ms;
};

/* On a fault: told, and its exit code is given. Free in both cases. */
int run_access_open(const struct invocation *in, struct run_access *ret_access);
void run_access_free(struct run_access *x);
/* The token for a call now; one made here is made anew before it ends. NULL: that failed; told. */
const char *run_access_bearer(struct run_access *x);
server_advice_fn *run_access_advice(const struct run_access *x);

/* "/engine/v1/runs/ID" and what follows, the id escaped. */
struct str run_path(struct arena *a, const char *run_id, const char *rest);
int run_call(struct run_access *x, const char *method, struct str path, struct str body,
             struct server_answer *ret_answer);
/* One GET about the run of the command's first argument. */
int run_read(struct run_access *x, const char *rest, struct server_answer *ret_answer);

/* ---- run_view.c: how things are shown */
/* The members of these names that are there and not null, as "name  value" lines. */
void run_show_pairs(const struct json *object, const char *const *names, size_t count);
/* "1.003 s" between two times on the wire; "" when one is missing. */
void run_took_text(struct str from, struct str to, char *out, size_t size);
/* The reason in the payload of an event: "work_failed: the scenario fails by design"; or absent. */
struct str run_failure_text(struct arena *a, const struct json *failure);

/* ---- run_list.c: a list of the Engine API; how its pages are got is filled in */
int run_show_list(struct run_access *x, struct pages *list);
void run_add_took(struct text_table *t, const struct json *item); /* a cell, of a run or a step */

/* ---- run_get.c */
void run_show(const struct json *run);
/* The exit code for a run that has ended: CLI_OK for COMPLETED. */
int run_exit_code(struct str status);

/* ---- run_events.c */
enum { RUN_EVENT_COLUMNS = 7 };
struct text_table *run_event_table(bool headings);
/* `*previous_us` is the time of the one before, 0 at the first. */
void run_event_row(struct text_table *t, const struct json *event, int64_t *previous_us);
/* The final status the event tells of, or absent. */
struct str run_event_end(const struct json *event);

/* ---- run_signal.c: what became of a signal */
void run_show_decided(const struct invocation *in, const struct server_answer *answer);

/* ---- run_watch.c */
/* Prints the records behind `after` until the run has ended; CLI_OK then, whatever its end. */
int run_follow_events(struct run_access *x, const char *run_id, int64_t after);
enum run_follow { FOLLOW_LINES, FOLLOW_PICTURE, FOLLOW_SILENT };
/* Until the run has ended. Gives the exit code: CLI_OK only for COMPLETED. */
int run_watch(struct run_access *x, const char *run_id, enum run_follow how);

/* ---- run_plan.c: the version of a plan that was stored last. A result other than CLI_OK has been told. */
int run_newest_version(struct run_access *x, const char *plan, struct strbuf *ret_version);

/* ---- run_plan_file.c: a plan as people write it, as JSON. ERR_CONFIG_INVALID names line or step. */
MUST_CHECK enum err_code run_plan_file(const char *path, struct strbuf *out, struct err *err);

#endif
