/* Many rows by key: a statement for each table, however many there are. Their order is that of their keys, so
 * that batches lock them in one order. */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

static void send_group(struct pg_link *l, const struct load_row *rows, const struct table *t, bool locks,
                       struct pg_row_groups *g)
{
    size_t count = g->count[t->number], *numbers = g->numbers[t->number];
    struct pg_params *p = link_params(l);
    for (unsigned k = 0; k < t->key_count; k++) {
        params_array(p, t->columns[k].type, count);
        for (size_t i = 0; i < count; i++)
            params_add_column(p, &t->columns[k], rows[numbers[i]].row);
        params_array_end(p);
    }
    g->result[t->number] = link_send(l, pg_of_table(t, locks && pg_is_locked(t) ? PG_ROWS_LOCKED : PG_ROWS));
}

void postgres_send_rows(struct pg_link *l, const struct load_row *rows, size_t count, bool locks,
                        struct pg_row_groups *g, struct arena *scratch)
{
    *g = (struct pg_row_groups){0};
    for (size_t i = 0; i < count; i++)
        g->count[rows[i].table->number]++;
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        if (g->count[t])
            g->numbers[t] = ARENA_ARRAY(scratch, size_t, g->count[t]);
        g->count[t] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t t = rows[i].table->number;
        g->numbers[t][g->count[t]++] = i;
    }
    for (size_t t = 0; t < TABLE_COUNT; t++)
        if (g->count[t])
            send_group(l, rows, tables[t], locks, g);
}

static void take_group(const struct pg_link *l, struct load_row *rows, const struct table *t,
                       const struct pg_row_groups *g, struct arena *a)
{
    const PGresult *r = link_result(l, g->result[t->number]);
    for (int i = 0; i < PQntuples(r); i++) {
        size_t n = (size_t)value_int(r, i, 0) - 1;
        MUST(n < g->count[t->number]);
        struct load_row *row = &rows[g->numbers[t->number][n]];
        value_row(r, i, 1, t, row->row, a, true);
        row->found = true;
    }
}

void postgres_take_rows(struct pg_link *l, struct load_row *rows, size_t count, const struct pg_row_groups *g,
                        struct arena *a)
{
    for (size_t i = 0; i < count; i++)
        rows[i].found = false;
    for (size_t t = 0; t < TABLE_COUNT; t++)
        if (g->count[t])
            take_group(l, rows, tables[t], g, a);
}
