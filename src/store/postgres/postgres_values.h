/* store/postgres/postgres_values.h - values on their way to the database and back: binary, both ways. */
#ifndef WEIR_STORE_POSTGRES_VALUES_H
#define WEIR_STORE_POSTGRES_VALUES_H

#include <libpq-fe.h>

#include "base/arena.h"
#include "store/table.h"

enum { PG_PARAMS_MAX = 32 };

/* Parameters of one statement, one behind the other in one buffer. */
struct pg_params {
    struct strbuf bytes;
    size_t at[PG_PARAMS_MAX], length[PG_PARAMS_MAX];
    unsigned count;
};

void params_clear(struct pg_params *p);
void params_int(struct pg_params *p, int64_t value);
void params_text(struct pg_params *p, struct str text);
void params_bytes(struct pg_params *p, struct str bytes);
/* A value of a row: by the column's type. */
void params_column(struct pg_params *p, const struct column *c, const void *row);
/* An array: begin, `count` elements, end. */
void params_array(struct pg_params *p, enum column_type type, size_t count);
void params_add_int(struct pg_params *p, int64_t value);
void params_add_text(struct pg_params *p, struct str text);   /* absent: NULL */
void params_add_bytes(struct pg_params *p, struct str bytes); /* absent: NULL */
void params_array_end(struct pg_params *p);
void params_add_column(struct pg_params *p, const struct column *c, const void *row);
void params_ints(struct pg_params *p, const int64_t *values, size_t count);
void params_texts(struct pg_params *p, const struct str *texts, size_t count);

int64_t value_int(const PGresult *r, int row, int column); /* NULL: 0 */
struct str value_bytes(const PGresult *r, int row, int column);
/* Borrows from the result, unless the text had to be stored in another form: then from the arena. */
struct str value_text(const PGresult *r, int row, int column, struct arena *a);
/* Columns of the table from result column `first` on; texts are copied into the arena, or borrowed. */
void value_row(const PGresult *r, int row, int first, const struct table *t, void *ret_row, struct arena *a,
               bool copy);

#endif
