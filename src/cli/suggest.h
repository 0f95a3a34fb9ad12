/* cli/suggest.h - "did you mean": the known word nearest to a mistyped one. Pure. */
#ifndef WEIR_CLI_SUGGEST_H
#define WEIR_CLI_SUGGEST_H

#include <stddef.h>

#include "base/str.h"

enum { SUGGEST_WORD_MAX = 64 };

/* NULL when nothing is near enough to help. A beginning counts as near: "canc" finds "cancel". */
const char *suggest_nearest(struct str word, const char *const *known, size_t count);

#endif
