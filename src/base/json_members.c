#include "base/json_members.h"

#include "base/time_text.h"
#include "base/uuid.h"

#include "base/banned.h"

struct str json_text(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    return j && j->type == JSON_STRING ? j->text : STR_ABSENT;
}

int64_t json_int(const struct json *object, const char *key, int64_t otherwise)
{
    int64_t value;
    return json_to_int(json_get(object, key), &value) ? value : otherwise;
}

bool json_is_true(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    return j && j->type == JSON_TRUE;
}

void encode_raw(struct json_writer *w, const char *key, struct str json)
{
    jw_key(w, key);
    if (json.ptr)
        jw_raw(w, json);
    else
        jw_null(w);
}

void encode_uuid_v7(struct json_writer *w, const char *key, int64_t id, uint64_t low)
{
    struct uuid u = uuid_from_v7(id, low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&u, text);
    jw_key(w, key);
    jw_str(w, (struct str){text, UUID_TEXT_LEN});
}

void encode_time_ms(struct json_writer *w, const char *key, int64_t ms)
{
    char text[TIME_TEXT_MAX];
    jw_key(w, key);
    jw_str(w, ms ? time_text_ms(ms, text) : STR_ABSENT);
}

void encode_time_us(struct json_writer *w, const char *key, int64_t us)
{
    char text[TIME_TEXT_MAX];
    jw_key(w, key);
    jw_str(w, time_text_us(us, text));
}
