/* cli/command_flags.h - flags that many commands take together, for the tables of commands. */
#ifndef WEIR_CLI_COMMAND_FLAGS_H
#define WEIR_CLI_COMMAND_FLAGS_H

#include "cli/command.h"

#define SERVER   (FLAG_BIT(URL) | FLAG_BIT(KEY) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET))
#define LOCAL    (FLAG_BIT(DATA) | FLAG_BIT(STORE) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) | FLAG_BIT(OUTPUT))
#define TOKENS   (FLAG_BIT(DATA) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET))
#define KEYS     (SERVER | FLAG_BIT(OPERATOR_TOKEN))
#define WISH     (FLAG_BIT(SCOPE) | FLAG_BIT(QUEUE) | FLAG_BIT(NAME) | FLAG_BIT(EXPIRES))
#define OPERATOR (FLAG_BIT(URL) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET) | FLAG_BIT(OPERATOR_TOKEN))
#define RUNS                                                                                                 \
    (FLAG_BIT(URL) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET) | FLAG_BIT(TOKEN) | FLAG_BIT(TENANT) |               \
     FLAG_BIT(ROLE) | FLAG_BIT(SUB) | FLAG_BIT(DATA))
#define PAGES (FLAG_BIT(LIMIT) | FLAG_BIT(CURSOR) | FLAG_BIT(ALL))
#define FILTERS                                                                                              \
    (FLAG_BIT(STATE) | FLAG_BIT(TYPE) | FLAG_BIT(KIND) | FLAG_BIT(WORK_KIND) | FLAG_BIT(QUEUE) |             \
     FLAG_BIT(OUTCOME) | FLAG_BIT(CREATED_AFTER) | FLAG_BIT(CREATED_BEFORE))
#define BULK (FILTERS | FLAG_BIT(LIMIT) | FLAG_BIT(YES))

#endif
