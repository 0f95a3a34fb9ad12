/* The core process: HTTP API, commit loop, timers. The only process that touches the store. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "api/api.h"
#include "api/issuer_fetches.h"
#include "base/heart.h"
#include "base/log.h"
#include "base/store_url.h"
#include "config/settings.h"
#include "core/contracts.h"
#include "core/tls_watch.h"
#include "runtime/data_lock.h"
#include "runtime/failure_modes.h"
#include "runtime/link_watch.h"
#include "runtime/process_signals.h"
#include "runtime/sandbox.h"
#include "store/store_open.h"

#include "base/banned.h"

enum {
    HEAD_BYTES_MAX = 32768,
    HEADERS_MAX = 100,
    WRITE_MS = 30000,
    FATAL_GRACE_MS = 200, /* the 503 answers leave before the process does */
    EXIT_STORE = 75,      /* restart me: the store has to be recovered */
    WAL_AHEAD_MAX = 16 << 20,
    WAL_AHEAD_SHARE = 64, /* of the free space: one part of so many */
    CORE_LANES_MAX = 8,
    UNIX_CONNECTIONS_MAX = 8192, /* more than the built-in processes open, as many as there may be */
    OWN_DESCRIPTORS_MIN = 48,    /* where there are few */
    CONNECTIONS_MIN = 8,
    OWN_DESCRIPTORS_MAX = 1024, /* files, sockets and pipes besides the connections of clients */
    AWAIT_FIRST_MS = 100,       /* between looks for a database that is away */
    AWAIT_MAX_MS = 2000,
};

struct core {
    const struct process_start *start;
    int64_t epoch;     /* the ordinal of this core process on the data directory */
    const char *stage; /* of the start: the part that is being opened */
    struct store *store;
    struct store *more_lanes[CORE_LANES_MAX]; /* of a shared store */
    size_t more_lane_count;
    struct postgres_listener *listener;
    struct link_watch link; /* of the listener, its thread's */
    struct kernel *kernel;
    struct api *api;
    struct tls_watch tls;
    struct http_server *server;
    int64_t live_at_start;
};

/* The name of the store's backend; before it is known, of the part of core that did not open. */
static const char *adapter_name(const struct core *c)
{
    char url[SETTINGS_STORE_URL_MAX];
    enum store_kind kind;
    struct err ignored;
    if (settings_store_url(c->start->settings, url, sizeof url, &ignored) != ERR_OK ||
        !store_url_kind(str_of(url), &kind))
        return c->stage;
    return kind == STORE_POSTGRES ? "postgres" : "sqlite";
}

/* No second try in here: root's restarts are the tries, and an operator the fix. */
static int fail(const struct core *c, const struct err *err)
{
    log_line(LOG_ERROR, "core_failed", "doing", LOG_TEXT(c->stage), "error_code",
             LOG_TEXT(err_wire(err->code)), "error_message", LOG_TEXT(err->detail), NULL);
    log_say("cannot start: %s", err->detail);
    bool bad_config = err->code == ERR_CONFIG_INVALID;
    if (err->code == ERR_STORE_LOST)
        log_say("put the files back, restore a backup, or go on without what is missing: weir serve "
                "--accept-loss");
    if (err->code == ERR_STORE_LOST && !c->start->was_ready) {
        failure_adapter_init_failed("core", adapter_name(c), err->detail);
        return PROCESS_EXIT_CONFIG; /* no restart brings it back */
    }
    if (bad_config && !c->start->was_ready) {
        failure_boot_config_invalid("core", err->detail, c->stage);
        return PROCESS_EXIT_CONFIG;
    }
    failure_adapter_init_failed("core", bad_config ? c->stage : adapter_name(c), err->detail);
    return PROCESS_EXIT_ADAPTER;
}

/* A failed fsync: the data may or may not be on the disk. Never retried: leave, be restarted, recover. */
static void store_is_lost(void *self, const struct err *err)
{
    struct api *a = self;
    atomic_store(&a->fatal, true);
    log_line(LOG_ERROR, "store_lost", "error_code", LOG_TEXT(err_wire(err->code)), "error_message",
             LOG_TEXT(err->detail), NULL);
    usleep(FATAL_GRACE_MS * 1000);
    _exit(EXIT_STORE);
}

/* As long as an idle server's WAL gets before it starts over; a small part of a small disk. */
static int64_t wal_ahead_bytes(const char *data_dir)
{
    struct statvfs fs;
    int64_t free_bytes = statvfs(data_dir, &fs) == 0 ? (int64_t)fs.f_bavail * (int64_t)fs.f_frsize : 0;
    int64_t share = free_bytes / WAL_AHEAD_SHARE;
    return share < WAL_AHEAD_MAX ? share : WAL_AHEAD_MAX;
}

static enum err_code store_options(const struct settings *s, char url[SETTINGS_STORE_URL_MAX],
                                   struct store_options *ret, struct err *err)
{
    if (settings_store_url(s, url, SETTINGS_STORE_URL_MAX, err) != ERR_OK)
        return err->code;
    *ret = (struct store_options){.url = url,
                                  .timeout_ms = s->store_timeout_ms,
                                  .wall_ms = clock_wall_ms(&clock_system),
                                  .wal_ahead_bytes = wal_ahead_bytes(s->data_dir),
                                  .checkpoint_thread = true,
                                  .high_water = HIGH_WATER_CHECKED};
    return ERR_OK;
}

/* All lanes; called again after a failure it goes on with those that are missing. */
static enum err_code open_store(struct core *c, struct err *err)
{
    const struct settings *s = c->start->settings;
    char url[SETTINGS_STORE_URL_MAX];
    struct store_options o;
    if (store_options(s, url, &o, err) != ERR_OK)
        return err->code;
    if (c->start->accept_loss && !c->start->was_ready) /* once: the next loss is another one */
        o.high_water = HIGH_WATER_RESET;
    if (!c->store && store_open(&o, &c->store, err) != ERR_OK)
        return err->code;
    for (; c->store->shared && c->more_lane_count + 1 < (size_t)s->store_lanes; c->more_lane_count++)
        if (store_open(&o, &c->more_lanes[c->more_lane_count], err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static void hinted(void *self, unsigned hints)
{
    struct core *c = self;
    kernel_hint(c->kernel, hints);
    api_hint(c->api, hints);
}

static void linked(void *self, bool works, const char *why)
{
    struct core *c = self;
    struct link_return back;
    int64_t now_ms = clock_mono_ms(&clock_system);
    if (!works)
        link_failed(&c->link, why, now_ms);
    else if (link_works(&c->link, now_ms, &back))
        overload_reconnected(c->api->overload, str_of(c->link.instance_id), back.elapsed_ms, back.attempts,
                             str_of(back.reason));
}

static enum err_code listen_to_others(struct core *c, struct err *err)
{
    char url[SETTINGS_STORE_URL_MAX];
    struct store_options o;
    if (store_options(c->start->settings, url, &o, err) != ERR_OK)
        return err->code;
    c->link = (struct link_watch){.component = "core", .instance_id = "postgres listener"};
    struct store_listening hear = {.hint = hinted, .link = linked, .self = c};
    return store_listen(&o, &hear, &c->listener, err);
}

static void make_kernel(struct core *c)
{
    struct kernel_config k = {.store = c->store,
                              .more_lanes = c->more_lanes,
                              .more_lane_count = c->more_lane_count,
                              .settings = c->start->settings,
                              .owners = c->api->contracts.owners,
                              .owner_count = c->api->contracts.task_count,
                              .timer_kinds = c->api->contracts.timers,
                              .timer_kind_count = c->api->contracts.timer_count,
                              .clock = &clock_system,
                              .watch = {.committed = api_committed,
                                        .batch_end = api_batch_end,
                                        .fatal = store_is_lost,
                                        .inline_begins = api_inline_commit_begins,
                                        .inline_batch_end = api_inline_batch_end,
                                        .costly = traces_costly(c->api->traces),
                                        .self = c->api},
                              .housekeep = api_housekeep,
                              .save = api_save,
                              .saved = api_saved,
                              .housekeep_self = c->api,
                              .commits_inline = true};
    c->kernel = kernel_new(&k);
    api_open(c->api, c->store, c->kernel);
}

/* So many that the store, the log and whatever else core opens still find a descriptor. */
static uint32_t connection_limit(const struct settings *s)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return (uint32_t)s->connections_max;
    rlim_t own = limit.rlim_cur / 8;
    own = own < OWN_DESCRIPTORS_MIN   ? OWN_DESCRIPTORS_MIN
          : own > OWN_DESCRIPTORS_MAX ? OWN_DESCRIPTORS_MAX
                                      : own;
    rlim_t left = limit.rlim_cur > own + CONNECTIONS_MIN ? limit.rlim_cur - own : CONNECTIONS_MIN;
    return left < (rlim_t)s->connections_max ? (uint32_t)left : (uint32_t)s->connections_max;
}

static enum err_code open_listeners(struct core *c, struct err *err)
{
    const struct settings *s = c->start->settings;
    char host[SETTINGS_HOST_MAX], tls_host[SETTINGS_HOST_MAX];
    uint16_t port = 0, tls_port = 0;
    bool plain = settings_listen_parts(s, host, sizeof host, &port);
    bool tls = settings_tls_listen_parts(s, tls_host, sizeof tls_host, &tls_port);
    if (tls_watch_open(&c->tls, s, err) != ERR_OK)
        return err->code;
    struct http_config h = {.listen_host = plain ? host : NULL,
                            .listen_port = port,
                            .tls_host = tls ? tls_host : NULL,
                            .tls_port = tls_port,
                            .tls = c->tls.tls,
                            .unix_path = c->start->socket_path,
                            .threads = (uint32_t)settings_http_threads(s),
                            .limits = {.connections_max = connection_limit(s),
                                       .connections_per_address = (uint32_t)s->connections_per_address,
                                       .unix_max = UNIX_CONNECTIONS_MAX,
                                       .head_bytes_max = HEAD_BYTES_MAX,
                                       .headers_max = HEADERS_MAX,
                                       .body_bytes_max = s->body_max_bytes,
                                       .bodies_max_bytes = s->bodies_max_bytes,
                                       .request_read_ms = s->request_timeout_ms * 2,
                                       .idle_ms = s->idle_timeout_ms,
                                       .write_ms = WRITE_MS,
                                       .handshake_ms = s->request_timeout_ms},
                            .clock = &clock_system,
                            .context = c->api,
                            .on_head = api_on_head,
                            .on_request = api_on_request,
                            .on_bad_request = api_on_bad_request,
                            .on_done = api_on_done,
                            .on_round_end = api_on_round_end};
    if (http_server_start(&h, &c->server, err) != ERR_OK)
        return err->code;
    c->api->server = c->server;
    return ERR_OK;
}

/* A database on another machine comes and goes without us, and so does room on the disk under a server that
 * has run before: restarts would be used up in seconds and bring nothing. Any other file that cannot be
 * opened does not get better. */
static bool is_outage(const struct core *c, const struct err *err)
{
    char url[SETTINGS_STORE_URL_MAX];
    enum store_kind kind;
    struct err ignored;
    if (err->no_room)
        return c->start->was_ready;
    return settings_store_url(c->start->settings, url, sizeof url, &ignored) == ERR_OK &&
           store_url_kind(str_of(url), &kind) && kind == STORE_POSTGRES &&
           (err->code == ERR_STORAGE_UNAVAILABLE || err->conflict);
}

/* Opens the store. While its database is away the probes are answered and everything else is told to come
 * back; told once in the log, and again when the reason is another. Gives up only when asked to stop. */
static enum err_code await_store(struct core *c, struct err *err)
{
    struct err told = {.code = ERR_OK}, other;
    for (int64_t pause_ms = AWAIT_FIRST_MS; open_store(c, err) != ERR_OK;) {
        if (!is_outage(c, err))
            return err->code;
        if (!c->server && open_listeners(c, &other) != ERR_OK) {
            *err = other;
            return err->code;
        }
        if (strcmp(told.detail, err->detail) != 0)
            log_line(LOG_WARN, "store_awaited", "error_code", LOG_TEXT(err_wire(err->code)), "error_message",
                     LOG_TEXT(err->detail), NULL);
        told = *err;
        if (process_wait_stop(pause_ms))
            return err->code;
        pause_ms = pause_ms * 2 < AWAIT_MAX_MS ? pause_ms * 2 : AWAIT_MAX_MS;
    }
    if (told.code != ERR_OK)
        log_line(LOG_INFO, "store_found", NULL);
    return ERR_OK;
}

static enum err_code start(struct core *c, struct err *err)
{
    struct api_config a = {.settings = c->start->settings,
                           .clock = &clock_system,
                           .topology_path = c->start->topology_path,
                           .contracts = contracts};
    c->stage = "api";
    if (api_new(&a, &c->api, err) != ERR_OK)
        return err->code;
    c->stage = "store";
    if (data_lock_raise_epoch(c->start->lock_fd, &c->epoch, err) != ERR_OK || await_store(c, err) != ERR_OK)
        return err->code;
    c->stage = "listeners";
    c->live_at_start = live_count(c->store->live); /* the commit thread's own from here on */
    make_kernel(c);
    if ((!c->server && open_listeners(c, err) != ERR_OK) || kernel_start_thread(c->kernel, err) != ERR_OK ||
        listen_to_others(c, err) != ERR_OK || sandbox_close_network(c->start->settings, err) != ERR_OK)
        return err->code;
    atomic_store(&c->api->mark_missing, c->store->mark_missing);
    atomic_store(&c->api->started, true);
    return ERR_OK;
}

/* The work of the first thread while the others serve. */
static void watch_over(struct core *c)
{
    struct heart *heart = heart_open("main");
    while (!process_wait_stop(heart_sleep_ms(OVERLOAD_TICK_MS))) {
        heart_beat(heart);
        api_tick(c->api, heart);
        bool asked = process_reload_requested();
        tls_watch_tick(&c->tls, asked, clock_mono_ms(&clock_system));
        if (asked)
            issuers_reload(c->api);
    }
    heart_close(heart); /* while core stops, root limits the time */
}

/* Stop accepting, finish what is under way (long polls end at once), then close the store. */
static void drain(struct core *c)
{
    atomic_store(&c->api->draining, true);
    http_server_drain(c->server);
    api_stop(c->api);
    kernel_stop_thread(c->kernel);
    for (int waited_ms = 0; http_server_busy(c->server) && waited_ms < 2000; waited_ms += 5)
        usleep(5000);
}

/* A soft limit of 1024 is common; the connections we promise to hold need more. */
static void raise_descriptor_limit(const struct settings *s)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)s->connections_max + OWN_DESCRIPTORS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
        log_line(LOG_WARN, "few_descriptors", "limit", LOG_INT((int64_t)limit.rlim_cur), "wanted",
                 LOG_INT((int64_t)wanted), NULL);
}

static void close_all(struct core *c)
{
    store_listen_end(c->listener);
    api_stop(c->api);
    http_server_stop(c->server);
    tls_watch_close(&c->tls);
    kernel_free(c->kernel);
    api_free(c->api);
    for (size_t i = 0; i < c->more_lane_count; i++)
        store_close(c->more_lanes[i]);
    store_close(c->store);
}

int core_main(const struct process_start *process)
{
    struct core c = {.start = process};
    struct err err = {.code = ERR_OK};
    log_process("core");
    log_minimum(settings_log_level(process->settings));
    umask(0077); /* only this user may read the database and its log */
    raise_descriptor_limit(process->settings);
    if (start(&c, &err) != ERR_OK) {
        close_all(&c);
        if (process_stop_requested()) { /* while it waited for the database */
            log_line(LOG_INFO, "core_stopped", NULL);
            return 0;
        }
        return fail(&c, &err);
    }
    if (c.store->loss.code != ERR_OK)
        log_line(LOG_ERROR, "loss_accepted", "error_code", LOG_TEXT(err_wire(c.store->loss.code)),
                 "error_message", LOG_TEXT(c.store->loss.detail), NULL);
    if (c.store->mark_missing)
        log_line(LOG_WARN, "mark_missing", "error_message",
                 LOG_TEXT("the mark was missing or damaged, so nobody can tell whether commits are missing; "
                          "it was made anew"),
                 NULL);
    log_line(LOG_INFO, "core_started", "port", LOG_INT(http_server_port(c.server)), "tls_port",
             LOG_INT(http_server_tls_port(c.server)), "jobs_live", LOG_INT(c.live_at_start), "epoch",
             LOG_INT(c.epoch), NULL);
    process_ready(process);
    watch_over(&c);
    drain(&c);
    close_all(&c);
    log_line(LOG_INFO, "core_stopped", NULL);
    return 0;
}
