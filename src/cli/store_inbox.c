/* weir store inbox: rows that applications have put in and that are no job yet, and refused ones. */
#include <inttypes.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/store_check.h"
#include "cli/table.h"
#include "store/store_open.h"

#include "base/banned.h"

enum { INBOX_TIMEOUT_MS = 10000, SHOWN_DEFAULT = 50, SHOWN_MAX = 10000 };

struct listing {
    int64_t limit;            /* of each kind */
    uint64_t waiting, failed; /* all of them */
    struct text_table *table; /* NULL: JSON */
    struct json_writer rows;
};

static void show_row(struct listing *l, const struct inbox_row *r)
{
    char created[TIME_TEXT_MAX];
    struct str error = r->failed_ms ? r->error : STR("waits");
    text_table_addf(l->table, "%" PRId64, r->id);
    text_table_add(l->table, time_text_ms(r->created_ms, created));
    text_table_add(l->table, r->client);
    text_table_add(l->table, r->queue);
    text_table_add_tone(l->table, error, r->failed_ms ? TONE_BAD : TONE_BUSY);
}

static void write_row(struct listing *l, const struct inbox_row *r)
{
    char created[TIME_TEXT_MAX], failed[TIME_TEXT_MAX];
    const struct {
        const char *name;
        struct str text;
    } texts[] = {
        {"created_at", time_text_ms(r->created_ms, created)},
        {"failed_at", r->failed_ms ? time_text_ms(r->failed_ms, failed) : STR_ABSENT},
        {"client_id", r->client},
        {"type", r->type},
        {"kind", r->kind},
        {"work_kind", r->work_kind},
        {"queue", r->queue},
        {"idempotency_key", r->idempotency_key},
        {"error", r->error},
    };
    jw_object(&l->rows);
    encode_int(&l->rows, "id", r->id);
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        encode_str(&l->rows, texts[i].name, texts[i].text);
    jw_object_end(&l->rows);
}

static bool take_row(const void *row, void *arg)
{
    struct listing *l = arg;
    const struct inbox_row *r = row;
    uint64_t *count = r->failed_ms ? &l->failed : &l->waiting;
    if (++*count > (uint64_t)l->limit)
        return true;
    if (l->table)
        show_row(l, r);
    else
        write_row(l, r);
    return true;
}

static enum err_code read_rows(const char *url, struct listing *l, struct err *err)
{
    struct store_options o = {.url = url, .timeout_ms = INBOX_TIMEOUT_MS};
    struct reader *r;
    if (store_open_reader(&o, &r, err) != ERR_OK)
        return err->code;
    enum err_code code = r->ops->reader_begin(r, err);
    if (code == ERR_OK) {
        code = r->ops->reader_scan(r, &table_inbox_row, take_row, l, err);
        r->ops->reader_end(r);
    }
    r->ops->reader_close(r);
    return code;
}

static int show_table(const struct invocation *in, const char *url, struct listing *l)
{
    static const char *const headings[] = {">ID", "CREATED", "!CLIENT", "QUEUE", "STATE"};
    struct err err;
    l->table = text_table_new(headings, LENGTH_OF(headings));
    enum err_code code = read_rows(url, l, &err);
    if (code == ERR_OK && l->waiting + l->failed)
        text_table_show(l->table, stdout);
    text_table_free(l->table);
    if (code != ERR_OK)
        return cli_err(&err);
    cli_note(in, "%" PRIu64 " wait, %" PRIu64 " were refused.", l->waiting, l->failed);
    return CLI_OK;
}

static int show_json(const char *url, struct listing *l)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct err err;
    jw_start(&l->rows, &text);
    jw_object(&l->rows);
    jw_key(&l->rows, "rows");
    jw_array(&l->rows);
    if (read_rows(url, l, &err) != ERR_OK)
        return cli_err(&err);
    jw_array_end(&l->rows);
    encode_int(&l->rows, "waiting", (int64_t)l->waiting);
    encode_int(&l->rows, "failed", (int64_t)l->failed);
    jw_object_end(&l->rows);
    printf("%s\n", text.ptr);
    return CLI_OK;
}

int command_store_inbox(const struct invocation *in)
{
    char url[SETTINGS_STORE_URL_MAX];
    struct listing l = {.limit = SHOWN_DEFAULT};
    struct err err;
    if (flags_int(in->flags, FLAG_LIMIT, 1, SHOWN_MAX, &l.limit, &err) != ERR_OK)
        return cli_err(&err);
    int code = store_check_url(in, url);
    if (code != CLI_OK)
        return code;
    return in->json ? show_json(url, &l) : show_table(in, url, &l);
}
