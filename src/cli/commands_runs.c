/* The commands of runs. */
#include "cli/command_flags.h"

#include "base/banned.h"

const struct command run_commands[] = {
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
    {.name = NULL},
};
