#include "store/verify.h"

#include <stdio.h>

#include "base/must.h"
#include "store/row_rules.h"
#include "store/verify_internal.h"

#include "base/banned.h"

enum { PROGRESS_ROWS = 1 << 16, LINE_MAX_BYTES = 400, ARENA_FIRST_BYTES = 1 << 16 };

void verify_seen(struct verify *v)
{
    if (++v->rows % PROGRESS_ROWS == 0 && v->progress)
        v->progress(v->arg, v->rows);
}

void verify_vsay(struct verify *v, const char *who, const char *fmt, va_list args)
{
    char line[LINE_MAX_BYTES];
    int n = snprintf(line, sizeof line, "%s", who);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, args);
    v->result->problems++;
    v->problem(v->arg, line);
}

void verify_say(struct verify *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    verify_vsay(v, "", fmt, args);
    va_end(args);
}

/* --- rows by their descriptions ---------------------------------------------------------------- */

struct scan {
    struct verify *v;
    const struct table *table;
    store_row_fn *fn;
    void *arg;
};

void verify_row(struct verify *v, const struct table *t, const void *row)
{
    const struct column *key = &t->columns[0];
    const char *broken = row_broken_rule(t, row);
    v->scanned[t->number] = true;
    if (broken && key->type == COLUMN_INT)
        verify_say(v, "%s: row %lld breaks a rule: %s", t->name, (long long)row_int(row, key), broken);
    else if (broken)
        verify_say(v, "%s: a row breaks a rule: %s", t->name, broken);
}

static bool check_row(const void *row, void *arg)
{
    const struct scan *s = arg;
    verify_row(s->v, s->table, row);
    return !s->fn || s->fn(row, s->arg);
}

enum err_code verify_scan(struct verify *v, const struct table *t, store_row_fn *fn, void *arg,
                          struct err *err)
{
    struct scan s = {v, t, fn, arg};
    v->scanned[t->number] = true;
    return v->reader->ops->reader_scan(v->reader, t, check_row, &s, err);
}

/* Tables that no pass has looked at as a whole. */
static enum err_code verify_others(struct verify *v, struct err *err)
{
    enum err_code code = ERR_OK;
    for (unsigned i = 0; i < table_count && code == ERR_OK; i++)
        if (!v->scanned[i] && table_has_rules(tables[i]))
            code = verify_scan(v, tables[i], NULL, NULL, err);
    return code;
}

/* --- the rules of contracts ---------------------------------------------------------------------- */

void *verify_self(const struct verify *v, const struct verify_rules *rules)
{
    size_t i = 0;
    while (verify_rules[i] && verify_rules[i] != rules)
        i++;
    MUST(verify_rules[i]);
    return v->selves[i];
}

struct reader *verify_reader(const struct verify *v)
{
    return v->reader;
}

struct arena *verify_arena(const struct verify *v)
{
    return v->arena;
}

static bool note_task(const void *row, void *arg)
{
    const struct task_row *t = row;
    struct verify *v = arg;
    bool known = false;
    verify_seen(v);
    for (size_t i = 0; verify_rules[i] && !known; i++)
        known = verify_rules[i]->task && verify_rules[i]->task(v, t);
    if (!known)
        verify_say(v, "task %lld: has an owner that there is not", (long long)t->id);
    return true;
}

static bool note_timer(const void *row, void *arg)
{
    const struct timer_row *t = row;
    struct verify *v = arg;
    bool known = false;
    verify_seen(v);
    for (size_t i = 0; verify_rules[i] && !known; i++)
        known = verify_rules[i]->timer && verify_rules[i]->timer(v, t);
    if (!known)
        verify_say(v, "timer %lld: is of nothing that this program knows", (long long)t->owner);
    return true;
}

static bool note_listed(const struct list_entry *e, void *arg)
{
    struct verify *v = arg;
    bool known = false;
    verify_seen(v);
    for (size_t i = 0; verify_rules[i] && !known; i++)
        known = verify_rules[i]->listed && verify_rules[i]->listed(v, e);
    if (!known)
        verify_say(v, "list %d: is none that there is", e->bucket);
    return true;
}

/* --- the passes -------------------------------------------------------------------------------- */

static bool say_check(const char *line, void *arg)
{
    verify_say(arg, "file: %s", line);
    return true;
}

static enum err_code check_file(struct verify *v, struct err *err)
{
    if (!v->reader->ops->reader_check)
        return ERR_OK;
    return v->reader->ops->reader_check(v->reader, say_check, v, err);
}

static enum err_code check_first(struct verify *v, struct err *err)
{
    for (size_t i = 0; verify_rules[i]; i++)
        if (verify_rules[i]->first && verify_rules[i]->first(v, err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static enum err_code check_tasks(struct verify *v, struct err *err)
{
    return verify_scan(v, &table_task_row, note_task, v, err);
}

static enum err_code check_rows(struct verify *v, struct err *err)
{
    for (size_t i = 0; verify_rules[i]; i++)
        if (verify_rules[i]->rows && verify_rules[i]->rows(v, err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static enum err_code check_timers(struct verify *v, struct err *err)
{
    return verify_scan(v, &table_timer_row, note_timer, v, err);
}

static enum err_code check_lists(struct verify *v, struct err *err)
{
    return v->reader->ops->reader_scan_list(v->reader, note_listed, v, err);
}

static enum err_code check_last(struct verify *v, struct err *err)
{
    for (size_t i = 0; verify_rules[i]; i++)
        if (verify_rules[i]->last && verify_rules[i]->last(v, err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static enum err_code (*const passes[])(struct verify *v, struct err *err) = {
    check_file, check_first, check_tasks, check_rows, check_timers, check_lists, check_last, verify_others,
};

static enum err_code run_passes(struct verify *v, struct err *err)
{
    enum err_code code = v->reader->ops->reader_begin(v->reader, err);
    if (code != ERR_OK)
        return code;
    for (size_t i = 0; code == ERR_OK && i < LENGTH_OF(passes); i++)
        code = passes[i](v, err);
    v->reader->ops->reader_end(v->reader);
    return code;
}

enum err_code store_verify(struct reader *r, void (*problem)(void *arg, const char *line),
                           void (*progress)(void *arg, uint64_t rows), void *arg,
                           struct verify_result *ret_result, struct err *err)
{
    *ret_result = (struct verify_result){0};
    struct verify v = {.reader = r,
                       .problem = problem,
                       .progress = progress,
                       .arg = arg,
                       .result = ret_result,
                       .arena = arena_new(ARENA_FIRST_BYTES)};
    for (size_t i = 0; verify_rules[i]; i++) {
        MUST(i < VERIFY_RULES_MAX);
        v.selves[i] = arena_alloc(v.arena, verify_rules[i]->bytes);
    }
    enum err_code code = run_passes(&v, err);
    for (size_t i = 0; verify_rules[i]; i++)
        if (verify_rules[i]->end)
            verify_rules[i]->end(v.selves[i]);
    arena_free(v.arena);
    return code;
}
