/* All commands: those of the program itself, and a table for each contract. */
#include "cli/command_flags.h"

#include "base/banned.h"

static const struct command serve_commands[] = {
    {"serve", "", "run the server until SIGTERM or Ctrl-C",
     FLAG_BIT(LISTEN) | FLAG_BIT(PORT) | FLAG_BIT(DATA) | FLAG_BIT(STORE) | FLAG_BIT(CONFIG) | FLAG_BIT(SET) |
         FLAG_BIT(ACCEPT_LOSS) | FLAG_BIT(QUIET),
     0, 0, command_serve},
    {.name = NULL},
};

static const struct command tool_commands[] = {
    {"token mint", "", "sign a token with the key set of the data directory, made on first use",
     TOKENS | FLAG_BIT(SUB) | FLAG_BIT(ROLE) | FLAG_BIT(TENANT) | FLAG_BIT(PROJECT) | FLAG_BIT(TTL) |
         FLAG_BIT(AUD),
     0, 0, command_token_mint},
    {"token verify", "", "read a token from stdin and say whether it is good, or why not", TOKENS, 0, 0,
     command_token_verify},
    {"token keys", "", "show every key, also the retired and revoked ones", TOKENS, 0, 0, command_token_keys},
    {"token rotate", "", "make a new key; it signs in a minute, the former one verifies for hours",
     TOKENS | FLAG_BIT(ALG), 0, 0, command_token_rotate},
    {"token revoke-key", "KID", "refuse every token of a key from now on", TOKENS | FLAG_BIT(REASON), 1, 1,
     command_token_revoke_key},

    {"traffic", "", "send a mix of all work kinds and check every outcome; exit code 1 on a surprise",
     KEYS | FLAG_BIT(JOBS) | FLAG_BIT(FOR) | FLAG_BIT(RATE) | FLAG_BIT(MIX) | FLAG_BIT(SEED) |
         FLAG_BIT(TIME_SCALE) | FLAG_BIT(SLACK) | FLAG_BIT(RESTART) | FLAG_BIT(EXPECT),
     0, 0, command_traffic},

    {"verify", "", "replay the whole log and compare it with what is stored", LOCAL | FLAG_BIT(QUIET), 0, 0,
     command_verify},
    {"backup", "FILE", "write a verified copy of the database, also beside a running server",
     LOCAL | FLAG_BIT(QUIET), 1, 1, command_backup},
    {"restore", "FILE", "put a backup in place; the server must be stopped",
     LOCAL | FLAG_BIT(FORCE) | FLAG_BIT(QUIET), 1, 1, command_restore},
    {"store copy", "", "copy a stopped server's store into another, SQLite or PostgreSQL",
     FLAG_BIT(FROM) | FLAG_BIT(TO) | FLAG_BIT(OUTPUT) | FLAG_BIT(QUIET), 0, 0, command_store_copy},
    {"store events", "", "show every event of every job in the order they became visible",
     LOCAL | FLAG_BIT(FOLLOW) | FLAG_BIT(AFTER) | FLAG_BIT(LIMIT) | FLAG_BIT(QUIET), 0, 0,
     command_store_events},
    {"store inbox", "", "show what applications put into the database that is no job yet",
     LOCAL | FLAG_BIT(LIMIT) | FLAG_BIT(QUIET), 0, 0, command_store_inbox},
    {"doctor", "", "check this machine, its data directory and the server", LOCAL | FLAG_BIT(URL), 0, 0,
     command_doctor},
    {"clock accept", "", "say that the server's clock, which has jumped, is right", OPERATOR, 0, 0,
     command_clock_accept},
    {"top", "", "watch processes, queues, pressure, rates and latencies of a server",
     SERVER | FLAG_BIT(OPERATOR_TOKEN) | FLAG_BIT(TOKEN) | FLAG_BIT(INTERVAL) | FLAG_BIT(ONCE), 0, 0,
     command_top},
    {"config show", "", "show every setting and its value", LOCAL | FLAG_BIT(ORIGIN), 0, 0,
     command_config_show},
    {"config markdown", "", "print the manual of all settings", 0, 0, 0, command_config_markdown},
    {"version", "", "show version, schema and build", FLAG_BIT(OUTPUT), 0, 0, command_version},
    {"help", "[COMMAND]", "show help for a command", 0, 0, 3, command_help},
    {.name = NULL},
};

const struct command *const command_tables[] = {serve_commands, job_commands, run_commands, tool_commands,
                                                NULL};
