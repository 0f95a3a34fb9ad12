/* Set-up: routes, contracts, per-thread readers; and what follows a commit. */
#include "api/api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

enum { ROUTES_MAX = 64, READERS_MAX = 512 };

static struct route all_routes[ROUTES_MAX];
static const struct route *route_pointers[ROUTES_MAX];
static size_t route_count;

const struct route *api_routes(size_t *ret_count)
{
    *ret_count = route_count;
    return all_routes;
}

static void add_routes(const struct route *routes, size_t count)
{
    MUST(route_count + count <= ROUTES_MAX);
    for (size_t i = 0; i < count; i++) {
        all_routes[route_count] = routes[i];
        route_pointers[route_count] = &all_routes[route_count];
        route_count++;
    }
}

/* --- readers: one per HTTP thread, made when first needed ---------------------------------------- */

static pthread_mutex_t readers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reader *readers[READERS_MAX];
static size_t reader_count;
static _Thread_local struct reader *my_reader;

/* Under the lock, so that an open that fails uses up no place: the next request tries again. */
static struct reader *open_reader(struct api *a, struct err *err)
{
    struct reader *r = NULL;
    if (reader_count == READERS_MAX) {
        err_set(err, ERR_STORAGE_UNAVAILABLE, "too many threads read the store");
        return NULL;
    }
    if (a->config.store->ops->reader_open(a->config.store, &r, err) != ERR_OK)
        return NULL;
    readers[reader_count++] = r;
    return r;
}

struct reader *api_reader(struct api *a, struct err *err)
{
    if (!my_reader) {
        pthread_mutex_lock(&readers_lock);
        my_reader = open_reader(a, err);
        pthread_mutex_unlock(&readers_lock);
    }
    return my_reader;
}

static void close_readers(void)
{
    for (size_t i = 0; i < reader_count; i++)
        readers[i]->ops->reader_close(readers[i]);
    reader_count = 0;
}

/* --- contracts: every operation has exactly one handler, every handler one operation -------------- */

static enum err_code load_contracts(struct api *a, struct err *err)
{
    const char *const *names = contract_names();
    for (size_t i = 0; names[i]; i++) {
        MUST(i < LENGTH_OF(a->contracts));
        if (contract_load(contract_embedded(names[i]), &a->contracts[i], err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

static const struct contract_operation *find_operation(const struct api *a, const char *operation_id)
{
    for (size_t i = 0; i < LENGTH_OF(a->contracts) && a->contracts[i]; i++) {
        const struct contract_operation *o = contract_find(a->contracts[i], operation_id);
        if (o)
            return o;
    }
    return NULL;
}

static enum err_code bind_operations(struct api *a, struct err *err)
{
    size_t operations = 0;
    a->operations = must_alloc(route_count * sizeof *a->operations);
    for (size_t i = 0; i < route_count; i++) {
        const struct contract_operation *o = find_operation(a, all_routes[i].operation_id);
        if (!o || !str_is(str_of(o->path), all_routes[i].pattern) ||
            !str_is(str_of(o->method), http_method_text(all_routes[i].method)))
            return err_set(err, ERR_CONFIG_INVALID, "route %s is not in the contracts as it is here",
                           all_routes[i].operation_id);
        a->operations[i] = o;
    }
    for (size_t i = 0; i < LENGTH_OF(a->contracts) && a->contracts[i]; i++) {
        size_t count;
        contract_operations(a->contracts[i], &count);
        operations += count;
    }
    if (operations != route_count)
        return err_set(err, ERR_CONFIG_INVALID, "the contracts have %zu operations, the routes %zu",
                       operations, route_count);
    a->submit_schema = find_operation(a, "submitJob")->request_body;
    return ERR_OK;
}

enum err_code api_new(const struct api_config *config, struct api **ret_api, struct err *err)
{
    struct api *a = must_alloc(sizeof *a);
    a->config = *config;
    route_count = 0;
    add_routes(job_routes, job_route_count);
    add_routes(worker_routes, worker_route_count);
    add_routes(ops_routes, ops_route_count);
    a->router = router_new(all_routes, route_count);
    a->auth = auth_new(config->settings);
    a->rate_limit = rate_limit_new(config->settings);
    a->metrics = metrics_new(route_pointers, route_count);
    a->followers = followers_new();
    if (load_contracts(a, err) != ERR_OK || bind_operations(a, err) != ERR_OK) {
        api_free(a);
        return err->code;
    }
    *ret_api = a;
    return ERR_OK;
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    close_readers();
    for (size_t i = 0; i < LENGTH_OF(a->contracts); i++)
        if (a->contracts[i])
            contract_free(a->contracts[i]);
    router_free(a->router);
    auth_free(a->auth);
    rate_limit_free(a->rate_limit);
    metrics_free(a->metrics);
    followers_free(a->followers);
    free(a->operations);
    free(a);
    return NULL;
}

/* --- after a commit ------------------------------------------------------------------------------ */

static void log_transition(const struct notice *n)
{
    const struct event *e = &n->event;
    struct uuid id = uuid_from_v7(e->job, n->low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    bool failed = e->next == JOB_FAILED;
    log_line(failed ? LOG_INFO : LOG_DEBUG, job_event_text(e->event), "job_id", LOG_TEXT(text), "client",
             LOG_INT(n->client), "current_state", LOG_TEXT(job_state_text(e->prev)), "next_state",
             LOG_TEXT(job_state_text(e->next)), "attempt", LOG_INT(e->attempt), "scenario",
             LOG_TEXT(work_kind_text((enum work_kind)e->kind)), "worker_id", LOG_STR(n->worker), "detail",
             LOG_STR(e->extra.len ? e->extra : STR_ABSENT), NULL);
}

void api_committed(void *self, const struct unit *u)
{
    struct api *a = self;
    if (u->keys_changed)
        auth_keys_changed(a->auth);
    metrics_committed(a->metrics, u);
    if (log_enabled(LOG_DEBUG))
        for (size_t i = 0; i < u->notice_count; i++)
            log_transition(&u->notices[i]);
    else
        for (size_t i = 0; i < u->notice_count; i++)
            if (u->notices[i].event.next == JOB_FAILED)
                log_transition(&u->notices[i]);
    if (followers_publish(a->followers, u) && a->server)
        http_server_tick(a->server);
}

void api_batch_end(void *self)
{
    struct api *a = self;
    if (a->server)
        http_wake(a->server);
}
