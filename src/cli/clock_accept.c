/* weir clock accept: an operator says that the server's wall clock is right. */
#include "cli/server_call.h"

#include "base/banned.h"

int command_clock_accept(const struct invocation *in)
{
    struct server_answer done CLEANUP(server_answer_free) = {0};
    struct server_call call = {.method = "POST",
                               .path = STR("/ops/v1/clock:accept"),
                               .bearer = server_operator(in),
                               .advice = server_advice_operator};
    int code = server_call(in, &call, &done);
    if (code == CLI_OK && in->json)
        server_print_json(&done);
    else if (code == CLI_OK)
        puts("The clock of the server counts from now on, unless it is before 2020.");
    return code;
}
