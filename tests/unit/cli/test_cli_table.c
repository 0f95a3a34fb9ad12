/* How tables look, to the column. */
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "cli/table.h"

#include "base/banned.h"

/* Prints into a text the caller frees. */
static char *printed(struct text_table *t, size_t width, bool colour)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    text_table_print(t, out, width, colour);
    fclose(out);
    return text;
}

static void looks_like(struct text_table *t, size_t width, bool colour, const char *expected)
{
    char *text = printed(t, width, colour);
    assert_string_equal(text, expected);
    free(text);
}

TEST(test_columns_are_as_wide_as_their_widest_cell)
{
    static const char *const headings[] = {"ID", ">N", "NAME"};
    struct text_table *t = text_table_new(headings, 3);
    text_table_add(t, STR("abc"));
    text_table_addf(t, "%d", 7);
    text_table_add(t, STR("x"));
    text_table_add(t, STR("a"));
    text_table_addf(t, "%d", 1234);
    text_table_add(t, STR_ABSENT);
    looks_like(t, 0, false,
               "ID      N  NAME\n"
               "abc     7  x\n"
               "a    1234  -\n");
    text_table_free(t);
}

TEST(test_characters_are_counted_as_they_are_seen)
{
    struct text_table *t = text_table_new(NULL, 2);
    assert_int_equal(text_columns(STR("r\xc3\xa9sum\xc3\xa9")), 6);
    assert_int_equal(text_columns(STR("re\xcc\x81sume\xcc\x81")), 6); /* e and a combining accent */
    assert_int_equal(text_columns(STR("\xe4\xbb\x95\xe4\xba\x8b")), 4);
    text_table_add(t, STR("r\xc3\xa9sum\xc3\xa9"));
    text_table_add(t, STR("1"));
    text_table_add(t, STR("\xe4\xbb\x95\xe4\xba\x8b"));
    text_table_add(t, STR("2"));
    looks_like(t, 0, false,
               "r\xc3\xa9sum\xc3\xa9  1\n"
               "\xe4\xbb\x95\xe4\xba\x8b    2\n");
    text_table_free(t);
}

TEST(test_text_from_outside_cannot_steer_the_terminal)
{
    struct text_table *t = text_table_new(NULL, 1);
    text_table_add(t, STR("a\033[31mb\nc\x7f\xc2\x9b"
                          "d\xff"
                          "e\xe2\x80\xae"
                          "f"));
    looks_like(t, 0, true, "a?[31mb?c??d?e?f\n");
    text_table_free(t);
}

TEST(test_only_a_given_width_cuts_and_it_cuts_the_widest_column)
{
    const struct str wide = STR("abcdefghijklmnopqrstuvwxyz"), small = STR("12345678");
    struct text_table *t = text_table_new(NULL, 2);
    text_table_add(t, wide);
    text_table_add(t, small);
    looks_like(t, 20, false, "abcdefghi\xe2\x80\xa6  12345678\n");
    text_table_add(t, wide);
    text_table_add(t, small);
    looks_like(t, 0, false, "abcdefghijklmnopqrstuvwxyz  12345678\n");
    text_table_add(t, wide);
    text_table_add(t, small);
    looks_like(t, 5, false, "abcde\xe2\x80\xa6  12345\xe2\x80\xa6\n"); /* never narrower than readable */
    text_table_free(t);
}

TEST(test_a_column_that_must_stay_whole_is_never_cut)
{
    static const char *const headings[] = {"!ID", "NAME"};
    struct text_table *t = text_table_new(headings, 2);
    text_table_add(t, STR("0123456789abcdef"));
    text_table_add(t, STR("a long name"));
    looks_like(t, 25, false,
               "ID                NAME\n"
               "0123456789abcdef  a long\xe2\x80\xa6\n");
    text_table_free(t);
}

TEST(test_no_line_ends_in_blanks)
{
    struct text_table *t = text_table_new(NULL, 3);
    text_table_add(t, STR("a"));
    text_table_add(t, STR("b"));
    text_table_add(t, STR("c"));
    text_table_add(t, STR("long"));
    text_table_add(t, STR(""));
    text_table_add(t, STR(""));
    looks_like(t, 0, false, "a     b  c\nlong\n");
    text_table_free(t);
}

TEST(test_a_cut_never_splits_a_character)
{
    struct text_table *t = text_table_new(NULL, 1);
    text_table_add(t, STR("\xe4\xbb\x95\xe4\xba\x8b\xe4\xbb\x95\xe4\xba\x8b\xe4\xbb\x95"));
    looks_like(t, 8, false, "\xe4\xbb\x95\xe4\xba\x8b\xe4\xbb\x95\xe2\x80\xa6\n"); /* 6 + 1 <= 8 */
    text_table_free(t);
}

TEST(test_headings_come_once_and_later_pages_keep_the_widths)
{
    static const char *const headings[] = {"ID", "NAME"};
    struct text_table *t = text_table_new(headings, 2);
    text_table_add(t, STR("long id"));
    text_table_add(t, STR("a"));
    looks_like(t, 0, false, "ID       NAME\nlong id  a\n");
    text_table_add(t, STR("x"));
    text_table_add(t, STR("b"));
    looks_like(t, 0, false, "x        b\n");
    text_table_free(t);
}

TEST(test_colours_are_written_only_when_asked_for)
{
    struct text_table *t = text_table_new(NULL, 1);
    text_table_add_tone(t, STR("ok"), TONE_GOOD);
    looks_like(t, 0, false, "ok\n");
    text_table_add_tone(t, STR("ok"), TONE_GOOD);
    looks_like(t, 0, true, "\033[32mok\033[0m\n");
    text_table_free(t);
}

TEST(test_states_and_outcomes_have_the_tone_of_their_meaning)
{
    assert_int_equal(tone_of_state(STR("SUCCEEDED")), TONE_GOOD);
    assert_int_equal(tone_of_state(STR("SUCCESS")), TONE_GOOD);
    assert_int_equal(tone_of_state(STR("FAILED")), TONE_BAD);
    assert_int_equal(tone_of_state(STR("CANCELED")), TONE_BAD);
    assert_int_equal(tone_of_state(STR("RUNNING")), TONE_BUSY);
    assert_int_equal(tone_of_state(STR("?")), TONE_PLAIN);
    assert_int_equal(tone_of_state(STR_ABSENT), TONE_PLAIN);
}

ARENA_TEST(test_json_values_are_shown_without_quotes_and_null_as_a_dash, a)
{
    struct text_table *t = text_table_new(NULL, 3);
    const struct json *root;
    struct err err;
    assert_int_equal(json_parse(a, STR("[\"text\",null,{\"a\":[1,2]}]"), &root, &err), ERR_OK);
    for (const struct json *j = root->child; j; j = j->next)
        text_table_add_json(t, j);
    looks_like(t, 0, false, "text  -  {\"a\":[1,2]}\n");
    text_table_free(t);
}
