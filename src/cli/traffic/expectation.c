#include "cli/traffic/expectation.h"

#include "base/must.h"

#include "base/banned.h"

#define RUN_OK       "created queued assigned running succeeded"
#define RUN_FAILS    "created queued assigned running failed"
#define RUN_TOO_LONG "created queued assigned running timed_out"
#define RUN_CUT      "created queued assigned running canceled"
#define RUN_TWICE    "created queued assigned running failed queued assigned running succeeded"
#define RUN_TO_LIMIT "created (queued assigned running failed) retries_exhausted"
#define NEVER_RAN    "created queued canceled"
#define NEVER_DUE    "created canceled"

/* Read it beside the seed's catalog (section 6): the first three columns are its numbers. */
/* clang-format off */
#define ROW(kind_) [WORK_##kind_] = {.name = #kind_,
#define R(ms, fails_, kb, weight_, help_, ends_, attempts_, events_, clock_, reason_, retryable_) \
    .duration_ms = ms, .fails = fails_, .payload_kb = kb, .weight = weight_, .help = HELP_##help_, \
    .ends = JOB_##ends_, .attempts = ATTEMPTS_##attempts_, .events = events_, .clock = CLOCK_##clock_, \
    .reason = reason_, .retryable = retryable_}
const struct traffic_expectation traffic_expectations[WORK_KIND_COUNT] = {
    /*  kind                                ms    fails   KB  weight help              ends       attempts events   clock  reason  retryable */
    ROW(SUCCESS_FAST)                   R(  1000, false,   4, 120, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(SUCCESS_NORMAL)                 R( 10000, false,  16,   8, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(SUCCESS_SLOW)                   R( 90000, false,  32,   1, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(FAIL_IMMEDIATE)                 R(   500, true,    1, 120, NOTHING,             FAILED,    ONE, RUN_FAILS,   FULL,  "work_failed", false),
    ROW(FAIL_AFTER_PROGRESS)            R( 20000, true,    8,   4, NOTHING,             FAILED,    ONE, RUN_FAILS,   FULL,  "work_failed", false),
    ROW(FAIL_AFTER_RETRYABLE)           R(  5000, true,    8,  12, NOTHING,             FAILED,    ONE, RUN_FAILS,   FULL,  "work_failed", true),
    ROW(RUNS_LONG)                      R(110000, false,  32,   1, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(RUNS_OVER_TIMEOUT)              R(  1000, true,    8,   1, NOTHING,             FAILED,    ONE, RUN_TOO_LONG, LIMIT, "timeout", true),
    ROW(CPU_BURST)                      R(  8000, false,   4,   8, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(MEMORY_SPIKE)                   R( 12000, false,  64,   6, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(IO_HEAVY)                       R( 15000, false,  32,   6, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(MANY_SMALL_OUTPUTS)             R(  9000, false,  16,   8, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(LARGE_OUTPUT)                   R(  9000, false, 256,   8, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(CANCEL_BEFORE_START)            R(  5000, false,   4,  80, CANCEL_QUEUED,       CANCELED,  ONE, NEVER_RAN,   NEVER, NULL, false),
    ROW(CANCEL_DURING_RUN)              R( 10000, false,   4,  60, CANCEL_RUNNING,      CANCELED,  ONE, RUN_CUT,     CUT,   NULL, false),
    ROW(RETRY_ON_FAIL)                  R(  3000, true,    4,  12, RETRY_ONCE,          SUCCEEDED, TWO, RUN_TWICE,   FULL,  NULL, false),
    ROW(RETRY_LIMIT_REACHED)            R(  3000, true,    4,   8, RETRY_ALL,           FAILED,    ALL, RUN_TO_LIMIT, FULL, "work_failed", true),
    ROW(DUPLICATE_SUBMIT_SAME_KEY)      R(  2000, false,   4,  40, SAME_KEY,            SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(DUPLICATE_SUBMIT_DIFFERENT_KEY) R(  2000, false,   4,  20, TWO_KEYS,            SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(WEBHOOK_SUCCESS)                R(  2000, false,   4,  24, RECEIVER_OK,         SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(WEBHOOK_TIMEOUT)                R(  2000, false,   4,  16, RECEIVER_HANGS,      SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(WEBHOOK_5XX)                    R(  2000, false,   4,  24, RECEIVER_FAILS_ONCE, SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(WEBHOOK_RETRIES_EXHAUSTED)      R(  2000, false,   4,  16, RECEIVER_FAILS,      SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(WEBHOOK_SLOW_RECEIVER)          R(  2000, false,   4,  24, RECEIVER_SLOW,       SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(SCHEDULED_ON_TIME)              R(  2000, false,   4,  40, DUE_SOON,            SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(SCHEDULED_LATE_RECOVERY)        R(  2000, false,   4,  12, RESTART,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(SCHEDULED_FAR_FUTURE)           R(  2000, false,   4,  60, DUE_FAR,             CANCELED,  ONE, NEVER_DUE,   NEVER, NULL, false),
    ROW(PAYLOAD_SMALL)                  R(  2000, false,   1,  40, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(PAYLOAD_MEDIUM)                 R(  2000, false,  16,  40, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(PAYLOAD_LARGE)                  R(  2000, false, 256,  32, NOTHING,             SUCCEEDED, ONE, RUN_OK,      FULL,  NULL, false),
    ROW(PAYLOAD_INVALID)                R(     0, false,   0,  80, REFUSAL,             NO_STATE,  NONE, "",         NEVER, NULL, false),
};
/* clang-format on */

static const char *const help_texts[TRAFFIC_HELP_COUNT] = {
#define X(name, words) [HELP_##name] = words,
    TRAFFIC_HELPS(X)
#undef X
};

const char *traffic_help_text(enum traffic_help help)
{
    return help_texts[help];
}

bool traffic_help_is_receiver(enum traffic_help help)
{
    return help >= HELP_RECEIVER_OK && help <= HELP_RECEIVER_SLOW;
}

const char *traffic_end_text(const struct traffic_expectation *e)
{
    return e->ends == JOB_NO_STATE ? "REJECTED" : job_state_text(e->ends);
}

enum err_code traffic_expect_override(const char *text, struct traffic_expectation ret[WORK_KIND_COUNT],
                                      struct err *err)
{
    struct str rest = str_of(text);
    while (rest.len) {
        struct str state = str_cut(&rest, ',');
        struct str kind = str_trim(str_cut(&state, '='));
        enum work_kind k;
        if (!work_kind_parse(kind, &k))
            return err_set(err, ERR_CONFIG_INVALID, "--expect: \"%.*s\" is no work kind",
                           (int)(kind.len < 40 ? kind.len : 40), kind.ptr);
        if (!job_state_parse(str_trim(state), &ret[k].ends))
            return err_set(err, ERR_CONFIG_INVALID, "--expect %s needs =STATE, such as =SUCCEEDED",
                           traffic_expectations[k].name);
    }
    return ERR_OK;
}
