/* A bar that is drawn over on a terminal, a line now and then elsewhere; all on stderr. */
#include <stdio.h>

#include "cli/simulate/simulate_internal.h"
#include "cli/table.h"

#include "base/banned.h"

enum { BAR_COLUMNS = 24, BAR_EVERY_MS = 100, LINE_EVERY_MS = 5000 };

static double per_second(const struct simulation *s)
{
    int64_t ms = sim_now_ms() - s->started_ms;
    return ms > 0 ? (double)s->judged * 1000 / (double)ms : 0;
}

static void draw_bar(const struct simulation *s)
{
    char bar[BAR_COLUMNS + 1];
    int64_t full = s->jobs ? s->judged * BAR_COLUMNS / s->jobs : 0;
    for (int i = 0; i < BAR_COLUMNS; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_COLUMNS] = 0;
    fprintf(stderr, "\r[%s] %lld/%lld judged, %lld in flight, %lld surprises, %.0f/s ", bar,
            (long long)s->judged, (long long)s->jobs, (long long)s->in_flight, (long long)s->surprise_count,
            per_second(s));
}

void sim_progress(struct simulation *s, bool last)
{
    int64_t now_ms = sim_now_ms();
    bool terminal = terminal_is(stderr);
    if (!terminal && !s->progress_at_ms)
        s->progress_at_ms = now_ms + LINE_EVERY_MS; /* a short run says nothing but its result */
    if (s->in->quiet || (!last && now_ms < s->progress_at_ms))
        return;
    s->progress_at_ms = now_ms + (terminal ? BAR_EVERY_MS : LINE_EVERY_MS);
    if (terminal) {
        draw_bar(s);
        fputs(last ? "\n" : "", stderr);
    } else if (!last) {
        fprintf(stderr, "%lld of %lld judged, %lld in flight, %lld surprises, %.0f/s\n", (long long)s->judged,
                (long long)s->jobs, (long long)s->in_flight, (long long)s->surprise_count, per_second(s));
    }
    fflush(stderr);
}
