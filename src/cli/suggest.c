#include "cli/suggest.h"

#include "base/banned.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to put in, take out, change, or swap with their neighbour (Damerau's distance). */
static size_t distance(struct str a, struct str b)
{
    size_t rows[3][SUGGEST_WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        above[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            row[j] = above[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            row[j] = least(row[j], least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[b.len];
}

static bool is_beginning(struct str word, struct str known)
{
    return word.len >= 2 && word.len < known.len && memcmp(word.ptr, known.ptr, word.len) == 0;
}

const char *suggest_nearest(struct str word, const char *const *known, size_t count)
{
    const char *best = NULL;
    size_t best_distance = word.len / 3 + 2; /* further away is no help */
    if (!word.len || word.len > SUGGEST_WORD_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        struct str candidate = str_of(known[i]);
        if (candidate.len > SUGGEST_WORD_MAX)
            continue;
        size_t d = is_beginning(word, candidate) ? 1 : distance(word, candidate);
        if (d < best_distance && d < candidate.len) {
            best_distance = d;
            best = known[i];
        }
    }
    return best;
}
