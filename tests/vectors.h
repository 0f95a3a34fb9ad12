/* vectors.h - values that another implementation reckoned, in the folder that WEIR_VECTORS names. */
#ifndef WEIR_TESTS_VECTORS_H
#define WEIR_TESTS_VECTORS_H

#include "base/json.h"

const struct json *vectors_read(struct arena *a, const char *file);
/* A member that is a text; absent when it is not there. */
struct str vectors_text(const struct json *vector, const char *name);

#endif
