#include "api/ops/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/handlers.h"
#include "base/bus.h"
#include "base/json_members.h"
#include "base/must.h"
#include "runtime/failure_modes.h"

#include "base/banned.h"

struct topology {
    const char *path;
    pthread_mutex_t lock; /* guards what follows */
    struct stat seen;     /* of the file that `root` was read from */
    struct arena *arena;
    const struct json *root; /* NULL: there is none */
};

struct topology *topology_new(const char *path)
{
    struct topology *t = must_alloc(sizeof *t);
    t->path = path;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

struct topology *topology_free(struct topology *t)
{
    if (!t)
        return NULL;
    arena_free(t->arena);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return NULL;
}

/* --- the file ------------------------------------------------------------------------------------- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static enum err_code cannot(struct err *err, const char *why)
{
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "the status of the processes cannot be read: %s", why);
}

/* Into a new arena; what was read before stays when this fails. */
static enum err_code read_whole(struct topology *t, int fd, const struct stat *info, struct err *err)
{
    if (info->st_size <= 0 || info->st_size > TOPOLOGY_BYTES_MAX)
        return cannot(err, "its size is not to be believed");
    size_t size = (size_t)info->st_size;
    struct arena *arena = arena_new(4 * size + 4096);
    char *text = arena_alloc(arena, size);
    const struct json *root = NULL;
    bool whole = read(fd, text, size) == (ssize_t)size;
    if (!whole || json_parse(arena, (struct str){text, size}, &root, err) != ERR_OK ||
        root->type != JSON_OBJECT) {
        arena_free(arena);
        return cannot(err, whole ? "it is not what root writes" : "it ends early");
    }
    arena_free(t->arena);
    t->arena = arena;
    t->root = root;
    t->seen = *info;
    return ERR_OK;
}

/* With the lock held. */
static enum err_code refresh(struct topology *t, struct err *err)
{
    struct stat info;
    int fd = t->path ? open(t->path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &info) != 0) {
        if (fd >= 0)
            close(fd);
        return cannot(err, t->path ? strerror(errno) : "there is no root");
    }
    enum err_code code = ERR_OK;
    if (!t->root || !is_same_file(&info, &t->seen))
        code = read_whole(t, fd, &info, err);
    close(fd);
    return code;
}

/* --- the answer ------------------------------------------------------------------------------------ */

static void copy_member(const struct json *root, const char *key, struct json_writer *w)
{
    const struct json *value = json_get(root, key);
    jw_key(w, key);
    jw_raw(w, value ? value->source : STR("[]"));
}

enum err_code topology_write(struct topology *t, struct json_writer *w, struct err *err)
{
    pthread_mutex_lock(&t->lock);
    enum err_code code = refresh(t, err);
    if (code == ERR_OK) {
        copy_member(t->root, "processes", w);
        copy_member(t->root, "domains", w);
    }
    pthread_mutex_unlock(&t->lock);
    return code;
}

static void write_bus(struct json_writer *w)
{
    jw_array(w);
    for (enum bus_topic t = 0; t < BUS_TOPIC_COUNT; t++) {
        struct bus_word last = bus_last(t);
        jw_object(w);
        encode_text(w, "topic", bus_topics[t].name);
        encode_text(w, "publisher", bus_topics[t].publisher);
        encode_text(w, "subscriber", bus_topics[t].subscriber);
        encode_int(w, "published", (int64_t)last.count);
        encode_int(w, "value", last.value);
        jw_object_end(w);
    }
    jw_array_end(w);
}

void handle_get_topology(struct call *c)
{
    struct json_writer w;
    struct err err = {.code = ERR_OK};
    call_object(c, 200, &w);
    if (topology_write(c->api->topology, &w, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_key(&w, "pressure");
    overload_write_pressure(c->api->overload, &w);
    jw_key(&w, "partitions");
    overload_write_partitions(c->api->overload, &w);
    jw_key(&w, "slos");
    overload_write_slos(c->api->overload, &w);
    jw_key(&w, "signal_bus");
    write_bus(&w);
    call_send_object(c, &w);
}

/* --- metrics --------------------------------------------------------------------------------------- */

static int64_t count_processes(const struct json *root, struct str domain)
{
    const struct json *processes = json_get(root, "processes");
    int64_t count = 0;
    for (const struct json *p = processes ? processes->child : NULL; p; p = p->next)
        count += str_equal(json_text(p, "domain"), domain) && str_is(json_text(p, "state"), "running");
    return count;
}

/* One sample a domain: its own number under `key`, or with none how many of its processes run. */
static void write_family(const struct json *root, const char *name, const char *type, const char *help,
                         const char *key, struct strbuf *out)
{
    const struct json *domains = json_get(root, "domains");
    metrics_head(out, name, type, help);
    for (const struct json *d = domains ? domains->child : NULL; d; d = d->next) {
        struct str domain = json_text(d, "name");
        int64_t value = key ? json_int(d, key, 0) : count_processes(root, domain);
        strbuf_addf(out, "%s{domain=\"%.*s\"} %lld\n", name, STR_ARG(domain), (long long)value);
    }
}

static void write_number(const struct json *root, const char *name, const char *help, const char *key,
                         struct strbuf *out)
{
    metrics_head(out, name, "counter", help);
    strbuf_addf(out, "%s %lld\n", name, (long long)json_int(root, key, 0));
}

static void write_failures(struct strbuf *out)
{
    static const char *const name = "weir_failures_total";
    metrics_head(out, name, "counter", "Failures by mode and class, of all processes");
    for (enum failure_mode mode = 0; mode < FAILURE_MODE_COUNT; mode++)
        strbuf_addf(out, "%s{mode=\"%s\",failure_class=\"%s\"} %llu\n", name, failure_modes[mode].name,
                    failure_class_name(failure_modes[mode].failure_class),
                    (unsigned long long)failure_count_all(mode));
}

void topology_metrics(struct topology *t, struct strbuf *out)
{
    struct err err;
    write_failures(out);
    pthread_mutex_lock(&t->lock);
    if (refresh(t, &err) == ERR_OK) {
        const struct json *r = t->root;
        write_family(r, "weir_processes", "gauge", "Processes that run, by domain", NULL, out);
        write_family(r, "weir_restarts_total", "counter", "Restarts by domain", "restarts", out);
        write_family(r, "weir_restarts_in_window", "gauge", "Restarts that count against the limit",
                     "restarts_in_window", out);
        write_family(r, "weir_domain_endings_total", "counter", "Domains that used up their restarts",
                     "endings", out);
        write_number(r, "weir_incidents_total", "Failures of processes, those close together as one",
                     "incidents", out);
        write_number(r, "weir_cascades_total", "Failures that spread to another domain", "cascades", out);
    }
    pthread_mutex_unlock(&t->lock);
}

void topology_cascades(struct topology *t, struct overload_cascades *ret)
{
    struct err err;
    *ret = (struct overload_cascades){0};
    pthread_mutex_lock(&t->lock);
    if (refresh(t, &err) == ERR_OK) {
        const struct json *times = json_get(t->root, "cascades_at_ms");
        ret->count = json_int(t->root, "cascades", 0);
        for (const struct json *j = times ? times->child : NULL; j && ret->times < LENGTH_OF(ret->at_ms);
             j = j->next)
            ret->times += json_to_int(j, &ret->at_ms[ret->times]);
    }
    pthread_mutex_unlock(&t->lock);
}
