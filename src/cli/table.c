#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/must.h"
#include "lifecycle/job_lifecycle.h"

#include "base/banned.h"

enum { GAP = 2, COLUMN_MIN = 6 };
#define ELLIPSIS "\xe2\x80\xa6"

struct cell {
    struct str text;
    size_t columns;
    enum tone tone;
};

struct text_table {
    struct arena *arena; /* of the cells' texts; emptied by each print */
    const char *headings[TEXT_TABLE_COLUMNS_MAX];
    size_t widths[TEXT_TABLE_COLUMNS_MAX];
    bool right[TEXT_TABLE_COLUMNS_MAX], whole[TEXT_TABLE_COLUMNS_MAX];
    bool headed;
    size_t columns;
    struct cell *cells;
    size_t count, capacity;
};

/* ---- width of text ---- */

static uint32_t code_point(struct str s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (len == 1)
        return p[0];
    uint32_t c = p[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3Fu);
    return c;
}

static bool in_ranges(uint32_t c, const uint32_t (*ranges)[2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

/* Enough for names: combining marks take no column, East Asian and emoji blocks take two. */
static size_t columns_of(uint32_t c)
{
    static const uint32_t none[][2] = {{0x300, 0x36F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};
    static const uint32_t two[][2] = {
        {0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
        {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    if (in_ranges(c, none, LENGTH_OF(none)))
        return 0;
    return in_ranges(c, two, LENGTH_OF(two)) ? 2 : 1;
}

size_t text_columns(struct str text)
{
    size_t columns = 0;
    while (text.len) {
        size_t n = str_utf8_sequence(text);
        columns += n ? columns_of(code_point(text, n)) : 1;
        n = n ? n : 1;
        text.ptr += n;
        text.len -= n;
    }
    return columns;
}

struct str text_cut(struct str text, size_t columns)
{
    size_t len = 0, used = 0;
    while (len < text.len) {
        struct str rest = {text.ptr + len, text.len - len};
        size_t n = str_utf8_sequence(rest);
        size_t more = n ? columns_of(code_point(rest, n)) : 1;
        if (used + more > columns)
            break;
        used += more;
        len += n ? n : 1;
    }
    return (struct str){text.ptr, len};
}

/* A control character (C0, DEL, C1), or one that turns the writing direction. */
static bool steers_terminal(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

struct str text_harmless(struct arena *a, struct str text)
{
    char *out = arena_alloc(a, text.len + 1);
    size_t len = 0;
    while (text.len) {
        size_t n = str_utf8_sequence(text);
        if (!n || steers_terminal(code_point(text, n))) {
            out[len++] = '?';
        } else {
            memcpy(out + len, text.ptr, n);
            len += n;
        }
        n = n ? n : 1;
        text.ptr += n;
        text.len -= n;
    }
    return (struct str){out, len};
}

void text_age(int64_t seconds, char *out, size_t size)
{
    long long s = seconds < 0 ? 0 : seconds;
    if (s < 120)
        snprintf(out, size, "%lld s", s);
    else if (s < 7200)
        snprintf(out, size, "%lld min", s / 60);
    else
        snprintf(out, size, "%lld h", s / 3600);
}

/* ---- building ---- */

struct text_table *text_table_new(const char *const *headings, size_t columns)
{
    MUST(columns > 0 && columns <= TEXT_TABLE_COLUMNS_MAX);
    struct text_table *t = must_alloc(sizeof *t);
    t->arena = arena_new(4096);
    t->columns = columns;
    t->headed = headings == NULL;
    for (size_t i = 0; headings && i < columns; i++) {
        t->right[i] = headings[i][0] == '>';
        t->whole[i] = headings[i][0] == '!';
        t->headings[i] = headings[i] + (t->right[i] || t->whole[i]);
        t->widths[i] = text_columns(str_of(t->headings[i]));
    }
    return t;
}

struct text_table *text_table_free(struct text_table *t)
{
    if (t) {
        arena_free(t->arena);
        free(t->cells);
        free(t);
    }
    return NULL;
}

static void widen(struct text_table *t, size_t column, size_t columns)
{
    if (columns > t->widths[column])
        t->widths[column] = columns;
}

struct text_table *text_table_new_wide(const char *const *headings, const size_t *widths, size_t columns,
                                       bool shows_headings)
{
    struct text_table *t = text_table_new(headings, columns);
    t->headed = !shows_headings;
    for (size_t i = 0; i < columns; i++)
        widen(t, i, widths[i]);
    return t;
}

void text_table_add_tone(struct text_table *t, struct str text, enum tone tone)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 64;
        t->cells = must_realloc(t->cells, t->capacity * sizeof *t->cells);
    }
    struct str safe = text.ptr ? text_harmless(t->arena, text) : STR("-");
    size_t column = t->count % t->columns, columns = text_columns(safe);
    t->cells[t->count++] = (struct cell){safe, columns, tone};
    widen(t, column, columns);
}

void text_table_add(struct text_table *t, struct str text)
{
    text_table_add_tone(t, text, TONE_PLAIN);
}

void text_table_addf(struct text_table *t, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    text_table_add(t, str_of(text));
}

static struct str shown(const struct json *value)
{
    if (!value || value->type == JSON_NULL)
        return STR_ABSENT;
    return value->type == JSON_STRING ? value->text : value->source;
}

void text_table_add_json(struct text_table *t, const struct json *value)
{
    text_table_add(t, shown(value));
}

void text_table_add_member(struct text_table *t, const char *name, const struct json *value)
{
    static const char *const states[] = {"state", "outcome", "status", "decision", "level"};
    enum tone tone = TONE_PLAIN;
    for (size_t i = 0; i < LENGTH_OF(states); i++)
        if (strcmp(name, states[i]) == 0)
            tone = tone_of_state(shown(value));
    text_table_add_tone(t, shown(value), tone);
}

void text_table_pair(struct text_table *t, const char *name, const struct json *value)
{
    text_table_add_tone(t, str_of(name), TONE_DIM);
    text_table_add_member(t, name, value);
}

void text_table_pairs(struct text_table *t, const struct json *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_get(object, names[i]))
            text_table_pair(t, names[i], json_get(object, names[i]));
}

/* ---- printing ---- */

/* The widest column that may still lose something; t->columns when there is none. */
static size_t widest_to_cut(const struct text_table *t, const size_t *widths)
{
    size_t widest = t->columns;
    for (size_t i = 0; i < t->columns; i++)
        if (!t->whole[i] && widths[i] > COLUMN_MIN && (widest == t->columns || widths[i] >= widths[widest]))
            widest = i;
    return widest;
}

static void shrink(const struct text_table *t, size_t width, size_t *widths)
{
    size_t total = (t->columns - 1) * GAP;
    for (size_t i = 0; i < t->columns; i++)
        total += widths[i];
    while (width && total > width) {
        size_t widest = widest_to_cut(t, widths);
        if (widest == t->columns)
            return;
        widths[widest]--;
        total--;
    }
}

/* One row, cell by cell. Blanks are owed until something follows: no line ends in them. */
struct row_printer {
    FILE *out;
    bool colour;
    size_t owed;
};

static void print_cell(const struct text_table *t, struct row_printer *p, const struct cell *c, size_t column,
                       size_t width)
{
    bool cut = c->columns > width;
    struct str text = cut ? text_cut(c->text, width - 1) : c->text;
    size_t blanks = width - (cut ? text_columns(text) + 1 : c->columns);
    if (t->right[column])
        p->owed += blanks;
    if (text.len) {
        fprintf(p->out, "%*s%s%.*s%s%s", (int)p->owed, "", tone_start(c->tone, p->colour), STR_ARG(text),
                cut ? ELLIPSIS : "", tone_end(c->tone, p->colour));
        p->owed = 0;
    }
    p->owed += (t->right[column] ? 0 : blanks) + GAP;
    if (column + 1 == t->columns) {
        fputc('\n', p->out);
        p->owed = 0;
    }
}

void text_table_print(struct text_table *t, FILE *out, size_t width, bool colour)
{
    size_t widths[TEXT_TABLE_COLUMNS_MAX];
    struct row_printer p = {out, colour, 0};
    MUST(t->count % t->columns == 0);
    memcpy(widths, t->widths, sizeof widths);
    shrink(t, width, widths);
    for (size_t i = 0; !t->headed && i < t->columns; i++) {
        struct str text = str_of(t->headings[i]);
        print_cell(t, &p, &(struct cell){text, text_columns(text), TONE_DIM}, i, widths[i]);
    }
    t->headed = true;
    for (size_t i = 0; i < t->count; i++)
        print_cell(t, &p, &t->cells[i], i % t->columns, widths[i % t->columns]);
    t->count = 0;
    arena_reset(t->arena);
}

void text_table_show(struct text_table *t, FILE *out)
{
    text_table_print(t, out, terminal_width(out), terminal_colour(out));
}

void text_table_show_and_free(struct text_table *t)
{
    text_table_show(t, stdout);
    text_table_free(t);
}

/* ---- the terminal ---- */

bool terminal_is(FILE *out)
{
    return isatty(fileno(out)) == 1;
}

static struct winsize terminal_size(FILE *out)
{
    struct winsize size = {0};
    if (!terminal_is(out) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0)
        return (struct winsize){0};
    return size;
}

size_t terminal_width(FILE *out)
{
    return terminal_size(out).ws_col;
}

size_t terminal_height(FILE *out)
{
    return terminal_size(out).ws_row;
}

bool terminal_colour(FILE *out)
{
    const char *off = getenv("NO_COLOR");
    return terminal_is(out) && (!off || !*off);
}

const char *tone_start(enum tone tone, bool colour)
{
    static const char *const codes[TONE_COUNT] = {
        [TONE_PLAIN] = "",        [TONE_GOOD] = "\033[32m", [TONE_BAD] = "\033[31m",
        [TONE_BUSY] = "\033[36m", [TONE_WARN] = "\033[33m", [TONE_DIM] = "\033[2m",
    };
    return colour ? codes[tone] : "";
}

const char *tone_end(enum tone tone, bool colour)
{
    return colour && tone != TONE_PLAIN ? "\033[0m" : "";
}

/* Of runs, steps, decisions, clients and processes, and levels; those that they share with jobs are found
 * there. */
static enum tone tone_of_others(struct str text)
{
    static const struct {
        const char *texts[16];
        enum tone tone;
    } tones[] = {
        {{"COMPLETED", "SUCCESS", "ACCEPTED", "active", "normal", "ok", "running", "ready"}, TONE_GOOD},
        {{"CANCELLED", "REJECTED", "degraded", "shed", "critical", "backoff", "ended", "not_ready"},
         TONE_BAD},
        {{"PAUSED", "REVISION_REQUIRED", "suspended", "deleted"}, TONE_WARN},
        {{"warn", "starting", "stopping"}, TONE_BUSY},
        {{"SKIPPED", "PENDING", "declared", "resting"}, TONE_DIM},
    };
    for (size_t i = 0; i < LENGTH_OF(tones); i++)
        for (const char *const *word = tones[i].texts; *word; word++)
            if (str_is(text, *word))
                return tones[i].tone;
    return TONE_PLAIN;
}

enum tone tone_of_state(struct str text)
{
    enum job_state state;
    if (!text.ptr)
        return TONE_PLAIN;
    if (!job_state_parse(text, &state) && !job_outcome_parse(text, &state))
        return tone_of_others(text);
    if (!job_state_is_final(state))
        return TONE_BUSY;
    return state == JOB_SUCCEEDED ? TONE_GOOD : TONE_BAD;
}
