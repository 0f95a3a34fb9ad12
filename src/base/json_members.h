/* base/json_members.h - a member of an object, key and value, written or read in one call. */
#ifndef WEIR_BASE_JSON_MEMBERS_H
#define WEIR_BASE_JSON_MEMBERS_H

#include "base/json.h"

static inline void encode_str(struct json_writer *w, const char *key, struct str s) /* absent: null */
{
    jw_key(w, key);
    jw_str(w, s);
}

static inline void encode_text(struct json_writer *w, const char *key, const char *text) /* NULL: null */
{
    jw_key(w, key);
    jw_text(w, text);
}

static inline void encode_text_if(struct json_writer *w, const char *key, const char *text)
{
    if (text) /* NULL: left out */
        encode_text(w, key, text);
}

static inline void encode_int(struct json_writer *w, const char *key, int64_t value)
{
    jw_key(w, key);
    jw_int(w, value);
}

static inline void encode_int_or_null(struct json_writer *w, const char *key, int64_t value) /* 0: null */
{
    jw_key(w, key);
    if (value)
        jw_int(w, value);
    else
        jw_null(w);
}

static inline void encode_bool(struct json_writer *w, const char *key, bool value)
{
    jw_key(w, key);
    jw_bool(w, value);
}

/* Of an object from outside, which may be NULL. Text: absent unless it is a string; a number: `otherwise`
 * unless it is a whole one. */
struct str json_text(const struct json *object, const char *key);
int64_t json_int(const struct json *object, const char *key, int64_t otherwise);
bool json_is_true(const struct json *object, const char *key);

void encode_raw(struct json_writer *w, const char *key, struct str json); /* already JSON; absent: null */
/* Ids and times, the way all objects write them. */
void encode_uuid_v7(struct json_writer *w, const char *key, int64_t id, uint64_t low);
void encode_time_ms(struct json_writer *w, const char *key, int64_t ms); /* 0: null */
void encode_time_us(struct json_writer *w, const char *key, int64_t us);

#endif
