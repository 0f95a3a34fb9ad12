#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

int list_entry_order(const struct list_entry *x, const struct list_entry *y)
{
    if (x->owner_key != y->owner_key)
        return x->owner_key < y->owner_key ? -1 : 1;
    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int key_order(const struct listing_word *x, const struct listing_word *y)
{
    bool counts = x->counts.ptr != NULL;
    return counts != (y->counts.ptr != NULL) ? (counts ? 1 : -1) : list_entry_order(&x->entry, &y->entry);
}

static int by_key(const void *a, const void *b)
{
    const struct listing_word *x = a, *y = b;
    int order = key_order(x, y);
    return order ? order : x->nth < y->nth ? -1 : 1;
}

void listing_words_add(const struct listing_word *word, void *words)
{
    struct listing_words *w = words;
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? w->capacity * 2 : 64;
        w->words = must_realloc(w->words, w->capacity * sizeof *w->words);
    }
    struct listing_word *mine = &w->words[w->count];
    *mine = *word;
    mine->nth = w->count++;
    if (!word->counts.ptr)
        return;
    if (!w->arena)
        w->arena = arena_new(1 << 12);
    mine->counts = arena_str(w->arena, word->counts);
}

size_t listing_words_last(struct listing_words *w)
{
    size_t n = 0, entries = 0;
    if (w->count)
        qsort(w->words, w->count, sizeof *w->words, by_key);
    for (size_t i = 0; i < w->count; i++)
        if (i + 1 == w->count || key_order(&w->words[i], &w->words[i + 1]) != 0) {
            entries += !w->words[i].counts.ptr;
            w->words[n++] = w->words[i];
        }
    w->count = n;
    return entries;
}

void listing_words_free(struct listing_words *w)
{
    free(w->words);
    arena_free(w->arena);
}
