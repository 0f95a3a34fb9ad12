#include "cli/confirm.h"

#include <unistd.h>

#include "cli/table.h"

#include "base/banned.h"

int cli_confirm(const struct invocation *in, const char *question)
{
    char line[16];
    if (flags_has(in->flags, FLAG_YES))
        return CLI_OK;
    if (!isatty(STDIN_FILENO) || !terminal_is(stderr)) {
        cli_fault("%s This is no terminal to answer on: give --yes to go on.", question);
        return CLI_USAGE;
    }
    fprintf(stderr, "%s [y/N] ", question);
    if (fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y'))
        return CLI_OK;
    cli_fault("nothing was changed");
    return CLI_FAILED;
}
