/* Who of several contracts is called, and in which order. */
#include "case.h"

#include <stdio.h>

#include "api/contract_set.h"
#include "http/server.h"

#include "base/banned.h"

static char told[200], self_one[] = "one", self_two[] = "two";

static void tell(const char *what, void *self)
{
    size_t len = strlen(told);
    snprintf(told + len, sizeof told - len, "%s %s, ", what, (const char *)self);
}

static enum err_code open_one(struct api *a, void **ret_self, struct err *err)
{
    (void)a;
    (void)err;
    *ret_self = self_one;
    return ERR_OK;
}
static enum err_code open_two(struct api *a, void **ret_self, struct err *err)
{
    (void)a;
    (void)err;
    *ret_self = self_two;
    return ERR_OK;
}
static enum err_code open_none(struct api *a, void **ret_self, struct err *err)
{
    (void)a;
    (void)ret_self;
    return err_set(err, ERR_CONFIG_INVALID, "no");
}
static void close_it(void *self)
{
    tell("close", self);
}
static void committed(void *self, const struct unit *u)
{
    (void)u;
    tell("committed", self);
}
static bool has_more(void *self, struct unit *u)
{
    (void)u;
    tell("more", self);
    return true;
}
static bool has_no_more(void *self, struct unit *u)
{
    (void)u;
    tell("no more", self);
    return false;
}
static bool serves(void *self, struct http_exchange *x)
{
    tell("serves", self);
    return x->over_unix_socket;
}

static const struct task_owner first_owner = {.number = 7}, second_owner = {.number = 3};
static const struct contract_task tasks_of_one[] = {{.owner = &first_owner}, {.owner = NULL}};
static const struct contract_task tasks_of_two[] = {{.owner = &second_owner}, {.owner = NULL}};
static const struct contract one = {.name = "one",
                                    .tasks = tasks_of_one,
                                    .open = open_one,
                                    .close = close_it,
                                    .committed = committed,
                                    .housekeep = has_more,
                                    .serve_internal = serves};
static const struct contract nothing = {.name = "nothing"};
static const struct contract two = {.name = "two",
                                    .tasks = tasks_of_two,
                                    .open = open_two,
                                    .close = close_it,
                                    .committed = committed,
                                    .housekeep = has_no_more,
                                    .serve_internal = serves};
static const struct contract broken = {.name = "broken", .open = open_none, .close = close_it};

static struct contract_set opened(void)
{
    static const struct contract *const list[] = {&one, &nothing, &two, NULL};
    struct contract_set s = {.count = 0};
    struct err err;
    told[0] = 0;
    assert_int_equal(contract_set_open(&s, list, NULL, &err), ERR_OK);
    return s;
}

TEST(each_that_has_the_function_is_called_in_order_with_its_own_state)
{
    struct contract_set s = opened();
    contract_set_committed(&s, NULL);
    assert_string_equal(told, "committed one, committed two, ");
    assert_string_equal(contract_set_self(&s, &two), "two");
    assert_null(contract_set_self(&s, &nothing));
}

TEST(more_of_one_does_not_keep_another_from_its_part)
{
    struct contract_set s = opened();
    assert_true(contract_set_housekeep(&s, NULL));
    assert_string_equal(told, "more one, no more two, ");
    assert_false(contract_set_save(&s, NULL));
}

TEST(a_call_is_served_by_one)
{
    struct contract_set s = opened();
    struct http_exchange inside = {.over_unix_socket = true}, outside = {.over_unix_socket = false};
    assert_true(contract_set_serve_internal(&s, &inside));
    assert_string_equal(told, "serves one, ");
    told[0] = 0;
    assert_false(contract_set_serve_internal(&s, &outside));
    assert_string_equal(told, "serves one, serves two, ");
}

TEST(the_kernel_gets_all_owners_and_each_leads_to_its_kind)
{
    struct contract_set s = opened();
    assert_int_equal(s.task_count, 2);
    assert_ptr_equal(s.owners[1], &second_owner);
    assert_ptr_equal(contract_set_task(&s, &second_owner), &tasks_of_two[0]);
}

TEST(what_was_opened_before_a_failure_is_closed_the_last_first)
{
    static const struct contract *const list[] = {&one, &two, &broken, &nothing, NULL};
    struct contract_set s = {.count = 0};
    struct err err;
    told[0] = 0;
    assert_int_equal(contract_set_open(&s, list, NULL, &err), ERR_CONFIG_INVALID);
    contract_set_close(&s);
    assert_string_equal(told, "close two, close one, ");
}
