/* Any bytes as the answer of a policy decision point. It is readable exactly when it has one of the two
 * forms, written here a second time; only a yes in one of them allows; a kept reason is short, whole UTF-8
 * and the beginning of what was said. And spaces around it change nothing. */
#include "base/json.h"
#include "base/must.h"
#include "domains/gateway/policy_answer.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_true(const struct json *j)
{
    return j && j->type == JSON_TRUE;
}

static bool is_bool(const struct json *j)
{
    return j->type == JSON_TRUE || j->type == JSON_FALSE;
}

/* Does it have one of the two forms? */
static bool is_answer(const struct json *root)
{
    const struct json *result = json_get(root, "result");
    if (!result || is_bool(result))
        return result;
    const struct json *allowed = json_get(result, "allowed"), *reason = json_get(result, "reason"),
                      *approval = json_get(result, "requiresApproval");
    return allowed && is_bool(allowed) && (!approval || approval->type == JSON_NULL || is_bool(approval)) &&
           (!reason || reason->type == JSON_NULL || reason->type == JSON_STRING);
}

static void check_answer(const struct json *root, const struct policy_answer *p)
{
    const struct json *result = json_get(root, "result"), *said = json_get(result, "reason");
    MUST(p->allowed == (is_true(result) || is_true(json_get(result, "allowed"))));
    MUST(p->requires_approval == is_true(json_get(result, "requiresApproval")));
    if (!p->reason.ptr)
        return;
    MUST(said && said->type == JSON_STRING && str_is_utf8(p->reason));
    MUST(p->reason.len && p->reason.len <= POLICY_ANSWER_REASON_MAX && p->reason.len <= said->text.len);
    MUST(memcmp(p->reason.ptr, said->text.ptr, p->reason.len) == 0);
    MUST(p->reason.len == said->text.len || p->reason.len > POLICY_ANSWER_REASON_MAX - 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(4096);
    struct str body = {(const char *)data, size};
    struct strbuf wider = {0};
    struct policy_answer p, q;
    const struct json *root;
    struct err err;
    bool read = policy_answer_read(a, body, &p);
    MUST(read == (json_parse(a, body, &root, &err) == ERR_OK && is_answer(root)));
    if (read)
        check_answer(root, &p);
    strbuf_add_text(&wider, " \r\n");
    strbuf_add_str(&wider, body);
    strbuf_add_text(&wider, "\t\n");
    MUST(policy_answer_read(a, strbuf_str(&wider), &q) == read);
    MUST(!read || (p.allowed == q.allowed && p.requires_approval == q.requires_approval &&
                   str_equal(p.reason, q.reason)));
    strbuf_free(&wider);
    arena_free(a);
    return 0;
}
