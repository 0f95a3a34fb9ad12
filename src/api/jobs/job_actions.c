/* POST /v1/jobs/{job_id}/cancel and /retry. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "jobs/job_commands.h"

#include "base/banned.h"

static void acted(struct call *c, bool with_attempt)
{
    const struct job_command *command = (const struct job_command *)c->command;
    struct json_writer w;
    call_object(c, 200, &w);
    encode_uuid_v7(&w, "job_id", command->id, command->low);
    encode_text(&w, "state", job_state_text(command->state));
    encode_time_us(&w, "updated_at", command->updated_us);
    if (with_attempt)
        encode_int(&w, "attempt", command->attempt);
    call_send_object(c, &w);
}

static void canceled(struct call *c)
{
    acted(c, false);
}
static void retried(struct call *c)
{
    acted(c, true);
}

static void act(struct call *c, const struct command_type *type, void (*finish)(struct call *c))
{
    struct job_command *command = ARENA_NEW(c->x->arena, struct job_command);
    command->client = c->who.client;
    command->queues = c->who.power.queues;
    if (!call_job_id(c, &command->id, &command->low))
        return;
    call_trace_job(c, command->id);
    call_post(c, &command->base, type, 0, finish);
}

void handle_cancel_job(struct call *c)
{
    act(c, &cancel_command_type, canceled);
}
void handle_retry_job(struct call *c)
{
    act(c, &retry_command_type, retried);
}
