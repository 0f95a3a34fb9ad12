/* base/json_members.h - members that many objects have: ids and times, the way all of them write them. */
#ifndef WEIR_BASE_JSON_MEMBERS_H
#define WEIR_BASE_JSON_MEMBERS_H

#include "base/json.h"

void encode_uuid_v7(struct json_writer *w, const char *key, int64_t id, uint64_t low);
void encode_time_ms(struct json_writer *w, const char *key, int64_t ms); /* 0: null */
void encode_time_us(struct json_writer *w, const char *key, int64_t us);

#endif
