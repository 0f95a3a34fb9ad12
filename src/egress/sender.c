#include "egress/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"
#include "base/url.h"
#include "egress/sender_internal.h"
#include "egress/trusted.h"

#include "base/banned.h"

enum {
    EVENTS_PER_ROUND = 64,  /* then what is done is handed over: others work on it meanwhile */
    BODY_BYTES_KEPT = 2048, /* an idle transfer keeps no larger buffer */
};

const char *egress_failure_wire(enum egress_failure failure)
{
#define X(name, wire) [EGRESS_##name] = wire,
    static const char *const wires[] = {EGRESS_FAILURES(X)};
#undef X
    MUST((unsigned)failure < EGRESS_FAILURE_COUNT);
    return wires[failure];
}

/* --- curl's sockets and timer in our epoll -------------------------------------------------------- */

/* The tag that epoll returns: the lane above the descriptor. */
static uint64_t event_tag(const struct egress_lane *lane, int fd)
{
    return (uint64_t)(lane - lane->egress->lanes) << 32 | (uint32_t)fd;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *socket_data)
{
    struct egress_lane *lane = self;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(lane->egress->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* curl may have closed it already */
        curl_multi_assign(lane->multi, fd, NULL);
        return 0;
    }
    struct epoll_event ev = {.data.u64 = event_tag(lane, fd)};
    if (what & CURL_POLL_IN)
        ev.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        ev.events |= EPOLLOUT;
    int failed = epoll_ctl(lane->egress->epoll_fd, socket_data ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev);
    curl_multi_assign(lane->multi, fd, lane); /* any pointer: marks the socket as known to epoll */
    return failed ? -1 : 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *self)
{
    struct egress_lane *lane = self;
    (void)multi;
    lane->timer_at_us =
        timeout_ms < 0 ? INT64_MAX : clock_mono_us(lane->egress->config.clock) + timeout_ms * 1000;
    return 0;
}

static int64_t first_timer_us(const struct egress *e)
{
    int64_t first_us = INT64_MAX;
    for (size_t i = 0; i < LANES; i++)
        if (e->lanes[i].timer_at_us < first_us)
            first_us = e->lanes[i].timer_at_us;
    return first_us;
}

/* --- a sender's life -------------------------------------------------------------------------------- */

static void open_descriptors(struct egress *e)
{
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    MUST(e->epoll_fd >= 0 && e->wake_fd >= 0);
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint32_t)e->wake_fd};
    MUST(epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->wake_fd, &ev) == 0);
}

static void open_lane(struct egress *e, struct egress_lane *lane)
{
    long connections = (long)(e->config.connections_max / LANES);
    lane->egress = e;
    lane->timer_at_us = INT64_MAX;
    lane->multi = curl_multi_init();
    MUST(lane->multi);
    curl_multi_setopt(lane->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(lane->multi, CURLMOPT_SOCKETDATA, lane);
    curl_multi_setopt(lane->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(lane->multi, CURLMOPT_TIMERDATA, lane);
    curl_multi_setopt(lane->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    /* 0 would mean curl's own choice, which grows with the requests. */
    curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, connections ? connections : 1L);
}

struct egress *egress_new(const struct egress_config *config)
{
    MUST(config->in_flight_max && config->lookups_max && config->bytes_max && config->done && config->clock);
    MUST(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    struct egress *e = must_alloc(sizeof *e);
    e->config = *config;
    e->ca_file = config->ca_file ? must_strdup(config->ca_file) : NULL;
    e->transfers = must_alloc(config->in_flight_max * sizeof(struct egress_transfer *));
    random_bytes(e->hash_key, sizeof e->hash_key);
    open_descriptors(e);
    for (size_t i = 0; i < LANES; i++)
        open_lane(e, &e->lanes[i]);
    return e;
}

static void transfer_free(struct egress_transfer *t)
{
    if (t->in_flight)
        curl_multi_remove_handle(t->lane->multi, t->easy);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    strbuf_free(&t->body);
    free(t);
}

struct egress *egress_free(struct egress *e)
{
    if (!e)
        return NULL;
    for (uint32_t i = 0; i < e->transfer_count; i++)
        transfer_free(e->transfers[i]);
    for (size_t i = 0; i < LANES; i++)
        curl_multi_cleanup(e->lanes[i].multi);
    close(e->epoll_fd);
    close(e->wake_fd);
    free(e->ca_file);
    free(e->transfers);
    free(e);
    curl_global_cleanup();
    return NULL;
}

/* --- sending ---------------------------------------------------------------------------------------- */

/* Fields that say where a message goes or where it ends are not the caller's to set. */
static bool is_framing(struct str name)
{
    static const char *const names[] = {
        "host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"};
    for (size_t i = 0; i < LENGTH_OF(names); i++)
        if (str_equal_nocase(name, str_of(names[i])))
            return true;
    return false;
}

static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '_')
            return false;
    }
    return name.len > 0;
}

/* Curl gives lines like "name:" and "name;" meanings of its own, so a value must be there. */
enum err_code egress_header_check(struct str line, struct err *err)
{
    struct str value = line, name = str_cut(&value, ':');
    if (name.len == line.len || !is_token(name) || is_framing(name) || !str_trim(value).len)
        return err_set(err, ERR_REQUEST_MALFORMED, "\"%.*s\" is no header that may be sent",
                       (int)(name.len < 60 ? name.len : 60), name.ptr ? name.ptr : "");
    for (size_t i = 0; i < value.len; i++)
        if (((unsigned char)value.ptr[i] < 0x20 && value.ptr[i] != '\t') || value.ptr[i] == 0x7f)
            return err_set(err, ERR_REQUEST_MALFORMED, "header %.60s has a control byte", name.ptr);
    return ERR_OK;
}

static bool time_is_valid(int64_t ms)
{
    return ms >= 1 && ms <= EGRESS_TIMEOUT_MS_MAX;
}

static enum err_code check_request(const struct egress_request *request, struct url *ret_url, struct err *err)
{
    const char *fault = url_parse(request->url, ret_url);
    if (fault)
        return err_set(err, ERR_REQUEST_MALFORMED, "url %s", fault);
    if (request->header_count > EGRESS_HEADERS_MAX)
        return err_set(err, ERR_REQUEST_MALFORMED, "more than %d headers", EGRESS_HEADERS_MAX);
    for (size_t i = 0; i < request->header_count; i++)
        if (egress_header_check(request->headers[i], err) != ERR_OK)
            return err->code;
    if (request->body.len > EGRESS_BODY_BYTES_MAX)
        return err_set(err, ERR_REQUEST_MALFORMED, "the body is larger than %d MiB",
                       EGRESS_BODY_BYTES_MAX >> 20);
    if (!time_is_valid(request->timeout_ms) || !time_is_valid(request->connect_timeout_ms))
        return err_set(err, ERR_REQUEST_MALFORMED, "a timeout must be 1 ms to 1 hour");
    return ERR_OK;
}

static size_t request_bytes(const struct egress_request *request)
{
    size_t bytes = request->url.len + request->body.len;
    for (size_t i = 0; i < request->header_count; i++)
        bytes += request->headers[i].len;
    return bytes;
}

static struct egress_transfer *take_transfer(struct egress *e)
{
    struct egress_transfer *t = e->idle;
    if (t) {
        e->idle = t->next;
        return t;
    }
    MUST(e->transfer_count < e->config.in_flight_max);
    t = must_alloc(sizeof *t);
    t->egress = e;
    t->easy = transfer_easy_new(t);
    e->transfers[e->transfer_count++] = t;
    return t;
}

static void reset_answer(struct egress_transfer *t)
{
    t->looking_up = t->lookups_full = t->head_done = t->head_large = t->cut = false;
    t->denied = NULL;
    t->head_bytes = t->head_lines = t->body_bytes = 0;
    t->retry_after_ms = -1;
    t->curl_error[0] = 0;
}

static void return_transfer(struct egress *e, struct egress_transfer *t)
{
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    if (t->body.cap > BODY_BYTES_KEPT)
        strbuf_free(&t->body);
    t->in_flight = false;
    e->in_flight--;
    e->bytes -= t->bytes;
    t->next = e->idle;
    e->idle = t;
}

static enum err_code take(struct egress *e, const struct egress_request *request, bool trusted,
                          struct err *err)
{
    struct url url;
    if (check_request(request, &url, err) != ERR_OK)
        return err->code;
    size_t bytes = request_bytes(request);
    if (e->cancelling || e->in_flight == e->config.in_flight_max || bytes > e->config.bytes_max - e->bytes)
        return err_set(err, ERR_EXEC_QUEUE_FULL, "%u requests with %zu bytes are in flight", e->in_flight,
                       e->bytes);
    struct egress_transfer *t = take_transfer(e);
    reset_answer(t);
    t->trusted = trusted;
    t->host_is_address = url.is_address;
    t->owner = request->owner;
    t->answer = request->answer;
    if (t->answer)
        strbuf_clear(t->answer);
    t->bytes = bytes;
    t->started_us = clock_mono_us(e->config.clock);
    t->in_flight = true;
    e->in_flight++;
    e->bytes += bytes;
    t->lane = &e->lanes[hash_sip(e->hash_key, url.endpoint, strlen(url.endpoint)) % LANES];
    transfer_easy_aim(t, request);
    CURLMcode refused = curl_multi_add_handle(t->lane->multi, t->easy);
    if (refused == CURLM_OK)
        return ERR_OK;
    return_transfer(e, t);
    return err_set(err, ERR_INTERNAL, "no request could be begun: %s", curl_multi_strerror(refused));
}

enum err_code egress_send(struct egress *e, const struct egress_request *request, struct err *err)
{
    return take(e, request, false, err);
}

enum err_code egress_send_trusted(struct egress *e, const struct egress_request *request, struct err *err)
{
    return take(e, request, true, err);
}

/* --- results ---------------------------------------------------------------------------------------- */

static void end_transfer(struct egress *e, struct egress_transfer *t, enum egress_failure failure,
                         const char *error)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(t->lane->multi, t->easy);
    transfer_lookup_over(t);
    /* On the stack, for the transfer may carry another request before `done` returns. */
    char excerpt[EGRESS_EXCERPT_BYTES];
    size_t len = t->body_bytes < sizeof excerpt ? t->body_bytes : sizeof excerpt;
    memcpy(excerpt, t->excerpt, len);
    struct egress_result result = {.owner = t->owner,
                                   .failure = failure,
                                   .error = error,
                                   .status = t->head_done ? (int)status : 0,
                                   .duration_ms = (clock_mono_us(e->config.clock) - t->started_us) / 1000,
                                   .retry_after_ms = t->head_done ? t->retry_after_ms : -1,
                                   .excerpt = {excerpt, len},
                                   .cut = t->cut};
    return_transfer(e, t);
    e->config.done(e->config.self, &result);
}

static void hand_over_results(struct egress_lane *lane)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(lane->multi, &left));) {
        struct egress_transfer *t = NULL;
        CURLcode ended = m->data.result; /* read before removing the handle frees the message */
        char error[EGRESS_ERROR_BYTES];
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        enum egress_failure failure = transfer_failure(t, ended, error);
        end_transfer(lane->egress, t, failure, error);
    }
}

/* A transfer that ended by itself meanwhile, and perhaps carries another request, is denied no more. */
static void end_denied(struct egress *e)
{
    while (e->denied) {
        struct egress_transfer *t = e->denied;
        char error[EGRESS_ERROR_BYTES];
        e->denied = t->next_denied;
        t->in_denied = false;
        if (t->in_flight && t->denied)
            end_transfer(e, t, transfer_failure(t, CURLE_COULDNT_CONNECT, error), error);
    }
}

void egress_cancel(struct egress *e, egress_wanted_fn *wanted, void *self)
{
    e->cancelling = true;
    for (uint32_t i = 0; i < e->transfer_count; i++)
        if (e->transfers[i]->in_flight && wanted(self, e->transfers[i]->owner))
            end_transfer(e, e->transfers[i], EGRESS_CANCELLED, "cancelled");
    e->cancelling = false;
}

static bool any(void *self, void *owner)
{
    (void)self;
    (void)owner;
    return true;
}

void egress_cancel_all(struct egress *e)
{
    egress_cancel(e, any, NULL);
}

/* --- the loop --------------------------------------------------------------------------------------- */

static int wait_ms(const struct egress *e, int64_t timeout_ms)
{
    int64_t timer_at_us = first_timer_us(e);
    if (timer_at_us == INT64_MAX)
        return timeout_ms < 0 ? -1 : timeout_ms < INT32_MAX ? (int)timeout_ms : INT32_MAX;
    int64_t left_us = timer_at_us - clock_mono_us(e->config.clock);
    int64_t left_ms = left_us <= 0 ? 0 : (left_us + 999) / 1000; /* rounded up: waking early is for nothing */
    if (timeout_ms >= 0 && timeout_ms < left_ms)
        left_ms = timeout_ms;
    return left_ms < INT32_MAX ? (int)left_ms : INT32_MAX;
}

static void serve_event(struct egress *e, const struct epoll_event *event)
{
    int running, fd = (int)(uint32_t)event->data.u64;
    if (fd == e->wake_fd) {
        uint64_t count;
        MUST(read(e->wake_fd, &count, sizeof count) == sizeof count || errno == EAGAIN);
        return;
    }
    int what = (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    curl_multi_socket_action(e->lanes[event->data.u64 >> 32].multi, fd, what, &running);
}

void egress_poll(struct egress *e, int64_t timeout_ms)
{
    int running;
    struct epoll_event events[EVENTS_PER_ROUND];
    int ready = epoll_wait(e->epoll_fd, events, LENGTH_OF(events), wait_ms(e, timeout_ms));
    for (int i = 0; i < ready; i++)
        serve_event(e, &events[i]);
    int64_t now_us = clock_mono_us(e->config.clock);
    for (size_t i = 0; i < LANES; i++) {
        struct egress_lane *lane = &e->lanes[i];
        if (now_us >= lane->timer_at_us) {
            lane->timer_at_us = INT64_MAX; /* curl asks again, but only when it wants another one */
            curl_multi_socket_action(lane->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        hand_over_results(lane);
    }
    end_denied(e);
}

int egress_fd(const struct egress *e)
{
    return e->epoll_fd;
}

int64_t egress_deadline_ms(const struct egress *e)
{
    int64_t timer_at_us = first_timer_us(e);
    return timer_at_us == INT64_MAX ? INT64_MAX : (timer_at_us + 999) / 1000;
}

void egress_wakeup(struct egress *e)
{
    uint64_t one = 1;
    /* A full counter is awake already. */
    MUST(write(e->wake_fd, &one, sizeof one) == sizeof one || errno == EAGAIN);
}

uint32_t egress_in_flight(const struct egress *e)
{
    return e->in_flight;
}
