/* store/migrations/migrations.h - the numbered SQL files of this folder, embedded at build time: what changed
 * in the schema, for databases of former programs. A new database is made from the descriptions alone.
 *
 * store_migrations[0] holds 001_*.sql of each database and so on; NULL where nothing changed. The first of
 * each (sqlite/001, postgres/007) made a whole schema before descriptions did; only tests of former schemas
 * still run it. Statements end with a semicolon at the end of a line. A file that was released is never
 * edited. */
#ifndef WEIR_STORE_MIGRATIONS_H
#define WEIR_STORE_MIGRATIONS_H

#include "store/store.h"

struct store_migration {
    const char *sqlite, *postgres;
};
extern const struct store_migration store_migrations[STORE_SCHEMA_VERSION];

#endif
