/* Records of runs that people look for years later: every decision is found by its signal, by its policy
 * decision and in its lists, every alert in its own, every run by its name; and what these lead to is there.
 * Plans have the steps they count, each with its index entry. */
#include "base/hash.h"
#include "lifecycle/signals.h"
#include "store/verify_runs.h"

#include "base/banned.h"

static struct record_sum *sum_of(struct verify *v, uint8_t bucket)
{
    return &run_check(v)->records[bucket - LIST_ALERTS];
}

static uint64_t entry_hash(int64_t owner, int64_t id)
{
    return hash_mix(hash_mix((uint64_t)owner) + (uint64_t)id);
}

void verify_expect_record(struct verify *v, uint8_t bucket, int64_t owner, int64_t id)
{
    struct record_sum *s = sum_of(v, bucket);
    s->rows++;
    s->rows_digest += entry_hash(owner, id);
}

void verify_listed_record(struct verify *v, const struct list_entry *e)
{
    struct record_sum *s = sum_of(v, e->bucket);
    s->listed++;
    s->listed_digest += entry_hash(e->owner_key, e->id);
}

void verify_record_places(struct verify *v)
{
    static const char *const names[VERIFY_RECORD_LISTS] = {
        [LIST_ALERTS - LIST_ALERTS] = "alerts of tenants",
        [LIST_ALERTS_OF_RUN - LIST_ALERTS] = "alerts of runs",
        [LIST_DECISIONS - LIST_ALERTS] = "decisions of runs",
        [LIST_DECISIONS_OPEN - LIST_ALERTS] = "decisions to be processed",
    };
    for (int i = 0; i < VERIFY_RECORD_LISTS; i++) {
        const struct record_sum *s = &run_check(v)->records[i];
        if (s->rows != s->listed || s->rows_digest != s->listed_digest)
            verify_say(v, "the lists of %s hold %llu, there are %llu, or they are not the same", names[i],
                       (unsigned long long)s->listed, (unsigned long long)s->rows);
    }
}

/* --- decisions --------------------------------------------------------------------------------------- */

static bool is_sound(const struct decision_row *d)
{
    return d->uuid.len == 16 && d->signal.len == 16 && d->policy.len == 16 && d->payload.ptr &&
           d->state >= 0 && d->state < SIGNAL_DECISION_COUNT && d->type >= 0 && d->type < SIGNAL_TYPE_COUNT &&
           (!d->actor_tenant.ptr || d->state == DECISION_REJECTED);
}

/* The two ways to find it lead to it. */
static enum err_code check_keys(struct verify *v, const struct decision_row *d)
{
    struct signal_key_row signal = {.run = d->run, .signal = d->signal};
    struct policy_key_row policy = {.policy = d->policy};
    struct arena *a = arena_new(1024);
    struct reader *r = v->reader;
    bool by_signal = false, by_policy = false;
    enum err_code code =
        r->ops->reader_row(r, &table_signal_key_row, &signal, a, &by_signal, &run_check(v)->err);
    if (code == ERR_OK)
        code = r->ops->reader_row(r, &table_policy_key_row, &policy, a, &by_policy, &run_check(v)->err);
    if (code == ERR_OK && !(by_signal && signal.decision == d->id))
        verify_say(v, "decision %lld: is not found by its signalId", (long long)d->id);
    if (code == ERR_OK && !(by_policy && policy.decision == d->id))
        verify_say(v, "decision %lld: is not found by its policyDecisionId", (long long)d->id);
    arena_free(a);
    return code;
}

static bool check_decision(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct decision_row *d = row;
    verify_seen(v);
    run_check(v)->decisions++;
    verify_expect_record(v, LIST_DECISIONS, d->run, d->id);
    if (d->state == DECISION_ACCEPTED && !d->processed_ms)
        verify_expect_record(v, LIST_DECISIONS_OPEN, d->run, d->id);
    if (!verify_has_run(v, d->run))
        verify_say(v, "decision %lld: is about a run that is not there", (long long)d->id);
    if (is_sound(d))
        return check_keys(v, d) == ERR_OK;
    verify_say(v, "decision %lld: is damaged", (long long)d->id);
    return true;
}

/* Its entry in the list of its tenant says the same. */
static enum err_code check_listed(struct verify *v, const struct plan_row *p)
{
    struct plan_version_row entry = {.tenant = p->tenant, .back = -p->num};
    struct arena *a = arena_new(1024);
    bool found = false;
    enum err_code code =
        v->reader->ops->reader_row(v->reader, &table_plan_version_row, &entry, a, &found, &run_check(v)->err);
    if (code == ERR_OK && !(found && str_equal(entry.plan, p->plan) && str_equal(entry.version, p->version) &&
                            entry.created_ms == p->created_ms && entry.step_count == p->step_count))
        verify_say(v, "plan %lld: is not listed as it is", (long long)p->num);
    arena_free(a);
    return code;
}

static bool note_plan(const void *row, void *arg)
{
    const struct plan_row *p = row;
    struct verify *v = arg;
    verify_seen(v);
    run_check(v)->plans++;
    run_check(v)->plan_steps += p->step_count > 0 ? (uint64_t)p->step_count : 0;
    return check_listed(v, p) == ERR_OK;
}

static bool count_row(const void *row, void *arg)
{
    (void)row;
    ++*(uint64_t *)arg;
    return true;
}

static enum err_code compare_count(struct verify *v, const struct table *t, uint64_t wanted, const char *what,
                                   struct err *err)
{
    uint64_t count = 0;
    if (verify_scan(v, t, count_row, &count, err) != ERR_OK)
        return err->code;
    if (count != wanted)
        verify_say(v, "there are %llu %s, %llu are needed", (unsigned long long)count, what,
                   (unsigned long long)wanted);
    return ERR_OK;
}

static enum err_code verify_plans(struct verify *v, struct err *err)
{
    if (verify_scan(v, &table_plan_row, note_plan, v, err) != ERR_OK)
        return err->code;
    if (run_check(v)->err.code != ERR_OK) {
        *err = run_check(v)->err;
        return err->code;
    }
    if (compare_count(v, &table_plan_version_row, run_check(v)->plans, "plans in lists", err) != ERR_OK ||
        compare_count(v, &table_plan_step_row, run_check(v)->plan_steps, "steps of plans", err) != ERR_OK)
        return err->code;
    if (run_check(v)->plan_index_entries != run_check(v)->plan_steps)
        verify_say(v, "there are %llu index entries of steps of plans, %llu are needed",
                   (unsigned long long)run_check(v)->plan_index_entries,
                   (unsigned long long)run_check(v)->plan_steps);
    return compare_count(v, &table_run_id_row, v->result->runs, "names of runs", err);
}

enum err_code verify_records(struct verify *v, struct err *err)
{
    run_check(v)->err.code = ERR_OK;
    if (verify_scan(v, &table_decision_row, check_decision, v, err) != ERR_OK)
        return err->code;
    if (run_check(v)->err.code != ERR_OK) {
        *err = run_check(v)->err;
        return err->code;
    }
    if (compare_count(v, &table_signal_key_row, run_check(v)->decisions, "keys of signals", err) != ERR_OK ||
        compare_count(v, &table_policy_key_row, run_check(v)->decisions, "keys of policy decisions", err) !=
            ERR_OK)
        return err->code;
    return verify_plans(v, err);
}
