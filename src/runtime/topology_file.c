/* DATA/topology.json: which processes there are and how their domains do. Replaced as a whole, so a
 * reader never sees half of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json_members.h"
#include "base/log.h"
#include "base/time_text.h"
#include "runtime/supervisor_internal.h"

#include "base/banned.h"

const char *child_state_name(enum child_state state)
{
    static const char *const names[] = {
#define X(id, name) [CHILD_##id] = name,
        CHILD_STATES(X)
#undef X
    };
    return names[state];
}

static void add_process(struct json_writer *w, const struct child *c)
{
    char at[TIME_TEXT_MAX];
    jw_object(w);
    encode_text(w, "name", c->name);
    encode_text(w, "domain", domain_name(c->kind->domain));
    jw_key(w, "pid");
    if (child_lives(c))
        jw_int(w, c->pid);
    else
        jw_null(w);
    encode_text(w, "state", child_state_name(c->state));
    encode_int(w, "restarts", c->restarts);
    encode_str(w, "started_at", c->started_wall_us ? time_text_us(c->started_wall_us, at) : STR_ABSENT);
    jw_object_end(w);
}

/* A domain without processes is declared, and waits for its day. */
static const char *domain_state_name(const struct supervisor *s, enum domain_id id)
{
    if (s->domains[id].state == DOMAIN_ENDED)
        return "ended";
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id)
            return "running";
    return "declared";
}

/* A domain also ends inside a process, whose actors used up its restarts (runtime/actor.h): the process says
 * so on its page and leaves. */
static uint64_t endings_of(const struct supervisor *s, enum domain_id id)
{
    uint64_t endings = s->domains[id].supervision.endings;
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id)
            endings += atomic_load(&s->pages[s->children[i].page].counters[FAILURE_MODE_EXHAUSTED]);
    return endings;
}

static void add_domain(struct json_writer *w, const struct supervisor *s, enum domain_id id)
{
    const struct domain *d = &s->domains[id];
    const struct restart_window *window = &d->supervision.window;
    char intensity[48];
    snprintf(intensity, sizeof intensity, "%u/%llds", window->max_restarts,
             (long long)(window->window_ms / 1000));
    jw_object(w);
    encode_text(w, "name", domain_name(id));
    encode_text(w, "intensity", intensity);
    encode_int(w, "restarts_in_window", window->count);
    encode_text(w, "state", domain_state_name(s, id));
    encode_text(w, "owner", domain_rows[id].owner);
    encode_text(w, "supervisor", domain_rows[id].supervisor);
    encode_text(w, "strategy", domain_rows[id].strategy);
    encode_int(w, "restarts", (int64_t)d->supervision.restarts);
    encode_int(w, "endings", (int64_t)endings_of(s, id));
    jw_object_end(w);
}

/* A cascade may have ended core itself: the next core reads here when that was. Oldest first, on the clock
 * that only goes forward, which all processes of a machine share. */
static void add_cascades(struct json_writer *w, const struct cascade_watch *c)
{
    uint64_t kept = c->cascades < CASCADE_TIMES_MAX ? c->cascades : CASCADE_TIMES_MAX;
    encode_int(w, "cascades", (int64_t)c->cascades);
    jw_key(w, "cascades_at_ms");
    jw_array(w);
    for (uint64_t i = c->cascades - kept; i < c->cascades; i++)
        jw_int(w, c->at_ms[i % CASCADE_TIMES_MAX]);
    jw_array_end(w);
}

static void encode(const struct supervisor *s, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "processes");
    jw_array(&w);
    for (size_t i = 0; i < s->child_count; i++)
        add_process(&w, &s->children[i]);
    jw_array_end(&w);
    jw_key(&w, "domains");
    jw_array(&w);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++)
        add_domain(&w, s, id);
    jw_array_end(&w);
    encode_int(&w, "incidents", (int64_t)s->cascades.incidents);
    add_cascades(&w, &s->cascades);
    jw_object_end(&w);
    strbuf_add_char(out, '\n');
}

/* No fsync: after a power cut the processes are gone too. */
static bool replace_file(const char *path, struct str text)
{
    char next[PATH_MAX + 8];
    snprintf(next, sizeof next, "%s.tmp", path);
    int fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = write(fd, text.ptr, text.len) == (ssize_t)text.len;
    return close(fd) == 0 && written && rename(next, path) == 0;
}

void topology_file_write(struct supervisor *s)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    encode(s, &text);
    bool failed = !replace_file(s->topology_path, strbuf_str(&text));
    if (failed && !s->topology_failed) /* said once, not on every change of a full disk */
        log_line(LOG_WARN, "topology_not_written", "reason", LOG_TEXT(strerror(errno)), NULL);
    s->topology_failed = failed;
    s->changed = false;
}
