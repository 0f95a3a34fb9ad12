/* cli/json_argument.h - JSON given on the command line: the text itself, @FILE, or - for stdin. */
#ifndef WEIR_CLI_JSON_ARGUMENT_H
#define WEIR_CLI_JSON_ARGUMENT_H

#include "base/json.h"
#include "cli/flags.h"

enum { ARGUMENT_BYTES_MAX = 100 * 1024 * 1024 };

/* A whole file, or stdin for "-". ERR_CONFIG_INVALID with one line, as for everything here. */
MUST_CHECK enum err_code file_argument_read(const char *path, struct strbuf *out, struct err *err);

/* Writes `"key": object` when the flag was given; the object as it was written. */
MUST_CHECK enum err_code json_argument_write(const struct flags *f, enum flag_id id, const char *key,
                                             struct json_writer *w, struct err *err);

#endif
