#include "base/json_merge.h"

#include "base/banned.h"

static const struct json *member(const struct json *object, struct str key)
{
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    for (const struct json *m = object->child; m; m = m->next)
        if (str_equal(m->key, key))
            return m;
    return NULL;
}

void json_merge(const struct json *target, const struct json *patch, struct json_writer *out)
{
    if (patch->type != JSON_OBJECT) {
        jw_raw(out, patch->source);
        return;
    }
    jw_object(out);
    for (const struct json *m = target && target->type == JSON_OBJECT ? target->child : NULL; m;
         m = m->next) {
        const struct json *change = member(patch, m->key);
        if (change && change->type == JSON_NULL)
            continue;
        jw_key_str(out, m->key);
        if (change)
            json_merge(m, change, out);
        else
            jw_raw(out, m->source);
    }
    for (const struct json *m = patch->child; m; m = m->next) {
        if (m->type == JSON_NULL || member(target, m->key))
            continue;
        jw_key_str(out, m->key);
        json_merge(NULL, m, out);
    }
    jw_object_end(out);
}
