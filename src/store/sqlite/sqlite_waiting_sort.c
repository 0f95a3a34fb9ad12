/* Quicksort that works only on the part that is wanted next and keeps the ends of the others: the first part
 * costs one pass over all, the later ones little. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_waiting.h"

#include "base/banned.h"

enum { AT_ONCE = 512 }; /* so few are sorted as they are */

int waiting_compare(const void *a, const void *b)
{
    return waiting_order(a, b);
}

void waiting_sort_start(struct waiting_sort *s, const struct waiting_set *of)
{
    *s = (struct waiting_sort){.count = of->count, .ends = {of->count}, .depth = of->count > 0};
    s->rows = must_alloc((of->count + 1) * sizeof *s->rows);
    if (of->count)
        memcpy(s->rows, of->rows, of->count * sizeof *s->rows);
}

/* The end of the smaller ones: none is empty, since the one in the middle is not the last. */
static size_t part(struct waiting_row *rows, size_t from, size_t end)
{
    const struct waiting_row middle = rows[from + (end - from - 1) / 2];
    size_t low = from, high = end - 1;
    for (;; low++, high--) {
        while (waiting_order(&rows[low], &middle) < 0)
            low++;
        while (waiting_order(&middle, &rows[high]) < 0)
            high--;
        if (low >= high)
            return high + 1;
        struct waiting_row swapped = rows[low];
        rows[low] = rows[high];
        rows[high] = swapped;
    }
}

void waiting_sort_until(struct waiting_sort *s, size_t count)
{
    while (s->sorted < count && s->depth) {
        size_t end = s->ends[s->depth - 1];
        if (end - s->sorted > AT_ONCE && s->depth < WAITING_SORT_DEPTH) {
            s->ends[s->depth++] = part(s->rows, s->sorted, end);
            continue;
        }
        qsort(s->rows + s->sorted, end - s->sorted, sizeof *s->rows, waiting_compare);
        s->sorted = end;
        s->depth--;
    }
}

void waiting_sort_free(struct waiting_sort *s)
{
    free(s->rows);
    *s = (struct waiting_sort){0};
}
