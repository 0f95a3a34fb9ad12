/* Jobs that fall due while the server is away. Everything else has ended by then, so that the restart
 * fails no run.
 *
 * Away: core is frozen (SIGSTOP) before the first job is due and killed when all are; root starts it again.
 * So the server must be a local one. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/must.h"
#include "cli/http_call.h"
#include "cli/server_call.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

enum {
    FIRST_DUE_MS = 1500, /* from the submit */
    SPREAD_MS = 1000,    /* from the first to the last due time */
    LEAD_MS = 200,       /* core is frozen this long before the first */
    FROZEN_MS = LEAD_MS + SPREAD_MS + 300,
    AWAY_MS_MAX = 60000,
    LOOK_MS = 300,
};

static const char look_local[] = "--restart DIR needs the data directory of the local server";

static bool answers(const struct traffic *s, const char *url)
{
    struct http_call call = {
        .method = "GET", .url = url, .trust = server_trust(s->in), .timeout_ms = LOOK_MS};
    struct http_answer answer;
    struct err err;
    bool ready = http_call(&call, &answer, &err) == ERR_OK && answer.status == 200;
    http_answer_free(&answer);
    return ready;
}

/* Is process `pid` a core? The file may be an old one. */
static bool is_core(int64_t pid)
{
    char path[64], title[64] = "";
    snprintf(path, sizeof path, "/proc/%lld/cmdline", (long long)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(title, 1, sizeof title - 1, f);
    fclose(f);
    title[n] = 0;
    return strcmp(title, "weir: core") == 0;
}

/* From the file in which root names its processes; 0 when there is none. */
static int64_t find_core(const char *data_dir)
{
    char path[4096], text[16384];
    int64_t found = 0, pid;
    snprintf(path, sizeof path, "%s/topology.json", data_dir);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    struct str input = {text, fread(text, 1, sizeof text, f)};
    fclose(f);
    struct arena *arena = arena_new(1 << 12);
    const struct json *root = NULL;
    struct err ignored; /* no such file, no such core: the same to us */
    if (json_parse(arena, input, &root, &ignored) == ERR_OK && json_get(root, "processes"))
        for (const struct json *p = json_get(root, "processes")->child; p; p = p->next)
            if (json_get(p, "name") && str_is(json_get(p, "name")->text, "core") && json_get(p, "pid") &&
                json_to_int(json_get(p, "pid"), &pid) && is_core(pid))
                found = pid;
    arena_free(arena);
    return found;
}

int traffic_restart_possible(struct traffic *s)
{
    const char *dir = s->in->flags->value[FLAG_RESTART];
    if (find_core(dir))
        return CLI_OK;
    cli_fault("--restart %s: no core runs on this data directory; it is what `weir serve --data` was given",
              dir);
    return CLI_USAGE;
}

static void pause_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
}

static bool give_up(struct traffic *s, const char *found)
{
    struct traffic_finding f;
    finding_set(&f, look_local, "core is frozen, killed, and started again by root", "%s", found);
    traffic_surprise(s, WORK_SCHEDULED_LATE_RECOVERY, "", &f);
    return false;
}

/* When the server was away, by its own clock. Between `from` and `stopped` it may still have worked. */
struct traffic_window {
    int64_t from_us, stopped_us, killed_us, until_us;
};

/* Freezes core across the due times, kills it, and waits until the server is ready again. */
static bool restart(struct traffic *s, struct traffic_window *ret)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    int64_t core = find_core(s->in->flags->value[FLAG_RESTART]);
    if (!core)
        return give_up(s, "no core runs on this data directory");
    if (kill((pid_t)core, SIGSTOP) < 0)
        return give_up(s, strerror(errno));
    ret->stopped_us = traffic_server_us(s);
    pause_ms(FROZEN_MS);
    ret->killed_us = traffic_server_us(s);
    if (kill((pid_t)core, SIGKILL) < 0)
        return give_up(s, strerror(errno));
    server_url(s->in, &url);
    strbuf_add_text(&url, "/readyz");
    for (int64_t begun_ms = traffic_now_ms(); traffic_now_ms() - begun_ms < AWAY_MS_MAX; pause_ms(10))
        if (answers(s, url.ptr)) {
            ret->until_us = traffic_server_us(s);
            return true;
        }
    return give_up(s, "the server did not come back within a minute");
}

static bool any_to_submit(const struct traffic *s)
{
    for (struct traffic_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link))
        if (!TAILQ_EMPTY(&a->to_submit))
            return true;
    return false;
}

static void submit_late_cases(struct traffic *s, int64_t first_due_us)
{
    for (int64_t i = 0; i < s->late_wanted && s->fatal == CLI_OK; i++) {
        if (!s->current->given && s->current->cases >= TRAFFIC_ACCOUNT_CASES_MAX)
            s->fatal = traffic_account_add(s);
        if (s->fatal != CLI_OK)
            return;
        struct traffic_case *c = traffic_case_new(s, WORK_SCHEDULED_LATE_RECOVERY);
        c->yard.due_us = first_due_us + i * SPREAD_MS * 1000 / s->late_wanted;
        traffic_case_submit(c);
    }
}

/* Tells every late case when the server was away. */
static void tell_window(struct traffic *s, const struct traffic_window *away)
{
    for (struct traffic_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link))
        for (struct traffic_case *c = TAILQ_FIRST(&a->cases_list); c; c = TAILQ_NEXT(c, link)) {
            c->yard.late_from_us = away->from_us;
            c->yard.late_stopped_us = away->stopped_us;
            c->yard.late_killed_us = away->killed_us;
            c->yard.late_until_us = away->until_us;
        }
}

void traffic_restart_phase(struct traffic *s)
{
    int64_t first_due_us = traffic_server_us(s) + FIRST_DUE_MS * 1000;
    if (!s->late_wanted || s->fatal != CLI_OK)
        return;
    submit_late_cases(s, first_due_us);
    while (s->fatal == CLI_OK && (any_to_submit(s) || traffic_server_us(s) < first_due_us - LEAD_MS * 1000))
        traffic_turn(s, 10);
    if (s->fatal != CLI_OK)
        return;
    struct traffic_window away = {.from_us = traffic_server_us(s)};
    if (restart(s, &away))
        tell_window(s, &away);
    traffic_moved(s);
    traffic_run_out(s);
}
