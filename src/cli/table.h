/* cli/table.h - columns for people: aligned by what is seen, not by bytes.
 *
 * Text comes from outside: control characters and broken UTF-8 are shown as '?', so that nothing
 * printed can steer a terminal. Cells are cut, with an ellipsis, only when a width is given (a
 * terminal's). Long lists are printed in pages: headings come once, columns never get narrower. */
#ifndef WEIR_CLI_TABLE_H
#define WEIR_CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/json_members.h"

enum tone { TONE_PLAIN, TONE_GOOD, TONE_BAD, TONE_BUSY, TONE_WARN, TONE_DIM, TONE_COUNT };

enum { TEXT_TABLE_COLUMNS_MAX = 12 };

struct text_table;

/* Headings are borrowed; one that starts with '>' stands for a column of numbers, aligned right, one
 * that starts with '!' for a column that is never cut. NULL headings: none are printed. */
struct text_table *text_table_new(const char *const *headings, size_t columns);
/* For rows that are printed one by one: columns are at least so wide from the start. Without headings their
 * alignment stays. */
struct text_table *text_table_new_wide(const char *const *headings, const size_t *widths, size_t columns,
                                       bool shows_headings);
struct text_table *text_table_free(struct text_table *t); /* NULL is fine; always returns NULL */

/* The next cell, from left to right, row by row. Absent text is shown as "-". */
void text_table_add(struct text_table *t, struct str text);
void text_table_add_tone(struct text_table *t, struct str text, enum tone tone);
void text_table_addf(struct text_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* null: "-"; strings as they are; anything else as JSON. */
void text_table_add_json(struct text_table *t, const struct json *value);
/* The same in the colour of its state, when the member of this name is one. */
void text_table_add_member(struct text_table *t, const char *name, const struct json *value);
/* One row of two cells, for "name  value" lists. */
void text_table_pair(struct text_table *t, const char *name, const struct json *value);
/* Such rows for the members of these names that are there. */
void text_table_pairs(struct text_table *t, const struct json *object, const char *const *names,
                      size_t count);
void text_table_show_and_free(struct text_table *t); /* on stdout */

/* Prints the rows added since the last time. `width` 0: as wide as it gets. */
void text_table_print(struct text_table *t, FILE *out, size_t width, bool colour);
/* The same with width and colour as `out` wants them. */
void text_table_show(struct text_table *t, FILE *out);

/* A state on the wire, or a level; of those that are not known: TONE_PLAIN. */
enum tone tone_of_state(struct str state);

void text_age(int64_t seconds, char *out, size_t size);     /* "90 s", "5 min", "3 h" */
size_t text_columns(struct str text);                       /* how many columns of a terminal it fills */
struct str text_harmless(struct arena *a, struct str text); /* without what steers a terminal */
struct str text_cut(struct str text, size_t columns); /* the longest beginning that fills at most these */
bool terminal_is(FILE *out);
size_t terminal_width(FILE *out);                    /* 0 when it is no terminal */
size_t terminal_height(FILE *out);                   /* the same */
bool terminal_colour(FILE *out);                     /* a terminal, and NO_COLOR is not set */
const char *tone_start(enum tone tone, bool colour); /* "" without colour */
const char *tone_end(enum tone tone, bool colour);

#endif
