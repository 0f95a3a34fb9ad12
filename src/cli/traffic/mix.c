#include "cli/traffic/mix.h"

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

static void add_all(struct traffic_mix *m)
{
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        m->weights[k] = traffic_expectations[k].weight;
}

static enum err_code add_item(struct traffic_mix *m, struct str item, struct err *err)
{
    struct str weight = item;
    struct str name = str_trim(str_cut(&weight, ':'));
    bool weighted = name.len < str_trim(item).len;
    enum work_kind kind;
    int64_t value;
    if (str_is(name, "all") && !weighted) {
        add_all(m);
        return ERR_OK;
    }
    if (!work_kind_parse(name, &kind))
        return err_set(err, ERR_CONFIG_INVALID, "--mix: \"%.*s\" is no work kind; try all, or SUCCESS_FAST:3",
                       (int)(name.len < 40 ? name.len : 40), name.ptr ? name.ptr : "");
    value = traffic_expectations[kind].weight;
    if (weighted && !str_to_int(str_trim(weight), 0, TRAFFIC_WEIGHT_MAX, &value))
        return err_set(err, ERR_CONFIG_INVALID, "--mix: the weight of %s must be from 0 to %d",
                       traffic_expectations[kind].name, TRAFFIC_WEIGHT_MAX);
    m->weights[kind] = value;
    return ERR_OK;
}

enum err_code traffic_mix_parse(const char *text, struct traffic_mix *ret, struct err *err)
{
    struct str rest = str_of(text);
    *ret = (struct traffic_mix){0};
    do {
        if (add_item(ret, str_cut(&rest, ','), err) != ERR_OK)
            return err->code;
    } while (rest.len);
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        ret->weight_sum += ret->weights[k];
    return ERR_OK;
}

void traffic_mix_start(struct traffic_mix *m, uint64_t seed)
{
    m->state = seed;
    m->opening = 0;
}

void traffic_mix_leave_out(struct traffic_mix *m, enum work_kind kind)
{
    m->weight_sum -= m->weights[kind];
    m->weights[kind] = 0;
}

uint64_t traffic_mix_random(struct traffic_mix *m, uint64_t below)
{
    m->state += UINT64_C(0x9E3779B97F4A7C15);
    return hash_mix(m->state) % below;
}

enum work_kind traffic_mix_next(struct traffic_mix *m)
{
    MUST(m->weight_sum > 0);
    while (m->opening < WORK_KIND_COUNT)
        if (m->weights[m->opening++] > 0)
            return (enum work_kind)(m->opening - 1);
    int64_t pick = (int64_t)traffic_mix_random(m, (uint64_t)m->weight_sum);
    int k = 0;
    while (pick >= m->weights[k])
        pick -= m->weights[k++];
    return (enum work_kind)k;
}
