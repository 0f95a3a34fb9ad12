#include "runtime/sandbox.h"

#include <seccomp.h>
#include <sys/prctl.h>

#include "base/log.h"
#include "base/must.h"
#include "runtime/sandbox_internal.h"

#include "base/banned.h"

const char *sandbox_name(enum sandbox_id id)
{
    static const char *const names[] = {
#define X(id, name) [SANDBOX_##id] = name,
        SANDBOX_LIST(X)
#undef X
    };
    return names[id];
}

enum sandbox_mode sandbox_mode(const struct settings *s)
{
    if (strcmp(s->runtime_sandbox, "off") == 0)
        return SANDBOX_OFF;
    return strcmp(s->runtime_sandbox, "log") == 0 ? SANDBOX_LOG : SANDBOX_ENFORCE;
}

enum sandbox_id sandbox_of(enum process_id process, const struct settings *s)
{
    (void)s; /* no row may ask */
    switch (process) {
#define X(id, name, does, domain, instances, sandbox, ...)                                                   \
    case PROCESS_##id:                                                                                       \
        return sandbox;
        PROCESS_LIST(X)
#undef X
    case PROCESS_COUNT:
        break;
    }
    MUST(process < PROCESS_COUNT);
    return SANDBOX_RUNNER;
}

bool sandbox_has_seccomp(void)
{
    return seccomp_api_get() > 0 && prctl(PR_GET_SECCOMP) >= 0;
}

static enum err_code refused(const char *what, int failed, struct err *err)
{
    return err_set(err, ERR_CONFIG_INVALID,
                   "sandbox: %s: %s; runtime.sandbox off runs without (docs/operations/sandbox.md)", what,
                   strerror(-failed));
}

enum err_code sandbox_enter(enum sandbox_id id, const struct settings *s, struct err *err)
{
    enum sandbox_mode mode = sandbox_mode(s);
    if (!settings_is_on(s->runtime_core_dumps))
        prctl(PR_SET_DUMPABLE, 0);
    if (mode == SANDBOX_OFF)
        return ERR_OK;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_set(err, ERR_CONFIG_INVALID, "sandbox: no_new_privs is refused by the kernel");
    int failed = mode == SANDBOX_ENFORCE ? sandbox_paths_enter(id, s, sandbox_landlock_abi()) : 0;
    if (failed)
        return refused("Landlock", failed, err);
    failed = sandbox_syscalls_enter(id, mode); /* last: it takes away what the lines above need */
    return failed ? refused("seccomp", failed, err) : ERR_OK;
}

enum err_code sandbox_close_network(const struct settings *s, struct err *err)
{
    enum sandbox_mode mode = sandbox_mode(s);
    if (mode == SANDBOX_OFF || settings_store_is_postgres(s))
        return ERR_OK;
    int failed = sandbox_syscalls_close_network(mode);
    return failed ? refused("seccomp", failed, err) : ERR_OK;
}

void sandbox_log(const struct settings *s)
{
    enum sandbox_mode mode = sandbox_mode(s);
    int abi = mode == SANDBOX_ENFORCE ? sandbox_landlock_abi() : 0;
    log_line(mode == SANDBOX_ENFORCE && abi ? LOG_INFO : LOG_WARN, "sandbox", "mode",
             LOG_TEXT(s->runtime_sandbox), "seccomp",
             LOG_TEXT(mode == SANDBOX_OFF   ? "off"
                      : mode == SANDBOX_LOG ? "log"
                                            : "enforce"),
             "landlock_abi", LOG_INT(abi), "core_dumps", LOG_TEXT(s->runtime_core_dumps), NULL);
}

void sandbox_markdown(FILE *out)
{
    sandbox_syscalls_markdown(out);
    fputc('\n', out);
    sandbox_paths_markdown(out);
}
