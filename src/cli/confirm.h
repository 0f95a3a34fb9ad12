/* cli/confirm.h - a question before something that cannot be taken back. */
#ifndef WEIR_CLI_CONFIRM_H
#define WEIR_CLI_CONFIRM_H

#include "cli/command.h"

/* CLI_OK: --yes was given, or the user said yes on the terminal. Else told: CLI_FAILED after a no, CLI_USAGE
 * where no terminal is there to ask on. */
int cli_confirm(const struct invocation *in, const char *question);

#endif
