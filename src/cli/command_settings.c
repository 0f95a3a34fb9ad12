/* Settings as a command sees them: file, environment, flags. */
#include "cli/command.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/must.h"
#include "runtime/partition.h"

#include "base/banned.h"

static void free_text(char **text)
{
    free(*text);
}

static enum err_code apply_set(struct settings *s, const char *text, struct err *err)
{
    const char *equals = strchr(text, '='); /* flags_parse made sure of it */
    char *key CLEANUP(free_text) = must_strdup(text);
    key[equals - text] = 0;
    return settings_set(s, key, equals + 1, ORIGIN_FLAG, err);
}

/* Flags that are short for a setting. */
static enum err_code apply_flags(struct settings *s, const struct flags *f, struct err *err)
{
    static const struct {
        enum flag_id flag;
        const char *key;
    } shorts[] = {{FLAG_LISTEN, "server.listen"}, {FLAG_DATA, "data"}, {FLAG_STORE, "store.url"}};
    for (size_t i = 0; i < f->set_count; i++) {
        enum err_code code = apply_set(s, f->sets[i], err);
        if (code)
            return code;
    }
    for (size_t i = 0; i < LENGTH_OF(shorts); i++) {
        const char *value = f->value[shorts[i].flag];
        enum err_code code = value ? settings_set(s, shorts[i].key, value, ORIGIN_FLAG, err) : ERR_OK;
        if (code)
            return code;
    }
    return ERR_OK;
}

/* --port: the host of server.listen, whatever set that, with another port. */
static enum err_code apply_port(struct settings *s, const struct flags *f, struct err *err)
{
    char host[SETTINGS_HOST_MAX], listen[SETTINGS_HOST_MAX + 16];
    uint16_t before;
    int64_t port = 0;
    if (!flags_has(f, FLAG_PORT))
        return ERR_OK;
    if (flags_int(f, FLAG_PORT, 0, UINT16_MAX, &port, err) != ERR_OK)
        return err->code;
    if (!settings_listen_parts(s, host, sizeof host, &before))
        return err_set(err, ERR_CONFIG_INVALID, "--port %lld, but server.listen is off", (long long)port);
    bool brackets = strchr(host, ':') != NULL;
    snprintf(listen, sizeof listen, "%s%s%s:%lld", brackets ? "[" : "", host, brackets ? "]" : "",
             (long long)port);
    return settings_set(s, "server.listen", listen, ORIGIN_FLAG, err);
}

enum err_code cli_settings_load(const struct invocation *in, struct settings *ret_settings, struct err *err)
{
    const char *file = in->flags->value[FLAG_CONFIG];
    settings_init(ret_settings);
    if (file && settings_load_file(ret_settings, file, err) != ERR_OK)
        return err->code;
    if (settings_load_environment(ret_settings, environ, err) != ERR_OK ||
        apply_flags(ret_settings, in->flags, err) != ERR_OK ||
        apply_port(ret_settings, in->flags, err) != ERR_OK ||
        settings_load_secrets(ret_settings, getenv("CREDENTIALS_DIRECTORY"), err) != ERR_OK)
        return err->code;
    settings_complete(ret_settings);
    struct partition_counts counts;
    if (settings_check(ret_settings, err) != ERR_OK)
        return err->code;
    return partition_count_all(ret_settings, partition_cpus(ret_settings), &counts, err);
}

int cli_settings_err(const struct err *err)
{
    cli_fault("%s (%s)", err->detail, err_wire(err->code));
    return (int)exit_code_of_err(err->code);
}

int cli_settings(const struct invocation *in, struct settings *ret_settings)
{
    struct err err;
    return cli_settings_load(in, ret_settings, &err) == ERR_OK ? CLI_OK : cli_settings_err(&err);
}

int command_config_show(const struct invocation *in)
{
    struct settings s CLEANUP(settings_free);
    int code = cli_settings(in, &s);
    settings_warn_of_variables(environ, stderr);
    if (code == CLI_OK)
        settings_show(&s, in->json, flags_has(in->flags, FLAG_ORIGIN), stdout);
    return code;
}

int command_config_markdown(const struct invocation *in)
{
    (void)in;
    settings_markdown(stdout);
    return CLI_OK;
}
