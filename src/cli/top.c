/* weir top: a server at a glance, again every second: processes, queues, pressure, rates and latencies. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/server_call.h"
#include "cli/table.h"
#include "cli/top_view.h"

#include "base/banned.h"

enum {
    LOOK_TIMEOUT_MS = 3000,
    INTERVAL_MS_DEFAULT = 1000,
    INTERVAL_MS_MIN = 100,
    HEIGHT_DEFAULT = 24,
    LOOKS = 3
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* --- asking the server ------------------------------------------------------------------------------ */

struct top {
    const struct invocation *in;
    struct strbuf url;
    int64_t interval_ms;
    struct server_answer metrics[LOOKS], topology[LOOKS], ready[LOOKS];
    struct top_look looks[LOOKS]; /* the one before, the newest, and place for the next, which may fail */
    size_t count;                 /* of looks so far; the newest is looks[(count - 1) % LOOKS] */
};

/* The topology of a server in use is for the operator, or an Admin. In dev it is for every caller on its
 * machine. */
static const char *bearer_of(const struct invocation *in)
{
    static const enum flag_id flags[] = {FLAG_TOKEN, FLAG_OPERATOR_TOKEN};
    static const char *const variables[] = {"WEIR_TOKEN", "WEIR_OPERATOR_TOKEN"};
    for (size_t i = 0; i < LENGTH_OF(flags); i++)
        if (flags_has(in->flags, flags[i]))
            return in->flags->value[flags[i]];
    for (size_t i = 0; i < LENGTH_OF(variables); i++)
        if (getenv(variables[i]) && *getenv(variables[i]))
            return getenv(variables[i]);
    return NULL;
}

static const char *advice(long status, struct str code)
{
    (void)code;
    return status == 401 || status == 403
               ? "give --operator-token, or --token of role Admin or owner (`weir token mint` makes one)"
               : NULL;
}

static enum err_code ask(const struct top *t, const char *path, const char *accept, struct server_answer *ret,
                         struct err *err)
{
    server_answer_free(ret);
    struct server_call call = {.method = "GET",
                               .path = str_of(path),
                               .bearer = bearer_of(t->in),
                               .accept = accept,
                               .timeout_ms = LOOK_TIMEOUT_MS};
    return server_ask(t->in, &call, ret, err);
}

/* CLI_OK: one look more was taken. A fault is told if `aloud`, otherwise not. */
static int look(struct top *t, bool aloud)
{
    size_t at = t->count % LOOKS;
    struct top_look *l = &t->looks[at];
    struct server_answer *topology = &t->topology[at];
    struct err err;
    if (ask(t, "/ops/v1/topology", NULL, topology, &err) != ERR_OK)
        return aloud ? cli_err(&err) : CLI_FAILED;
    if (topology->http.status != 200 || !topology->json)
        return aloud ? server_judge(topology, advice) : CLI_FAILED;
    if (ask(t, "/metrics", "text/plain", &t->metrics[at], &err) != ERR_OK ||
        ask(t, "/readyz", NULL, &t->ready[at], &err) != ERR_OK)
        return aloud ? cli_err(&err) : CLI_FAILED;
    *l = (struct top_look){.topology = t->topology[at].json,
                           .ready = t->ready[at].json,
                           .mono_ms = clock_mono_ms(&clock_system),
                           .wall_ms = clock_wall_ms(&clock_system)};
    metrics_text_read(t->metrics[at].arena, strbuf_str(&t->metrics[at].http.body), &l->metrics);
    t->count++;
    return CLI_OK;
}

static void top_free(struct top *t)
{
    for (size_t i = 0; i < LOOKS; i++) {
        server_answer_free(&t->metrics[i]);
        server_answer_free(&t->topology[i]);
        server_answer_free(&t->ready[i]);
    }
    strbuf_free(&t->url);
}

static struct top_frame frame_of(const struct top *t)
{
    return (struct top_frame){.url = t->url.ptr,
                              .before = &t->looks[(t->count - 2) % LOOKS],
                              .now = &t->looks[(t->count - 1) % LOOKS],
                              .width = terminal_width(stdout),
                              .colour = terminal_colour(stdout)};
}

/* --- the terminal ----------------------------------------------------------------------------------- */

static size_t height(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_row)
        return HEIGHT_DEFAULT;
    return size.ws_row;
}

/* As many lines as there are rows, from the top; the rest of the screen is cleared. */
static void put_frame(struct str text, const char *note)
{
    size_t rows = height();
    fputs("\033[H", stdout);
    for (size_t row = 1; row < rows && text.len; row++) {
        struct str line = str_cut(&text, '\n');
        printf("%.*s\033[K\r\n", STR_ARG(line));
    }
    printf("\033[J\033[%zu;1H\033[7m %s \033[0m\033[K", rows, note);
    fflush(stdout);
}

/* The last line: the age of the picture when the server does not answer, and the keys. */
static void redraw(const struct top *t, bool paused, bool answers)
{
    struct top_frame f = frame_of(t);
    char note[96];
    int64_t age_s = (clock_mono_ms(&clock_system) - f.now->mono_ms) / 1000;
    if (answers)
        snprintf(note, sizeof note, "%s   q quit", paused ? "paused   p go on" : "p pause");
    else
        snprintf(note, sizeof note, "no answer for %lld s   p pause   q quit", (long long)age_s);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    MUST(out);
    top_draw(&f, out);
    MUST(fclose(out) == 0);
    put_frame((struct str){text, len}, note);
    free(text);
}

static bool keys_open(struct termios *ret_former)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, ret_former) != 0)
        return false;
    raw = *ret_former;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) == 0;
}

/* Waits for a key or for the time of the next look. False: it was asked to end. */
static bool wait_for_key(const struct top *t, bool with_keys, bool *paused)
{
    struct pollfd fd = {.fd = with_keys ? STDIN_FILENO : -1, .events = POLLIN};
    char key = 0;
    int n = poll(&fd, 1, (int)t->interval_ms);
    if (interrupted || (n < 0 && errno != EINTR))
        return false;
    if (n <= 0 || read(STDIN_FILENO, &key, 1) <= 0)
        return true;
    if (key == 'p' || key == ' ')
        *paused = !*paused;
    return key != 'q';
}

/* A server that restarts is worth watching: it goes on until it is asked to end. */
static void watch(struct top *t)
{
    struct termios former;
    struct sigaction act = {.sa_handler = on_signal};
    bool paused = false, answers = true, keys = keys_open(&former);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    fputs("\033[?1049h\033[?25l", stdout);
    for (bool go_on = true; go_on && !interrupted;) {
        redraw(t, paused, answers || paused);
        go_on = wait_for_key(t, keys, &paused);
        if (go_on && !paused)
            answers = look(t, false) == CLI_OK;
    }
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &former);
}

/* --- the command ------------------------------------------------------------------------------------ */

static void show_once(const struct top *t)
{
    struct top_frame f = frame_of(t);
    struct strbuf text CLEANUP(strbuf_free) = {0};
    if (!t->in->json) {
        top_draw(&f, stdout);
        return;
    }
    top_write_json(&f, &text);
    printf("%.*s\n", STR_ARG(strbuf_str(&text)));
}

int command_top(const struct invocation *in)
{
    struct top t = {.in = in, .interval_ms = INTERVAL_MS_DEFAULT};
    const char *interval = in->flags->value[FLAG_INTERVAL];
    if (interval && (!duration_parse(str_of(interval), &t.interval_ms) || t.interval_ms < INTERVAL_MS_MIN ||
                     t.interval_ms > INT32_MAX)) {
        cli_fault("--interval must be a time such as 500ms or 2s, 100ms at least, not \"%.40s\"", interval);
        return CLI_USAGE;
    }
    server_url(in, &t.url);
    bool live = !in->json && !flags_has(in->flags, FLAG_ONCE) && terminal_is(stdout);
    int code = look(&t, true);
    if (code == CLI_OK) {
        poll(NULL, 0, live ? INTERVAL_MS_MIN : (int)t.interval_ms);
        code = look(&t, true);
    }
    if (code == CLI_OK && live)
        watch(&t);
    else if (code == CLI_OK)
        show_once(&t);
    top_free(&t);
    return code;
}
