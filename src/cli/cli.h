/* cli/cli.h - the command line: `weir NOUN VERB`. One table of commands in cli.c. */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

/* Gives the exit code (cli/exit_code.h). */
int cli_main(int argc, char **argv);

#endif
