/* The picture of a graph, and a run drawn with it: what people see in `weir run watch`. */
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "cli/dag_layout.h"
#include "cli/run_picture.h"
#include "cli/table.h"

#include "base/banned.h"

enum { NAME_MAX_BYTES = 16, PLENTY = 1000 };

/* "a b<a c<a,b": single words with their dependencies. */
struct graph {
    struct arena *arena;
    struct str names[64];
    struct dag_node nodes[64];
    size_t count;
};

static uint32_t number_of(const struct graph *g, struct str name)
{
    for (size_t i = 0; i < g->count; i++)
        if (str_equal(g->names[i], name))
            return (uint32_t)i;
    fail_msg("no node %.*s", STR_ARG(name));
    return 0;
}

static struct graph read_graph(struct arena *a, const char *text)
{
    struct graph g = {.arena = a};
    for (int pass = 0; pass < 2; pass++) {
        struct str rest = str_of(text);
        for (size_t i = 0; rest.len; i++) {
            struct str names = str_cut(&rest, ' ');
            struct str name = str_cut(&names, '<');
            if (!pass) {
                g.names[g.count] = name;
                g.nodes[g.count++].columns = name.len;
                continue;
            }
            uint32_t *numbers = ARENA_ARRAY(a, uint32_t, names.len + 1);
            while (names.len)
                numbers[g.nodes[i].dependency_count++] = number_of(&g, str_cut(&names, ','));
            g.nodes[i].dependencies = numbers;
        }
    }
    return g;
}

/* The picture as text, lines without blanks at their end. NULL: it does not fit. */
static const char *drawn(const struct graph *g, size_t rows, size_t columns)
{
    struct strbuf out CLEANUP(strbuf_free) = {0};
    struct dag_picture p;
    if (!dag_layout(g->arena, g->nodes, g->count, rows, columns, &p))
        return NULL;
    for (size_t row = 0; row < p.rows; row++) {
        size_t end = out.len;
        for (size_t column = 0; column < p.columns;) {
            size_t node = 0;
            while (node < g->count && (p.places[node].row != row || p.places[node].column != column))
                node++;
            uint8_t sides = p.lines[row * p.columns + column];
            if (node < g->count) {
                assert_int_equal(sides, 0); /* no line runs through a label */
                strbuf_add_str(&out, g->names[node]);
                column += g->names[node].len;
            } else {
                strbuf_add_text(&out, dag_glyph(sides));
                column++;
            }
            if (node < g->count || sides)
                end = out.len;
        }
        out.len = end;
        strbuf_add_char(&out, '\n');
    }
    return arena_copy(g->arena, out.ptr, out.len);
}

static void assert_drawn(const char *text, const char *expected)
{
    struct arena *a = arena_new(65536);
    struct graph g = read_graph(a, text);
    const char *found = drawn(&g, PLENTY, PLENTY);
    assert_non_null(found);
    assert_string_equal(found, expected);
    arena_free(a);
}

TEST(a_single_step_is_its_name)
{
    assert_drawn("only", "only\n");
}

TEST(a_chain_is_a_line)
{
    assert_drawn("a bb<a c<bb", "a ─── bb ─── c\n");
}

TEST(steps_without_dependencies_stand_below_each_other)
{
    assert_drawn("a b c", "a\nb\nc\n");
}

TEST(a_diamond_opens_and_closes)
{
    assert_drawn("extract clean<extract rank<extract publish<clean,rank", "extract ─┬─ clean ─┬─ publish\n"
                                                                          "         └─ rank ──┘\n");
}

TEST(a_fan_has_its_ends_in_the_middle)
{
    assert_drawn("s a<s b<s c<s e<a,b,c", "   ┌─ a ─┐\n"
                                          "s ─┼─ b ─┼─ e\n"
                                          "   └─ c ─┘\n");
}

TEST(the_order_in_the_plan_does_not_matter)
{
    assert_drawn("c<b b<a a", "a ─── b ─── c\n");
}

TEST(a_line_passes_a_layer_in_a_row_of_its_own)
{
    assert_drawn("a b<a c<a,b", "a ─┬─ b ─┬─ c\n"
                                "   └─────┘\n");
}

/* a leads to x alone: the stroke of b has no arm to it. */
TEST(a_line_that_joins_from_the_side_leads_nobody_back)
{
    assert_drawn("a b x<a,b y<b", "a ──┌─ x\n"
                                  "b ──┴─ y\n");
}

TEST(lines_that_cross_do_not_join)
{
    assert_drawn("a b c x<a,b y<b,c z<a,c", "a ─┐\n"
                                            "   ├┌── x\n"
                                            "b ─│┤\n"
                                            "   └│┌─ z\n"
                                            "c ──│┤\n"
                                            "    └└─ y\n");
}

/* ---- every line leads where it should: read the picture back ---- */

struct reader {
    const struct graph *g;
    struct dag_picture p;
    bool *seen; /* cells, by the side they were entered from */
    bool reached[64];
};

static void walk(struct reader *r, size_t row, size_t column, uint8_t from);

static void leave(struct reader *r, size_t row, size_t column, uint8_t by)
{
    if (by == DAG_RIGHT)
        walk(r, row, column + 1, DAG_LEFT);
    else if (by == DAG_UP)
        walk(r, row - 1, column, DAG_DOWN);
    else if (by == DAG_DOWN)
        walk(r, row + 1, column, DAG_UP);
}

/* Lines are read as dag_layout.h says: to the right, up and down, never back to the left. */
static void walk(struct reader *r, size_t row, size_t column, uint8_t from)
{
    static const uint8_t ways[] = {DAG_RIGHT, DAG_UP, DAG_DOWN};
    size_t cell = row * r->p.columns + column;
    if (column >= r->p.columns || row >= r->p.rows)
        return;
    for (size_t i = 0; i < r->g->count; i++)
        if (r->p.places[i].row == row && r->p.places[i].column == column + 1 && from == DAG_LEFT &&
            !r->p.lines[cell])
            r->reached[i] = true; /* over the blank before a label */
    uint8_t sides = r->p.lines[cell];
    if (from == DAG_LEFT && sides && !(sides & DAG_LEFT)) { /* no arm to us: we only pass */
        walk(r, row, column + 1, DAG_LEFT);
        return;
    }
    if (!(sides & from) || r->seen[cell * 16 + from])
        return;
    r->seen[cell * 16 + from] = true;
    for (size_t i = 0; i < LENGTH_OF(ways); i++)
        if (sides & ways[i] && ways[i] != from)
            leave(r, row, column, ways[i]);
}

/* All steps that a line from this one leads to. */
static void follow(const struct graph *g, const struct dag_picture *p, size_t node, bool reached[64])
{
    struct reader r = {.g = g, .p = *p};
    r.seen = ARENA_ARRAY(g->arena, bool, p->rows * p->columns * 16);
    walk(&r, p->places[node].row, p->places[node].column + g->nodes[node].columns + 1, DAG_LEFT);
    memcpy(reached, r.reached, sizeof r.reached);
}

static bool depends_on(const struct graph *g, size_t node, size_t other)
{
    for (size_t i = 0; i < g->nodes[node].dependency_count; i++)
        if (g->nodes[node].dependencies[i] == other)
            return true;
    return false;
}

static struct graph random_graph(struct arena *a, unsigned *seed)
{
    struct graph g = {.arena = a, .count = 2 + (size_t)rand_r(seed) % 14};
    for (size_t i = 0; i < g.count; i++) {
        g.names[i] = arena_printf(a, "n%zu", i);
        uint32_t *numbers = ARENA_ARRAY(a, uint32_t, i + 1);
        for (size_t k = 0; k < i; k++)
            if (rand_r(seed) % (int)(i + 1) == 0)
                numbers[g.nodes[i].dependency_count++] = (uint32_t)k;
        g.nodes[i].dependencies = numbers;
        g.nodes[i].columns = g.names[i].len;
    }
    return g;
}

/* Following the lines from a step finds its dependents, and nothing else, in graphs of all kinds. */
TEST(every_line_of_a_random_graph_leads_to_a_dependent)
{
    unsigned seed = 20261116;
    for (int round = 0; round < 3000; round++) {
        struct arena *a = arena_new(65536);
        struct graph g = random_graph(a, &seed);
        struct dag_picture p;
        assert_true(dag_layout(a, g.nodes, g.count, PLENTY, PLENTY, &p));
        for (size_t i = 0; i < g.count; i++) {
            bool reached[64];
            follow(&g, &p, i, reached);
            for (size_t k = 0; k < g.count; k++)
                if (depends_on(&g, k, i) != reached[k])
                    fail_msg("round %d: %s line from %zu to %zu in\n%s", round, reached[k] ? "a" : "no", i, k,
                             drawn(&g, PLENTY, PLENTY));
        }
        arena_free(a);
    }
}

/* ---- bounds ---- */

ARENA_TEST(layers_are_the_longest_way_and_a_circle_has_none, a)
{
    struct graph g = read_graph(a, "a b<a c<b d<a,c e");
    const struct dag_node circle[] = {{1, (const uint32_t[]){1}, 1}, {1, (const uint32_t[]){0}, 1}};
    const struct dag_node unknown[] = {{1, (const uint32_t[]){7}, 1}};
    uint32_t layers[8];
    struct dag_picture p;
    assert_int_equal(dag_layers(a, g.nodes, g.count, layers), 4);
    assert_int_equal(layers[0], 0);
    assert_int_equal(layers[3], 3);
    assert_int_equal(layers[4], 0);
    assert_int_equal(dag_layers(a, circle, 2, layers), 0);
    assert_int_equal(dag_layers(a, unknown, 1, layers), 0);
    assert_false(dag_layout(a, circle, 2, PLENTY, PLENTY, &p));
    assert_false(dag_layout(a, circle, 0, PLENTY, PLENTY, &p));
}

ARENA_TEST(what_is_too_wide_or_too_tall_is_no_picture, a)
{
    struct graph chain = read_graph(a, "a b<a c<b"), fan = read_graph(a, "a b c d");
    assert_non_null(drawn(&chain, 1, 13));
    assert_null(drawn(&chain, 1, 12));
    assert_non_null(drawn(&fan, 4, 1));
    assert_null(drawn(&fan, 3, 80));
}

/* ---- the run around it ---- */

static struct picture_step *fan_of(struct arena *a, size_t wide, size_t *ret_count)
{
    size_t count = wide + 2;
    struct picture_step *s = ARENA_ARRAY(a, struct picture_step, count);
    uint32_t *all = ARENA_ARRAY(a, uint32_t, wide), *first = ARENA_ARRAY(a, uint32_t, 1);
    for (size_t i = 0; i < count; i++) {
        s[i] = (struct picture_step){
            .id = arena_printf(a, "s%zu", i), .dependencies = first, .dependency_count = 1};
        if (i && i < count - 1)
            all[i - 1] = (uint32_t)i;
    }
    s[0].dependency_count = 0;
    s[count - 1].dependencies = all;
    s[count - 1].dependency_count = wide;
    *ret_count = count;
    return s;
}

static size_t lines_in(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void assert_fits(const char *text, size_t columns)
{
    struct str rest = str_of(text);
    while (rest.len)
        assert_in_range(text_columns(str_cut(&rest, '\n')), 0, columns);
}

ARENA_TEST(fifty_wide_is_a_graph_on_a_tall_terminal_and_a_list_on_a_small_one, a)
{
    struct strbuf tall CLEANUP(strbuf_free) = {0}, small CLEANUP(strbuf_free) = {0};
    struct picture p = {.run_id = STR("r1"), .plan = STR("fan 1"), .took = STR(""), .graph = true};
    struct picture_step *s = fan_of(a, 50, &p.count);
    p.steps = s;
    p.status = RUN_RUNNING;
    s[0].status = STEP_SUCCESS;
    s[40].status = STEP_RUNNING;
    assert_int_equal(picture_write(a, &p, 60, 80, false, &tall), 53);
    assert_non_null(strstr(tall.ptr, "├─ ● s40 ─┤"));
    assert_non_null(strstr(tall.ptr, "1 SUCCESS  1 RUNNING  50 PENDING"));
    assert_int_equal(picture_write(a, &p, 20, 80, false, &small), 20);
    assert_int_equal(lines_in(small.ptr), 20);
    assert_non_null(strstr(small.ptr, "● s40\n"));
    assert_non_null(strstr(small.ptr, "… and 36 more\n"));
    assert_null(strstr(small.ptr, "─"));
}

ARENA_TEST(ten_thousand_steps_are_a_summary_and_the_urgent_ones, a)
{
    struct strbuf out CLEANUP(strbuf_free) = {0}, sum CLEANUP(strbuf_free) = {0};
    struct picture p = {.run_id = STR("r1"), .plan = STR("fan 1"), .took = STR("2.000 s"), .graph = true};
    struct picture_step *s = fan_of(a, 9998, &p.count);
    p.steps = s;
    p.status = RUN_RUNNING;
    s[0].status = STEP_SUCCESS;
    s[9000].status = STEP_FAILED;
    s[9000].note = STR("work_failed: by\033[2J design");
    s[9001].status = STEP_RUNNING;
    s[9001].attempt = 2;
    assert_int_equal(picture_write(a, &p, 24, 60, false, &out), 24);
    assert_fits(out.ptr, 60);
    assert_non_null(strstr(out.ptr, "✗ s9000\n"));
    assert_non_null(strstr(out.ptr, "● s9001 ×2\n"));
    assert_non_null(strstr(out.ptr, "work_failed: by?[2J design"));
    picture_summary(&p, &sum);
    assert_string_equal(sum.ptr, "1 SUCCESS, 1 FAILED, 1 RUNNING, 9997 PENDING");
}

ARENA_TEST(a_run_that_waits_says_for_what, a)
{
    struct strbuf out CLEANUP(strbuf_free) = {0}, busy CLEANUP(strbuf_free) = {0};
    struct strbuf paused CLEANUP(strbuf_free) = {0};
    struct picture p = {.run_id = STR("r1"), .plan = STR("fan 1"), .took = STR(""), .graph = true};
    struct picture_step *s = fan_of(a, 2, &p.count);
    p.steps = s;
    p.status = RUN_RUNNING;
    s[0].status = s[1].status = STEP_SUCCESS;
    s[2] = (struct picture_step){.id = s[2].id, .status = STEP_FAILED, .stuck = true};
    picture_write(a, &p, 24, 100, false, &out);
    assert_non_null(strstr(out.ptr, "weir run signal r1 retry-step --step s2\n"));
    s[1].status = STEP_RUNNING;
    picture_write(a, &p, 24, 100, false, &busy);
    assert_null(strstr(busy.ptr, "retry-step"));
    p.status = RUN_PAUSED;
    picture_write(a, &p, 24, 100, false, &paused);
    assert_non_null(strstr(paused.ptr, "weir run signal r1 resume\n"));
}

ARENA_TEST(colour_is_there_only_when_asked_for, a)
{
    struct strbuf plain CLEANUP(strbuf_free) = {0}, colour CLEANUP(strbuf_free) = {0};
    struct picture_step only = {.id = STR("only"), .status = STEP_SUCCESS, .attempt = 1};
    struct picture p = {.run_id = STR("r1"),
                        .plan = STR("p 1"),
                        .took = STR(""),
                        .status = RUN_COMPLETED,
                        .steps = &only,
                        .count = 1,
                        .graph = true};
    picture_write(a, &p, 24, 80, false, &plain);
    assert_null(strchr(plain.ptr, '\033'));
    assert_string_equal(plain.ptr, "p 1  COMPLETED  run r1\n1 SUCCESS\n\n✓ only\n");
    picture_write(a, &p, 24, 80, true, &colour);
    assert_non_null(strstr(colour.ptr, "\033[32m✓ only\033[0m"));
}
