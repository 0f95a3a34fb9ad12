/* weir client list|suspend|resume|purge-jobs|delete: the commands of an operator. */
#include "base/must.h"
#include "cli/pages.h"
#include "fields/operator_fields.h"

#include "base/banned.h"

/* ---- client list ---- */

static const struct list_column columns[] = {
    {"!CLIENT ID", MEMBER(client, client_id)},
    {"!STATE", MEMBER(client, state)},
    {">KEYS", MEMBER(client, keys)},
    {">ACTIVE", MEMBER(client, active_jobs)},
    {">QUEUED", MEMBER(client, queued_jobs)},
    {"CREATED", MEMBER(client, created_at)},
    {"LAST SEEN", MEMBER(client, last_seen_at)},
};

int command_client_list(const struct invocation *in)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&path, "/ops/v1/clients");
    query_add(&path, "state", in->flags->value[FLAG_STATE]);
    return pages_show(in, &(struct pages){.path = strbuf_str(&path),
                                          .id = MEMBER(client, client_id),
                                          .nothing = "There are no clients.",
                                          .columns = columns,
                                          .count = LENGTH_OF(columns),
                                          .bearer = server_operator(in),
                                          .advice = server_advice_operator});
}

/* ---- the others ---- */

/* One call; the answer is the caller's to free. */
static int operate(const struct invocation *in, const char *verb, struct server_answer *ret_done)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&path, "/ops/v1/clients/");
    http_escape(&path, str_of(in->args[0]));
    strbuf_addf(&path, ":%s", verb);
    struct server_call call = {.method = "POST",
                               .path = strbuf_str(&path),
                               .bearer = server_operator(in),
                               .advice = server_advice_operator};
    return server_call(in, &call, ret_done);
}

static int operate_once(const struct invocation *in, const char *verb)
{
    struct server_answer done CLEANUP(server_answer_free) = {0};
    int code = operate(in, verb, &done);
    if (code == CLI_OK && in->json)
        server_print_json(&done);
    else if (code == CLI_OK)
        printf("%s %.*s\n", in->args[0], STR_ARG(json_text(done.json, "state")));
    return code;
}

int command_client_suspend(const struct invocation *in)
{
    return operate_once(in, "suspend");
}

int command_client_resume(const struct invocation *in)
{
    return operate_once(in, "resume");
}

int command_client_delete(const struct invocation *in)
{
    return operate_once(in, "delete");
}

/* A call cancels a thousand jobs at most: again until there are none. */
int command_client_purge_jobs(const struct invocation *in)
{
    int64_t canceled = 0;
    bool more = true;
    while (more) {
        struct server_answer done CLEANUP(server_answer_free) = {0};
        int code = operate(in, "purge-jobs", &done);
        if (code != CLI_OK)
            return code;
        canceled += json_int(done.json, "canceled", 0);
        more = json_is_true(done.json, "more");
    }
    if (in->json)
        printf("{\"client_id\":\"%s\",\"canceled\":%lld}\n", in->args[0], (long long)canceled);
    else
        printf("%s: %lld jobs canceled\n", in->args[0], (long long)canceled);
    return CLI_OK;
}
