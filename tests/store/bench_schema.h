/* store/bench_schema.h - which stores a test program runs on, and an empty schema of its own for each test
 * on PostgreSQL.
 *
 * WEIR_TEST_POSTGRES is the address of the PostgreSQL that tests may use (tools/with_postgres starts one and
 * sets it); without it the tests on PostgreSQL say that they are skipped. WEIR_TEST_STORE names the one store
 * a run is about; without it a program runs on all of them.
 *
 * Fails: every function ends the test when PostgreSQL refuses something. */
#ifndef WEIR_TESTS_BENCH_SCHEMA_H
#define WEIR_TESTS_BENCH_SCHEMA_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "case.h"

/* Does this run test "memory", "sqlite", "postgres"? Ends the program with 77 (skipped) when it was asked for
 * PostgreSQL and there is none. */
bool store_is_wanted(const char *store);
/* The tests of the program (case.h) on this store, if it is wanted: how many failed. */
int store_run(const char *store, CMFixtureFunction setup);

struct bench_schema {
    char name[48];
    char url[400]; /* a store opened with it sees this schema only */
};

void bench_schema_make(struct bench_schema *s);
void bench_schema_drop(struct bench_schema *s);

/* For tests that leave tables as they are: one that was given back is emptied, and the next test finds its
 * tables made, which takes longest of all. */
void bench_schema_borrow(struct bench_schema *s);
void bench_schema_give_back(struct bench_schema *s);

/* A plain session beside the store, to look into it or to harm it. */
PGconn *bench_session(const struct bench_schema *s);
void bench_sql(PGconn *c, const char *sql);       /* statements without an answer */
int64_t bench_number(PGconn *c, const char *sql); /* the one number a query gives */

#endif
