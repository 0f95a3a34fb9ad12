/* What a key may do, and what it may give to another; the list of a client's keys. */
#include <stdio.h>
#include <string.h>

#include "case.h"

#include "lifecycle/key_list.h"

#include "base/banned.h"

static bool lacks(struct key_power holder, struct key_power wanted, const char *expected)
{
    const char *what = "";
    struct str name = STR("");
    char text[80];
    bool found = key_power_lacks(&holder, &wanted, &what, &name);
    snprintf(text, sizeof text, "%s%.*s", what, STR_ARG(name));
    assert_string_equal(text, expected);
    return found;
}

TEST(test_no_power_is_given_that_the_holder_has_not)
{
    struct key_power all = {.scopes = SCOPE_ALL}, mail = {.scopes = SCOPE_ALL, .queues = STR("mail,news")};
    for (unsigned holder = 0; holder <= SCOPE_ALL; holder++)
        for (unsigned wanted = 0; wanted <= SCOPE_ALL; wanted++) {
            const char *what;
            struct str name;
            struct key_power h = {.scopes = holder}, w = {.scopes = wanted};
            assert_int_equal(key_power_lacks(&h, &w, &what, &name), (wanted & ~holder) != 0);
        }
    assert_true(lacks((struct key_power){.scopes = SCOPE_READ | SCOPE_ADMIN}, all, "the scope submit"));
    struct key_power unknown = {.scopes = 1u << KEY_SCOPE_COUNT}; /* nobody can say what it would be */
    assert_false(lacks((struct key_power){.scopes = SCOPE_READ}, unknown, ""));
    assert_true(lacks(mail, all, "every queue"));
    assert_true(lacks(mail, (struct key_power){.queues = STR("mail,other")}, "the queue other"));
    assert_false(lacks(mail, (struct key_power){.scopes = SCOPE_WORK, .queues = STR("news")}, ""));
    assert_false(lacks(mail, mail, ""));
    assert_false(lacks(all, mail, ""));
}

TEST(test_a_queue_is_had_by_its_whole_name)
{
    struct str queues = STR("mail,news");
    assert_true(key_queues_have(queues, STR("mail")) && key_queues_have(queues, STR("news")));
    assert_false(key_queues_have(queues, STR("mai")) || key_queues_have(queues, STR("mail,news")) ||
                 key_queues_have(queues, STR("")) || key_queues_have(queues, STR("newsx")));
    assert_true(key_queues_have(STR_ABSENT, STR("any")));
}

ARENA_TEST(test_queues_are_sorted_and_stand_once, a)
{
    struct str names[] = {STR("b"), STR("a"), STR("b"), STR("a-1"), STR("b")};
    struct str made = key_queues_of(a, names, 5);
    assert_true(str_is(made, "a,a-1,b"));
    assert_true(key_queues_are_sound(made) && key_queues_are_sound(STR_ABSENT));
    assert_false(key_queues_are_sound(STR("b,a")) || key_queues_are_sound(STR("a,a")) ||
                 key_queues_are_sound(STR("a,,b")) || key_queues_are_sound(STR("")));
}

/* Names are cut out of other texts: what stands behind one is not part of it. */
ARENA_TEST(test_names_are_sorted_by_their_own_letters, a)
{
    for (int turned = 0; turned < 2; turned++) {
        struct str names[] = {{"ba", 2}, {"bz", 1}, {"bb", 2}};
        if (turned) {
            names[0] = (struct str){"bz", 1};
            names[1] = (struct str){"ba", 2};
        }
        assert_true(str_is(key_queues_of(a, names, 3), "b,ba,bb"));
    }
}

/* One that begins like another comes before it; and there are so many of them at most. */
TEST(test_a_list_of_queues_is_sound_up_to_its_bound)
{
    assert_true(key_queues_are_sound(STR("a")) && key_queues_are_sound(STR("a,ab,b")));
    assert_false(key_queues_are_sound(STR("ab,a")) || key_queues_are_sound(STR("a,c,b")) ||
                 key_queues_are_sound(STR(",a")) || key_queues_are_sound(STR("a,b,a")));
    for (int count = KEY_QUEUES_MAX - 1; count <= KEY_QUEUES_MAX + 1; count++) {
        struct strbuf text = {0};
        for (int i = 0; i < count; i++)
            strbuf_addf(&text, "%sq%02d", i ? "," : "", i);
        assert_int_equal(key_queues_are_sound(strbuf_str(&text)), count <= KEY_QUEUES_MAX);
        strbuf_free(&text);
    }
}

TEST(test_all_scopes_are_stored_as_none_so_that_new_ones_are_among_them)
{
    assert_int_equal(key_scopes_stored(SCOPE_ALL), 0);
    for (unsigned s = 1; s <= SCOPE_ALL; s++)
        assert_int_equal(key_scopes_of_stored(key_scopes_stored(s)), s);
    enum key_scope scope;
    for (int s = 0; s < KEY_SCOPE_COUNT; s++)
        assert_true(key_scope_parse(str_of(key_scope_text((enum key_scope)s)), &scope) && (int)scope == s);
    assert_false(key_scope_parse(STR("Submit"), &scope) || key_scope_parse(STR(""), &scope));
}

ARENA_TEST(test_a_row_without_a_list_lists_its_active_key, a)
{
    struct key_list one = key_list_read(STR_ABSENT, 7), none = key_list_read(STR_ABSENT, 0);
    assert_true(one.count == 1 && one.ids[0] == 7 && none.count == 0);
    struct key_list three = {.ids = {5, 7, 9}, .count = 3};
    key_list_remove(&three, 7);
    key_list_remove(&three, 8);
    struct key_list back = key_list_read(key_list_text(&three, a), 9);
    assert_true(back.count == 2 && back.ids[0] == 5 && back.ids[1] == 9);
}

TEST(test_a_list_of_keys_is_read_up_to_its_bound)
{
    int64_t ids[KEYS_LISTED_MAX + 2];
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        ids[i] = 100 + (int64_t)i;
    for (size_t count = KEYS_LISTED_MAX - 1; count <= KEYS_LISTED_MAX + 2; count++) {
        struct key_list list = key_list_read((struct str){(const char *)ids, count * sizeof ids[0]}, 7);
        size_t read = count < KEYS_LISTED_MAX ? count : KEYS_LISTED_MAX;
        assert_int_equal(list.count, read);
        assert_memory_equal(list.ids, ids, read * sizeof ids[0]);
    }
}
