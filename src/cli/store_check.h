/* cli/store_check.h - runs store_verify on a store and shows what it found. */
#ifndef WEIR_CLI_STORE_CHECK_H
#define WEIR_CLI_STORE_CHECK_H

#include "base/json.h"
#include "cli/command.h"
#include "store/verify.h"

enum { STORE_CHECK_SHOWN_MAX = 100 }; /* differences told one by one; all are counted */

struct store_check {
    struct verify_result result;
    struct strbuf differences; /* JSON strings, commas between */
    int64_t duration_ms;
};

/* Differences go to stderr as they are found, and a progress line when that is a terminal. */
MUST_CHECK enum err_code store_check_run(const struct invocation *in, const char *url,
                                         struct store_check *ret_check, struct err *err);
MUST_CHECK enum err_code store_check_file(const struct invocation *in, const char *path,
                                          struct store_check *ret_check, struct err *err);
void store_check_free(struct store_check *c);

/* Members "jobs":.. to "differences":[..], for a JSON object. */
void store_check_write(const struct store_check *c, struct json_writer *w);
/* The URL of --store or --data; told on stderr when there is no such file. */
int store_check_url(const struct invocation *in, char ret_url[SETTINGS_STORE_URL_MAX]);
/* The same for what only a file can do (`doing`: "backup"); told what to do instead with PostgreSQL. */
int store_check_path(const struct invocation *in, const char *doing, char *ret_path, size_t size);

#endif
