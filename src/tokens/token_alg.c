#include "tokens/token_alg.h"

#include "base/banned.h"

const struct token_alg_facts token_alg_facts[TOKEN_ALG_COUNT] = {
#define X(name, kind, digest, curve, group, part_bytes)                                                      \
    [TOKEN_ALG_##name] = {#name, TOKEN_KEY_##kind, digest, curve, group, part_bytes},
    TOKEN_ALGS(X)
#undef X
};

bool token_alg_parse(struct str name, enum token_alg *ret_alg)
{
    for (int i = 0; i < TOKEN_ALG_COUNT; i++)
        if (str_is(name, token_alg_facts[i].name)) {
            *ret_alg = (enum token_alg)i;
            return true;
        }
    return false;
}
