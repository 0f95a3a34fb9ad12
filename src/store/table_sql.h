/* store/table_sql.h - the SQL that makes a table, in both dialects, from its description (store/table.h).
 *
 * All of it is added to `out` and is one statement. IF NOT EXISTS stands in it for PostgreSQL alone: there
 * several nodes may make a schema at once. */
#ifndef WEIR_STORE_TABLE_SQL_H
#define WEIR_STORE_TABLE_SQL_H

#include "base/str.h"
#include "store/rows.h"

void table_sql_create(struct strbuf *out, const struct table *t, enum table_stores dialect);
void table_sql_index(struct strbuf *out, const struct table *t, const struct table_index *index,
                     enum table_stores dialect);
/* A query whose one number is the largest id that any table holds: new ones go on above it. */
void table_sql_last_id(struct strbuf *out);

#endif
