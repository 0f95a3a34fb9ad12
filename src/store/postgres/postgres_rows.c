/* Many rows by key: a statement for each table, however many there are. Their order is that of their keys, so
 * that batches lock them in one order. */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

static enum pg_row_statement kind_of(const struct table *t, const struct pg_row_groups *g)
{
    if (g->locks && pg_is_locked(t))
        return PG_ROWS_LOCKED;
    return g->bytes_max ? PG_ROWS_SOME : PG_ROWS;
}

static void send_group(struct pg_link *l, const struct load_row *rows, const struct table *t,
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
    g->kind[t->number] = kind_of(t, g);
    if (g->kind[t->number] == PG_ROWS_SOME)
        params_int(p, g->bytes_max);
    g->result[t->number] = link_send(l, pg_of_table(t, g->kind[t->number]));
}

void postgres_send_rows(struct pg_link *l, const struct load_row *rows, size_t count, struct pg_row_groups *g,
                        struct arena *scratch)
{
    *g = (struct pg_row_groups){.locks = g->locks, .bytes_max = g->bytes_max};
    for (size_t i = 0; i < count; i++)
        g->count[rows[i].table->number]++;
    for (size_t t = 0; t < table_count; t++) {
        if (g->count[t])
            g->numbers[t] = ARENA_ARRAY(scratch, size_t, g->count[t]);
        g->count[t] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t t = rows[i].table->number;
        g->numbers[t][g->count[t]++] = i;
    }
    for (size_t t = 0; t < table_count; t++)
        if (g->count[t])
            send_group(l, rows, tables[t], g);
}

static void take_group(const struct pg_link *l, struct load_row *rows, const struct table *t,
                       const struct pg_row_groups *g, struct arena *a)
{
    const PGresult *r = link_result(l, g->result[t->number]);
    for (int i = 0; i < PQntuples(r); i++) {
        size_t n = (size_t)value_int(r, i, 0) - 1;
        MUST(n < g->count[t->number]);
        struct load_row *row = &rows[g->numbers[t->number][n]];
        bool some = g->kind[t->number] == PG_ROWS_SOME;
        row->later = some && !value_int(r, i, 1);
        if (row->later)
            continue;
        value_row(r, i, some ? 2 : 1, t, row->row, a, true);
        row->found = true;
    }
}

void postgres_take_rows(struct pg_link *l, struct load_row *rows, size_t count, const struct pg_row_groups *g,
                        struct arena *a)
{
    for (size_t i = 0; i < count; i++)
        rows[i].found = rows[i].later = false;
    for (size_t t = 0; t < table_count; t++)
        if (g->count[t])
            take_group(l, rows, tables[t], g, a);
}
