/* WEIR_* variables. */
#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

/* Read by the command line, not settings of the server. */
static const char *const command_line_names[] = {"WEIR_URL", "WEIR_API_KEY",     "WEIR_TOKEN",
                                                 "WEIR_CA",  "WEIR_CLIENT_CERT", "WEIR_CLIENT_KEY"};

/* A cluster that runs a service called "weir" injects WEIR_SERVICE_HOST, WEIR_PORT,
 * WEIR_PORT_80_TCP and the like into every container; refusing those would keep Weir from starting
 * under its name. */
static bool is_service_link(struct str name)
{
    return str_is(name, "WEIR_PORT") || str_starts(name, "WEIR_PORT_") ||
           str_starts(name, "WEIR_SERVICE_HOST") || str_starts(name, "WEIR_SERVICE_PORT");
}

static bool is_for_others(struct str name)
{
    for (size_t i = 0; i < LENGTH_OF(command_line_names); i++)
        if (str_is(name, command_line_names[i]))
            return true;
    return is_service_link(name);
}

static const struct setting *find_by_env_name(struct str name)
{
    char env_name[SETTING_ENV_NAME_MAX];
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        setting_env_name(&settings_table[i], env_name);
        if (str_is(name, env_name))
            return &settings_table[i];
    }
    return NULL;
}

/* The variable in small letters differs from its key only in dots, which the guess forgives. */
static enum err_code unknown_variable(struct str name, struct err *err)
{
    enum { NAME_MAX_SHOWN = 64 };
    char key[NAME_MAX_SHOWN + 1] = "";
    char near_name[SETTING_ENV_NAME_MAX] = "";
    size_t prefix = strlen("WEIR_");
    for (size_t i = prefix; i < name.len && i - prefix < NAME_MAX_SHOWN; i++) {
        char c = name.ptr[i];
        key[i - prefix] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    const struct setting *near = setting_nearest(str_of(key));
    if (near)
        setting_env_name(near, near_name);
    return err_set(err, ERR_CONFIG_INVALID, "unknown variable %.*s in the environment%s%s%s",
                   (int)(name.len < NAME_MAX_SHOWN ? name.len : NAME_MAX_SHOWN), name.ptr,
                   near ? "; did you mean " : "", near_name, near ? "?" : "");
}

enum err_code settings_load_environment(struct settings *s, char **environ_list, struct err *err)
{
    for (char **entry = environ_list; entry && *entry; entry++) {
        struct str value = str_of(*entry);
        struct str name = str_cut(&value, '=');
        if (!str_starts(name, "WEIR_") || is_for_others(name))
            continue;
        const struct setting *d = find_by_env_name(name);
        if (!d)
            return unknown_variable(name, err);
        char where[SETTING_ENV_NAME_MAX + 2];
        snprintf(where, sizeof where, "%.*s: ", STR_ARG(name));
        enum err_code code = setting_assign(s, d, value, ORIGIN_ENVIRONMENT, where, err);
        if (code)
            return code;
    }
    return ERR_OK;
}
