/* api/encode_fields.h - writes members by a field list (fields/fields.h).
 *
 * LIST(ENCODE_FIELD) writes into the open object of the json_writer *w in scope: one call for each member. */
#ifndef WEIR_API_ENCODE_FIELDS_H
#define WEIR_API_ENCODE_FIELDS_H

#include "base/json_members.h"
#include "base/uuid.h"

#define ENCODE_FIELD(word, name, ...) ENCODE_##word(w, #name, __VA_ARGS__);

#define ENCODE_ID                        encode_uuid_v7
#define ENCODE_UUID                      encode_uuid_bytes
#define ENCODE_UUID_OR_NULL              encode_uuid_bytes
#define ENCODE_WORD                      encode_text
#define ENCODE_WORD_OR_NULL              encode_text
#define ENCODE_TEXT                      encode_str
#define ENCODE_TEXT_OR_NULL              encode_str
#define ENCODE_INT                       encode_int
#define ENCODE_BOOL                      encode_bool
#define ENCODE_TIME                      encode_time_ms
#define ENCODE_TIME_OR_NULL              encode_time_ms
#define ENCODE_TIME_US                   encode_time_us
#define ENCODE_JSON                      encode_raw
#define ENCODE_JSON_OR_NULL              encode_raw
#define ENCODE_OBJECT(writer, name, ...) (jw_key(writer, name), __VA_ARGS__)
#define ENCODE_OBJECT_OR_NULL            ENCODE_OBJECT
#define ENCODE_ARRAY                     ENCODE_OBJECT
#define ENCODE_ARRAY_OR_NULL             ENCODE_OBJECT
#define ENCODE_WHEN(condition, statement)                                                                    \
    do {                                                                                                     \
        if (condition)                                                                                       \
            (statement);                                                                                     \
    } while (0)
#define ENCODE_NULL(writer, name) (jw_key(writer, name), jw_null(writer))
#define ENCODE_ID_OR_NULL(writer, name, is_there, id, low)                                                   \
    ((is_there) ? encode_uuid_v7(writer, name, id, low) : ENCODE_NULL(writer, name))
#define ENCODE_INT_OR_NULL(writer, name, is_there, value)                                                    \
    ((is_there) ? encode_int(writer, name, value) : ENCODE_NULL(writer, name))
#define ENCODE_INT_IF(writer, name, is_there, value)  ENCODE_WHEN(is_there, encode_int(writer, name, value))
#define ENCODE_BOOL_IF(writer, name, is_there, value) ENCODE_WHEN(is_there, encode_bool(writer, name, value))
#define ENCODE_OBJECT_IF(writer, name, is_there, put) ENCODE_WHEN(is_there, ENCODE_OBJECT(writer, name, put))
#define ENCODE_TIME_IF(writer, name, ms)              ENCODE_WHEN(ms, encode_time_ms(writer, name, ms))
#define ENCODE_TEXT_IF                                encode_str_if
#define ENCODE_UUID_IF                                encode_uuid_bytes_if
#define ENCODE_JSON_IF                                encode_raw_if
#define ENCODE_ANY_IF                                 encode_raw_if

/* Of the 16 bytes of a row; absent: null. */
static inline void encode_uuid_bytes(struct json_writer *w, const char *key, struct str bytes)
{
    struct uuid id;
    char text[UUID_TEXT_LEN + 1];
    if (bytes.len == sizeof id.bytes) {
        memcpy(id.bytes, bytes.ptr, sizeof id.bytes);
        uuid_text(&id, text);
    }
    encode_text(w, key, bytes.len == sizeof id.bytes ? text : NULL);
}

/* The bytes, borrowed. */
static inline struct str uuid_str(const struct uuid *id)
{
    return (struct str){(const char *)id->bytes, sizeof id->bytes};
}

/* Left out when absent. */
static inline void encode_str_if(struct json_writer *w, const char *key, struct str text)
{
    if (text.ptr)
        encode_str(w, key, text);
}

static inline void encode_raw_if(struct json_writer *w, const char *key, struct str json)
{
    if (json.ptr)
        encode_raw(w, key, json);
}

static inline void encode_uuid_bytes_if(struct json_writer *w, const char *key, struct str bytes)
{
    if (bytes.ptr)
        encode_uuid_bytes(w, key, bytes);
}

/* A list of the words of a comma-separated text; absent: null. */
static inline void put_words(struct json_writer *w, struct str words)
{
    if (!words.ptr) {
        jw_null(w);
        return;
    }
    jw_array(w);
    while (words.len)
        jw_str(w, str_cut(&words, ','));
    jw_array_end(w);
}

#endif
