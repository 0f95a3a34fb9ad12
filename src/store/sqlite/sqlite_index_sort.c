/* Quicksort that works only on the part that is wanted next and keeps the ends of the others: the first part
 * costs one pass over all, the later ones little. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_index_set.h"

#include "base/banned.h"

enum { AT_ONCE = 512 }; /* so few are sorted as they are */

int index_order(const struct run_index_row *x, const struct run_index_row *y)
{
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int by_entry(const void *a, const void *b)
{
    return index_order(a, b);
}

void index_sort_start(struct index_sort *s, const struct index_set *of)
{
    *s = (struct index_sort){.count = of->count, .ends = {of->count}, .depth = of->count > 0};
    s->rows = must_alloc((of->count + 1) * sizeof *s->rows);
    if (of->count)
        memcpy(s->rows, of->rows, of->count * sizeof *s->rows);
}

/* The end of the smaller ones: none is empty, since the one in the middle is not the last. */
static size_t part(struct run_index_row *rows, size_t from, size_t end)
{
    const struct run_index_row middle = rows[from + (end - from - 1) / 2];
    size_t low = from, high = end - 1;
    for (;; low++, high--) {
        while (index_order(&rows[low], &middle) < 0)
            low++;
        while (index_order(&middle, &rows[high]) < 0)
            high--;
        if (low >= high)
            return high + 1;
        struct run_index_row swapped = rows[low];
        rows[low] = rows[high];
        rows[high] = swapped;
    }
}

void index_sort_until(struct index_sort *s, size_t count)
{
    while (s->sorted < count && s->depth) {
        size_t end = s->ends[s->depth - 1];
        if (end - s->sorted > AT_ONCE && s->depth < INDEX_SORT_DEPTH) {
            s->ends[s->depth++] = part(s->rows, s->sorted, end);
            continue;
        }
        qsort(s->rows + s->sorted, end - s->sorted, sizeof *s->rows, by_entry);
        s->sorted = end;
        s->depth--;
    }
}

void index_sort_free(struct index_sort *s)
{
    free(s->rows);
    *s = (struct index_sort){0};
}
