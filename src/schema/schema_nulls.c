/* Members that are null, taken out of a value before anybody looks at it. */
#include "schema/schema_internal.h"

#include "base/banned.h"

/* The rules that a schema, and the others of the same value, have for one member. */
struct member_rule {
    bool known, required;
};

static void add_rules(const struct schema *s, struct str name, struct member_rule *rule)
{
    if (s->keeps_nulls)
        return;
    for (uint32_t i = 0; i < s->properties.count; i++)
        rule->known |= str_equal(s->properties.at[i].name, name);
    for (uint32_t i = 0; i < s->required_count; i++)
        rule->required |= str_equal(s->required[i], name);
    if (s->ref)
        add_rules(s->ref, name, rule);
    for (uint32_t i = 0; i < s->all_of.count; i++)
        add_rules(s->all_of.at[i], name, rule);
}

static void drop_here(const struct schema *s, struct json *object)
{
    const struct json **link = &object->child;
    while (*link) {
        struct member_rule rule = {0};
        if ((*link)->type == JSON_NULL)
            add_rules(s, (*link)->key, &rule);
        if (rule.known && !rule.required) {
            *link = (*link)->next;
            object->count--;
        } else {
            link = (const struct json **)(uintptr_t) & (*link)->next;
        }
    }
}

static void drop_below(const struct schema *s, const struct json *value)
{
    for (const struct json *j = value->child; j; j = j->next) {
        if (value->type == JSON_ARRAY && s->items)
            schema_drop_nulls(s->items, j);
        for (uint32_t i = 0; value->type == JSON_OBJECT && i < s->properties.count; i++)
            if (str_equal(s->properties.at[i].name, j->key))
                schema_drop_nulls(s->properties.at[i].schema, j);
    }
}

void schema_drop_nulls(const struct schema *s, const struct json *value)
{
    if (s->keeps_nulls)
        return;
    if (value->type == JSON_OBJECT)
        drop_here(s, (struct json *)(uintptr_t)value); /* the parser's own: no other code has it yet */
    if (value->type == JSON_OBJECT || value->type == JSON_ARRAY)
        drop_below(s, value);
    else
        return;
    if (s->ref)
        schema_drop_nulls(s->ref, value);
    for (uint32_t i = 0; i < s->all_of.count; i++)
        schema_drop_nulls(s->all_of.at[i], value);
    for (uint32_t i = 0; i < s->any_of.count; i++)
        schema_drop_nulls(s->any_of.at[i], value);
    for (uint32_t i = 0; i < s->one_of.count; i++)
        schema_drop_nulls(s->one_of.at[i], value);
}
