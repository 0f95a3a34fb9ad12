/* load/run.h - one measurement: its task, its counts, and the line that reports it. A mode is a function that
 * fills a struct run; report_print() writes one JSON line. */
#ifndef WEIR_BENCH_RUN_H
#define WEIR_BENCH_RUN_H

#include <stdint.h>

#include "load/client.h"
#include "load/histogram.h"
#include "load/options.h"

enum { RUN_CALLS_MAX = 4 };

/* One kind of call and how long its answers took. */
struct call_times {
    const char *name;
    struct histogram times;
};

struct run {
    struct options options;
    struct loop *loop;
    char key[2048]; /* or a token */
    struct call_times calls[RUN_CALLS_MAX];
    uint32_t call_count;
    uint64_t requests, jobs; /* answered; jobs accepted or finished, whichever the mode is about */
    uint64_t errors;         /* answers that are not 2xx, or items refused inside one */
    int64_t start_ns, end_ns;
    double cpu_user_s, cpu_system_s; /* this process's own, between start and end */
    double begin_user_s, begin_system_s;
};

void run_begin(struct run *r);
void run_end(struct run *r);                                 /* again: it ended only now */
struct histogram *run_call(struct run *r, const char *name); /* before run_begin */
/* Counts an answer; the first bad one is shown on stderr. */
void run_answer(struct run *r, struct histogram *h, const struct answer *a);
int64_t run_deadline_ns(const struct run *r); /* 0: none */

/* Asks and waits, on a connection of its own. The body is the caller's to free. */
struct strbuf ask(struct run *r, struct str request);
void make_client_and_key(struct run *r);
/* The text of the member `name` at or after *at; moves *at behind it. ptr NULL: none left. */
struct str next_member(struct str *at, struct str quoted_name);
uint32_t count_text(struct str in, struct str what);

void report_print(const struct run *r);

void mode_null(struct run *r);
void mode_connect(struct run *r);
void mode_submit(struct run *r);
void mode_batch(struct run *r);
void mode_get(struct run *r);
void mode_drain(struct run *r);
void mode_lifecycle(struct run *r);
void mode_pickup(struct run *r);
void mode_deliver(struct run *r);
void mode_append(struct run *r);
void mode_run(struct run *r);

#endif
