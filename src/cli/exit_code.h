/* cli/exit_code.h - what the program's exit code tells a script. */
#ifndef WEIR_CLI_EXIT_CODE_H
#define WEIR_CLI_EXIT_CODE_H

#include "base/err.h"

/* X(name, number, meaning) */
#define EXIT_LIST(X)                                                                                         \
    X(OK, 0, "ok")                                                                                           \
    X(FAILED, 1, "failed")                                                                                   \
    X(USAGE, 2, "usage")                                                                                     \
    X(NOT_FOUND, 3, "not found")                                                                             \
    X(AUTH, 4, "auth")                                                                                       \
    X(CONFLICT, 5, "conflict")                                                                               \
    X(TIMEOUT, 6, "timeout")                                                                                 \
    X(INTERRUPTED, 130, "interrupted")

#define X(name, number, meaning) CLI_##name = number,
enum cli_exit { EXIT_LIST(X) };
#undef X

enum cli_exit exit_code_of_status(long http_status); /* 2xx: CLI_OK */
enum cli_exit exit_code_of_err(enum err_code code);

#endif
