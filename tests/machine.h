/* machine.h - a C test meets what this machine does not allow. Of Python: tests/harness/machine.py. */
#ifndef WEIR_TESTS_MACHINE_H
#define WEIR_TESTS_MACHINE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names what is not tried here and why: tools/run_tests.py counts the line and shows it at its end. True when
 * that is a failure: with WEIR_TEST_STRICT=1. */
static inline bool machine_cannot(const char *what, const char *why)
{
    const char *strict = getenv("WEIR_TEST_STRICT");
    printf("skipped: %s: %s\n", what, why);
    return strict && strcmp(strict, "1") == 0;
}

#endif
