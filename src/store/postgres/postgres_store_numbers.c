/* Store numbers, and which other clients of the database there are. For copying (store/copy.h). */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

/* The sequence gives blocks of numbers and is never set back; the number it was set to is not given out. */
static void send_next_chunk(struct pg_link *l, int64_t next)
{
    params_int(link_params(l), next);
    link_send_sql(l,
                  "SELECT setval('log_numbers',greatest($1::bigint,(SELECT last_value FROM log_numbers)))");
}

void postgres_send_numbers(struct postgres_store *s, const struct change_set *c)
{
    struct pg_link *l = &s->link;
    for (size_t i = 0; i < c->number_count; i++) {
        const struct store_number *m = &c->numbers[i];
        if (strcmp(m->name, STORE_NUMBER_NEXT_CHUNK) == 0) {
            send_next_chunk(l, m->value);
            continue;
        }
        struct pg_params *p = link_params(l);
        params_text(p, str_of(m->name));
        if (m->value)
            params_int(p, m->value);
        link_send_sql(l, m->value ? "INSERT INTO marks(name,value) VALUES($1::text,$2::bigint) "
                                    "ON CONFLICT(name) DO UPDATE SET value=excluded.value"
                                  : "DELETE FROM marks WHERE name=$1::text");
    }
}

static enum err_code read_number(struct pg_reader *r, const char *sql, int64_t *ret, struct err *err)
{
    size_t n = link_send_sql(&r->link, sql);
    if (link_run(&r->link, "marks", err) != ERR_OK)
        return err->code;
    const PGresult *found = link_result(&r->link, n);
    *ret = PQntuples(found) ? value_int(found, 0, 0) : 0;
    link_clear(&r->link);
    return ERR_OK;
}

enum err_code postgres_reader_number(struct reader *base, const char *name, int64_t *ret_value,
                                     struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    struct pg_params *p = link_params(&r->link);
    if (strcmp(name, STORE_NUMBER_NEXT_CHUNK) == 0)
        return read_number(
            r,
            "SELECT greatest((SELECT max(g)+1 FROM log),last_value+CASE WHEN is_called THEN 4096 "
            "ELSE 0 END) FROM log_numbers",
            ret_value, err);
    params_text(p, str_of(name));
    return read_number(r, "SELECT value FROM marks WHERE name=$1::text", ret_value, err);
}

/* Lanes whose connection is there: also that of a process that is stopped. One that just lost its connection
 * and will be back in a moment is not seen. */
enum err_code postgres_reader_others(struct reader *base, int64_t *ret_count, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    params_int(link_params(&r->link), postgres_node());
    return read_number(r,
                       "SELECT count(*) FROM lanes l WHERE node<>$1::bigint AND EXISTS(SELECT 1 FROM "
                       "pg_stat_activity a WHERE a.pid=l.pid AND a.backend_start=l.started)",
                       ret_count, err);
}
