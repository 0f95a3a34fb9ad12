/* store/migrations/migrations.h - the numbered SQL files of this folder, embedded at build time.
 * store_migrations[0] is 001_*.sql and so on. A file that was released is never edited. */
#ifndef WEIR_STORE_MIGRATIONS_H
#define WEIR_STORE_MIGRATIONS_H

extern const char *const store_migrations[];

#endif
