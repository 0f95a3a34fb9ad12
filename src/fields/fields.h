/* fields/fields.h - how the members of a resource are described.
 *
 * A list is a macro, LIST(X), with a line X(word, name, value) for each member, in the order of the answer.
 * `value` is for the encoder alone (api/encode_fields.h); the comment above a list names what it reads.
 *
 *   word        in JSON                          value
 *   ID          a UUID                           the two halves of one of version 7
 *   UUID        a UUID                           its bytes, a struct str
 *   WORD        a word of one of our lists       const char *
 *   TEXT        a text                           struct str
 *   INT         a whole number                   int64_t
 *   BOOL        true or false                    bool
 *   TIME        a time to the millisecond        milliseconds
 *   TIME_US     a time to the microsecond        microseconds
 *   JSON        an object                        its text, a struct str
 *   OBJECT      an object                        a statement that writes it
 *   ARRAY       a list                           a statement that writes it
 *
 * X_OR_NULL: null when there is none: the text is absent, the word NULL, the time 0; of ID and INT the first
 * value says whether there is one. X_IF: the member is left out then; of INT, BOOL and OBJECT the first value
 * says so. ANY is JSON of any type. */
#ifndef WEIR_FIELDS_FIELDS_H
#define WEIR_FIELDS_FIELDS_H

#include <stddef.h>

/* Readers of answers name a member with MEMBER(job, job_id), which is "job_id" and does not compile when the
 * lists of struct job_fields have no such member. */
#define MEMBER_NAME(word, name, ...) char name;
#define MEMBER(resource, name)       (&#name[0 * offsetof(struct resource##_fields, name)])

#endif
