/* The families of runs and their signals. */
#include <stdio.h>

#include "api/metrics/metrics_internal.h"

#include "base/banned.h"

void metrics_write_runs(const struct metrics *m, uint64_t asked, uint64_t unanswered, struct strbuf *out)
{
    char labels[64];
    metrics_counter(out, "weir_run_events_total", "Run events written", metric_get(&m->run_events));
    metrics_counter(out, "weir_signals_rate_limited_total",
                    "Signals beyond a limit of rate, which left no record", TOTAL(m, signals_rate_limited));
    metrics_head(out, "weir_signals_total", "counter", "Signals decided, by decision");
    for (int d = 0; d < SIGNAL_DECISION_COUNT; d++) {
        snprintf(labels, sizeof labels, "decision=\"%s\"", signal_decision_text((enum signal_decision)d));
        metrics_sample(out, "weir_signals_total", labels, metric_get(&m->signals[d]));
    }
    metrics_head(out, "weir_alerts_total", "counter",
                 "Alerts raised, by category; security: refused signals");
    for (int c = 0; c < ALERT_CATEGORY_COUNT; c++) {
        snprintf(labels, sizeof labels, "category=\"%s\"", alert_category_text((enum alert_category)c));
        metrics_sample(out, "weir_alerts_total", labels, metric_get(&m->alerts[c]));
    }
    metrics_counter(out, "weir_policy_questions_total", "Signals that the policy decision point was to judge",
                    asked);
    metrics_counter(out, "weir_policy_unanswered_total",
                    "Of those, the ones it did not: the fallback decided", unanswered);
}
