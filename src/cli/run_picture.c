#include "cli/run_picture.h"

#include <inttypes.h>

#include "base/must.h"
#include "cli/dag_layout.h"
#include "cli/table.h"

#include "base/banned.h"

enum { LABEL_COLUMNS_MAX = 32, FAULTS_MAX = 3, INDENT = 2, INDENT_SHARE = 3, NARROWEST = 20 };

/* A line is begun, gets its parts, and is ended; parts that do not fit are cut off. */
struct canvas {
    struct strbuf *out;
    size_t columns, left; /* of the line */
    size_t lines;
    bool colour;
};

static void put(struct canvas *c, struct str text, enum tone tone)
{
    struct str shown = text_cut(text, c->left);
    c->left -= text_columns(shown);
    if (!shown.len)
        return;
    strbuf_add_text(c->out, tone_start(tone, c->colour));
    strbuf_add_str(c->out, shown);
    strbuf_add_text(c->out, tone_end(tone, c->colour));
}

static void end_line(struct canvas *c)
{
    strbuf_add_char(c->out, '\n');
    c->left = c->columns;
    c->lines++;
}

static const char *symbol_of(enum step_status s)
{
    switch (s) {
    case STEP_PENDING:
        return "○";
    case STEP_RUNNING:
        return "●";
    case STEP_SUCCESS:
        return "✓";
    case STEP_FAILED:
        return "✗";
    case STEP_SKIPPED:
        return "»";
    case STEP_STATUS_COUNT:
        break;
    }
    return "?";
}

static enum tone tone_of_step(enum step_status s)
{
    return tone_of_state(str_of(step_status_text(s)));
}

/* "✓ extract", "● rank ×2" */
static struct str label_of(struct arena *a, const struct picture_step *s)
{
    struct str id = text_harmless(a, s->id), shown = text_cut(id, LABEL_COLUMNS_MAX);
    const char *ellipsis = shown.len < id.len ? "…" : "";
    if (s->attempt > 1)
        return arena_printf(a, "%s %.*s%s ×%" PRId64, symbol_of(s->status), STR_ARG(shown), ellipsis,
                            s->attempt);
    return arena_printf(a, "%s %.*s%s", symbol_of(s->status), STR_ARG(shown), ellipsis);
}

/* ---- head ---- */

static void count_steps(const struct picture *p, size_t counts[STEP_STATUS_COUNT])
{
    memset(counts, 0, STEP_STATUS_COUNT * sizeof *counts);
    for (size_t i = 0; i < p->count; i++)
        counts[p->steps[i].status]++;
}

static const enum step_status summary_order[] = {STEP_SUCCESS, STEP_SKIPPED, STEP_FAILED, STEP_RUNNING,
                                                 STEP_PENDING};

void picture_summary(const struct picture *p, struct strbuf *out)
{
    size_t counts[STEP_STATUS_COUNT];
    const char *between = "";
    count_steps(p, counts);
    for (size_t i = 0; i < LENGTH_OF(summary_order); i++) {
        enum step_status s = summary_order[i];
        if (!counts[s])
            continue;
        strbuf_addf(out, "%s%zu %s", between, counts[s], step_status_text(s));
        between = ", ";
    }
}

static void write_head(struct arena *a, const struct picture *p, struct canvas *c)
{
    size_t counts[STEP_STATUS_COUNT];
    struct str status = str_of(run_status_text(p->status));
    put(c, text_harmless(a, p->plan), TONE_PLAIN);
    put(c, STR("  "), TONE_PLAIN);
    put(c, status, tone_of_state(status));
    if (p->took.len)
        put(c, STR("  "), TONE_PLAIN);
    put(c, p->took, TONE_PLAIN);
    put(c, STR("  run "), TONE_DIM);
    put(c, text_harmless(a, p->run_id), TONE_DIM);
    end_line(c);
    count_steps(p, counts);
    for (size_t i = 0; i < LENGTH_OF(summary_order); i++) {
        enum step_status s = summary_order[i];
        if (counts[s] && c->left < c->columns)
            put(c, STR("  "), TONE_PLAIN);
        if (counts[s])
            put(c, arena_printf(a, "%zu %s", counts[s], step_status_text(s)), tone_of_step(s));
    }
    end_line(c);
    end_line(c);
}

/* ---- the graph ---- */

static void write_graph(const struct picture *p, const struct dag_picture *g, const struct str *labels,
                        uint32_t *owner, struct canvas *c)
{
    for (size_t i = 0; i < p->count; i++)
        owner[g->places[i].row * g->columns + g->places[i].column] = (uint32_t)i + 1;
    for (size_t row = 0; row < g->rows; row++) {
        size_t blanks = 0;
        for (size_t column = 0; column < g->columns;) {
            size_t cell = row * g->columns + column;
            uint32_t node = owner[cell];
            if (!node && !g->lines[cell]) {
                blanks++;
                column++;
                continue;
            }
            for (; blanks; blanks--)
                put(c, STR(" "), TONE_PLAIN);
            if (node) {
                put(c, labels[node - 1], tone_of_step(p->steps[node - 1].status));
                column += text_columns(labels[node - 1]);
            } else {
                put(c, str_of(dag_glyph(g->lines[cell])), TONE_DIM);
                column++;
            }
        }
        end_line(c);
    }
}

/* False: it does not fit. */
static bool try_graph(struct arena *a, const struct picture *p, size_t rows, struct canvas *c)
{
    struct dag_picture g;
    if (!p->graph || p->count > DAG_NODES_MAX || !rows)
        return false;
    struct dag_node *nodes = ARENA_ARRAY(a, struct dag_node, p->count + 1);
    struct str *labels = ARENA_ARRAY(a, struct str, p->count + 1);
    for (size_t i = 0; i < p->count; i++) {
        labels[i] = label_of(a, &p->steps[i]);
        nodes[i] = (struct dag_node){text_columns(labels[i]), p->steps[i].dependencies,
                                     p->steps[i].dependency_count};
    }
    if (!dag_layout(a, nodes, p->count, rows, c->columns, &g))
        return false;
    write_graph(p, &g, labels, ARENA_ARRAY(a, uint32_t, g.rows * g.columns + 1), c);
    return true;
}

/* ---- the list ---- */

static bool is_ready(const struct picture *p, const struct picture_step *s)
{
    for (size_t i = 0; i < s->dependency_count; i++) {
        enum step_status needed = p->steps[s->dependencies[i]].status;
        if (needed != STEP_SUCCESS && needed != STEP_SKIPPED)
            return false;
    }
    return true;
}

/* The order in which steps are shown when there is no room for all: failed, running, next, done; then the
 * rest. */
enum { URGENCY_FAILED, URGENCY_RUNNING, URGENCY_NEXT, URGENCY_OVER, URGENCY_LATER, URGENCIES };

static int urgency(const struct picture *p, const struct picture_step *s)
{
    switch (s->status) {
    case STEP_FAILED:
        return URGENCY_FAILED;
    case STEP_RUNNING:
        return URGENCY_RUNNING;
    case STEP_PENDING:
        return p->graph && is_ready(p, s) ? URGENCY_NEXT : URGENCY_LATER;
    case STEP_SUCCESS:
    case STEP_SKIPPED:
    case STEP_STATUS_COUNT:
        break;
    }
    return URGENCY_OVER;
}

/* `room` of them, the urgent first; of what was, the last. Gives how many. */
static size_t choose(const struct picture *p, size_t room, uint32_t *ret_chosen)
{
    size_t n = 0;
    for (int level = 0; level < URGENCIES && n < room; level++)
        for (size_t k = 0; k < p->count && n < room; k++) {
            size_t i = level == URGENCY_OVER ? p->count - 1 - k : k;
            if (urgency(p, &p->steps[i]) == level)
                ret_chosen[n++] = (uint32_t)i;
        }
    return n;
}

/* By layer, then as the plan has them. */
static void sort_chosen(const uint32_t *layers, uint32_t *chosen, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t moved = chosen[i];
        size_t at = i;
        for (; at > 0; at--) {
            uint32_t other = chosen[at - 1], layer = layers[other];
            if (layer == layers[moved] ? other < moved : layer < layers[moved])
                break;
            chosen[at] = other;
        }
        chosen[at] = moved;
    }
}

static void write_step(struct arena *a, const struct picture_step *s, size_t indent, struct canvas *c)
{
    for (size_t i = 0; i < indent; i++)
        put(c, STR(" "), TONE_PLAIN);
    put(c, label_of(a, s), tone_of_step(s->status));
    end_line(c);
}

static void write_list(struct arena *a, const struct picture *p, size_t rows, struct canvas *c)
{
    struct dag_node *nodes = ARENA_ARRAY(a, struct dag_node, p->count + 1);
    uint32_t *layers = ARENA_ARRAY(a, uint32_t, p->count + 1);
    size_t widest = c->columns / INDENT_SHARE;
    for (size_t i = 0; i < p->count; i++)
        nodes[i] = (struct dag_node){1, p->steps[i].dependencies, p->steps[i].dependency_count};
    if (p->graph && !dag_layers(a, nodes, p->count, layers))
        memset(layers, 0, p->count * sizeof *layers);
    size_t room = p->count <= rows ? p->count : rows - 1;
    uint32_t *chosen = ARENA_ARRAY(a, uint32_t, room + 1);
    size_t shown = choose(p, room, chosen);
    sort_chosen(layers, chosen, shown);
    for (size_t i = 0; i < shown; i++) {
        size_t indent = (size_t)(layers[chosen[i]] - layers[chosen[0]]) * INDENT;
        write_step(a, &p->steps[chosen[i]], indent < widest ? indent : widest, c);
    }
    if (shown < p->count) {
        put(c, arena_printf(a, "… and %zu more", p->count - shown), TONE_DIM);
        end_line(c);
    }
}

/* ---- what to do ---- */

static const struct picture_step *first_stuck(const struct picture *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->steps[i].stuck)
            return &p->steps[i];
    return NULL;
}

static bool goes_on(const struct picture *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct picture_step *s = &p->steps[i];
        if (s->status == STEP_RUNNING || (s->status == STEP_PENDING && p->graph && is_ready(p, s)))
            return true;
    }
    return false;
}

static struct str hint_of(struct arena *a, const struct picture *p)
{
    const struct picture_step *s = first_stuck(p);
    if (p->status == RUN_PAUSED)
        return arena_printf(a, "Paused. Go on with: weir run signal %.*s resume", STR_ARG(p->run_id));
    if (p->status == RUN_RUNNING && s && !goes_on(p))
        return arena_printf(a, "Waits for you: weir run signal %.*s retry-step --step %.*s",
                            STR_ARG(p->run_id), STR_ARG(s->id));
    return STR_ABSENT;
}

static size_t faults_of(const struct picture *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count && n < FAULTS_MAX; i++)
        n += p->steps[i].status == STEP_FAILED && p->steps[i].note.ptr;
    return n;
}

static void write_foot(struct arena *a, const struct picture *p, struct str hint, struct canvas *c)
{
    size_t faults = faults_of(p);
    if (faults || hint.ptr)
        end_line(c);
    for (size_t i = 0; i < p->count && faults; i++) {
        const struct picture_step *s = &p->steps[i];
        if (s->status != STEP_FAILED || !s->note.ptr)
            continue;
        put(c, label_of(a, s), TONE_BAD);
        put(c, STR(": "), TONE_PLAIN);
        put(c, text_harmless(a, s->note), TONE_PLAIN);
        end_line(c);
        faults--;
    }
    if (hint.ptr) {
        put(c, text_harmless(a, hint), TONE_WARN);
        end_line(c);
    }
}

size_t picture_write(struct arena *a, const struct picture *p, size_t rows, size_t columns, bool colour,
                     struct strbuf *out)
{
    enum { HEAD_LINES = 3 };
    columns = columns > NARROWEST ? columns : NARROWEST;
    struct canvas c = {.out = out, .columns = columns, .left = columns, .colour = colour};
    struct str hint = hint_of(a, p);
    size_t foot = faults_of(p) + (hint.ptr != NULL);
    foot += foot > 0;
    size_t room = rows > HEAD_LINES + foot ? rows - HEAD_LINES - foot : 1;
    write_head(a, p, &c);
    if (!try_graph(a, p, room, &c))
        write_list(a, p, room, &c);
    write_foot(a, p, hint, &c);
    return c.lines;
}
