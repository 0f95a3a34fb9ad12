/* weir store events: every event of every job, in the order in which they became visible, from the store
 * itself; --follow waits for more. Each one names the place behind it, and --after goes on there: a program
 * that keeps the place with what it did with the event sees each exactly once, whatever is restarted. */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json_members.h"
#include "base/must.h"
#include "base/time_text.h"
#include "cli/store_check.h"
#include "cli/table.h"
#include "store/event_json.h"
#include "store/store_open.h"

#include "base/banned.h"

enum {
    READ_TIMEOUT_MS = 10000,
    CHUNKS_AT_ONCE = 64,  /* a snapshot is not held for longer than these take to print */
    LOOK_MS = 200,        /* between looks, when there was nothing more */
    GIVE_UP_MS = 60000,   /* while following, without the store */
    EVENTS_OF_CHUNK = 256 /* a chunk is one page, an event at least EVENT_HEAD_BYTES */
};
_Static_assert(EVENTS_OF_CHUNK *EVENT_HEAD_BYTES > LOG_CHUNK_BYTES, "no chunk has more");

enum { COLUMNS = 7 };
static const char *const headings[COLUMNS] = {"TIME", "!JOB", ">SEQ", "EVENT", "STATE", ">ATTEMPT", "!PLACE"};
static const size_t widths[COLUMNS] = {27, 36, 3, 21, 9, 7, 0};

struct tail {
    const struct invocation *in;
    struct reader *reader;
    struct log_place place;
    int64_t left; /* how many more are wanted */
    uint64_t shown, purged;
    struct text_table *table; /* NULL: JSON */
    struct arena *arena;      /* of one chunk */
    struct err err;
};

/* --- places ---------------------------------------------------------------------------------------- */

enum { PLACE_TEXT_MAX = 64 };

/* "TURN.CHUNK.OFFSET": the next event is the one at or behind that offset. */
static void place_text(struct log_place at, size_t offset, char out[PLACE_TEXT_MAX])
{
    snprintf(out, PLACE_TEXT_MAX, "%" PRId64 ".%" PRId64 ".%zu", at.turn, at.chunk, offset);
}

static bool place_parse(const char *text, struct tail *t)
{
    int64_t numbers[3];
    for (size_t i = 0; i < LENGTH_OF(numbers); i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        numbers[i] = strtoll(text, &end, 10);
        if (numbers[i] == INT64_MAX || *end != (i + 1 < LENGTH_OF(numbers) ? '.' : '\0'))
            return false;
        text = end + 1;
    }
    if (numbers[1] < 1 || numbers[2] > UINT16_MAX)
        return false;
    t->place = (struct log_place){numbers[0], numbers[1], (size_t)numbers[2]};
    return true;
}

/* --- one chunk ------------------------------------------------------------------------------------- */

static void show_event(struct tail *t, const struct event *e, uint64_t low, const char *place)
{
    char time[TIME_TEXT_MAX], job[UUID_TEXT_LEN + 1];
    struct uuid id = uuid_from_v7(e->job, low);
    struct str state = str_of(job_state_text(e->next));
    uuid_text(&id, job);
    text_table_add(t->table, time_text_us(e->at_us, time));
    text_table_add(t->table, str_of(job));
    text_table_addf(t->table, "%" PRIu32, e->seq);
    text_table_add(t->table, str_of(job_event_text(e->event)));
    text_table_add_tone(t->table, state, tone_of_state(state));
    text_table_addf(t->table, "%" PRIu32, e->attempt);
    text_table_add(t->table, str_of(place));
}

static void write_event(const struct event *e, const struct job_row *job, const char *place)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "place", place);
    jw_key(&w, "event");
    encode_event(&w, e, job);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

/* Jobs that retention has removed have no name any more; their remaining events are passed over. */
static bool read_jobs(struct tail *t, const struct event *events, size_t count, struct load_row *ret_rows)
{
    struct job_row *jobs = ARENA_ARRAY(t->arena, struct job_row, count);
    for (size_t i = 0; i < count; i++) {
        jobs[i].id = events[i].job;
        ret_rows[i] = (struct load_row){.table = &table_job_row, .row = &jobs[i]};
    }
    return store_read_rows(t->reader, ret_rows, count, t->arena, &t->err) == ERR_OK;
}

/* Events from `offset` on, with the offset behind each. */
static size_t decode_chunk(struct str chunk, size_t offset, struct event *ret_events, size_t *ret_behind)
{
    size_t count = 0, at = LOG_FIRST_OFFSET, next;
    for (; count < EVENTS_OF_CHUNK && at < chunk.len; at = next) {
        if (!event_decode(chunk, at, &ret_events[count], &next))
            break;
        ret_behind[count] = next;
        count += at >= offset;
    }
    return count;
}

static void tell(struct tail *t, const struct event *e, const struct load_row *read, const char *place)
{
    const struct job_row *job = read->row;
    if (!read->found) {
        t->purged++;
        return;
    }
    if (t->table)
        show_event(t, e, (uint64_t)job->low, place);
    else
        write_event(e, job, place);
    t->shown++;
    t->left--;
}

static bool take_chunk(struct log_place at, struct str chunk, void *arg)
{
    struct tail *t = arg;
    struct event events[EVENTS_OF_CHUNK];
    struct load_row rows[EVENTS_OF_CHUNK];
    size_t behind[EVENTS_OF_CHUNK];
    char place[PLACE_TEXT_MAX];
    if (!log_chunk_is_sound(chunk)) {
        err_set(&t->err, ERR_STORE_CORRUPT, "chunk %" PRId64 " of the log is damaged; see `weir verify`",
                at.chunk);
        return false;
    }
    size_t count = decode_chunk(chunk, at.offset, events, behind);
    if (!read_jobs(t, events, count, rows))
        return false;
    for (size_t i = 0; i < count && t->left; i++) {
        place_text(at, behind[i], place);
        tell(t, &events[i], &rows[i], place);
    }
    arena_reset(t->arena);
    return t->left > 0 && !ferror(stdout);
}

/* --- looking --------------------------------------------------------------------------------------- */

/* True: there may be more at once. */
static bool look(struct tail *t)
{
    struct log_place before = t->place;
    t->err.code = t->reader->ops->reader_begin(t->reader, &t->err);
    if (t->err.code != ERR_OK)
        return false;
    struct err err;
    if (store_follow(t->reader, &t->place, CHUNKS_AT_ONCE, take_chunk, t, &err) != ERR_OK)
        t->err = err;
    t->reader->ops->reader_end(t->reader);
    if (t->table)
        text_table_show(t->table, stdout);
    fflush(stdout);
    return t->err.code == ERR_OK && memcmp(&before, &t->place, sizeof before) != 0;
}

static bool heals(enum err_code code)
{
    return code == ERR_STORAGE_UNAVAILABLE || code == ERR_STORAGE_DB_ERROR;
}

/* Until it is there, or too long. */
static enum err_code open_reader(struct tail *t, const char *url, bool patient)
{
    struct store_options o = {.url = url, .timeout_ms = READ_TIMEOUT_MS};
    int64_t until = clock_mono_ms(&clock_system) + GIVE_UP_MS;
    while (store_open_reader(&o, &t->reader, &t->err) != ERR_OK) {
        t->reader = NULL;
        if (!patient || !heals(t->err.code) || clock_mono_ms(&clock_system) >= until)
            return t->err.code;
        poll(NULL, 0, LOOK_MS);
    }
    return ERR_OK;
}

static int follow(struct tail *t, const char *url, bool on_and_on)
{
    if (open_reader(t, url, false) != ERR_OK)
        return cli_err(&t->err);
    while (t->left && !ferror(stdout)) {
        bool more = look(t);
        if (t->err.code != ERR_OK) {
            if (!on_and_on || !heals(t->err.code))
                return cli_err(&t->err);
            cli_note(t->in, "The store is away (%s); trying again.", t->err.detail);
            t->reader->ops->reader_close(t->reader);
            if (open_reader(t, url, true) != ERR_OK)
                return cli_err(&t->err);
        } else if (!more && !on_and_on) {
            return CLI_OK;
        } else if (!more) {
            poll(NULL, 0, LOOK_MS);
        }
    }
    return ferror(stdout) ? CLI_FAILED : CLI_OK;
}

static struct text_table *new_table(const struct invocation *in)
{
    return text_table_new_wide(headings, widths, COLUMNS, !in->quiet);
}

int command_store_events(const struct invocation *in)
{
    char url[SETTINGS_STORE_URL_MAX];
    struct tail t = {.in = in, .left = INT64_MAX};
    struct err err;
    const char *after = in->flags->value[FLAG_AFTER];
    if (flags_int(in->flags, FLAG_LIMIT, 1, INT64_MAX, &t.left, &err) != ERR_OK)
        return cli_err(&err);
    if (after && !place_parse(after, &t)) {
        cli_fault(
            "--after must be a place that `weir store events` named, such as 734.21.1080, not \"%.40s\"",
            after);
        return CLI_USAGE;
    }
    int code = store_check_url(in, url);
    if (code != CLI_OK)
        return code;
    t.arena = arena_new(1 << 16);
    t.table = in->json ? NULL : new_table(in);
    code = follow(&t, url, flags_has(in->flags, FLAG_FOLLOW));
    if (t.reader)
        t.reader->ops->reader_close(t.reader);
    text_table_free(t.table);
    arena_free(t.arena);
    if (code == CLI_OK && t.purged)
        cli_note(in, "%" PRIu64 " events of jobs that retention has removed were passed over.", t.purged);
    return code;
}
