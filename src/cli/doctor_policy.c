/* The policy decision point that signals are judged by. */
#include "cli/doctor.h"
#include "cli/http_call.h"

#include "base/banned.h"

/* From here, not from the gateway's place: a policy without an answer to nothing says so with 200 as well. */
struct finding doctor_policy_point(const struct doctor *d)
{
    const struct settings *s = &d->settings;
    struct http_answer answer CLEANUP(http_answer_free) = {0};
    struct err err;
    if (!s->engine_policy_url)
        return (struct finding){.level = FINDING_OK, .advice = ""};
    if (!s->gateway_processes)
        return finding(FINDING_WARN, "set gateway.processes, or unset engine.policy_url",
                       "gateway.processes is 0: the fallback (%s) decides", s->engine_policy_fallback);
    struct http_call call = {.method = "POST",
                             .url = s->engine_policy_url,
                             .body = STR("{\"input\":{}}"),
                             .timeout_ms = s->engine_policy_timeout_ms};
    if (http_call(&call, &answer, &err) != ERR_OK)
        return finding(FINDING_WARN, "start it, or raise engine.policy_timeout_ms",
                       "%.150s does not answer; the fallback is %s", s->engine_policy_url,
                       s->engine_policy_fallback);
    if (answer.status != 200)
        return finding(FINDING_WARN, "look at engine.policy_url: any other answer than 200 is none",
                       "%.150s answers %ld; the fallback is %s", s->engine_policy_url, answer.status,
                       s->engine_policy_fallback);
    return finding(FINDING_OK, "", "%.150s answers; the fallback is %s", s->engine_policy_url,
                   s->engine_policy_fallback);
}
