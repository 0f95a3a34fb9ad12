/* weir-load: loads a server and tells on one JSON line what it took. See ../README.md. */
#include <stdio.h>

#include "load/run.h"
#include "base/must.h"

#include "base/banned.h"

static void mode_key(struct run *r)
{
    puts(r->key);
}

static const struct mode {
    const char *name;
    void (*run)(struct run *r);
    bool needs_key, reports;
} modes[] = {
    {"null", mode_null, false, true},    {"connect", mode_connect, false, true},
    {"key", mode_key, true, false},      {"submit", mode_submit, true, true},
    {"batch", mode_batch, true, true},   {"drain", mode_drain, true, true},
    {"get", mode_get, true, true},       {"lifecycle", mode_lifecycle, true, true},
    {"pickup", mode_pickup, true, true}, {"deliver", mode_deliver, true, true},
    {"append", mode_append, true, true}, {"run", mode_run, true, true},
};

int main(int argc, char **argv)
{
    static struct run run; /* its histograms are too large for a stack */
    struct run *r = &run;
    options_parse(&r->options, argc, argv);
    const struct mode *mode = NULL;
    for (size_t i = 0; i < LENGTH_OF(modes); i++)
        if (strcmp(modes[i].name, r->options.mode) == 0)
            mode = &modes[i];
    if (!mode)
        give_up("no mode %s", r->options.mode);
    r->loop = loop_new(r->options.url);
    if (mode->needs_key)
        make_client_and_key(r);
    mode->run(r);
    if (mode->reports)
        report_print(r);
    loop_free(r->loop);
    return r->errors ? 1 : 0;
}
