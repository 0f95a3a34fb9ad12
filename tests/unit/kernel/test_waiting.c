/* Who is next: in the order they came while a batch takes all, else in turn by client. */
#include <stdlib.h>

#include "case.h"

#include "base/hash.h"
#include "base/must.h"
#include "kernel/waiting.h"

enum { FLOOD = 1, QUIET = 2 };

struct bench {
    struct waiting w;
    struct command commands[20000];
    size_t used;
};

static int set_up(void **state)
{
    struct bench *b = must_alloc(sizeof *b);
    waiting_init(&b->w);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static struct command *add(struct bench *b, int64_t client, int64_t weight)
{
    struct command *c = &b->commands[b->used++];
    *c = (struct command){.client = client, .weight = weight, .bytes = 100};
    waiting_add(&b->w, c);
    return c;
}

static void take(struct bench *b, int64_t weight, struct command_list *batch)
{
    struct batch_room room = {1 << 20, weight};
    list_init(batch);
    waiting_take(&b->w, &room, batch);
}

/* Place in the batch, from 1; 0: it is not in it. */
static size_t place_of(const struct command_list *batch, const struct command *wanted)
{
    size_t n = 1;
    for (const struct command *c = batch->first; c; c = c->next, n++)
        if (c == wanted)
            return n;
    return 0;
}

#define QUEUE_TEST(name, parameter) TEST_WITH(name, struct bench *parameter, set_up, tear_down)

QUEUE_TEST(what_a_batch_can_take_whole_keeps_its_order, b)
{
    struct command_list batch;
    for (int i = 0; i < 100; i++)
        add(b, i % 3, 1);
    take(b, 100, &batch);
    assert_int_equal(batch.count, 100);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(place_of(&batch, &b->commands[i]), i + 1);
    assert_int_equal(b->w.count, 0);
    assert_int_equal(b->w.bytes, 0);
    assert_int_equal(b->w.new_weight, 0);
}

/* A batch is full by either. What fits to the last keeps the order in which it came; else clients
 * take turns, and here one of them is all there is time for. */
QUEUE_TEST(a_batch_is_full_by_bytes_or_weight, b)
{
    static const struct {
        struct batch_room room;
        size_t taken;
    } rows[] = {{{1000, 30}, 10}, {{999, 30}, 10}, {{900, 30}, 9}, {{1000, 29}, 10},
                {{1000, 27}, 9},  {{0, 30}, 0},    {{1000, 0}, 0}};
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct command_list batch;
        struct batch_room room = rows[i].room;
        list_init(&batch);
        b->w = (struct waiting){.ring_first = NULL};
        waiting_init(&b->w);
        b->used = 0;
        for (int n = 0; n < 10; n++)
            add(b, n % 2 ? FLOOD : QUIET, 3);
        waiting_take(&b->w, &room, &batch);
        assert_int_equal(batch.count, rows[i].taken);
        assert_int_equal(b->w.count, 10 - rows[i].taken);
        assert_int_equal(b->w.bytes, 100 * (10 - (int64_t)rows[i].taken));
        assert_int_equal(room.bytes, rows[i].room.bytes - 100 * (int64_t)rows[i].taken);
        assert_int_equal(room.weight, rows[i].room.weight - 3 * (int64_t)rows[i].taken);
        if (!rows[i].taken)
            continue;
        bool in_order = i == 0; /* the only one that has room for all */
        assert_ptr_equal(batch.first, &b->commands[0]);
        assert_ptr_equal(batch.first->next, &b->commands[in_order ? 1 : 2]);
    }
}

/* Two queues are taken as one, in the order of their numbers, if a batch has room for both; else none is. */
QUEUE_TEST(two_queues_are_taken_together_or_not_at_all, b)
{
    static const struct {
        struct batch_room room;
        bool fits;
    } rows[] = {{{1000, 30}, true}, {{999, 30}, false}, {{1000, 29}, false}};
    struct waiting *other = must_alloc(sizeof *other);
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct command_list batch;
        struct batch_room room = rows[i].room;
        list_init(&batch);
        b->w = *other = (struct waiting){.ring_first = NULL};
        waiting_init(&b->w);
        waiting_init(other);
        for (int n = 0; n < 10; n++) {
            struct command *c = &b->commands[n];
            *c = (struct command){.client = n, .weight = 3, .bytes = 100, .number = (uint64_t)n + 1};
            waiting_add(n % 3 ? other : &b->w, c);
        }
        assert_int_equal(waiting_take_both(&b->w, other, &room, &batch), rows[i].fits);
        assert_int_equal(batch.count, rows[i].fits ? 10 : 0);
        assert_int_equal(b->w.count + other->count, rows[i].fits ? 0 : 10);
        assert_int_equal(b->w.bytes + other->bytes, rows[i].fits ? 0 : 1000);
        for (size_t n = 0; rows[i].fits && n < 10; n++)
            assert_int_equal(place_of(&batch, &b->commands[n]), n + 1);
        assert_true(!rows[i].fits ||
                    (!b->w.new_bytes && !b->w.new_weight && !other->new_bytes && !other->new_weight));
    }
    free(other);
}

/* What was put back, or sorted in before, is not overtaken. */
QUEUE_TEST(what_a_batch_did_not_get_to_comes_first, b)
{
    struct command_list batch, rest;
    struct waiting *other = must_alloc(sizeof *other);
    struct batch_room room = {100000, 100};
    waiting_init(other);
    list_init(&rest);
    for (int i = 0; i < 3; i++)
        add(b, QUIET, 1);
    take(b, 3, &batch);
    for (struct command *c; (c = list_take(&batch));)
        list_add(&rest, c);
    waiting_put_back(&b->w, &rest);
    assert_null(rest.first);
    add(b, FLOOD, 1);
    assert_false(waiting_take_both(&b->w, other, &room, &batch));
    assert_false(waiting_take_both(other, &b->w, &room, &batch));
    take(b, 100, &batch);
    assert_int_equal(batch.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(place_of(&batch, &b->commands[i]), i + 1);
    free(other);
}

/* The client that comes last, behind a flood of another's, is in the next batch; the flood's own last is not:
 * taking turns is what does it. */
QUEUE_TEST(a_flood_by_one_client_does_not_delay_the_other, b)
{
    struct command_list batch;
    for (int i = 0; i < 5000; i++)
        add(b, FLOOD, 1);
    const struct command *quiet = add(b, QUIET, 1), *control = add(b, FLOOD, 1);
    take(b, 1000, &batch);
    assert_int_equal(batch.count, 1000);
    assert_in_range(place_of(&batch, quiet), 1, 2 * WAITING_QUANTUM + 1);
    assert_int_equal(place_of(&batch, control), 0);
}

QUEUE_TEST(bulk_calls_count_by_their_items, b)
{
    struct command_list batch;
    const struct command *quiet[200];
    for (int i = 0; i < 64; i++)
        add(b, FLOOD, 1000);
    for (int i = 0; i < 200; i++)
        quiet[i] = add(b, QUIET, 1);
    take(b, 2048, &batch);
    size_t heavy = batch.count;
    for (int i = 0; i < 200; i++) {
        heavy -= place_of(&batch, quiet[i]) != 0;
        assert_int_not_equal(place_of(&batch, quiet[i]), 0);
    }
    assert_in_range(heavy, 1, 2); /* 200 and two thousand: the flood goes on, too */
}

QUEUE_TEST(everybody_gets_the_same_share, b)
{
    struct command_list batch;
    size_t share[8] = {0};
    for (int i = 0; i < 2000; i++)
        add(b, 0, 1);
    for (int64_t client = 1; client < 8; client++)
        for (int i = 0; i < 2000; i++)
            add(b, client, 1);
    take(b, 4096, &batch);
    for (const struct command *c = batch.first; c; c = c->next)
        share[c->client]++;
    for (int client = 0; client < 8; client++)
        assert_in_range(share[client], 512 - WAITING_QUANTUM, 512 + WAITING_QUANTUM);
}

QUEUE_TEST(commands_of_one_client_stay_in_order, b)
{
    struct command_list batch;
    size_t served = 0;
    int64_t last[50];
    for (int i = 0; i < 50; i++)
        last[i] = -1;
    srand(7);
    for (int round = 0; served < 15000; round++) {
        for (int i = 0; b->used < 15000 && i < 700; i++)
            add(b, rand() % 50, 1 + rand() % 300)->received_us = (int64_t)b->used;
        take(b, 20000, &batch);
        struct command *c;
        struct command_list back;
        list_init(&back);
        for (size_t n = 0; (c = list_take(&batch)); n++) {
            if (n >= 100 && round % 3 == 0) { /* this batch did not get to them */
                list_add(&back, c);
                continue;
            }
            assert_true(c->received_us > last[c->client]);
            last[c->client] = c->received_us;
            served++;
        }
        waiting_put_back(&b->w, &back);
    }
    assert_int_equal(served, 15000); /* each once, none lost */
    assert_int_equal(b->w.count, 0);
    assert_int_equal(b->w.bytes, 0);
}

QUEUE_TEST(more_clients_than_places_are_all_served, b)
{
    struct command_list batch;
    size_t served = 0;
    for (int i = 0; i < 10000; i++)
        add(b, i, 1);
    for (int i = 0; i < 10; i++) {
        take(b, 1000, &batch);
        served += batch.count;
    }
    assert_int_equal(served, 10000);
    assert_null(b->w.ring_first);
}

/* The n-th client of those that fall into this set. */
static int64_t client_of_set(uint64_t set, int n)
{
    int64_t client = 0;
    for (int seen = -1; seen < n;)
        seen += hash_mix((uint64_t)++client) % WAITING_SETS == set;
    return client;
}

static size_t ring_length(const struct waiting *w)
{
    size_t n = 0;
    for (const struct waiting_flow *f = w->ring_first; f; f = f->next)
        n++;
    return n;
}

/* Eight of a set have turns of their own; one more has its turn together with another. */
QUEUE_TEST(the_ninth_client_of_a_set_shares_a_turn, b)
{
    struct command_list batch;
    for (uint64_t set = 0; set < WAITING_SETS; set += WAITING_SETS - 1) {
        for (int i = 0; i <= WAITING_WAYS; i++)
            for (int n = 0; n < 2; n++)
                add(b, client_of_set(set, i), 1);
        take(b, 1, &batch);
        assert_int_equal(ring_length(&b->w), WAITING_WAYS);
        take(b, 100, &batch);
        assert_null(b->w.ring_first);
    }
}

/* Whatever place in its set it has, and whoever has left the others. */
QUEUE_TEST(a_client_has_one_turn_while_places_beside_it_become_free, b)
{
    struct command_list batch;
    int64_t client = client_of_set(3, WAITING_WAYS - 1);
    for (int i = 0; i < WAITING_WAYS - 1; i++)
        add(b, client_of_set(3, i), 1);
    for (int i = 0; i < 2 * WAITING_QUANTUM; i++)
        add(b, client, 1);
    take(b, WAITING_WAYS, &batch); /* one of each: the others are done */
    assert_int_equal(batch.count, WAITING_WAYS);
    add(b, client, 1);
    take(b, 1, &batch);
    assert_int_equal(ring_length(&b->w), 1);
}

/* However much of the last one it has used. */
QUEUE_TEST(who_comes_back_has_a_whole_turn, b)
{
    struct command_list batch;
    for (int i = 0; i < 5000; i++)
        add(b, FLOOD, 1);
    for (int i = 0; i < WAITING_QUANTUM - 1; i++)
        add(b, QUIET, 1);
    take(b, 2 * WAITING_QUANTUM - 1, &batch);
    for (int i = 0; i < WAITING_QUANTUM; i++)
        add(b, QUIET, 1);
    take(b, 2 * WAITING_QUANTUM, &batch);
    size_t quiet = 0;
    for (const struct command *c = batch.first; c; c = c->next)
        quiet += c->client == QUIET;
    assert_int_equal(quiet, WAITING_QUANTUM);
}

/* As if there had been none. */
QUEUE_TEST(after_a_crowd_a_batch_takes_again_what_fits_in_order, b)
{
    struct command_list batch;
    for (int i = 0; i < 10; i++)
        add(b, i % 2 ? FLOOD : QUIET, 1);
    take(b, 9, &batch);
    take(b, 9, &batch);
    assert_true(!b->w.count && !b->w.new_bytes && !b->w.new_weight);
    b->used = 0;
    what_a_batch_can_take_whole_keeps_its_order(b);
}
