/* cli/token_internal.h - what the token commands share: settings as the tokens folder wants them. */
#ifndef WEIR_CLI_TOKEN_INTERNAL_H
#define WEIR_CLI_TOKEN_INTERNAL_H

#include "cli/command.h"
#include "tokens/claims.h"
#include "tokens/issuer_keys.h"
#include "tokens/key_files.h"

enum { TOKEN_ACTOR_MAX = KEY_ACTOR_MAX + 1 };

struct token_tool {
    struct settings settings;
    char issuer[SETTINGS_ISSUER_MAX];
    struct key_place place; /* these two borrow from the settings */
    struct token_policy policy;
    char actor[TOKEN_ACTOR_MAX]; /* the person at the keyboard */
    int64_t now;                 /* seconds */
};

/* On a fault: told, and its exit code is given. Free with token_tool_free in both cases. */
int token_tool_open(const struct invocation *in, struct token_tool *ret_tool);
void token_tool_free(struct token_tool *t);
/* Outside issuers with the keys there are on this machine; NULL: none are named. ERR_CONFIG_INVALID. */
MUST_CHECK enum err_code token_issuers_open(const struct settings *s, int64_t now,
                                            struct issuer_keys **ret_keys, struct err *err);

#endif
