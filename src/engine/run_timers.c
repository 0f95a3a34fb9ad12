#include "engine/run_timers.h"

#include "engine/schedule.h"

#include "base/banned.h"

static void load_run(struct unit *u, int64_t run)
{
    unit_prefetch(u, &table_run_row, &(struct run_row){.num = run});
}

static void close_run(struct unit *u, int64_t num)
{
    struct run_row *run = run_by_number(u, num);
    if (run)
        schedule_close(u, run);
}

const struct timer_kind run_grace_timer = {
    .number = 0, .name = "run_grace", .owner_kind = TIMER_OF_RUN, .load = load_run, .fire = close_run};
