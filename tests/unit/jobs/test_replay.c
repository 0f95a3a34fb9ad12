/* Dead letters: where they wait, who may claim them, and that they take nothing from live deliveries. On both
 * stores, with the rig's clock. */
#include "unit/jobs/deliver_calls.h"

#include "base/uuid.h"
#include "runtime/partition.h"

#include "base/banned.h"

static uint32_t slot_of_letter(struct rig *r, int64_t id)
{
    struct delivery_row d = row_of(r, id);
    struct uuid uuid = uuid_from_v7(d.id, (uint64_t)d.low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&uuid, text);
    return partition_slot(partition_hash(str_of(text), STR_ABSENT));
}

/* What is sent again waits in the slot of its own id, in queues that no gateway claims from. [TOP-095] */
RIG_TEST(test_a_dead_letter_goes_its_own_way, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    for (int i = 0; i < 6; i++) {
        send_test(r, client, hook);
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        int64_t letter = c->tasks[0].head;
        answer(r, &c->tasks[0], 410 - 210 * (i % 2)); /* given up; or delivered, and wanted once more */
        if (i % 2 == 0)
            ask(r, client, hook, WEBHOOK_ENABLE, 0);
        ask(r, client, hook, WEBHOOK_REDELIVER, letter);
        ask(r, client, hook, WEBHOOK_REDELIVER, letter); /* it waits already */
        assert_int_equal(claim_all(r)->task_count, 0);
        uint32_t slot = slot_of_letter(r, letter);
        assert_int_equal(claim_slot(r, "replay", (slot + 1) % DELIVERY_SLOTS)->task_count, 0);
        c = claim_slot(r, "replay", slot);
        assert_int_equal(c->task_count, 1);
        assert_int_equal(c->tasks[0].head, letter);
        assert_int_equal(answer(r, &c->tasks[0], 200), ERR_OK);
        assert_int_equal(row_of(r, letter).state, DELIVERY_DELIVERED);
        assert_int_equal(claim_letters(r)->task_count, 0);
    }
}

RIG_TEST(test_a_webhook_sends_again_only_what_is_its_own, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    int64_t other = new_webhook(r, client, "http://other/1", "job.created");
    send_test(r, client, hook);
    struct claim_command *c = claim_all(r);
    int64_t letter = c->tasks[0].head;
    answer(r, &c->tasks[0], 200);
    assert_int_equal(try_ask(r, client, other, WEBHOOK_REDELIVER, letter), ERR_WEBHOOK_NOT_FOUND);
    assert_int_equal(claim_letters(r)->task_count, 0);
    assert_int_equal(row_of(r, letter).state, DELIVERY_DELIVERED);
}

/* Letters that nobody sends take nothing of the receiver from live deliveries, and the other way round.
 * [TOP-096] */
RIG_TEST(test_dead_letters_and_live_deliveries_take_turns_apart, r)
{
    enum { LETTERS = 40 };
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    int64_t letters[LETTERS];
    for (int i = 0; i < LETTERS; i++) {
        send_test(r, client, hook);
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        letters[i] = c->tasks[0].head;
        answer(r, &c->tasks[0], 200);
    }
    for (int i = 0; i < LETTERS; i++)
        ask(r, client, hook, WEBHOOK_REDELIVER, letters[i]);
    send_test(r, client, hook); /* nobody has claimed a letter */
    struct claim_command *live = claim_all(r);
    assert_int_equal(live->task_count, 1);
    struct claim_command *some = claim_letters(r); /* while the live one is under way */
    assert_true(some->task_count >= 1);
    assert_int_equal(answer(r, &live->tasks[0], 200), ERR_OK);
    size_t sent = 0;
    for (; some->task_count; some = claim_letters(r))
        for (uint32_t i = 0; i < some->task_count; i++, sent++)
            assert_int_equal(answer(r, &some->tasks[i], 200), ERR_OK);
    assert_int_equal(sent, LETTERS);
}

int main(void)
{
    return rig_run_all();
}
