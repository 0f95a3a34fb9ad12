#include "cli/exit_code.h"

#include "base/banned.h"

enum cli_exit exit_code_of_status(long http_status)
{
    if (http_status >= 200 && http_status < 300)
        return CLI_OK;
    switch (http_status) {
    case 401:
    case 403:
        return CLI_AUTH;
    case 404:
        return CLI_NOT_FOUND;
    case 408:
    case 504:
        return CLI_TIMEOUT;
    case 409:
        return CLI_CONFLICT;
    }
    return CLI_FAILED;
}

enum cli_exit exit_code_of_err(enum err_code code)
{
    /* A setting is given by the caller here, so it is the caller's mistake, not the server's. */
    if (code == ERR_CONFIG_INVALID)
        return CLI_USAGE;
    return exit_code_of_status(err_http_status(code));
}
