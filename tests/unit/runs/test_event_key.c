/* The key of a run event against the golden vectors of the contract and ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/must.h"
#include "runs/event_key.h"

#include "base/banned.h"

enum { FILE_MAX = 1 << 18, VECTORS_MIN = 5 };

struct vectors {
    struct arena *arena;
    const struct json *all;
};

static int read_vectors(void **state)
{
    static struct vectors v;
    static char text[FILE_MAX];
    char path[512];
    struct err err;
    const char *folder = getenv("WEIR_VECTORS");
    snprintf(path, sizeof path, "%s/RunEvents.v2.0.1.idempotency_vectors.json", folder ? folder : ".");
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    v.arena = arena_new(1 << 16);
    assert_int_equal(json_parse(v.arena, (struct str){text, n}, &v.all, &err), ERR_OK);
    *state = &v;
    return 0;
}

static int free_vectors(void **state)
{
    arena_free(((struct vectors *)*state)->arena);
    return 0;
}

static struct str text_of(const struct json *v, const char *name)
{
    const struct json *m = json_get(v, name);
    return m ? m->text : (struct str){0};
}

static struct event_key_parts parts_of(const struct json *v)
{
    struct event_key_parts p = {.run_id = text_of(v, "runId"),
                                .step_id = text_of(v, "stepId"),
                                .event_type = text_of(v, "eventType"),
                                .plan_id = text_of(v, "planId"),
                                .plan_version = text_of(v, "planVersion")};
    assert_true(json_to_int(json_get(v, "logicalAttemptId"), &p.logical_attempt));
    return p;
}

/* [RUN-063] [RUN-065..RUN-071] [RUN-084..RUN-086] [RUN-133..RUN-137] */
static void test_every_vector_gives_its_text_and_its_digest(void **state)
{
    const struct vectors *all = *state;
    for (const struct json *v = all->all->child; v; v = v->next) {
        struct event_key_parts p = parts_of(v);
        struct strbuf text = {0};
        char key[EVENT_KEY_LEN + 1];
        event_key_preimage(&p, &text);
        event_key(&p, key);
        assert_true(str_equal(strbuf_str(&text), text_of(v, "preimage")));
        assert_true(str_is(text_of(v, "expectedSha256Hex"), key));
        strbuf_free(&text);
    }
}

/* [RUN-080] [RUN-081] [RUN-082] [RUN-083] [RUN-088]: what the vectors have to cover. */
static void test_the_vectors_cover_what_they_have_to(void **state)
{
    const struct vectors *all = *state;
    unsigned runs = 0, steps = 0, attempts = 0, versions = 0;
    assert_true(all->all->count >= VECTORS_MIN);
    const struct event_key_parts first = parts_of(all->all->child);
    for (const struct json *v = all->all->child; v; v = v->next) {
        struct event_key_parts p = parts_of(v);
        runs += !p.step_id.ptr;
        steps += p.step_id.ptr != NULL;
        attempts += p.logical_attempt != first.logical_attempt;
        versions += !str_equal(p.plan_version, first.plan_version);
    }
    assert_true(runs && steps && attempts && versions);
}

/* [RUN-064]: another order, another delimiter, a field less is another key. */
static void test_a_deviation_is_another_key(void **state)
{
    (void)state;
    const struct event_key_parts right = {STR("a"), STR("b"), 1, STR("c"), STR("d"), STR("e")};
    const struct event_key_parts wrong[] = {
        {STR("b"), STR("a"), 1, STR("c"), STR("d"), STR("e")},
        {STR("a"), STR("b"), 1, STR("d"), STR("c"), STR("e")},
        {STR("a"), STR("b"), 1, STR("c"), STR("e"), STR("d")},
        {STR("a"), {0}, 1, STR("c"), STR("d"), STR("e")},
        {STR("a"), STR("b"), 2, STR("c"), STR("d"), STR("e")},
        {STR("a "), STR("b"), 1, STR("c"), STR("d"), STR("e")},
        {STR("A"), STR("b"), 1, STR("c"), STR("d"), STR("e")},
    };
    char key[EVENT_KEY_LEN + 1], other[EVENT_KEY_LEN + 1];
    event_key(&right, key);
    for (size_t i = 0; i < LENGTH_OF(wrong); i++) {
        event_key(&wrong[i], other);
        assert_string_not_equal(key, other);
    }
}

/* [RUN-001]: who changes the formula changes this digest, and then the contract needs a new major version. */
static void test_the_contract_is_2_0_1(void **state)
{
    (void)state;
    const struct event_key_parts p = {STR("r"), {0}, 1, STR("RunStarted"), STR("p"), STR("1")};
    char key[EVENT_KEY_LEN + 1];
    assert_string_equal(RUN_EVENTS_CONTRACT, "2.0.1");
    event_key(&p, key);
    assert_string_equal(key, "625b28c2d127fb05ee3a7738667c0a15645bcdd3f33b3b391ecb0afabd41dae4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_vector_gives_its_text_and_its_digest),
        cmocka_unit_test(test_the_vectors_cover_what_they_have_to),
        cmocka_unit_test(test_a_deviation_is_another_key),
        cmocka_unit_test(test_the_contract_is_2_0_1),
    };
    return cmocka_run_group_tests(tests, read_vectors, free_vectors);
}
