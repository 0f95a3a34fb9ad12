/* Arguments are public: every user of the machine can read them with ps. A secret in them is overwritten
 * as soon as it was read. */
#include <stdlib.h>

#include "base/must.h"
#include "cli/flags.h"
#include "config/settings.h"

#include "base/banned.h"

static bool is_secret(enum flag_id id, struct str value)
{
    flag_set bit = (flag_set)1 << id;
    if (bit & (FLAG_BIT(KEY) | FLAG_BIT(TOKEN) | FLAG_BIT(OPERATOR_TOKEN)))
        return true;
    if (bit & (FLAG_BIT(STORE) | FLAG_BIT(FROM) | FLAG_BIT(TO)))
        return settings_value_is_secret(STR("store.url"), value);
    if (!(bit & FLAG_BIT(SET)))
        return false;
    struct str key = str_cut(&value, '=');
    return settings_value_is_secret(key, value);
}

/* Of `--set KEY=VALUE` the key may be seen. */
static void overwrite(enum flag_id id, char *value)
{
    char *equals = id == FLAG_SET ? strchr(value, '=') : NULL;
    char *secret = equals ? equals + 1 : value;
    memset(secret, '*', strlen(secret));
}

void flags_hide_secrets(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        char *equals = strchr(argv[i], '=');
        struct str name = {argv[i] + 2, equals ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2};
        int id = flag_find(name);
        if (id < 0 || !flag_table[id].value || (!equals && ++i == argc))
            continue;
        char *value = equals ? equals + 1 : argv[i];
        if (is_secret((enum flag_id)id, str_of(value)))
            overwrite((enum flag_id)id, value);
    }
}

char **flags_keep(int argc, char **argv)
{
    char **kept = must_alloc(((size_t)argc + 1) * sizeof *kept);
    for (int i = 0; i < argc; i++)
        kept[i] = must_strdup(argv[i]);
    return kept;
}

void flags_drop(char ***kept)
{
    for (char **text = *kept; text && *text; text++) {
        explicit_bzero(*text, strlen(*text));
        free(*text);
    }
    free(*kept);
    *kept = NULL;
}
