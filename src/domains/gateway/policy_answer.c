#include "domains/gateway/policy_answer.h"

#include "base/json.h"

#include "base/banned.h"

static bool is_bool(const struct json *j)
{
    return j && (j->type == JSON_TRUE || j->type == JSON_FALSE);
}

/* Absent and null are no. False: of another type. */
static bool read_bool(const struct json *j, bool *ret)
{
    *ret = j && j->type == JSON_TRUE;
    return !j || j->type == JSON_NULL || is_bool(j);
}

/* As much of it as has room, in whole characters. */
static bool read_reason(const struct json *j, struct str *ret)
{
    *ret = STR_ABSENT;
    if (!j || j->type == JSON_NULL)
        return true;
    if (j->type != JSON_STRING)
        return false;
    size_t len = 0;
    for (size_t n; len < j->text.len; len += n) {
        n = str_utf8_sequence((struct str){j->text.ptr + len, j->text.len - len});
        if (!n || len + n > POLICY_ANSWER_REASON_MAX)
            break;
    }
    *ret = len ? (struct str){j->text.ptr, len} : STR_ABSENT;
    return true;
}

bool policy_answer_read(struct arena *a, struct str body, struct policy_answer *ret)
{
    const struct json *root;
    struct err err;
    if (json_parse(a, body, &root, &err) != ERR_OK)
        return false;
    const struct json *result = json_get(root, "result");
    *ret = (struct policy_answer){.allowed = false};
    if (is_bool(result))
        return read_bool(result, &ret->allowed);
    return result && is_bool(json_get(result, "allowed")) &&
           read_bool(json_get(result, "allowed"), &ret->allowed) &&
           read_bool(json_get(result, "requiresApproval"), &ret->requires_approval) &&
           read_reason(json_get(result, "reason"), &ret->reason);
}
