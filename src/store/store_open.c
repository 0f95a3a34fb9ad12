#include "store/store_open.h"

#include "base/store_url.h"
#include "store/copy.h"
#include "store/postgres/postgres_listen.h"

#include "base/banned.h"

static enum err_code unknown(struct err *err)
{
    return err_set(err, ERR_CONFIG_INVALID, "a store is %s", STORE_URL_FORM);
}

static struct sqlite_options for_sqlite(const struct store_options *o)
{
    return (struct sqlite_options){.path = store_url_file(str_of(o->url)).ptr,
                                   .timeout_ms = o->timeout_ms,
                                   .wall_ms = o->wall_ms,
                                   .wal_ahead_bytes = o->wal_ahead_bytes,
                                   .checkpoint_thread = o->checkpoint_thread,
                                   .high_water = o->high_water};
}

static struct postgres_options for_postgres(const struct store_options *o)
{
    return (struct postgres_options){.url = o->url, .timeout_ms = o->timeout_ms};
}

enum err_code store_open_unfinished(const struct store_options *o, struct store **ret_store, struct err *err)
{
    enum store_kind kind;
    if (!store_url_kind(str_of(o->url), &kind))
        return unknown(err);
    if (kind == STORE_SQLITE) {
        struct sqlite_options sqlite = for_sqlite(o);
        return store_open_sqlite(&sqlite, ret_store, err);
    }
    struct postgres_options postgres = for_postgres(o);
    return store_open_postgres(&postgres, ret_store, err);
}

/* Half a store would be served as if it were a whole one. */
static enum err_code refuse_half_copied(struct store *s, struct err *err)
{
    struct reader *r;
    bool unfinished = false;
    if (s->ops->reader_open(s, &r, err) != ERR_OK)
        return err->code;
    enum err_code code = store_copy_is_unfinished(r, &unfinished, err);
    r->ops->reader_close(r);
    if (code == ERR_OK && unfinished)
        return err_set(err, ERR_CONFIG_INVALID,
                       "a copy into this store is not finished; run the same `weir store copy` again");
    return code;
}

enum err_code store_open(const struct store_options *o, struct store **ret_store, struct err *err)
{
    struct store *s;
    if (store_open_unfinished(o, &s, err) != ERR_OK)
        return err->code;
    if (refuse_half_copied(s, err) != ERR_OK) {
        store_close(s);
        return err->code;
    }
    *ret_store = s;
    return ERR_OK;
}

enum err_code store_open_reader(const struct store_options *o, struct reader **ret_reader, struct err *err)
{
    enum store_kind kind;
    if (!store_url_kind(str_of(o->url), &kind))
        return unknown(err);
    if (kind == STORE_SQLITE) {
        struct sqlite_options sqlite = for_sqlite(o);
        return store_open_sqlite_reader(&sqlite, ret_reader, err);
    }
    struct postgres_options postgres = for_postgres(o);
    return store_open_postgres_reader(&postgres, ret_reader, err);
}

enum err_code store_listen(const struct store_options *o, const struct store_listening *hear,
                           struct postgres_listener **ret_listener, struct err *err)
{
    enum store_kind kind;
    *ret_listener = NULL;
    if (!store_url_kind(str_of(o->url), &kind))
        return unknown(err);
    if (kind == STORE_SQLITE)
        return ERR_OK;
    struct postgres_options postgres = for_postgres(o);
    return postgres_listener_start(&postgres, hear, ret_listener, err);
}

void store_listen_end(struct postgres_listener *l)
{
    postgres_listener_stop(l);
}
