#include <stdlib.h>

#include "case.h"

#include "base/hash.h"
#include "base/heap.h"
#include "base/must.h"

#include "base/banned.h"

struct item {
    int name;
    struct heap_node node;
};

TEST(smallest_key_is_first)
{
    struct heap h = {0};
    static const uint64_t keys[] = {5, 3, UINT64_MAX, 0, 9, 3};
    struct item items[LENGTH_OF(keys)] = {0};
    assert_null(heap_first(&h));
    for (size_t i = 0; i < LENGTH_OF(keys); i++) {
        items[i].name = (int)i;
        heap_put(&h, &items[i].node, keys[i]);
    }
    assert_int_equal(CONTAINER_OF(heap_first(&h), struct item, node)->name, 3);
    uint64_t before = 0;
    for (size_t left = LENGTH_OF(keys); left; left--) {
        struct heap_node *n = heap_first(&h);
        assert_true(n->key >= before);
        before = n->key;
        heap_remove(&h, n);
        assert_false(heap_holds(n));
    }
    assert_null(heap_first(&h));
    heap_free(&h);
}

TEST(removing_what_is_not_in_changes_nothing)
{
    struct heap h = {0};
    struct heap_node in = {0}, out = {0};
    heap_put(&h, &in, 1);
    heap_remove(&h, &out);
    assert_ptr_equal(heap_first(&h), &in);
    heap_remove(&h, &in);
    heap_remove(&h, &in);
    assert_null(heap_first(&h));
    heap_free(&h);
}

TEST(putting_again_moves_the_node)
{
    struct heap h = {0};
    struct heap_node a = {0}, b = {0};
    heap_put(&h, &a, 1);
    heap_put(&h, &b, 2);
    heap_put(&h, &a, 3);
    assert_ptr_equal(heap_first(&h), &b);
    heap_put(&h, &a, 0);
    assert_ptr_equal(heap_first(&h), &a);
    assert_int_equal(h.count, 2);
    heap_free(&h);
}

/* Puts, moves and removes at random, against the plainest model there is: look at all of them. */
TEST(heap_agrees_with_a_list)
{
    enum { NODES = 300, STEPS = 20000 };
    struct heap h = {0};
    static struct heap_node nodes[NODES];
    uint64_t seed = 42;
    for (int step = 0; step < STEPS; step++) {
        struct heap_node *n = &nodes[hash_mix(seed++) % NODES];
        if (hash_mix(seed++) % 3)
            heap_put(&h, n, hash_mix(seed++) % 1000);
        else
            heap_remove(&h, n);
        uint32_t held = 0;
        uint64_t smallest = UINT64_MAX;
        for (size_t i = 0; i < NODES; i++)
            if (heap_holds(&nodes[i])) {
                held++;
                smallest = nodes[i].key < smallest ? nodes[i].key : smallest;
                assert_true(heap_has(&h, &nodes[i]));
            }
        assert_int_equal(h.count, held);
        if (held)
            assert_true(heap_first(&h)->key == smallest);
    }
    heap_free(&h);
}
