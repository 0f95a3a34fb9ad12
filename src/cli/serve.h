/* cli/serve.h - `weir serve`: checked settings in, a running Weir out. */
#ifndef WEIR_CLI_SERVE_H
#define WEIR_CLI_SERVE_H

#include "config/settings.h"

/* Runs root's supervisor until it is told to stop; gives the exit code (runtime/supervisor.h).
 * argc and argv are main()'s, for process titles. */
int serve_run(const struct settings *s, int argc, char **argv);

#endif
