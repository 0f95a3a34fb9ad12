#include "api/rate_limit.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/must.h"

#include "base/banned.h"

enum { SHARDS = 16, CLIENTS_A_SHARD_MAX = 65536, CLIENTS_A_SHARD_SWEPT = 256, SAVED_A_TURN = 512 };

/* The texts are those of the headers, around their numbers. */
static const struct {
    const char *wire;
    int64_t seconds;
    struct str quota, window, left;
} spans[RATE_SPAN_COUNT] = {
#define X(name, wire, seconds)                                                                               \
    {wire, seconds, STR("\"" wire "\";q="), STR(";w=" #seconds), STR("\"" wire "\";r=")},
    RATE_SPANS(X)
#undef X
};

struct window {
    struct map_node node;
    int64_t client;
    struct {
        int64_t number; /* of the minute or day since 1970 */
        int64_t count, quota;
    } spans[RATE_SPAN_COUNT];
    int64_t unsaved; /* of its day, that the store has not heard of */
    bool is_listed;  /* among those with some */
    struct window *next_unsaved;
};

/* Requests of a day on their way into the store. */
struct saving {
    int64_t client, day, requests;
    int64_t sum; /* with what was there */
};

struct shard {
    pthread_mutex_t lock;
    struct map windows;
    struct window *unsaved; /* windows whose day has changed */
    size_t sweep_at;        /* windows at which idle ones are looked for */
};

struct rate_limit {
    const struct settings *settings;
    struct shard shards[SHARDS];
    struct saving *saving; /* these three: the turn's */
    size_t saving_count, saving_capacity;
};

struct rate_limit *rate_limit_new(const struct settings *s)
{
    struct rate_limit *r = must_alloc(sizeof *r);
    r->settings = s;
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&r->shards[i].lock, NULL);
        r->shards[i].sweep_at = CLIENTS_A_SHARD_SWEPT;
    }
    return r;
}

static void free_window(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct window, node));
}

struct rate_limit *rate_limit_free(struct rate_limit *r)
{
    for (int i = 0; r && i < SHARDS; i++) {
        map_drain(&r->shards[i].windows, free_window, NULL);
        map_free(&r->shards[i].windows);
        pthread_mutex_destroy(&r->shards[i].lock);
    }
    if (r)
        free(r->saving);
    free(r);
    return NULL;
}

/* --- windows --------------------------------------------------------------------------------------- */

/* limits.overrides: CLIENT_ID=PER_MINUTE,... (checked when the settings were read). */
static int64_t per_minute(const struct settings *s, const struct uuid *client_id)
{
    struct str rest = str_of(s->limits_overrides);
    char id[UUID_TEXT_LEN + 1];
    uuid_text(client_id, id);
    while (rest.len) {
        struct str entry = str_cut(&rest, ',');
        struct str name = str_trim(str_cut(&entry, '='));
        int64_t quota;
        if (str_equal_nocase(name, str_of(id)) && str_to_int(str_trim(entry), 0, INT64_MAX, &quota))
            return quota;
    }
    return s->limits_requests_per_minute;
}

static struct window *find(const struct shard *shard, int64_t client)
{
    for (struct map_node *n = map_first(&shard->windows, hash_mix((uint64_t)client)); n; n = map_next(n)) {
        struct window *w = CONTAINER_OF(n, struct window, node);
        if (w->client == client)
            return w;
    }
    return NULL;
}

struct sweeping {
    struct window **idle;
    size_t count;
    int64_t now_s;
};

/* Its minute is over, and the store knows what it has used of its day. */
static void note_idle(struct map_node *n, void *arg)
{
    struct sweeping *s = arg;
    struct window *w = CONTAINER_OF(n, struct window, node);
    if (w->spans[RATE_MINUTE].number != s->now_s / spans[RATE_MINUTE].seconds && !w->is_listed && !w->unsaved)
        s->idle[s->count++] = w;
}

/* Clients that have called in the last minute stay, and as many again may come before the next sweep. */
static void sweep(struct shard *shard, int64_t now_s)
{
    struct sweeping s = {.idle = must_alloc((shard->windows.count + 1) * sizeof *s.idle), .now_s = now_s};
    map_each(&shard->windows, note_idle, &s);
    for (size_t i = 0; i < s.count; i++) {
        map_remove(&shard->windows, &s.idle[i]->node);
        free(s.idle[i]);
    }
    free(s.idle);
    shard->sweep_at = 2 * shard->windows.count;
    if (shard->sweep_at < CLIENTS_A_SHARD_SWEPT)
        shard->sweep_at = CLIENTS_A_SHARD_SWEPT;
}

static struct window *add(struct rate_limit *r, struct shard *shard, const struct request_day_row *stored,
                          const struct uuid *client_id, int64_t now_s)
{
    if (shard->windows.count >= shard->sweep_at)
        sweep(shard, now_s);
    if (shard->windows.count >= CLIENTS_A_SHARD_MAX) { /* rather than grow for ever */
        map_drain(&shard->windows, free_window, NULL);
        shard->unsaved = NULL;
    }
    struct window *w = must_alloc(sizeof *w);
    w->client = stored->client;
    w->spans[RATE_MINUTE].quota = per_minute(r->settings, client_id);
    w->spans[RATE_DAY].quota = r->settings->limits_requests_per_day;
    w->spans[RATE_DAY].number = stored->day;
    w->spans[RATE_DAY].count = stored->requests;
    map_put(&shard->windows, &w->node, hash_mix((uint64_t)w->client));
    return w;
}

/* The client's use of its day when this program began. Not under the lock: the store is read. */
static enum err_code read_day(struct reads *reads, struct arena *arena, struct request_day_row *row,
                              struct err *err)
{
    bool found;
    struct reader *reader = reads_begin(reads, err);
    if (!reader)
        return err->code;
    return reader->ops->reader_row(reader, &table_request_day_row, row, arena, &found, err);
}

/* The client's window, with the lock of its shard held; NULL with err set, and without it. */
static struct window *lock_window(struct rate_limit *r, struct shard *shard, struct reads *reads,
                                  struct arena *arena, int64_t client, const struct uuid *client_id,
                                  int64_t now_s, struct err *err)
{
    pthread_mutex_lock(&shard->lock);
    struct window *w = find(shard, client);
    if (w)
        return w;
    struct request_day_row stored = {.client = client};
    if (r->settings->limits_requests_per_day) {
        pthread_mutex_unlock(&shard->lock);
        if (read_day(reads, arena, &stored, err) != ERR_OK)
            return NULL;
        pthread_mutex_lock(&shard->lock);
        w = find(shard, client); /* another thread may have been quicker */
    }
    return w ? w : add(r, shard, &stored, client_id, now_s);
}

/* --- a request ------------------------------------------------------------------------------------- */

/* Empties what is over, and says whether there is room in all of them; if not, which one is full longest. */
static bool has_room(struct window *w, int64_t now_s, enum rate_span *ret_full)
{
    bool room = true;
    for (int i = 0; i < RATE_SPAN_COUNT; i++) {
        if (w->spans[i].number != now_s / spans[i].seconds) {
            w->spans[i].number = now_s / spans[i].seconds;
            w->spans[i].count = 0;
            if (i == RATE_DAY)
                w->unsaved = 0;
        }
        if (!w->spans[i].quota || w->spans[i].count < w->spans[i].quota)
            continue;
        room = false;
        *ret_full = (enum rate_span)i;
    }
    return room;
}

static void add_unsaved(struct shard *shard, struct window *w, int64_t requests)
{
    w->unsaved += requests;
    if (w->is_listed)
        return;
    w->is_listed = true;
    w->next_unsaved = shard->unsaved;
    shard->unsaved = w;
}

static void count(struct shard *shard, struct window *w)
{
    for (int i = 0; i < RATE_SPAN_COUNT; i++)
        w->spans[i].count++;
    if (w->spans[RATE_DAY].quota)
        add_unsaved(shard, w, 1);
}

static void tell(const struct window *w, int64_t now_s, struct rate_standing *ret)
{
    for (int i = 0; i < RATE_SPAN_COUNT; i++) {
        int64_t left = w->spans[i].quota - w->spans[i].count;
        ret->spans[i].quota = w->spans[i].quota;
        ret->spans[i].left = left > 0 ? left : 0; /* a smaller quota than before the restart */
        ret->spans[i].reset_s = spans[i].seconds - now_s % spans[i].seconds;
    }
}

enum err_code rate_limit_take(struct rate_limit *r, struct reads *reads, struct arena *arena, int64_t client,
                              const struct uuid *client_id, int64_t now_ms,
                              struct rate_standing *ret_standing, struct err *err)
{
    const struct settings *s = r->settings;
    if (!s->limits_requests_per_minute && !s->limits_requests_per_day && !s->limits_overrides)
        return ERR_OK;
    enum rate_span full = RATE_MINUTE;
    int64_t now_s = now_ms / 1000;
    struct shard *shard = &r->shards[(uint64_t)client % SHARDS];
    struct window *w = lock_window(r, shard, reads, arena, client, client_id, now_s, err);
    if (!w)
        return err->code;
    bool room = has_room(w, now_s, &full);
    if (room)
        count(shard, w);
    tell(w, now_s, ret_standing);
    pthread_mutex_unlock(&shard->lock);
    if (room)
        return ERR_OK;
    err_set(err, ERR_REQUEST_RATE_LIMITED, "the limit is %lld requests per %s",
            (long long)ret_standing->spans[full].quota, spans[full].wire);
    err->retry_after_s = (int)ret_standing->spans[full].reset_s;
    return err->code;
}

/* --- headers --------------------------------------------------------------------------------------- */

enum { HEADERS_BYTES_MAX = 256 };

static char *put(char *at, struct str text)
{
    memcpy(at, text.ptr, text.len);
    return at + text.len;
}

static char *put_number(char *at, int64_t value)
{
    char digits[20], *first = digits + sizeof digits;
    do
        *--first = (char)('0' + value % 10);
    while (value /= 10);
    return put(at, (struct str){first, (size_t)(digits + sizeof digits - first)});
}

/* On every answer, so in one piece: a tenth of a microsecond would be half a percent of a submit. */
void rate_limit_headers(const struct rate_standing *s, struct strbuf *headers)
{
    char text[HEADERS_BYTES_MAX], *at = text;
    if (!s->spans[RATE_MINUTE].quota && !s->spans[RATE_DAY].quota)
        return;
    at = put(at, STR("RateLimit-Policy: "));
    for (int i = 0, more = 0; i < RATE_SPAN_COUNT; i++)
        if (s->spans[i].quota) {
            at = put(at, more++ ? STR(", ") : STR(""));
            at = put(put_number(put(at, spans[i].quota), s->spans[i].quota), spans[i].window);
        }
    at = put(at, STR("\r\nRateLimit: "));
    for (int i = 0, more = 0; i < RATE_SPAN_COUNT; i++)
        if (s->spans[i].quota) {
            at = put(at, more++ ? STR(", ") : STR(""));
            at = put_number(put(at, spans[i].left), s->spans[i].left);
            at = put_number(put(at, STR(";t=")), s->spans[i].reset_s);
        }
    at = put(at, STR("\r\n"));
    strbuf_add(headers, text, (size_t)(at - text));
}

/* --- saving days ----------------------------------------------------------------------------------- */

static size_t take_unsaved(struct shard *shard, struct saving *ret, size_t max)
{
    size_t n = 0;
    pthread_mutex_lock(&shard->lock);
    for (; n < max && shard->unsaved; n++) {
        struct window *w = shard->unsaved;
        shard->unsaved = w->next_unsaved;
        w->is_listed = false;
        ret[n] =
            (struct saving){.client = w->client, .day = w->spans[RATE_DAY].number, .requests = w->unsaved};
        w->unsaved = 0;
    }
    pthread_mutex_unlock(&shard->lock);
    return n;
}

/* The counts of other nodes are in the row already. */
static void save(struct unit *u, struct saving *s)
{
    struct request_day_row key = {.client = s->client};
    struct request_day_row *row = unit_row(u, &table_request_day_row, &key);
    bool is_new = !row;
    if (is_new) {
        row = ARENA_NEW(u->arena, struct request_day_row);
        *row = (struct request_day_row){.client = s->client, .day = s->day};
    }
    if (row->day > s->day)
        return; /* another thread is past midnight: this day is over */
    row->requests = s->requests + (row->day == s->day ? row->requests : 0);
    row->day = s->day;
    s->sum = row->requests;
    if (is_new)
        unit_insert(u, &table_request_day_row, row);
    else
        unit_update(u, &table_request_day_row, row);
}

bool rate_limit_save(struct rate_limit *r, struct unit *u)
{
    if (!r->settings->limits_requests_per_day)
        return false;
    if (r->saving_count + SAVED_A_TURN > r->saving_capacity) {
        r->saving_capacity = r->saving_count + SAVED_A_TURN;
        r->saving = must_realloc(r->saving, r->saving_capacity * sizeof *r->saving);
    }
    struct saving *some = r->saving + r->saving_count;
    size_t n = 0;
    for (int i = 0; i < SHARDS; i++)
        n += take_unsaved(&r->shards[i], some + n, SAVED_A_TURN - n);
    r->saving_count += n;
    for (size_t i = 0; i < n; i++)
        unit_prefetch(u, &table_request_day_row, &(struct request_day_row){.client = some[i].client});
    (void)unit_load(u);
    for (size_t i = 0; i < n && u->load_err.code == ERR_OK; i++) /* else nothing is written */
        save(u, &some[i]);
    return n == SAVED_A_TURN;
}

void rate_limit_saved(struct rate_limit *r, bool stored)
{
    for (size_t i = 0; i < r->saving_count; i++) {
        const struct saving *s = &r->saving[i];
        struct shard *shard = &r->shards[(uint64_t)s->client % SHARDS];
        pthread_mutex_lock(&shard->lock);
        struct window *w = find(shard, s->client);
        bool same_day = w && w->spans[RATE_DAY].number == s->day;
        if (same_day && !stored)
            add_unsaved(shard, w, s->requests);
        else if (same_day && s->sum)
            w->spans[RATE_DAY].count = s->sum + w->unsaved;
        pthread_mutex_unlock(&shard->lock);
    }
    r->saving_count = 0;
}

size_t rate_limit_clients(struct rate_limit *r)
{
    size_t n = 0;
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_lock(&r->shards[i].lock);
        n += r->shards[i].windows.count;
        pthread_mutex_unlock(&r->shards[i].lock);
    }
    return n;
}
