/* unit/engine/engine_rig.h - runs on the bench of unit/kernel/rig.h: plans, runs, events of engines outside,
 * workers and signals, and what a reader then sees. Everything lives in the rig's arena. */
#ifndef WEIR_TESTS_ENGINE_RIG_H
#define WEIR_TESTS_ENGINE_RIG_H

#include "unit/kernel/rig.h"

#include "engine/alert.h"
#include "engine/engine_commands.h"
#include "engine/signal_commands.h"
#include "runs/event_key.h"

#define TENANT "acme"

/* --- plans and runs ---------------------------------------------------------------------------------- */

struct plan_command *put_plan_of(struct rig *r, const char *tenant, const char *json);
void put_plan(struct rig *r, const char *json); /* TENANT's; must be taken */
struct run_command *start_run_of(struct rig *r, const char *tenant, const char *run_id, const char *plan,
                                 const char *params);
void start_run(struct rig *r, const char *run_id, const char *plan); /* version "1"; must be taken */

/* --- events of engines outside ----------------------------------------------------------------------- */

/* Names left NULL are the usual ones: plan "p", version "1", project "proj", environment "prod". */
struct outside {
    const char *type, *step;
    int64_t attempt; /* 0: 1 */
    const char *plan, *version, *tenant, *project, *environment, *payload, *emitted;
    struct uuid event_id; /* all zero: a new one */
};
struct append_item outside_item(struct rig *r, const char *run_id, const struct outside *e);
struct append_command *post_append(struct rig *r, const char *tenant, const char *run_id,
                                   const struct append_item *items, size_t count);
/* One, by TENANT; the item has the answer. A refusal of the whole is put into it. */
struct append_item append_one(struct rig *r, const char *run_id, const struct outside *e);
/* The same, must be written: gives its runSeq. */
int64_t append_good(struct rig *r, const char *run_id, const char *type, const char *step, int64_t attempt);
struct event_id_command *ask_event_id(struct rig *r, const char *tenant, const char *run_id,
                                      const uint8_t key[DIGEST_BYTES]);

/* --- signals ----------------------------------------------------------------------------------------- */

struct sent {
    const char *run, *payload; /* payload NULL: {} */
    enum signal_type type;
    const char *actor, *tenant, *roles; /* NULL: ada of TENANT; roles by comma, NULL: Admin */
    const char *reason;                 /* NULL: none said */
    struct uuid signal_id;              /* all zero: a new one */
    struct policy_given given;
    struct signal_room room;
};
struct signal_command *post_signal(struct rig *r, const struct sent *s);
struct signal_command *send_signal(struct rig *r, const struct sent *s);
/* By an Admin with a reason: the refusal, ERR_OK for none. */
enum err_code signal_run(struct rig *r, const char *run, enum signal_type type, const char *payload);
struct settle_command *settle_decision(struct rig *r, const struct uuid *policy_id, const char *actor,
                                       bool approve);
/* By an Admin of TENANT whose token names one project. */
struct settle_command *settle_of_project(struct rig *r, const struct uuid *policy_id, const char *project,
                                         bool approve);

/* --- workers ------------------------------------------------------------------------------------------ */

/* A task of this step of this run, which must be the one that can be claimed among all. */
struct claimed_task claim_step(struct rig *r, const char *run, const char *step);
void begin_step(struct rig *r, const char *run, const char *step, struct claimed_task *ret_task);
enum err_code end_step(struct rig *r, const struct claimed_task *t, const struct task_outcome *o);
enum err_code succeed_step(struct rig *r, const struct claimed_task *t);
enum err_code fail_step(struct rig *r, const struct claimed_task *t, bool retryable);
/* Claimed, started, ended. */
void do_step(struct rig *r, const char *run, const char *step, bool success);

/* --- what a reader sees ------------------------------------------------------------------------------- */

bool find_run(struct rig *r, const char *run_id, struct run_row *ret_run);
struct run_row run_of(struct rig *r, const char *run_id); /* must be there */
struct run_step_row step_of(struct rig *r, const char *run_id, const char *step);
/* All of them, in order. */
struct run_event_row *events_of(struct rig *r, const char *run_id, size_t *ret_count);
/* "RunQueued RunStarted StepStarted:a:1 ..." */
const char *story_of(struct rig *r, const char *run_id);
/* Of a category; the last of them into *ret unless NULL. */
size_t count_alerts(struct rig *r, enum alert_category category, struct alert_row *ret);
size_t count_rows(struct rig *r, const struct table *t);
struct decision_row decision_by(struct rig *r, const struct uuid *policy_id);
uint32_t count_ready(struct rig *r); /* tasks of steps that nobody holds, timers left out */

#define assert_status(r, run, status)                                                                        \
    assert_string_equal(run_status_text((enum run_status)run_of(r, run).state), status)
#define assert_step(r, run, step, status)                                                                    \
    assert_string_equal(step_status_text((enum step_status)step_of(r, run, step).state), status)
#define assert_story(r, run, text) assert_string_equal(story_of(r, run), text)

#endif
