/* store/postgres/postgres_url.h - can libpq read this URL or connection string? Asked before libpq gets it:
 * the error of libpq about an unreadable one holds parts of it, and so the password. */
#ifndef WEIR_STORE_POSTGRES_URL_H
#define WEIR_STORE_POSTGRES_URL_H

#include "base/err.h"
#include "base/str.h"

/* CONFIG_INVALID, with what to do and nothing of the URL. */
MUST_CHECK enum err_code postgres_url_check(const char *url, struct err *err);

#endif
