/* Quicksort that works only on the part that is wanted next and keeps the ends of the others: the first part
 * costs one pass over all, the later ones little. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_mark_set.h"

#include "base/banned.h"

enum { AT_ONCE = 512 }; /* so few are sorted as they are */

int mark_order(const struct run_mark_row *x, const struct run_mark_row *y)
{
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int by_mark(const void *a, const void *b)
{
    return mark_order(a, b);
}

void mark_sort_start(struct mark_sort *s, const struct mark_set *of)
{
    *s = (struct mark_sort){.count = of->count, .ends = {of->count}, .depth = of->count > 0};
    s->rows = must_alloc((of->count + 1) * sizeof *s->rows);
    if (of->count)
        memcpy(s->rows, of->rows, of->count * sizeof *s->rows);
}

/* The end of the smaller ones: none is empty, since the one in the middle is not the last. */
static size_t part(struct run_mark_row *rows, size_t from, size_t end)
{
    const struct run_mark_row middle = rows[from + (end - from - 1) / 2];
    size_t low = from, high = end - 1;
    for (;; low++, high--) {
        while (mark_order(&rows[low], &middle) < 0)
            low++;
        while (mark_order(&middle, &rows[high]) < 0)
            high--;
        if (low >= high)
            return high + 1;
        struct run_mark_row swapped = rows[low];
        rows[low] = rows[high];
        rows[high] = swapped;
    }
}

void mark_sort_until(struct mark_sort *s, size_t count)
{
    while (s->sorted < count && s->depth) {
        size_t end = s->ends[s->depth - 1];
        if (end - s->sorted > AT_ONCE && s->depth < MARK_SORT_DEPTH) {
            s->ends[s->depth++] = part(s->rows, s->sorted, end);
            continue;
        }
        qsort(s->rows + s->sorted, end - s->sorted, sizeof *s->rows, by_mark);
        s->sorted = end;
        s->depth--;
    }
}

void mark_sort_free(struct mark_sort *s)
{
    free(s->rows);
    *s = (struct mark_sort){0};
}
