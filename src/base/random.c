#include "base/random.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "base/must.h"

#include "base/banned.h"

enum { BUFFER_BYTES = 4096, DIRECT_BYTES = 256 };

static void fill(void *out, size_t len)
{
    char *p = out;
    while (len) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        MUST(n > 0);
        p += n;
        len -= (size_t)n;
    }
}

/* A forked child must not hand out the bytes its parent has buffered: it counts as another process.
 */
static atomic_uint process = 1;
static void forked(void)
{
    atomic_fetch_add(&process, 1);
}
static void watch_forks(void)
{
    MUST(pthread_atfork(NULL, NULL, forked) == 0);
}

void random_bytes(void *out, size_t len)
{
    static pthread_once_t watching = PTHREAD_ONCE_INIT;
    static _Thread_local unsigned char buffer[BUFFER_BYTES];
    static _Thread_local size_t left;
    static _Thread_local unsigned filled_in;
    if (len > DIRECT_BYTES) {
        fill(out, len);
        return;
    }
    if (left < len || filled_in != atomic_load_explicit(&process, memory_order_relaxed)) {
        pthread_once(&watching, watch_forks);
        fill(buffer, sizeof buffer);
        left = sizeof buffer;
        filled_in = atomic_load_explicit(&process, memory_order_relaxed);
    }
    unsigned char *from = buffer + sizeof buffer - left;
    memcpy(out, from, len);
    memset(from, 0, len); /* a secret handed out does not stay here */
    left -= len;
}

static void system_bytes(void *self, void *out, size_t len)
{
    (void)self;
    random_bytes(out, len);
}

const struct random random_system = {system_bytes, NULL};

struct uuid uuid_v4(void)
{
    uint8_t bytes[sizeof(struct uuid)];
    random_bytes(bytes, sizeof bytes);
    return uuid_v4_of(bytes);
}

uint64_t random_u64(void)
{
    uint64_t v;
    random_bytes(&v, sizeof v);
    return v;
}
