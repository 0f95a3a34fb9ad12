/* load/options.h - what the command line asks for. */
#ifndef WEIR_BENCH_OPTIONS_H
#define WEIR_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *mode;
    const char *url;          /* http://IPV4:PORT */
    const char *key;          /* NULL: a client and a key of its own are made first; append, run: a token */
    const char *queue;        /* where jobs go and workers claim */
    const char *ids;          /* file: job ids, one a line; written by batch, read by get */
    const char *execution_at; /* NULL: jobs may run at once */
    double seconds;           /* 0: no limit of time */
    uint64_t count;           /* requests (submit, get, null), jobs (batch and others); 0: no limit */
    uint32_t connections;     /* submitters */
    uint32_t workers;         /* worker loops, one connection each; deliver: webhooks */
    uint32_t batch;           /* jobs a batch call */
    uint32_t claim;           /* tasks a claim call */
    uint32_t payload_bytes;   /* JSON text of one job's payload */
    uint32_t wait_ms;         /* long poll of a claim */
    uint32_t gap_ms;          /* pickup: idle time before the next job */
    uint32_t runs;            /* append: so many runs get the events */
    uint32_t steps;           /* run: of each, one behind the other */
    uint32_t backlog;         /* lifecycle: submitted but unfinished jobs at most */
    bool idempotency;         /* every single submit has a key of its own */
    bool resume;              /* connect: TLS sessions */
};

void options_parse(struct options *o, int argc, char **argv); /* wrong use ends the process: 2 */

#endif
