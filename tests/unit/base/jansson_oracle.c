#include "jansson_oracle.h"

#include <jansson.h>

enum oracle_verdict oracle_json(const char *bytes, size_t len, char **ret_text)
{
    json_error_t error;
    json_t *value = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (value) {
        *ret_text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        json_decref(value);
        return ORACLE_ACCEPT;
    }
    if (json_error_code(&error) == json_error_numeric_overflow)
        return ORACLE_OUT_OF_RANGE;
    if (json_error_code(&error) == json_error_null_byte_in_key)
        return ORACLE_NUL_IN_KEY;
    return ORACLE_REJECT;
}
