/* Values in PostgreSQL's binary form: eight bytes in network order, raw texts and blobs, and arrays of them.
 *
 * A text of ours may hold any bytes (an idempotency key of a client, an id of a worker), a text of PostgreSQL
 * only UTF-8 without NUL. Such a one is stored as the character U+0001 and its bytes in hexadecimal, and so
 * is one that starts with that character: two texts are equal exactly when their stored forms are. */
#include <endian.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, TEXT_IN_HEX = 1 };

void params_clear(struct pg_params *p)
{
    strbuf_clear(&p->bytes);
    p->count = 0;
}

static void add_u32(struct pg_params *p, uint32_t value)
{
    uint32_t wire = htobe32(value);
    strbuf_add(&p->bytes, &wire, sizeof wire);
}

static void add_u64(struct pg_params *p, uint64_t value)
{
    uint64_t wire = htobe64(value);
    strbuf_add(&p->bytes, &wire, sizeof wire);
}

static void begin(struct pg_params *p)
{
    MUST(p->count < PG_PARAMS_MAX);
    p->at[p->count] = p->bytes.len;
}

static void end(struct pg_params *p)
{
    p->length[p->count] = p->bytes.len - p->at[p->count];
    p->count++;
}

void params_int(struct pg_params *p, int64_t value)
{
    begin(p);
    add_u64(p, (uint64_t)value);
    end(p);
}

void params_bytes(struct pg_params *p, struct str bytes)
{
    begin(p);
    strbuf_add_str(&p->bytes, bytes);
    end(p);
}

static bool needs_hex(struct str text)
{
    if (!text.len)
        return false;
    return text.ptr[0] == TEXT_IN_HEX || memchr(text.ptr, 0, text.len) || !str_is_utf8(text);
}

static void add_hex(struct pg_params *p, struct str text)
{
    static const char digits[] = "0123456789abcdef";
    strbuf_add_char(&p->bytes, TEXT_IN_HEX);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        strbuf_add_char(&p->bytes, digits[c >> 4]);
        strbuf_add_char(&p->bytes, digits[c & 15]);
    }
}

void params_text(struct pg_params *p, struct str text)
{
    begin(p);
    if (needs_hex(text))
        add_hex(p, text);
    else
        strbuf_add_str(&p->bytes, text);
    end(p);
}

void params_column(struct pg_params *p, const struct column *c, const void *row)
{
    switch (c->type) {
    case COLUMN_INT:
        params_int(p, row_int(row, c));
        break;
    case COLUMN_TEXT:
        params_text(p, row_str(row, c));
        break;
    case COLUMN_BLOB:
        params_bytes(p, row_str(row, c));
        break;
    }
}

/* --- arrays --------------------------------------------------------------------------------------- */

void params_array(struct pg_params *p, enum column_type type, size_t count)
{
    static const uint32_t oids[] = {
        [COLUMN_INT] = OID_INT8, [COLUMN_TEXT] = OID_TEXT, [COLUMN_BLOB] = OID_BYTEA};
    MUST(count < INT32_MAX);
    begin(p);
    add_u32(p, count ? 1 : 0); /* dimensions */
    add_u32(p, 1);             /* there may be NULLs */
    add_u32(p, oids[type]);
    if (!count)
        return;
    add_u32(p, (uint32_t)count);
    add_u32(p, 1); /* first index */
}

void params_array_end(struct pg_params *p)
{
    end(p);
}

void params_add_int(struct pg_params *p, int64_t value)
{
    add_u32(p, sizeof value);
    add_u64(p, (uint64_t)value);
}

void params_add_bytes(struct pg_params *p, struct str bytes)
{
    MUST(bytes.len < INT32_MAX);
    add_u32(p, bytes.ptr ? (uint32_t)bytes.len : UINT32_MAX);
    strbuf_add_str(&p->bytes, bytes);
}

void params_add_text(struct pg_params *p, struct str text)
{
    if (!needs_hex(text)) {
        params_add_bytes(p, text);
        return;
    }
    add_u32(p, (uint32_t)(1 + 2 * text.len));
    add_hex(p, text);
}

void params_add_column(struct pg_params *p, const struct column *c, const void *row)
{
    switch (c->type) {
    case COLUMN_INT:
        params_add_int(p, row_int(row, c));
        break;
    case COLUMN_TEXT:
        params_add_text(p, row_str(row, c));
        break;
    case COLUMN_BLOB:
        params_add_bytes(p, row_str(row, c));
        break;
    }
}

void params_ints(struct pg_params *p, const int64_t *values, size_t count)
{
    params_array(p, COLUMN_INT, count);
    for (size_t i = 0; i < count; i++)
        params_add_int(p, values[i]);
    params_array_end(p);
}

void params_texts(struct pg_params *p, const struct str *texts, size_t count)
{
    params_array(p, COLUMN_TEXT, count);
    for (size_t i = 0; i < count; i++)
        params_add_text(p, texts[i]);
    params_array_end(p);
}

/* --- answers -------------------------------------------------------------------------------------- */

/* Every number of ours is asked for as bigint; booleans and small ones of the server's own are shorter. */
int64_t value_int(const PGresult *r, int row, int column)
{
    const char *p = PQgetvalue(r, row, column);
    int len = PQgetlength(r, row, column);
    if (len == 1)
        return *p;
    if (len == sizeof(int16_t)) {
        uint16_t wire;
        memcpy(&wire, p, sizeof wire);
        return (int16_t)be16toh(wire);
    }
    if (len == sizeof(int32_t)) {
        uint32_t wire;
        memcpy(&wire, p, sizeof wire);
        return (int32_t)be32toh(wire);
    }
    if (len != sizeof(int64_t))
        return 0;
    uint64_t wire;
    memcpy(&wire, p, sizeof wire);
    return (int64_t)be64toh(wire);
}

struct str value_bytes(const PGresult *r, int row, int column)
{
    if (PQgetisnull(r, row, column))
        return STR_ABSENT;
    return (struct str){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

struct str value_text(const PGresult *r, int row, int column, struct arena *a)
{
    struct str s = value_bytes(r, row, column);
    if (!s.len || s.ptr[0] != TEXT_IN_HEX)
        return s;
    size_t len = (s.len - 1) / 2;
    char *bytes = arena_alloc(a, len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(hex_digit(s.ptr[1 + 2 * i]) << 4 | hex_digit(s.ptr[2 + 2 * i]));
    return (struct str){bytes, len};
}

void value_row(const PGresult *r, int row, int first, const struct table *t, void *ret_row, struct arena *a,
               bool copy)
{
    for (unsigned i = 0; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        char *to = (char *)ret_row + c->offset;
        int column = first + (int)i;
        if (c->type == COLUMN_INT) {
            *(int64_t *)(void *)to = value_int(r, row, column);
            continue;
        }
        struct str s = c->type == COLUMN_TEXT ? value_text(r, row, column, a) : value_bytes(r, row, column);
        *(struct str *)(void *)to = copy ? arena_str(a, s) : s;
    }
}
