/* base/store_url.h - where a store is, as text: `sqlite:FILE` or `postgres://...`.
 *
 * Everything behind `postgres://` is libpq's business: user, hosts, options, service and password files.
 * Here it is only told apart, and made fit to be shown: a password never reaches a log, a message or a
 * screen. Pure. */
#ifndef WEIR_BASE_STORE_URL_H
#define WEIR_BASE_STORE_URL_H

#include <stdbool.h>

#include "base/str.h"

enum store_kind { STORE_SQLITE, STORE_POSTGRES };

#define STORE_URL_FORM "sqlite:FILE or postgres://USER@HOST:PORT/NAME"

/* False: the text is no such URL. */
bool store_url_kind(struct str url, enum store_kind *ret_kind);
/* The file of an sqlite URL; absent for others. */
struct str store_url_file(struct str url);
/* Adds the URL with "***" for the password: the one before '@', and that of a parameter `password`. */
void store_url_show(struct str url, struct strbuf *out);
bool store_url_has_password(struct str url);
/* Appends the parameter `password` to the URL of a PostgreSQL database; an absent one changes nothing. False:
 * it does not fit, and `url` is as it was. */
bool store_url_add_password(char *url, size_t size, struct str password);

#endif
