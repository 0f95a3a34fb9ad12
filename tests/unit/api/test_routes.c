/* The route table that the build makes of the contracts, and what bodies have to fit. */
#include <string.h>

#include "case.h"

#include "api/handlers.h"

#include "base/banned.h"

static const struct route *find(const char *operation_id)
{
    for (size_t i = 0; i < api_route_count; i++)
        if (strcmp(api_routes[i].operation_id, operation_id) == 0)
            return &api_routes[i];
    fail_msg("no route %s", operation_id);
    return NULL;
}

TEST(a_row_says_what_the_operation_says)
{
    const struct route *r = find("submitJob");
    assert_int_equal(r->method, HTTP_POST);
    assert_string_equal(r->pattern, "/v1/jobs");
    assert_string_equal(r->info->contract, "jobs");
    assert_string_equal(r->info->action, "submit");
    assert_int_equal(r->info->scope, SCOPE_SUBMIT);
    assert_ptr_equal(r->info->handle, handle_submit_job);
    r = find("listReports");
    assert_int_equal(r->info->accepts, ACCEPT_JSON | ACCEPT_CSV);
    assert_string_equal(r->info->action, "list_reports"); /* by its operationId */
    r = find("deleteWebhook");
    assert_int_equal(r->method, HTTP_DELETE);
    assert_int_equal(r->info->scope, SCOPE_ADMIN | EVERY_QUEUE);
    assert_int_equal(find("getHealth")->info->accepts, ACCEPT_JSON | ACCEPT_PLAIN); /* x-weir-also-accepts */
}

TEST(a_word_of_the_file_holds_where_the_operation_has_none)
{
    assert_int_equal(find("submitJob")->info->auth, AUTH_CLIENT);
    assert_int_equal(find("submitJob")->info->rate, RATE_CLASS_CLIENT);
    assert_int_equal(find("createClient")->info->auth, AUTH_OPTIONAL);
    assert_int_equal(find("createClient")->info->rate, RATE_CLASS_NONE);
    assert_int_equal(find("claimTasks")->info->auth, AUTH_WORKER);
    assert_int_equal(find("claimTasks")->info->rate, RATE_CLASS_NONE);
}

static void assert_query(const char *operation_id, bool is_list, const char *const *names)
{
    const struct route_info *info = find(operation_id)->info;
    assert_int_equal(info->is_list, is_list);
    for (size_t i = 0; names[i]; i++)
        assert_string_equal(info->query[i], names[i]);
}

TEST(lists_know_their_query_parameters)
{
    assert_query("listPlans", true, (const char *const[]){"planId", "limit", "cursor", NULL});
    assert_query("getRun", false, (const char *const[]){"at", NULL}); /* one parameter makes no list */
    assert_query("getHealth", false, (const char *const[]){NULL});
    /* a header of its own is no query parameter */
    const struct route_info *events = find("getRunEvents")->info;
    assert_true(events->is_list && events->query[2] && !events->query[3]);
}

static const struct route_body *body_of(const struct route_bodies *c, const char *operation_id)
{
    return route_bodies_of(c, (size_t)(find(operation_id) - api_routes));
}

TEST(a_body_may_be_checked_by_less_than_it_is_described_by)
{
    struct route_bodies *c;
    struct err err;
    assert_int_equal(route_bodies_new(&c, &err), ERR_OK);
    assert_non_null(body_of(c, "submitJob")->described);
    assert_ptr_equal(body_of(c, "submitJob")->described, body_of(c, "submitJob")->checked);
    assert_ptr_not_equal(body_of(c, "startTasks")->described, body_of(c, "startTasks")->checked);
    assert_null(body_of(c, "cancelJob")->described);
    assert_null(body_of(c, "getJob")->described);
    assert_non_null(route_bodies_schema(c, "worker", "#/components/schemas/TaskRef"));
    route_bodies_free(c);
}
