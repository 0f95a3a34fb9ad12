/* A bar that is drawn over on a terminal, a line now and then elsewhere; all on stderr. */
#include <stdio.h>
#include <string.h>

#include "cli/traffic/traffic_internal.h"
#include "cli/table.h"

#include "base/banned.h"

enum {
    BAR_COLUMNS_MIN = 5,
    BAR_COLUMNS_MAX = 24,
    BAR_EVERY_MS = 100,
    LINE_EVERY_MS = 5000,
    FORETELL_MS = 5000
};

/* How much of the run is behind us, from 0 to 1. */
static double share_done(const struct traffic *s, int64_t ran_ms)
{
    double by_time = s->for_ms ? (double)ran_ms / (double)s->for_ms : 0;
    double by_jobs = s->jobs ? (double)s->judged / (double)s->jobs : 0;
    double share = by_time > by_jobs ? by_time : by_jobs;
    return share < 1 ? share : 1;
}

/* "3 min left", "" while it is unknown. */
static const char *time_left(const struct traffic *s, int64_t ran_ms, double share, char out[32])
{
    double left_s = share > 0 ? (double)ran_ms / 1000 * (1 - share) / share : 0;
    out[0] = 0;
    if (ran_ms < FORETELL_MS || share < 0.01 || share >= 1 || s->stopping)
        return out;
    if (left_s < 100)
        snprintf(out, 32, ", %.0f s left", left_s);
    else
        snprintf(out, 32, ", %.0f min left", left_s / 60);
    return out;
}

/* ", the next client in 12 s": why nothing more is sent; "" while there is one. */
static const char *wait_for_client(const struct traffic *s, char out[48])
{
    int64_t wait_ms = s->registrar.blocked_until_ms - traffic_now_ms();
    out[0] = 0;
    if (s->ordered && !s->stopping && s->current->cases >= TRAFFIC_ACCOUNT_CASES_MAX && wait_ms > 0)
        snprintf(out, 48, ", the next client in %lld s", (long long)(wait_ms + 999) / 1000);
    return out;
}

static void write_state(const struct traffic *s, char *out, size_t size)
{
    int64_t ran_ms = traffic_now_ms() - s->started_ms;
    double rate = ran_ms > 0 ? (double)s->judged * 1000 / (double)ran_ms : 0;
    char of[32] = "", left[32], client[48];
    if (!s->for_ms)
        snprintf(of, sizeof of, "/%lld", (long long)s->jobs);
    time_left(s, ran_ms, share_done(s, ran_ms), left);
    snprintf(out, size, "%lld%s judged, %lld in flight, %lld surprise%s, %.*f/s%s%s", (long long)s->judged,
             of, (long long)s->in_flight, (long long)s->surprise_count, s->surprise_count == 1 ? "" : "s",
             rate < 10 ? 1 : 0, rate, left, wait_for_client(s, client));
}

/* As wide as fits beside the text: a line that wraps cannot be drawn over. */
static void draw_bar(const struct traffic *s, const char *text)
{
    char bar[BAR_COLUMNS_MAX + 1] = "";
    int width = (int)terminal_width(stderr) - 1, room = width - (int)strlen(text) - 3;
    int columns = room < BAR_COLUMNS_MIN ? 0 : room > BAR_COLUMNS_MAX ? BAR_COLUMNS_MAX : room;
    int full = (int)(share_done(s, traffic_now_ms() - s->started_ms) * columns);
    for (int i = 0; i < columns; i++)
        bar[i] = i < full ? '#' : '.';
    fputc('\r', stderr);
    if (columns)
        fprintf(stderr, "[%s] ", bar);
    fprintf(stderr, "%.*s\033[K", width > 0 ? width : (int)strlen(text), text);
}

void traffic_progress_pause(struct traffic *s)
{
    if (s->bar_drawn)
        fputc('\n', stderr);
    s->bar_drawn = false;
}

void traffic_progress(struct traffic *s, bool last)
{
    int64_t now_ms = traffic_now_ms();
    bool terminal = terminal_is(stderr);
    char text[200];
    if (!terminal && !s->progress_at_ms)
        s->progress_at_ms = now_ms + LINE_EVERY_MS; /* a short run says nothing but its result */
    if (s->in->quiet || (!last && now_ms < s->progress_at_ms))
        return;
    s->progress_at_ms = now_ms + (terminal ? BAR_EVERY_MS : LINE_EVERY_MS);
    write_state(s, text, sizeof text);
    if (terminal) {
        draw_bar(s, text);
        s->bar_drawn = true;
        if (last)
            traffic_progress_pause(s);
    } else if (!last) {
        fprintf(stderr, "%s\n", text);
    }
    fflush(stderr);
}
