#include "load/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

/* X(option's letter, name, member, meaning) */
#define NUMBER_OPTIONS(X)                                                                                    \
    X('c', "connections", connections, "submitters at once")                                                 \
    X('w', "workers", workers, "worker loops; deliver: webhooks")                                            \
    X('n', "count", count, "stop after so many requests or jobs")                                            \
    X('b', "batch", batch, "jobs or events per batch call")                                                  \
    X('m', "claim", claim, "tasks per claim call")                                                           \
    X('p', "payload", payload_bytes, "bytes of payload per job")                                             \
    X('l', "wait-ms", wait_ms, "long poll of a claim")                                                       \
    X('g', "gap-ms", gap_ms, "pickup: idle time before the next job")                                        \
    X('r', "runs", runs, "append: runs that get the events")                                                 \
    X('S', "steps", steps, "run: steps of each, one behind the other")                                       \
    X('B', "backlog", backlog, "lifecycle: unfinished jobs at most")
#define TEXT_OPTIONS(X)                                                                                      \
    X('u', "url", url, "http://IPV4:PORT of the server; https: its certificate is not looked at")            \
    X('k', "key", key, "API key, or token for append and run; without it a key is made")                     \
    X('q', "queue", queue, "queue name")                                                                     \
    X('i', "ids", ids, "file of job ids: batch writes it, get reads it")                                     \
    X('t', "execution-at", execution_at, "RFC 3339 time: jobs are DEFERRED to it")

static _Noreturn void usage(const char *why)
{
    fprintf(stderr, "weir-load: %s\n", why);
    fputs("usage: weir-load null|connect|key|submit|batch|drain|lifecycle|pickup|get|deliver|append|run "
          "[option]...\n",
          stderr);
#define X(letter, name, member, meaning) fprintf(stderr, "  -%c, --%-12s %s\n", letter, name, meaning);
    NUMBER_OPTIONS(X)
    TEXT_OPTIONS(X)
#undef X
    fputs("  -s, --seconds      stop after so long\n"
          "  -I, --idempotency  submit: an idempotency key per job\n"
          "  -R, --resume       connect: handshakes of TLS go on with an earlier session\n",
          stderr);
    exit(2);
}

static uint64_t number(const char *text)
{
    int64_t value;
    if (!str_to_int(str_of(text), 0, 1000000000, &value))
        usage("a number is needed");
    return (uint64_t)value;
}

static void take(struct options *o, int letter, const char *text)
{
    switch (letter) {
#define X(l, name, member, meaning)                                                                          \
    case l:                                                                                                  \
        o->member = (__typeof__(o->member))number(text);                                                     \
        break;
        NUMBER_OPTIONS(X)
#undef X
#define X(l, name, member, meaning)                                                                          \
    case l:                                                                                                  \
        o->member = text;                                                                                    \
        break;
        TEXT_OPTIONS(X)
#undef X
    case 's':
        o->seconds = strtod(text, NULL);
        break;
    case 'I':
        o->idempotency = true;
        break;
    case 'R':
        o->resume = true;
        break;
    default: /* letters are getopt's, not an enum of ours */
        usage("unknown option");
    }
}

static void check(const struct options *o)
{
    if (!o->connections || o->connections > 1000 || !o->workers || o->workers > 100)
        usage("1 to 1000 connections, 1 to 100 workers");
    if (!o->batch || o->batch > 1000 || !o->claim || o->claim > 256)
        usage("1 to 1000 jobs a batch, 1 to 256 tasks a claim");
    if (!o->runs || o->runs > 1000000 || !o->steps || o->steps > 10000)
        usage("1 to 1000000 runs, 1 to 10000 steps");
    if (o->payload_bytes < 16 || o->payload_bytes > 200000)
        usage("16 to 200000 bytes of payload");
    if (o->seconds < 0 || o->wait_ms > 30000 || !o->backlog)
        usage("seconds of 0 or more, wait-ms up to 30000, backlog of 1 or more");
}

void options_parse(struct options *o, int argc, char **argv)
{
    static const struct option known[] = {
#define X(letter, name, member, meaning) {name, required_argument, NULL, letter},
        NUMBER_OPTIONS(X) TEXT_OPTIONS(X)
#undef X
            {"seconds", required_argument, NULL, 's'},
        {"idempotency", no_argument, NULL, 'I'},
        {"resume", no_argument, NULL, 'R'},
        {0}};
    *o = (struct options){.url = "http://127.0.0.1:8080",
                          .queue = "bench",
                          .connections = 1,
                          .workers = 1,
                          .batch = 1000,
                          .claim = 256,
                          .payload_bytes = 300,
                          .gap_ms = 3,
                          .runs = 1,
                          .steps = 10,
                          .backlog = 20000};
    int letter;
    while ((letter = getopt_long(argc, argv, "c:w:n:b:m:p:l:g:r:S:B:u:k:q:i:t:s:IR", known, NULL)) != -1)
        take(o, letter, optarg);
    if (optind + 1 != argc)
        usage("exactly one mode is needed");
    o->mode = argv[optind];
    check(o);
}
