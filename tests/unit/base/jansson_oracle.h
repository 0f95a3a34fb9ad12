/* base/jansson_oracle.h - what another parser says about the same bytes. */
#ifndef WEIR_TESTS_JANSSON_ORACLE_H
#define WEIR_TESTS_JANSSON_ORACLE_H

#include <stddef.h>

enum oracle_verdict {
    ORACLE_ACCEPT,
    ORACLE_REJECT,
    ORACLE_OUT_OF_RANGE, /* a number its int or double cannot hold: it has no opinion on the text */
    ORACLE_NUL_IN_KEY,   /* its keys are C strings: no opinion */
};

/* On ORACLE_ACCEPT *ret_text is the value as compact text, to be freed by the caller. */
enum oracle_verdict oracle_json(const char *bytes, size_t len, char **ret_text);

#endif
