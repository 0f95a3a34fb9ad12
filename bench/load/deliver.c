/* deliver: jobs of which W webhooks hear, all at one receiver of our own. A request is a delivery that came.
 * The clock runs from the first job's submit to the last delivery, so storing jobs and deliveries counts. */
#include <stdio.h>

#include "load/receiver.h"
#include "load/request.h"
#include "load/run.h"

#include "base/banned.h"

static void add_webhook(struct run *r, int port, uint32_t number)
{
    struct strbuf body = {0}, request = {0};
    strbuf_addf(&body, "{\"url\":\"http://127.0.0.1:%d/%u\",\"events\":[\"job.queued\"]}", port, number);
    request_post(&request, "/v1/webhooks", r->key, strbuf_str(&body));
    struct strbuf answer = ask(r, strbuf_str(&request));
    strbuf_free(&answer);
    strbuf_free(&request);
    strbuf_free(&body);
}

void mode_deliver(struct run *r)
{
    struct receiver *receiver = receiver_start();
    for (uint32_t i = 0; i < r->options.workers; i++)
        add_webhook(r, receiver_port(receiver), i);
    mode_batch(r);
    int64_t end_ns = receiver_await(receiver, r->jobs * r->options.workers);
    if (!end_ns)
        give_up("only %llu of %llu deliveries came", (unsigned long long)receiver_count(receiver),
                (unsigned long long)(r->jobs * r->options.workers));
    run_end(r);
    r->end_ns = end_ns;
    r->requests = receiver_count(receiver);
    r->errors += receiver_unsigned(receiver);
    receiver_stop(receiver);
}
