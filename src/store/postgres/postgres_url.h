/* store/postgres/postgres_url.h - is this a URL or connection string that libpq can read? Asked before libpq
 * is given it: what libpq says of one that it cannot read holds parts of it, and so the password. */
#ifndef WEIR_STORE_POSTGRES_URL_H
#define WEIR_STORE_POSTGRES_URL_H

#include "base/err.h"
#include "base/str.h"

/* CONFIG_INVALID, with what to do and nothing of the URL. */
MUST_CHECK enum err_code postgres_url_check(const char *url, struct err *err);

#endif
