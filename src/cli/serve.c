/* weir serve: what each process of the list runs, and what people see when core is ready. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "base/store_url.h"
#include "cli/command.h"
#include "cli/token_internal.h"
#include "runtime/failure_modes.h"
#include "runtime/supervisor.h"
#include "telemetry/otlp.h"

#include "base/banned.h"

/* A collector's key, most often; the gateway alone has a use for it. */
static void forget_collector_key(void)
{
    char *headers = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    if (headers)
        explicit_bzero(headers, strlen(headers));
}

/* What process_start.settings points to: root's, and after the fork the child's own. */
static struct settings settings;

/* The one process with secrets in its settings. */
static bool take_secrets(const struct process_start *start)
{
    struct err err;
    settings_forget_environment();
    enum err_code code = settings_take_secrets(&settings, start->secrets_fd, &err);
    close(start->secrets_fd);
    if (code != ERR_OK)
        failure_boot_config_invalid(start->name, err.detail, "settings");
    return code == ERR_OK;
}

/* Every child begins here: secrets that it does not need are gone before its main function. */
static int run_process(const struct process_start *start)
{
    static process_main_fn *const mains[] = {
#define X(id, name, does, domain, instances, sandbox, store, asked, main) [PROCESS_##id] = main,
        PROCESS_LIST(X)
#undef X
    };
    if (start->kind->id != PROCESS_GATEWAY)
        forget_collector_key();
    if (start->kind->owns_store && !take_secrets(start))
        return PROCESS_EXIT_CONFIG;
    return mains[start->kind->id](start);
}

/* An address to connect to: a wildcard is where to listen, not where to call. False: there is no such
 * listener, or the system chooses its port. */
static bool base_url(const struct settings *s, bool tls, char *out, size_t size)
{
    char host[SETTINGS_HOST_MAX];
    uint16_t port;
    bool set = tls ? settings_tls_listen_parts(s, host, sizeof host, &port)
                   : settings_listen_parts(s, host, sizeof host, &port);
    if (!set || !port)
        return false;
    bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    bool brackets = !any && strchr(host, ':');
    snprintf(out, size, "http%s://%s%s%s:%u", tls ? "s" : "", brackets ? "[" : "", any ? "127.0.0.1" : host,
             brackets ? "]" : "", port);
    return true;
}

static void print_first_job(const char *url, const char *program)
{
    printf("\nA first job with curl:\n"
           "  client=$(curl -sS -X POST %s/v1/clients | sed 's/.*\"client_id\":\"\\([^\"]*\\)\".*/\\1/')\n"
           "  key=$(curl -sS -X POST %s/v1/clients/$client/keys | sed "
           "'s/.*\"api_key\":\"\\([^\"]*\\)\".*/\\1/')\n"
           "  curl -sS %s/v1/jobs -H \"Authorization: Bearer $key\" -H 'Content-Type: application/json' "
           "-d '{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}'\n",
           url, url, url);
    printf("or:\n"
           "  export WEIR_URL=%s\n"
           "  eval \"$(%s client create --with-key --quiet)\"\n"
           "  %s job submit --work-kind SUCCESS_FAST --wait\n\n",
           url, program, program);
}

struct greeting {
    const struct settings *settings;
    const char *program; /* as it was called, so that the lines shown can be pasted */
    bool quiet;
};

static void greet(void *self)
{
    const struct greeting *g = self;
    char url[SETTINGS_HOST_MAX + 16], tls_url[SETTINGS_HOST_MAX + 16], store_url[SETTINGS_STORE_URL_MAX] = "";
    struct strbuf shown CLEANUP(strbuf_free) = {0};
    struct err err;
    if (settings_store_url(g->settings, store_url, sizeof store_url, &err) != ERR_OK)
        store_url[0] = 0;
    const char *file = store_url_file(str_of(store_url)).ptr;
    store_url_show(str_of(file ? file : store_url), &shown);
    /* Port 0: the port was chosen by the system and stands in core's log line. */
    const struct settings *s = g->settings;
    bool plain = base_url(s, false, url, sizeof url), tls = base_url(s, true, tls_url, sizeof tls_url);
    const char *tls_shown = tls ? tls_url : s->tls_listen;
    bool off = strcmp(s->listen, "off") == 0;
    printf("weir " WEIR_VERSION " serves %s%s%s; data in %s (%s)\n",
           off     ? ""
           : plain ? url
                   : s->listen,
           !off && tls_shown ? " and " : "", tls_shown ? tls_shown : "", s->data_dir, shown.ptr);
    /* Only where its lines work as they stand. */
    if (plain && !g->quiet && s->runner_processes && settings_registration_is_open(s))
        print_first_job(url, g->program);
    fflush(stdout);
}

static int run_with_greeting(const struct settings *s, int secrets_fd, const struct invocation *in)
{
    /* Process titles are written over argv, so its text has to be kept. */
    char *program = must_strdup(in->argc > 0 && in->argv ? in->argv[0] : "weir");
    struct greeting greeting = {s, program, in->quiet};
    const struct supervisor_config config = {
        .settings = s,
        .secrets_fd = secrets_fd,
        .run = run_process,
        .argc = in->argc,
        .argv = in->argv,
        .on_ready = greet,
        .on_ready_self = &greeting,
        .accept_loss = flags_has(in->flags, FLAG_ACCEPT_LOSS),
    };
    log_minimum(settings_log_level(s));
    log_use_format(settings_log_format(s));
    if (otlp_endpoint() && !s->gateway_processes)
        log_line(LOG_WARN, "spans_not_exported", "error_message",
                 LOG_TEXT("OTEL_EXPORTER_OTLP_ENDPOINT is set, but gateway.processes is 0"), NULL);
    if (s->engine_policy_url && !s->gateway_processes)
        log_line(LOG_WARN, "policy_point_not_asked", "error_message",
                 LOG_TEXT("engine.policy_url is set, but gateway.processes is 0: the fallback decides"),
                 NULL);
    int code = supervisor_run(&config);
    free(program);
    return code;
}

/* On a terminal the one line for people says it all; elsewhere the failure has its event, too. */
static int refuse_settings(const char *what, const struct err *err)
{
    log_process("root");
    if (!log_is_text())
        failure_boot_config_invalid("serve", err->detail, what);
    return cli_settings_err(err);
}

/* Settings as they come, secrets among them, in a process of its own: see config/settings_handover.c. */
static int read_settings(const struct invocation *in, int public_fd, int secret_fd)
{
    struct settings s CLEANUP(settings_free);
    struct err err;
    prctl(PR_SET_DUMPABLE, 0);
    if (cli_settings_load(in, &s, &err) != ERR_OK)
        return refuse_settings("settings", &err);
    struct issuer_keys *issuers;
    if (token_issuers_open(&s, clock_wall_ms(&clock_system) / 1000, &issuers, &err) != ERR_OK)
        return refuse_settings("issuers", &err);
    issuer_keys_free(issuers);
    settings_warn_of_variables(environ, stderr);
    settings_warn(&s, stderr);
    return settings_hand_over(&s, public_fd, secret_fd, &err) == ERR_OK ? CLI_OK : cli_err(&err);
}

static int read_settings_apart(const struct invocation *in, int public_fd, int secret_fd)
{
    int status;
    fflush(NULL); /* or the child would print what is buffered once more */
    pid_t reader = fork();
    if (reader == 0)
        exit(read_settings(in, public_fd, secret_fd));
    if (reader < 0 || waitpid(reader, &status, 0) != reader || !WIFEXITED(status)) {
        cli_fault("the process that reads the settings failed");
        return CLI_FAILED;
    }
    return WEXITSTATUS(status);
}

static int serve(const struct invocation *in, int public_fd, int secret_fd)
{
    struct err err;
    int code = read_settings_apart(in, public_fd, secret_fd);
    if (code != CLI_OK)
        return code;
    if (settings_take_public(&settings, public_fd, &err) != ERR_OK)
        return cli_err(&err);
    close(public_fd);
    flags_hide_secrets(in->argc, in->argv);
    settings_overwrite_environment();
    code = run_with_greeting(&settings, secret_fd, in);
    settings_free(&settings);
    return code;
}

int command_serve(const struct invocation *in)
{
    int public_fd = memfd_create("settings", MFD_CLOEXEC);
    int secret_fd = memfd_create("secrets", MFD_CLOEXEC);
    if (public_fd >= 0 && secret_fd >= 0)
        return serve(in, public_fd, secret_fd);
    cli_fault("there is no memory for the settings: memfd_create failed");
    return CLI_FAILED;
}
