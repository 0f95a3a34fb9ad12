#include "lifecycle/attempts.h"

#include "base/banned.h"

/* One attempt: at_ms 8, duration_ms 4, status 2, length of the error 1, the error. Little endian. */
enum { HEAD_BYTES = 15 };

bool attempts_take(struct str *rest, struct attempt *ret)
{
    uint32_t duration;
    uint16_t status;
    if (rest->len < HEAD_BYTES)
        return false;
    size_t error_len = (uint8_t)rest->ptr[HEAD_BYTES - 1];
    if (rest->len - HEAD_BYTES < error_len)
        return false;
    memcpy(&ret->at_ms, rest->ptr, 8);
    memcpy(&duration, rest->ptr + 8, 4);
    memcpy(&status, rest->ptr + 12, 2);
    ret->duration_ms = duration;
    ret->status = status;
    ret->error = error_len ? (struct str){rest->ptr + HEAD_BYTES, error_len} : STR_ABSENT;
    *rest = (struct str){rest->ptr + HEAD_BYTES + error_len, rest->len - HEAD_BYTES - error_len};
    return true;
}

/* Behind the first ones, so that one more makes ATTEMPTS_KEPT at most. */
static struct str kept(struct str attempts)
{
    struct attempt one;
    struct str rest = attempts;
    size_t count = 0;
    while (attempts_take(&rest, &one))
        count++;
    for (rest = attempts; count >= ATTEMPTS_KEPT && attempts_take(&rest, &one); count--)
        continue;
    return rest;
}

struct str attempts_add(struct arena *a, struct str attempts, const struct attempt *one)
{
    struct str before = kept(attempts);
    size_t error_len = one->error.len < ATTEMPT_ERROR_MAX ? one->error.len : ATTEMPT_ERROR_MAX;
    uint32_t duration = one->duration_ms < 0            ? 0
                        : one->duration_ms > UINT32_MAX ? UINT32_MAX
                                                        : (uint32_t)one->duration_ms;
    uint16_t status = one->status > 0 && one->status < 1000 ? (uint16_t)one->status : 0;
    uint8_t len = (uint8_t)error_len;
    size_t bytes = before.len + HEAD_BYTES + error_len;
    char *p = arena_alloc(a, bytes), *at = p;
    if (before.len)
        memcpy(at, before.ptr, before.len);
    at += before.len;
    memcpy(at, &one->at_ms, 8);
    memcpy(at + 8, &duration, 4);
    memcpy(at + 12, &status, 2);
    memcpy(at + 14, &len, 1);
    if (error_len)
        memcpy(at + HEAD_BYTES, one->error.ptr, error_len);
    return (struct str){p, bytes};
}
