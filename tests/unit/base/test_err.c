#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "base/err.h"
#include "base/must.h"

#include "base/banned.h"

TEST(every_error_has_its_own_code_a_status_and_advice)
{
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT; code++) {
        assert_true(err_http_status((enum err_code)code) >= 400);
        assert_true(err_http_status((enum err_code)code) < 600);
        assert_true(err_title((enum err_code)code)[0]);
        assert_true(err_advice((enum err_code)code)[0]);
        /* A run that is not the caller's is not denied but not found; the code is the same (AS-11). */
        for (int other = ERR_OK; other < code && code != ERR_RUN_HIDDEN; other++)
            assert_string_not_equal(err_wire((enum err_code)code), err_wire((enum err_code)other));
    }
}

TEST(set_fills_and_returns_the_code)
{
    struct err err = {.retry_after_s = 9};
    assert_int_equal(err_set(&err, ERR_JOB_NOT_FOUND, "no job %d", 7), ERR_JOB_NOT_FOUND);
    assert_int_equal(err.code, ERR_JOB_NOT_FOUND);
    assert_int_equal(err.retry_after_s, 0);
    assert_string_equal(err.detail, "no job 7");
}

TEST(what_is_for_the_log_is_not_told)
{
    struct err err;
    err_set(&err, ERR_STORAGE_UNAVAILABLE, "no answer from db.internal");
    assert_string_equal(err_told(&err), "no answer from db.internal");
    err.for_log = true;
    assert_null(strstr(err_told(&err), "db.internal"));
    err_set(&err, ERR_STORAGE_UNAVAILABLE, "%s", "");
    assert_string_equal(err_told(&err), err_title(ERR_STORAGE_UNAVAILABLE));
}

TEST(a_long_detail_is_cut)
{
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    struct err err;
    err_set(&err, ERR_INTERNAL, "%s", text);
    assert_int_equal(strlen(err.detail), sizeof err.detail - 1);
}

/* The 22 codes that clients were promised keep their names and statuses. */
TEST(statuses_are_those_of_the_catalogue)
{
    static const struct {
        enum err_code code;
        const char *wire;
        int status;
    } cases[] = {
        {ERR_REQUEST_MALFORMED, "RFA_REQUEST_MALFORMED", 400},
        {ERR_JOB_VALIDATION_FAILED, "RFA_JOB_VALIDATION_FAILED", 400},
        {ERR_AUTH_INVALID_CREDENTIALS, "RFA_AUTH_INVALID_CREDENTIALS", 401},
        {ERR_AUTH_TOKEN_EXPIRED, "RFA_AUTH_TOKEN_EXPIRED", 401},
        {ERR_AUTH_FORBIDDEN, "RFA_AUTH_FORBIDDEN", 403},
        {ERR_AUTH_API_KEY_DISABLED, "RFA_AUTH_API_KEY_DISABLED", 403},
        {ERR_JOB_NOT_FOUND, "RFA_JOB_NOT_FOUND", 404},
        {ERR_REQUEST_METHOD_NOT_ALLOWED, "RFA_REQUEST_METHOD_NOT_ALLOWED", 405},
        {ERR_REQUEST_NOT_ACCEPTABLE, "RFA_REQUEST_NOT_ACCEPTABLE", 406},
        {ERR_JOB_CONFLICT, "RFA_JOB_CONFLICT", 409},
        {ERR_EXEC_IDEMPOTENCY_CONFLICT, "RFA_EXEC_IDEMPOTENCY_CONFLICT", 409},
        {ERR_REQUEST_PAYLOAD_TOO_LARGE, "RFA_REQUEST_PAYLOAD_TOO_LARGE", 413},
        {ERR_REQUEST_UNSUPPORTED_MEDIA_TYPE, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE", 415},
        {ERR_REQUEST_RATE_LIMITED, "RFA_REQUEST_RATE_LIMITED", 429},
        {ERR_INTERNAL, "RFA_INTERNAL", 500},
        {ERR_STORAGE_DB_ERROR, "RFA_STORAGE_DB_ERROR", 503},
        {ERR_STORAGE_UNAVAILABLE, "RFA_STORAGE_UNAVAILABLE", 503},
        {ERR_EXEC_QUEUE_FULL, "RFA_EXEC_QUEUE_FULL", 503},
        {ERR_EXEC_WORKER_UNAVAILABLE, "RFA_EXEC_WORKER_UNAVAILABLE", 503},
        {ERR_CONFIG_INVALID, "RFA_CONFIG_INVALID", 503},
        {ERR_EXEC_TIMEOUT, "RFA_EXEC_TIMEOUT", 504},
        {ERR_DEPENDENCY_TIMEOUT, "RFA_DEPENDENCY_TIMEOUT", 504},
    };
    assert_int_equal(LENGTH_OF(cases), 22);
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        assert_string_equal(err_wire(cases[i].code), cases[i].wire);
        assert_int_equal(err_http_status(cases[i].code), cases[i].status);
    }
}
