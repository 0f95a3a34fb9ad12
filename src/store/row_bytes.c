#include "store/row_bytes.h"

#include "base/varint.h"

#include "base/banned.h"

void row_bytes_put(struct strbuf *b, const struct table *t, unsigned from, unsigned to, const void *row)
{
    for (unsigned i = from; i < to; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            varint_put(b, varint_fold(row_int(row, c)));
            continue;
        }
        struct str s = row_str(row, c);
        varint_put(b, s.ptr ? s.len + 1 : 0);
        if (s.len)
            strbuf_add_str(b, s);
    }
}

bool row_bytes_take(struct str *bytes, const struct table *t, unsigned from, unsigned to, void *row)
{
    for (unsigned i = from; i < to; i++) {
        char *at = (char *)row + t->columns[i].offset;
        uint64_t n;
        if (!varint_take(bytes, &n))
            return false;
        if (t->columns[i].type == COLUMN_INT) {
            *(int64_t *)(void *)at = varint_unfold(n);
            continue;
        }
        struct str s = n ? (struct str){bytes->ptr, n - 1} : STR_ABSENT;
        if (s.len > bytes->len)
            return false;
        *bytes = (struct str){bytes->ptr + s.len, bytes->len - s.len};
        *(struct str *)(void *)at = s;
    }
    return true;
}
