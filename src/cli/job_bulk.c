/* weir job cancel and weir job retry of all jobs that match filters. */
#include <strings.h>

#include "base/must.h"
#include "cli/confirm.h"
#include "cli/job_internal.h"
#include "cli/pages.h"

#include "base/banned.h"

enum { COUNT_MAX = 1000, A_CALL = 10000, CALL_TIMEOUT_MS = 60000, A_PAGE = 200 };

bool job_has_filter(const struct flags *f)
{
    for (size_t i = 0; i < job_filter_count; i++)
        if (flags_has(f, job_filters[i].flag))
            return true;
    return false;
}

/* ---- how many there are ---- */

/* Adds those in this state; `*count` stays at COUNT_MAX + 1 when there are more. */
static int count_in_state(const struct invocation *in, const char *state, int64_t *count)
{
    struct str cursor = STR_ABSENT;
    struct arena *a = arena_new(512);
    int code = CLI_OK;
    do {
        struct strbuf path CLEANUP(strbuf_free) = {0};
        struct server_answer page CLEANUP(server_answer_free) = {0};
        strbuf_addf(&path, "/v1/jobs?state=%s&limit=%d", state, A_PAGE);
        for (size_t i = 0; i < job_filter_count; i++)
            if (job_filters[i].flag != FLAG_STATE)
                query_add(&path, job_filters[i].name, in->flags->value[job_filters[i].flag]);
        if (cursor.ptr)
            strbuf_addf(&path, "&cursor=%.*s", STR_ARG(cursor));
        struct server_call call = {.method = "GET", .path = strbuf_str(&path), .bearer = server_key(in)};
        code = server_call(in, &call, &page);
        const struct json *items = json_get(page.json, "items");
        *count += items ? items->count : 0;
        cursor = arena_str(a, json_text(page.json, "next_cursor"));
    } while (code == CLI_OK && cursor.ptr && *count <= COUNT_MAX);
    arena_free(a);
    return code;
}

static int count_jobs(const struct invocation *in, const struct job_bulk *b, int64_t *ret_count)
{
    const char *only = in->flags->value[FLAG_STATE];
    int code = CLI_OK;
    *ret_count = 0;
    for (const char *const *state = b->states; *state && code == CLI_OK && *ret_count <= COUNT_MAX; state++)
        if (!only || strcasecmp(only, *state) == 0)
            code = count_in_state(in, *state, ret_count);
    return code;
}

static int ask_first(const struct invocation *in, const struct job_bulk *b)
{
    char question[120];
    int64_t count;
    if (flags_has(in->flags, FLAG_YES))
        return CLI_OK;
    int code = count_jobs(in, b, &count);
    if (code != CLI_OK || !count)
        return code;
    if (count > COUNT_MAX)
        snprintf(question, sizeof question, "More than %d jobs match. %s them?", COUNT_MAX, b->verb);
    else
        snprintf(question, sizeof question,
                 count == 1 ? "%lld job matches. %s it?" : "%lld jobs match. %s them?", (long long)count,
                 b->verb);
    return cli_confirm(in, question);
}

/* ---- the calls ---- */

struct bulk_sum {
    int64_t matched, changed, limit; /* limit: how many more may match */
    struct str cursor;               /* absent: from the newest on */
    bool more, is_stuck;
    struct arena *arena;
};

static void write_body(const struct invocation *in, const struct bulk_sum *sum, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "filter");
    jw_object(&w);
    for (size_t i = 0; i < job_filter_count; i++)
        if (flags_has(in->flags, job_filters[i].flag))
            encode_text(&w, job_filters[i].name, in->flags->value[job_filters[i].flag]);
    jw_object_end(&w);
    encode_int(&w, "limit", sum->limit < A_CALL ? sum->limit : A_CALL);
    if (sum->cursor.ptr)
        encode_str(&w, "cursor", sum->cursor);
    jw_object_end(&w);
}

static int call_once(const struct invocation *in, const struct job_bulk *b, struct bulk_sum *sum)
{
    struct server_answer done CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    write_body(in, sum, &body);
    struct server_call call = {.method = "POST",
                               .path = str_of(b->path),
                               .body = strbuf_str(&body),
                               .bearer = server_key(in),
                               .timeout_ms = CALL_TIMEOUT_MS};
    int code = server_call(in, &call, &done);
    if (code != CLI_OK)
        return code;
    struct str cursor = json_text(done.json, "next_cursor");
    int64_t matched = json_int(done.json, "matched", 0);
    sum->matched += matched;
    sum->changed += json_int(done.json, "changed", 0);
    sum->limit -= matched;
    sum->more = cursor.ptr != NULL;
    sum->is_stuck = sum->more && sum->cursor.ptr && str_equal(cursor, sum->cursor);
    sum->cursor = arena_str(sum->arena, cursor);
    return CLI_OK;
}

static void show(const struct invocation *in, const struct job_bulk *b, const struct bulk_sum *sum)
{
    if (in->json)
        printf("{\"matched\":%lld,\"changed\":%lld,\"more\":%s}\n", (long long)sum->matched,
               (long long)sum->changed, sum->more ? "true" : "false");
    else
        printf("%lld of %lld jobs %s\n", (long long)sum->changed, (long long)sum->matched, b->done);
    if (sum->changed < sum->matched)
        cli_note(in, "The others %s.", b->others);
}

int job_bulk(const struct invocation *in, const struct job_bulk *b)
{
    struct bulk_sum sum = {.limit = INT64_MAX, .more = true};
    struct err err;
    if (!job_has_filter(in->flags)) {
        cli_fault("give a JOB_ID, or filters such as --state and --queue; see `weir %s --help`",
                  in->command->name);
        return CLI_USAGE;
    }
    if (flags_int(in->flags, FLAG_LIMIT, 1, INT64_MAX, &sum.limit, &err) != ERR_OK)
        return cli_err(&err);
    int code = ask_first(in, b);
    sum.arena = arena_new(256);
    while (code == CLI_OK && sum.more && sum.limit && !sum.is_stuck)
        code = call_once(in, b, &sum);
    if (code == CLI_OK)
        show(in, b, &sum);
    if (code == CLI_OK && sum.is_stuck) {
        cli_fault("the queue takes no more now; run it again later for the rest");
        code = CLI_FAILED;
    }
    arena_free(sum.arena);
    return code;
}
