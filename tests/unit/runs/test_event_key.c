/* The key of a run event against the golden vectors of the contract and ours. */
#include "case.h"

#include "base/must.h"
#include "runs/event_key.h"
#include "vectors.h"

#include "base/banned.h"

enum { VECTORS_MIN = 5 };
#define VECTORS "RunEvents.v2.0.1.idempotency_vectors.json"

static struct event_key_parts parts_of(const struct json *v)
{
    struct event_key_parts p = {.run_id = vectors_text(v, "runId"),
                                .step_id = vectors_text(v, "stepId"),
                                .event_type = vectors_text(v, "eventType"),
                                .plan_id = vectors_text(v, "planId"),
                                .plan_version = vectors_text(v, "planVersion")};
    assert_true(json_to_int(json_get(v, "logicalAttemptId"), &p.logical_attempt));
    return p;
}

/* [RUN-063] [RUN-065..RUN-071] [RUN-084..RUN-086] [RUN-133..RUN-137] */
ARENA_TEST(test_every_vector_gives_its_text_and_its_digest, a)
{
    const struct json *all = vectors_read(a, VECTORS);
    for (const struct json *v = all->child; v; v = v->next) {
        struct event_key_parts p = parts_of(v);
        struct strbuf text = {0};
        char key[EVENT_KEY_LEN + 1];
        event_key_preimage(&p, &text);
        event_key(&p, key);
        assert_true(str_equal(strbuf_str(&text), vectors_text(v, "preimage")));
        assert_true(str_is(vectors_text(v, "expectedSha256Hex"), key));
        strbuf_free(&text);
    }
}

/* [RUN-080] [RUN-081] [RUN-082] [RUN-083] [RUN-088]: what the vectors have to cover. */
ARENA_TEST(test_the_vectors_cover_what_they_have_to, a)
{
    const struct json *all = vectors_read(a, VECTORS);
    unsigned runs = 0, steps = 0, attempts = 0, versions = 0;
    assert_true(all->count >= VECTORS_MIN);
    const struct event_key_parts first = parts_of(all->child);
    for (const struct json *v = all->child; v; v = v->next) {
        struct event_key_parts p = parts_of(v);
        runs += !p.step_id.ptr;
        steps += p.step_id.ptr != NULL;
        attempts += p.logical_attempt != first.logical_attempt;
        versions += !str_equal(p.plan_version, first.plan_version);
    }
    assert_true(runs && steps && attempts && versions);
}

/* [RUN-064]: another order, another delimiter, a field less is another key. */
TEST(test_a_deviation_is_another_key)
{
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
TEST(test_the_contract_is_2_0_1)
{
    const struct event_key_parts p = {STR("r"), {0}, 1, STR("RunStarted"), STR("p"), STR("1")};
    char key[EVENT_KEY_LEN + 1];
    assert_string_equal(RUN_EVENTS_CONTRACT, "2.0.1");
    event_key(&p, key);
    assert_string_equal(key, "625b28c2d127fb05ee3a7738667c0a15645bcdd3f33b3b391ecb0afabd41dae4");
}
