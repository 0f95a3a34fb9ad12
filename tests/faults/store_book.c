/* tests/faults/store_book.c - digests of a whole database, and the judgement of a disk. */
#include "faults/store_book.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/banned.h"

static void digest_bytes(uint64_t *d, const void *bytes, size_t len)
{
    const char *at = bytes;
    uint64_t word = len;
    for (; len >= sizeof word; at += sizeof word, len -= sizeof word) {
        *d = hash_mix(*d ^ word) + UINT64_C(0x9E3779B97F4A7C15);
        memcpy(&word, at, sizeof word);
    }
    *d = hash_mix(*d ^ word);
    word = 0;
    if (len > 0)
        memcpy(&word, at, len);
    *d = hash_mix(*d ^ word) + 1;
}

static void digest_row(uint64_t *d, sqlite3_stmt *q)
{
    for (int i = 0; i < sqlite3_column_count(q); i++) {
        int type = sqlite3_column_type(q, i);
        *d += (uint64_t)type;
        if (type == SQLITE_INTEGER) {
            int64_t n = sqlite3_column_int64(q, i);
            digest_bytes(d, &n, sizeof n);
        } else if (type != SQLITE_NULL) {
            const void *bytes = sqlite3_column_blob(q, i);
            digest_bytes(d, bytes ? bytes : "", (size_t)sqlite3_column_bytes(q, i));
        }
    }
}

static bool digest_table(uint64_t *d, sqlite3 *db, const char *table)
{
    char sql[128];
    sqlite3_stmt *q = NULL;
    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table);
    digest_bytes(d, table, strlen(table));
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        while ((rc = sqlite3_step(q)) == SQLITE_ROW)
            digest_row(d, q);
    sqlite3_finalize(q);
    return rc == SQLITE_DONE;
}

static bool digest_tables(uint64_t *d, sqlite3 *db)
{
    sqlite3_stmt *q = NULL;
    bool ok = true;
    int rc = sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", -1,
                                &q, NULL);
    if (rc == SQLITE_OK)
        while (ok && (rc = sqlite3_step(q)) == SQLITE_ROW)
            ok = digest_table(d, db, (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    return ok && rc == SQLITE_DONE;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q = NULL;
    int64_t answer = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        answer = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return answer;
}

/* Reads the mounted disk with plain SQLite. Closing the only connection checkpoints it. */
static bool read_rows(struct store_page *p)
{
    sqlite3 *db = NULL;
    bool ok = sqlite3_open_v2(STORE_BOOK_DB, &db, SQLITE_OPEN_READWRITE, SIM_VFS_NAME) == SQLITE_OK;
    *p = (struct store_page){.rows = 0};
    if (ok) {
        p->tasks = ask(db, "SELECT count(*) FROM tasks");
        p->idem = ask(db, "SELECT count(*) FROM idem");
        p->last_id = ask(db, "SELECT coalesce(max(id), 0) FROM (SELECT id FROM jobs UNION ALL"
                             " SELECT id FROM api_keys UNION ALL SELECT id FROM webhooks UNION ALL SELECT id "
                             "FROM deliveries)");
        p->next_chunk = ask(db, "SELECT 1 + max(coalesce((SELECT max(g) FROM log), 0), coalesce((SELECT max("
                                "chunk) FROM deferred), 0), coalesce((SELECT value FROM marks WHERE name = "
                                "'next_chunk'), 0) - 1)");
        p->first_chunk = ask(db, "SELECT coalesce(min(g), 0) FROM log");
        p->merged = ask(db, "SELECT count(*) FROM list");
        p->merged_entries = ask(db, "SELECT count(*) FROM run_index");
        p->merged_events = ask(db, "SELECT count(*) FROM run_events");
        ok = digest_tables(&p->rows, db);
    }
    sqlite3_close(db);
    return ok;
}

/* Looks at a copy, so that `d` is not touched. */
static bool read_page(struct sim_disk *d, struct store_page *p)
{
    struct sim_disk *copy = sim_disk_copy(d);
    sim_disk_mount(copy);
    bool ok = read_rows(p) && sim_disk_file_digest(copy, STORE_BOOK_DB, &p->bytes);
    sim_disk_mount(d);
    sim_disk_free(copy);
    return ok;
}

void store_book_note(struct store_book *b, struct sim_disk *d, uint64_t n)
{
    MUST(n == b->count && n < STORE_BOOK_MAX);
    MUST(read_page(d, &b->pages[n]));
    b->count++;
}

/* The state of a disk, by bytes where the book knows these, else by rows. */
static bool read_found(const struct store_book *b, struct sim_disk *d, struct store_page *p)
{
    bool checkpointed = sim_disk_file_size(d, STORE_BOOK_DB "-wal") <= 0;
    if (checkpointed && sim_disk_file_digest(d, STORE_BOOK_DB, &p->bytes))
        for (uint64_t n = b->count; n-- > 0;)
            if (b->pages[n].bytes == p->bytes) {
                *p = b->pages[n];
                return true;
            }
    return read_page(d, p);
}

bool store_book_is(const struct store_book *b, struct sim_disk *d, uint64_t n)
{
    struct store_page p;
    return n < b->count && read_found(b, d, &p) && p.rows == b->pages[n].rows;
}

/* The first batch in [from, to] after which the rows were these; `to` + 1 when there is none. */
static uint64_t find_rows(const struct store_book *b, uint64_t from, uint64_t to, uint64_t rows)
{
    for (uint64_t n = from; n <= to && n < b->count; n++)
        if (b->pages[n].rows == rows)
            return n;
    return to + 1;
}

enum err_code store_book_open(const char *synchronous, struct store **ret_store, struct err *err)
{
    struct sqlite_options options = {.path = STORE_BOOK_DB,
                                     .vfs = SIM_VFS_NAME,
                                     .timeout_ms = 0, /* one thread: waiting would be for ever */
                                     .synchronous = synchronous,
                                     .wall_ms = INT64_C(1700000000000),
                                     .wal_ahead_bytes = 40000, /* some commits fit, others go beyond */
                                     .index_group = 150,
                                     .event_group = 6000};
    return store_open_sqlite(&options, ret_store, err);
}

static bool memory_agrees(const struct store_page *memory, const struct store_page *p, char why[256])
{
    snprintf(why, 256, "in memory %lld tasks, %lld keys, id %llx, chunk %lld; stored %lld, %lld, %llx, %lld",
             (long long)memory->tasks, (long long)memory->idem, (long long)memory->last_id,
             (long long)memory->next_chunk, (long long)p->tasks, (long long)p->idem, (long long)p->last_id,
             (long long)p->next_chunk);
    return memory->tasks == p->tasks && memory->idem == p->idem && memory->last_id == p->last_id &&
           memory->next_chunk == p->next_chunk;
}

enum sim_verdict store_book_judge(const struct store_book *b, struct sim_disk *d, const struct sim_cut *cut,
                                  char why[256])
{
    struct store *s = NULL;
    struct err err = {.code = ERR_OK};
    if (store_book_open(NULL, &s, &err) != ERR_OK) {
        snprintf(why, 256, "%s", err.detail);
        return SIM_UNREADABLE;
    }
    struct store_page memory = {.tasks = live_size(s->live),
                                .idem = (int64_t)s->idem.used,
                                .last_id = s->last_id,
                                .next_chunk = s->next_chunk};
    store_close(s); /* checkpoints */
    struct store_page found;
    if (!read_found(b, d, &found)) {
        snprintf(why, 256, "the tables cannot be read");
        return SIM_UNREADABLE;
    }
    uint64_t n = find_rows(b, cut->acked, cut->begun, found.rows);
    if (n <= cut->begun)
        return memory_agrees(&memory, &b->pages[n], why) ? SIM_SOUND : SIM_UNREADABLE;
    n = find_rows(b, 0, b->count, found.rows);
    if (n > b->count) {
        snprintf(why, 256, "a state that never was");
        return SIM_HALF;
    }
    snprintf(why, 256, "the state after batch %llu", (unsigned long long)n);
    return n < cut->acked ? SIM_LOST : SIM_PHANTOM;
}

enum err_code store_book_checkpoint(struct store *s, struct err *err)
{
    s->wal_pages = 4000; /* enough to be worth one, not so long that it waits for readers */
    return s->ops->tend(s, true, err);
}
