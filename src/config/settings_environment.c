/* WEIR_* variables. */
#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

/* Read by the command line, not settings of the server. */
static const char *const command_line_names[] = {"WEIR_URL", "WEIR_API_KEY",     "WEIR_TOKEN",
                                                 "WEIR_CA",  "WEIR_CLIENT_CERT", "WEIR_CLIENT_KEY"};

static bool ends_with(struct str name, const char *end)
{
    size_t len = strlen(end);
    return name.len >= len && memcmp(name.ptr + name.len - len, end, len) == 0;
}

static bool contains(struct str name, const char *part)
{
    return memmem(name.ptr, name.len, part, strlen(part)) != NULL;
}

/* Kubernetes tells every container of the services around it: of one called weir, or weir-NAME, by WEIR_PORT,
 * WEIR_NAME_SERVICE_HOST, WEIR_NAME_PORT_80_TCP_ADDR and the like. A plain WEIR_NAME_PORT is a URL then; a
 * number is a mistake. */
static bool is_service_link(struct str name, struct str value)
{
    if (ends_with(name, "_PORT") && !contains(name, "_PORT_") && !contains(name, "_SERVICE_"))
        return contains(value, "://");
    return contains(name, "_PORT_") || contains(name, "_SERVICE_HOST") || contains(name, "_SERVICE_PORT");
}

static bool is_for_others(struct str name, struct str value)
{
    for (size_t i = 0; i < LENGTH_OF(command_line_names); i++)
        if (str_is(name, command_line_names[i]))
            return true;
    return is_service_link(name, value);
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
static void warn_of_variable(struct str name, FILE *out)
{
    enum { NAME_MAX_SHOWN = 64 };
    char key[NAME_MAX_SHOWN + 1] = "";
    char near_name[SETTING_ENV_NAME_MAX] = "";
    size_t prefix = strlen("WEIR_");
    for (size_t i = prefix; i < name.len && i - prefix < NAME_MAX_SHOWN; i++) {
        char c = name.ptr[i];
        key[i - prefix] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    const struct setting *near =
        ends_with(name, "_PORT") ? setting_find(STR("server.listen")) : setting_nearest(str_of(key));
    if (near)
        setting_env_name(near, near_name);
    fprintf(out, "weir: warning: the variable %.*s is no setting and is ignored%s%s%s\n",
            (int)(name.len < NAME_MAX_SHOWN ? name.len : NAME_MAX_SHOWN), name.ptr,
            near ? "; did you mean " : "", near_name, near ? "?" : "");
}

static bool next_of_ours(char ***entry, struct str *ret_name, struct str *ret_value)
{
    for (; *entry && **entry; ++*entry) {
        *ret_value = str_of(**entry);
        *ret_name = str_cut(ret_value, '=');
        if (str_starts(*ret_name, "WEIR_"))
            return ++*entry;
    }
    return false;
}

enum err_code settings_load_environment(struct settings *s, char **environ_list, struct err *err)
{
    struct str name, value;
    while (next_of_ours(&environ_list, &name, &value)) {
        const struct setting *d = find_by_env_name(name);
        char where[SETTING_ENV_NAME_MAX + 2];
        if (!d)
            continue; /* settings_warn_of_variables() tells */
        snprintf(where, sizeof where, "%.*s: ", STR_ARG(name));
        enum err_code code = setting_assign(s, d, value, ORIGIN_ENVIRONMENT, where, err);
        if (code)
            return code;
    }
    return ERR_OK;
}

void settings_warn_of_variables(char **environ_list, FILE *out)
{
    struct str name, value;
    while (next_of_ours(&environ_list, &name, &value))
        if (!find_by_env_name(name) && !is_for_others(name, value))
            warn_of_variable(name, out);
}
