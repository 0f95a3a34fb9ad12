/* Query strings of listings: the input is nine values separated by newlines. An accepted query has a limit in
 * range and bounds that are ids; a cursor we write reads back as itself. */
#include "api/jobs/list_filter.h"
#include "base/must.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct list_query_texts q;
    struct str *const texts[] = {&q.state, &q.outcome,       &q.type,           &q.work_kind, &q.queue,
                                 &q.limit, &q.created_after, &q.created_before, &q.cursor,    &q.kind};
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        struct str value = str_cut(&rest, '\n');
        *texts[i] = value.len ? value : STR_ABSENT;
    }
    struct list_filter f;
    struct err err;
    if (list_filter_parse(&q, &f, &err) != ERR_OK) {
        MUST(err.code == ERR_REQUEST_MALFORMED);
        return 0;
    }
    MUST(f.limit >= 1 && f.limit <= LIST_LIMIT_MAX);
    MUST(f.from_id >= 0 && f.below_id >= 0);
    if (f.below_id >= INT64_C(1) << 60)
        return 0;
    struct arena *a = arena_new(256);
    struct list_query_texts again = {.cursor = list_cursor_text(a, f.below_id)};
    struct list_filter g;
    MUST(list_filter_parse(&again, &g, &err) == ERR_OK && g.below_id == f.below_id);
    arena_free(a);
    return 0;
}
