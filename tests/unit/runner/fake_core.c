#include "unit/runner/fake_core.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/must.h"

#include "base/banned.h"

enum { CONNECTIONS_MAX = 64, TASKS_MAX = 20000, WORKERS_MAX = 4096 };

static const char *const paths[] = {"/worker/v1/claim",  "/worker/v1/start",   "/worker/v1/heartbeat",
                                    "/worker/v1/finish", "/worker/v1/release", "/internal/v1/pressure"};

struct connection {
    int fd;
    struct strbuf in;
    bool seen;    /* the request in `in` has been counted */
    bool waiting; /* it is a claim that waits for work */
    int64_t wait_until_ms;
};

struct fake_core {
    char socket_path[108];
    int listen_fd, wake_fd;
    bool stop, running;
    pthread_t thread;
    pthread_mutex_t lock; /* recursive: a fact may take snapshots */
    pthread_cond_t changed;
    struct connection connections[CONNECTIONS_MAX];
    struct fake_task *tasks;
    int task_count, first_queued;
    char (*workers)[64];
    struct fake_counts counts;
    struct {
        int status, refusals, cuts;
        bool held;
    } faults[FAKE_VERBS];
    size_t body_limit;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static void wake(struct fake_core *f)
{
    uint64_t one = 1;
    MUST(write(f->wake_fd, &one, sizeof one) == sizeof one);
}

static void copy_text(char *to, size_t size, struct str from)
{
    snprintf(to, size, "%.*s", STR_ARG(from));
}

static struct str text_of(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    MUST(j && j->type == JSON_STRING);
    return j->text;
}

static int held_by(struct fake_core *f, const char *worker_id)
{
    int held = 0;
    for (int i = 0; i < f->task_count; i++)
        held += (f->tasks[i].state == FAKE_ASSIGNED || f->tasks[i].state == FAKE_RUNNING) &&
                strcmp(f->tasks[i].worker_id, worker_id) == 0;
    return held;
}

static void note_worker(struct fake_core *f, const char *worker_id)
{
    for (int i = 0; i < f->counts.workers; i++)
        if (strcmp(f->workers[i], worker_id) == 0)
            return;
    MUST(f->counts.workers < WORKERS_MAX);
    copy_text(f->workers[f->counts.workers++], 64, str_of(worker_id));
}

static void write_task(struct json_writer *w, const struct fake_task *t, int index)
{
    char text[32];
    jw_object(w);
    jw_key(w, "task_id");
    snprintf(text, sizeof text, "task-%d", index);
    jw_text(w, text);
    jw_key(w, "token");
    snprintf(text, sizeof text, "t%d", t->token);
    jw_text(w, text);
    jw_key(w, "kind");
    jw_text(w, "job");
    jw_key(w, "job_id");
    snprintf(text, sizeof text, "job-%d", index);
    jw_text(w, text);
    jw_key(w, "queue");
    jw_text(w, "default");
    jw_key(w, "attempt");
    jw_int(w, t->attempt);
    jw_key(w, "lease_expires_at");
    jw_text(w, "2030-01-01T00:00:00.000Z");
    jw_key(w, "max_runtime_ms");
    jw_int(w, t->max_runtime_ms);
    if (t->definition[0]) {
        jw_key(w, "definition");
        jw_raw(w, str_of(t->definition));
    }
    jw_key(w, "payload");
    jw_raw(w, STR("{\"ignored\":[\"rm -rf /\"]}"));
    jw_object_end(w);
}

/* False: nothing to hand out. */
static bool do_claim(struct fake_core *f, const struct json *body, struct strbuf *out)
{
    struct json_writer w;
    int64_t max = 0;
    char worker_id[64];
    copy_text(worker_id, sizeof worker_id, text_of(body, "worker_id"));
    MUST(json_to_int(json_get(body, "max"), &max));
    note_worker(f, worker_id);
    if (max > f->counts.claim_max_asked)
        f->counts.claim_max_asked = (int)max;
    int given = 0;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    while (f->first_queued < f->task_count && f->tasks[f->first_queued].state != FAKE_QUEUED)
        f->first_queued++;
    for (int i = f->first_queued; i < f->task_count && given < max; i++) {
        struct fake_task *t = &f->tasks[i];
        if (t->state != FAKE_QUEUED)
            continue;
        t->state = FAKE_ASSIGNED;
        t->token++;
        copy_text(t->worker_id, sizeof t->worker_id, str_of(worker_id));
        write_task(&w, t, i);
        given++;
    }
    jw_array_end(&w);
    jw_object_end(&w);
    int held = given ? held_by(f, worker_id) : 0;
    if (held > f->counts.held_max)
        f->counts.held_max = held;
    return given > 0;
}

static const char *do_start(struct fake_task *t)
{
    t->starts++;
    if (t->state == FAKE_CANCELLED)
        return "lease_lost";
    t->state = FAKE_RUNNING;
    if (!t->started_at_ms)
        t->started_at_ms = now_ms();
    return NULL;
}

static const char *do_finish(struct fake_core *f, struct fake_task *t, const struct json *item)
{
    if (t->state != FAKE_RUNNING)
        return "lease_lost";
    t->state = FAKE_FINISHED;
    t->finished_at_ms = now_ms();
    t->finishes++;
    t->success = str_is(text_of(item, "outcome"), "success");
    const struct json *result = json_get(item, "result"), *error = json_get(item, "error");
    if (result) {
        free(t->result);
        t->result = must_alloc(result->source.len + 1);
        memcpy(t->result, result->source.ptr, result->source.len);
    }
    MUST(t->success == !error);
    if (error) {
        copy_text(t->error_code, sizeof t->error_code, text_of(error, "code"));
        MUST(text_of(error, "message").len);
        t->retryable = json_get(error, "retryable")->type == JSON_TRUE;
    }
    f->counts.finished++;
    return NULL;
}

static const char *do_item(struct fake_core *f, enum fake_verb verb, struct fake_task *t,
                           const struct json *item)
{
    char token[32];
    snprintf(token, sizeof token, "t%d", t->token);
    if (!str_is(text_of(item, "token"), token)) {
        t->refusals++;
        return "lease_lost";
    }
    if (verb == FAKE_START)
        return do_start(t);
    if (verb == FAKE_FINISH)
        return do_finish(f, t, item);
    if (verb == FAKE_HEARTBEAT) {
        t->heartbeats++;
        return t->state == FAKE_RUNNING || t->state == FAKE_CANCELLED ? NULL : "lease_lost";
    }
    if (t->state != FAKE_ASSIGNED)
        return "not_releasable";
    t->state = FAKE_QUEUED;
    t->token++;
    t->releases++;
    f->first_queued = 0;
    return NULL;
}

static void do_batch(struct fake_core *f, enum fake_verb verb, const struct json *body, struct strbuf *out)
{
    struct json_writer w;
    const struct json *items = json_get(body, "tasks");
    MUST(items && items->count >= 1 && items->count <= 1000);
    if (verb == FAKE_HEARTBEAT && (int)items->count > f->counts.heartbeat_tasks_max)
        f->counts.heartbeat_tasks_max = (int)items->count;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "results");
    jw_array(&w);
    for (const struct json *item = items->child; item; item = item->next) {
        struct str id = text_of(item, "task_id");
        int64_t index = -1;
        MUST(str_starts(id, "task-") &&
             str_to_int((struct str){id.ptr + 5, id.len - 5}, 0, f->task_count - 1, &index));
        const char *code = do_item(f, verb, &f->tasks[index], item);
        jw_object(&w);
        jw_key(&w, "task_id");
        jw_str(&w, id);
        jw_key(&w, "ok");
        jw_bool(&w, !code);
        if (code) {
            jw_key(&w, "code");
            jw_text(&w, code);
        }
        if (verb == FAKE_HEARTBEAT) {
            jw_key(&w, "cancel");
            jw_bool(&w, f->tasks[index].state == FAKE_CANCELLED);
        }
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
}

static void connection_close(struct connection *c)
{
    close(c->fd);
    strbuf_free(&c->in);
    *c = (struct connection){.fd = -1};
}

static void answer(struct connection *c, int status, struct str body)
{
    struct strbuf out = {0};
    strbuf_addf(&out,
                "HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\n"
                "Content-Length: %zu\r\n\r\n",
                status, body.len);
    strbuf_add_str(&out, body);
    for (size_t sent = 0; sent < out.len;) {
        ssize_t n = send(c->fd, out.ptr + sent, out.len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    strbuf_free(&out);
}

static void take_report(struct fake_core *f, const struct json *root, struct strbuf *out)
{
    const struct json *back = json_get(root, "reconnects");
    copy_text(f->counts.reporter, sizeof f->counts.reporter, text_of(root, "process"));
    for (const struct json *j = back ? back->child : NULL; j; j = j->next) {
        MUST(json_to_int(json_get(j, "elapsed_ms"), &f->counts.reconnect_ms));
        MUST(json_to_int(json_get(j, "attempts"), &f->counts.reconnect_attempts));
        f->counts.reconnects++;
    }
    strbuf_add_text(out, "{\"level\":\"normal\"}");
}

/* A whole request in c->in? Then its verb and body. */
static bool request_complete(const struct connection *c, enum fake_verb *ret_verb, struct str *ret_body,
                             size_t *ret_bytes)
{
    const char *end = c->in.len ? memmem(c->in.ptr, c->in.len, "\r\n\r\n", 4) : NULL;
    if (!end)
        return false;
    const char *length = strcasestr(c->in.ptr, "Content-Length:");
    MUST(length && length < end);
    size_t body_len = strtoul(length + 15, NULL, 10);
    size_t head_len = (size_t)(end - c->in.ptr) + 4;
    if (c->in.len < head_len + body_len)
        return false;
    *ret_body = (struct str){c->in.ptr + head_len, body_len};
    *ret_bytes = head_len + body_len;
    for (int v = 0; v < FAKE_VERBS; v++) {
        char line[64];
        snprintf(line, sizeof line, "POST %s HTTP/1.1\r\n", paths[v]);
        if (strncmp(c->in.ptr, line, strlen(line)) == 0) {
            *ret_verb = (enum fake_verb)v;
            return true;
        }
    }
    MUST(!"a known route");
    return false;
}

static void request_done(struct connection *c, size_t bytes)
{
    memmove(c->in.ptr, c->in.ptr + bytes, c->in.len - bytes);
    c->in.len -= bytes;
    c->in.ptr[c->in.len] = 0;
    c->waiting = c->seen = false;
}

/* 0: carry on; else the status of a refusal that was asked for. */
static int fault_status(struct fake_core *f, enum fake_verb verb, size_t body_len)
{
    if (verb == FAKE_FINISH && f->body_limit && body_len > f->body_limit)
        return 413;
    if (f->faults[verb].refusals == 0)
        return 0;
    f->faults[verb].refusals--;
    return f->faults[verb].status;
}

static void serve(struct fake_core *f, struct connection *c)
{
    enum fake_verb verb;
    struct str body;
    size_t bytes;
    if (!request_complete(c, &verb, &body, &bytes))
        return;
    f->counts.calls[verb] += !c->seen;
    c->seen = true;
    if (f->faults[verb].held)
        return;
    struct arena *a = arena_new(4096);
    struct strbuf out = {0};
    struct err err;
    const struct json *root;
    MUST(json_parse(a, body, &root, &err) == ERR_OK);
    bool first_look = !c->waiting, cut = false;
    int status = first_look ? fault_status(f, verb, body.len) : 0;
    if (status) {
        strbuf_add_text(&out, "{\"code\":\"RFA_TEST\",\"detail\":\"asked for\"}");
    } else if (verb == FAKE_CLAIM) {
        int64_t wait_ms = 0;
        MUST(json_to_int(json_get(root, "wait_ms"), &wait_ms));
        if (first_look)
            c->wait_until_ms = now_ms() + wait_ms;
        c->waiting = !do_claim(f, root, &out) && now_ms() < c->wait_until_ms;
    } else if (verb == FAKE_REPORT) {
        take_report(f, root, &out);
    } else {
        if (verb == FAKE_FINISH && body.len > f->counts.finish_bytes_max)
            f->counts.finish_bytes_max = body.len;
        do_batch(f, verb, root, &out);
    }
    if (!c->waiting && !status && f->faults[verb].cuts) {
        f->faults[verb].cuts--;
        cut = true;
    }
    if (cut) {
        connection_close(c);
    } else if (!c->waiting) {
        answer(c, status ? status : 200, strbuf_str(&out));
        request_done(c, bytes);
    }
    strbuf_free(&out);
    arena_free(a);
}

static void connection_read(struct fake_core *f, struct connection *c)
{
    char bytes[32768];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        connection_close(c);
    else if (n > 0) {
        strbuf_add(&c->in, bytes, (size_t)n);
        if (!c->waiting)
            serve(f, c);
    }
}

static void connection_accept(struct fake_core *f)
{
    int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; fd >= 0 && i < CONNECTIONS_MAX; i++)
        if (f->connections[i].fd < 0) {
            f->connections[i].fd = fd;
            f->counts.connections++;
            return;
        }
    MUST(fd < 0);
}

static void serve_all(struct fake_core *f)
{
    int waiting = 0;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &f->connections[i];
        if (c->fd >= 0 && c->in.len)
            serve(f, c);
        waiting += c->fd >= 0 && c->waiting;
    }
    f->counts.claims_waiting = waiting;
    if (waiting > f->counts.claims_waiting_max)
        f->counts.claims_waiting_max = waiting;
}

static int wait_ms(struct fake_core *f)
{
    int64_t at_ms = INT64_MAX;
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (f->connections[i].waiting && f->connections[i].wait_until_ms < at_ms)
            at_ms = f->connections[i].wait_until_ms;
    if (at_ms == INT64_MAX)
        return -1;
    int64_t left_ms = at_ms - now_ms();
    return left_ms < 0 ? 0 : (int)left_ms + 1;
}

static void *fake_core_thread(void *self)
{
    struct fake_core *f = self;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        struct pollfd fds[CONNECTIONS_MAX + 2];
        for (int i = 0; i < CONNECTIONS_MAX; i++)
            fds[i] = (struct pollfd){.fd = f->connections[i].fd, .events = POLLIN};
        fds[CONNECTIONS_MAX] = (struct pollfd){.fd = f->listen_fd, .events = POLLIN};
        fds[CONNECTIONS_MAX + 1] = (struct pollfd){.fd = f->wake_fd, .events = POLLIN};
        int timeout_ms = wait_ms(f);
        pthread_mutex_unlock(&f->lock);
        poll(fds, LENGTH_OF(fds), timeout_ms);
        pthread_mutex_lock(&f->lock);
        uint64_t ignored;
        if (fds[CONNECTIONS_MAX + 1].revents)
            MUST(read(f->wake_fd, &ignored, sizeof ignored) == sizeof ignored);
        if (fds[CONNECTIONS_MAX].revents)
            connection_accept(f);
        for (int i = 0; i < CONNECTIONS_MAX; i++)
            if (fds[i].revents && f->connections[i].fd >= 0)
                connection_read(f, &f->connections[i]);
        serve_all(f);
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void fake_core_listen(struct fake_core *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    copy_text(address.sun_path, sizeof address.sun_path, str_of(f->socket_path));
    unlink(f->socket_path);
    f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(bind(f->listen_fd, (struct sockaddr *)&address, sizeof address) == 0);
    MUST(listen(f->listen_fd, 128) == 0);
}

struct fake_core *fake_core_new(const char *socket_path)
{
    struct fake_core *f = must_alloc(sizeof *f);
    pthread_mutexattr_t recursive;
    pthread_condattr_t monotonic;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&f->lock, &recursive);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->changed, &monotonic);
    copy_text(f->socket_path, sizeof f->socket_path, str_of(socket_path));
    f->wake_fd = eventfd(0, EFD_CLOEXEC);
    f->tasks = must_alloc(TASKS_MAX * sizeof *f->tasks);
    f->workers = must_alloc(WORKERS_MAX * sizeof *f->workers);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        f->connections[i].fd = -1;
    fake_core_listen(f);
    return f;
}

void fake_core_run(struct fake_core *f)
{
    f->stop = false;
    if (f->listen_fd < 0)
        fake_core_listen(f);
    MUST(pthread_create(&f->thread, NULL, fake_core_thread, f) == 0);
    f->running = true;
}

void fake_core_stop(struct fake_core *f)
{
    if (f->running) {
        pthread_mutex_lock(&f->lock);
        f->stop = true;
        pthread_mutex_unlock(&f->lock);
        wake(f);
        pthread_join(f->thread, NULL);
        f->running = false;
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (f->connections[i].fd >= 0)
            connection_close(&f->connections[i]);
    if (f->listen_fd >= 0)
        close(f->listen_fd);
    f->listen_fd = -1;
    unlink(f->socket_path);
}

void fake_core_free(struct fake_core *f)
{
    fake_core_stop(f);
    for (int i = 0; i < f->task_count; i++)
        free(f->tasks[i].result);
    close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    free(f->tasks);
    free(f->workers);
    free(f);
}

int fake_core_add(struct fake_core *f, const char *definition, int64_t max_runtime_ms, int64_t attempt)
{
    pthread_mutex_lock(&f->lock);
    MUST(f->task_count < TASKS_MAX);
    struct fake_task *t = &f->tasks[f->task_count];
    *t = (struct fake_task){.attempt = attempt, .max_runtime_ms = max_runtime_ms};
    copy_text(t->definition, sizeof t->definition, str_of(definition));
    int index = f->task_count++;
    pthread_mutex_unlock(&f->lock);
    wake(f);
    return index;
}

struct fake_task fake_core_task(struct fake_core *f, int index)
{
    pthread_mutex_lock(&f->lock);
    struct fake_task t = f->tasks[index];
    pthread_mutex_unlock(&f->lock);
    return t;
}

struct fake_counts fake_core_counts(struct fake_core *f)
{
    pthread_mutex_lock(&f->lock);
    struct fake_counts counts = f->counts;
    pthread_mutex_unlock(&f->lock);
    return counts;
}

void fake_core_cancel(struct fake_core *f, int index)
{
    pthread_mutex_lock(&f->lock);
    f->tasks[index].state = FAKE_CANCELLED;
    pthread_mutex_unlock(&f->lock);
}

void fake_core_lose_lease(struct fake_core *f, int index)
{
    pthread_mutex_lock(&f->lock);
    f->tasks[index].state = FAKE_QUEUED;
    f->tasks[index].token++;
    f->first_queued = 0;
    pthread_mutex_unlock(&f->lock);
    wake(f);
}

void fake_core_refuse(struct fake_core *f, enum fake_verb verb, int status, int times)
{
    pthread_mutex_lock(&f->lock);
    f->faults[verb].status = status;
    f->faults[verb].refusals = times;
    pthread_mutex_unlock(&f->lock);
}

void fake_core_cut_answer(struct fake_core *f, enum fake_verb verb, int times)
{
    pthread_mutex_lock(&f->lock);
    f->faults[verb].cuts = times;
    pthread_mutex_unlock(&f->lock);
}

void fake_core_hold(struct fake_core *f, enum fake_verb verb, bool hold)
{
    pthread_mutex_lock(&f->lock);
    f->faults[verb].held = hold;
    pthread_mutex_unlock(&f->lock);
    wake(f);
}

void fake_core_body_limit(struct fake_core *f, size_t bytes)
{
    pthread_mutex_lock(&f->lock);
    f->body_limit = bytes;
    pthread_mutex_unlock(&f->lock);
}

bool fake_core_await(struct fake_core *f, fake_fact *fact, void *self, int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&f->lock);
    bool holds = fact(f, self);
    while (!holds && pthread_cond_timedwait(&f->changed, &f->lock, &until) == 0)
        holds = fact(f, self);
    holds = holds || fact(f, self);
    pthread_mutex_unlock(&f->lock);
    return holds;
}
