/* The lists of a program agree: what stands in one of them belongs to a contract, and to one alone. Built for
 * weir, and once more for a program with one contract more (tests/sample_contract). */
#include "case.h"

#include "api/api.h"
#include "core/contracts.h"
#include "schema/embedded.h"
#include "store/verify_rules.h"

#include "base/banned.h"

static size_t contracts_with_table(const struct table *t)
{
    size_t n = 0;
    for (size_t c = 0; contracts[c]; c++)
        for (const struct table *const *at = contracts[c]->tables; at && *at; at++)
            n += *at == t;
    return n;
}

static size_t contracts_with_file(const char *name)
{
    size_t n = 0;
    for (size_t c = 0; contracts[c]; c++)
        for (const char *const *at = contracts[c]->openapi; at && *at; at++)
            n += strcmp(*at, name) == 0;
    return n;
}

static size_t contracts_with_rules(const struct verify_rules *rules)
{
    size_t n = 0;
    for (size_t c = 0; contracts[c]; c++)
        n += contracts[c]->verify == rules;
    return n;
}

/* Timers are the kernel's. */
TEST(every_other_table_is_of_one_contract)
{
    size_t listed = 0;
    for (unsigned i = 0; i < table_count; i++)
        if (contracts_with_table(tables[i]) != (tables[i] != &table_timer_row))
            fail_msg("table %s is of %zu contracts", tables[i]->name, contracts_with_table(tables[i]));
    for (size_t c = 0; contracts[c]; c++)
        for (const struct table *const *at = contracts[c]->tables; at && *at; at++)
            listed++;
    assert_int_equal(listed, table_count - 1);
}

TEST(every_route_is_of_one_contract_and_every_contract_has_its_files)
{
    size_t files = 0, listed = 0;
    for (size_t i = 0; i < api_route_count; i++)
        assert_int_equal(contracts_with_file(api_routes[i].info->contract), 1);
    for (; embedded_contracts[files].name; files++)
        assert_int_equal(contracts_with_file(embedded_contracts[files].name), 1);
    for (size_t c = 0; contracts[c]; c++)
        for (const char *const *at = contracts[c]->openapi; at && *at; at++)
            listed++;
    assert_int_equal(listed, files);
}

TEST(verify_has_the_rules_of_each_contract)
{
    size_t rules = 0, listed = 0;
    for (; verify_rules[rules]; rules++)
        assert_int_equal(contracts_with_rules(verify_rules[rules]), 1);
    for (size_t c = 0; contracts[c]; c++)
        listed += contracts[c]->verify != NULL;
    assert_int_equal(listed, rules);
}

TEST(every_owner_of_tasks_has_the_verbs_that_the_kernel_calls)
{
    for (size_t c = 0; contracts[c]; c++)
        for (const struct contract_task *t = contracts[c]->tasks; t && t->owner; t++) {
            const struct task_owner *o = t->owner;
            assert_true(o->head && o->finished && o->lost && o->released);
        }
}

TEST(no_two_kinds_of_timers_have_one_number_or_name)
{
    const struct timer_kind *kinds[CONTRACT_TIMERS_MAX];
    size_t count = 0;
    for (size_t c = 0; contracts[c]; c++)
        for (const struct timer_kind *const *t = contracts[c]->timers; t && *t; t++)
            kinds[count++] = *t;
    assert_int_not_equal(count, 0);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(kinds[i]->number, kinds[k]->number);
            assert_string_not_equal(kinds[i]->name, kinds[k]->name);
        }
}

TEST(no_two_owners_of_tasks_have_one_number_or_name)
{
    const struct task_owner *owners[CONTRACT_TASKS_MAX];
    size_t count = 0;
    for (size_t c = 0; contracts[c]; c++)
        for (const struct contract_task *t = contracts[c]->tasks; t && t->owner; t++)
            owners[count++] = t->owner;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(owners[i]->number, owners[k]->number);
            assert_string_not_equal(owners[i]->name, owners[k]->name);
        }
}
