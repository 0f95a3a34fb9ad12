/* store/row_bytes.h - columns of a row in bytes: numbers as varints, texts behind their length.
 *
 * What is taken may come from disk: bytes that end too soon are refused, not believed. */
#ifndef WEIR_STORE_ROW_BYTES_H
#define WEIR_STORE_ROW_BYTES_H

#include "store/table.h"

/* Columns [from, to) of the row, behind what the buffer holds. */
void row_bytes_put(struct strbuf *b, const struct table *t, unsigned from, unsigned to, const void *row);
/* The same columns off the front of `bytes`, texts borrowed from it. False: damaged. */
bool row_bytes_take(struct str *bytes, const struct table *t, unsigned from, unsigned to, void *row);

#endif
