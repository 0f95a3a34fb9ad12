/* weir client list|suspend|resume|purge-jobs|delete: the commands of an operator. */
#include "base/must.h"
#include "cli/pages.h"
#include "cli/server_call.h"
#include "cli/table.h"

#include "base/banned.h"

/* ---- client list ---- */

static struct str text_of(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    return j && j->type == JSON_STRING ? j->text : STR_ABSENT;
}

static void add_row(struct text_table *t, const struct json *client)
{
    struct str state = text_of(client, "state");
    text_table_add_json(t, json_get(client, "client_id"));
    text_table_add_tone(t, state, str_is(state, "active") ? TONE_GOOD : TONE_WARN);
    text_table_add_json(t, json_get(client, "keys"));
    text_table_add_json(t, json_get(client, "active_jobs"));
    text_table_add_json(t, json_get(client, "queued_jobs"));
    text_table_add_json(t, json_get(client, "created_at"));
    text_table_add_json(t, json_get(client, "last_seen_at"));
}

static int get_page(void *invocation, struct str path, struct server_answer *ret_page)
{
    const struct invocation *in = invocation;
    struct server_call call = {
        .method = "GET", .path = path, .bearer = server_operator(in), .advice = server_advice_operator};
    return server_call(in, &call, ret_page);
}

int command_client_list(const struct invocation *in)
{
    static const char *const headings[] = {"!CLIENT ID", "!STATE",  ">KEYS",    ">ACTIVE",
                                           ">QUEUED",    "CREATED", "LAST SEEN"};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&path, "/ops/v1/clients");
    if (flags_has(in->flags, FLAG_STATE)) {
        strbuf_add_text(&path, "?state=");
        http_escape(&path, str_of(in->flags->value[FLAG_STATE]));
    }
    return pages_show(in, &(struct pages){.path = strbuf_str(&path),
                                          .id = "client_id",
                                          .cursor = "next_cursor",
                                          .nothing = "There are no clients.",
                                          .headings = headings,
                                          .columns = LENGTH_OF(headings),
                                          .add_row = add_row,
                                          .get = get_page,
                                          .self = (void *)(uintptr_t)in});
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
        printf("%s %.*s\n", in->args[0], STR_ARG(text_of(done.json, "state")));
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
        const struct json *count = json_get(done.json, "canceled"), *rest = json_get(done.json, "more");
        int64_t n = 0;
        if (count && json_to_int(count, &n))
            canceled += n;
        more = rest && rest->type == JSON_TRUE;
    }
    if (in->json)
        printf("{\"client_id\":\"%s\",\"canceled\":%lld}\n", in->args[0], (long long)canceled);
    else
        printf("%s: %lld jobs canceled\n", in->args[0], (long long)canceled);
    return CLI_OK;
}
