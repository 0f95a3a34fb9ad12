/* Counters: every commit appends what it adds, the holder of the duties sums it up once a second. Row 0 of
 * client_stats is the sum over all clients. Two holders at once take different deltas and wait for each other
 * at the clients' rows, which both lock in the same order. */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"
#include "store/row_rules.h"

#include "base/banned.h"

enum { FOLD_ROWS = 10000, FOLD_TURNS = 10 };

struct fold {
    struct counts_table clients;
    struct client_counts all;
    int taken;
};

static enum err_code take_deltas(struct pg_link *l, struct fold *f, struct err *err)
{
    link_begin(l);
    params_int(link_params(l), FOLD_ROWS);
    size_t n =
        link_send_sql(l, "DELETE FROM client_deltas WHERE ctid=ANY(ARRAY(SELECT ctid FROM client_deltas "
                         "LIMIT $1::bigint FOR UPDATE SKIP LOCKED)) RETURNING client,counts");
    if (link_run(l, "counters", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, n);
    f->taken = PQntuples(r);
    for (int i = 0; i < f->taken; i++) {
        int64_t client = value_int(r, i, 0);
        if (client <= 0 || client >= CLIENT_NUMBER_MAX)
            continue; /* `weir verify` will miss it */
        struct client_counts *c = counts_of(&f->clients, client);
        counts_add(c, value_bytes(r, i, 1));
        counts_add(&f->all, value_bytes(r, i, 1));
    }
    link_clear(l);
    return ERR_OK;
}

static void params_of_clients(struct pg_params *p, const struct fold *f)
{
    params_array(p, COLUMN_INT, f->clients.made_count + 1);
    params_add_int(p, 0);
    for (size_t i = 0; i < f->clients.made_count; i++)
        params_add_int(p, f->clients.made[i]->client);
    params_array_end(p);
}

static enum err_code add_stored(struct pg_link *l, struct fold *f, struct err *err)
{
    params_of_clients(link_params(l), f);
    size_t n = link_send_sql(l, "SELECT client,counts FROM client_stats WHERE client=ANY($1::bigint[]) "
                                "ORDER BY client FOR UPDATE");
    if (link_run(l, "counters", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, n);
    for (int i = 0; i < PQntuples(r); i++) {
        int64_t client = value_int(r, i, 0);
        counts_add(client ? counts_of(&f->clients, client) : &f->all, value_bytes(r, i, 1));
    }
    link_clear(l);
    return ERR_OK;
}

static enum err_code write_sums(struct pg_link *l, struct fold *f, struct err *err)
{
    struct pg_params *p = link_params(l);
    params_of_clients(p, f);
    params_array(p, COLUMN_BLOB, f->clients.made_count + 1);
    params_add_bytes(p, counts_bytes(&f->all));
    for (size_t i = 0; i < f->clients.made_count; i++)
        params_add_bytes(p, counts_bytes(&f->clients.made[i]->counts));
    params_array_end(p);
    link_send_sql(l, "UPDATE client_stats s SET counts=u.counts FROM unnest($1::bigint[],$2::bytea[]) "
                     "AS u(client,counts) WHERE s.client=u.client");
    link_params(l);
    link_send(l, PG_COMMIT);
    if (link_run(l, "counters", err) != ERR_OK)
        return err->code;
    l->in_transaction = false;
    link_clear(l);
    return ERR_OK;
}

/* A lost answer to its COMMIT does no harm: the next turn begins with what is there. */
enum err_code postgres_fold_counts(struct postgres_store *s, struct err *err)
{
    struct pg_link *l = &s->link;
    enum err_code code = ERR_OK;
    for (int turn = 0; turn < FOLD_TURNS && code == ERR_OK; turn++) {
        struct fold f = {0};
        code = take_deltas(l, &f, err);
        if (code == ERR_OK && f.taken)
            code = add_stored(l, &f, err);
        if (code == ERR_OK && f.taken)
            code = write_sums(l, &f, err);
        counts_free(&f.clients);
        link_rollback(l);
        if (f.taken < FOLD_ROWS)
            break;
    }
    return code;
}
