#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "base/random.h"

#include "base/banned.h"

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(numbers_do_not_repeat)
{
    enum { COUNT = 100000 };
    uint64_t *drawn = must_alloc(sizeof *drawn * COUNT);
    for (size_t i = 0; i < COUNT; i++)
        drawn[i] = random_u64();
    qsort(drawn, COUNT, sizeof *drawn, by_value);
    for (size_t i = 1; i < COUNT; i++)
        assert_true(drawn[i - 1] != drawn[i]);
    free(drawn);
}

TEST(every_length_is_filled)
{
    static const size_t lengths[] = {1, 7, 16, 255, 256, 257, 4096, 10000};
    for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
        unsigned char *seen = must_alloc(lengths[i]);
        for (int round = 0; round < 40; round++) { /* a byte stays 0 forty times: 2^-320 */
            unsigned char *bytes = must_alloc(lengths[i]);
            random_bytes(bytes, lengths[i]);
            for (size_t b = 0; b < lengths[i]; b++)
                seen[b] |= bytes[b];
            free(bytes);
        }
        for (size_t b = 0; b < lengths[i]; b++)
            assert_true(seen[b] != 0);
        free(seen);
    }
}

static void *draw(void *out)
{
    *(uint64_t *)out = random_u64();
    return NULL;
}

TEST(threads_draw_from_their_own_buffers)
{
    uint64_t drawn[4];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw, &drawn[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(drawn[i] != drawn[j]);
}

/* Ids and secrets of a child must not be those of its parent. */
TEST(a_forked_child_draws_other_bytes)
{
    random_u64(); /* the buffer is filled and would be inherited */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        uint64_t drawn[8];
        for (size_t i = 0; i < LENGTH_OF(drawn); i++)
            drawn[i] = random_u64();
        _exit(write(ends[1], drawn, sizeof drawn) == (ssize_t)sizeof drawn ? 0 : 1);
    }
    uint64_t theirs[8], ours[8];
    for (size_t i = 0; i < LENGTH_OF(ours); i++)
        ours[i] = random_u64();
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < LENGTH_OF(ours); i++)
        assert_true(ours[i] != theirs[i]);
    close(ends[0]);
    close(ends[1]);
}
