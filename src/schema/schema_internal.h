/* schema/schema_internal.h - the compiled form; for schema_compile.c and schema_check.c only. */
#ifndef WEIR_SCHEMA_SCHEMA_INTERNAL_H
#define WEIR_SCHEMA_SCHEMA_INTERNAL_H

#include "schema/schema.h"

/* One bit for each JSON type by enum json_type; integers are numbers with one more condition. */
enum {
    TYPE_BOOLEAN = 1 << JSON_TRUE | 1 << JSON_FALSE,
    TYPE_INTEGER = 1 << 16,
};

struct schema_list {
    const struct schema **at;
    uint32_t count;
};

struct schema_named {
    struct str name;
    const struct schema *schema; /* of a property or dependentSchemas */
    struct str *required;        /* of dependentRequired */
    uint32_t required_count;
};

struct schema_members {
    struct schema_named *at;
    uint32_t count;
};

/* NULL, 0 or absent: the keyword is not there. */
struct schema {
    const struct json *node; /* where it was compiled from */
    struct schema *older;    /* all schemas of one compilation */
    int chain;               /* longest way of schemas on one value; 0 not known, -1 being counted */

    bool never; /* the schema `false` */
    uint32_t types;
    const struct json *one_of_values; /* enum: the array */
    const struct json *only_value;    /* const */
    const struct json *minimum, *maximum, *above, *below, *multiple_of;
    int64_t length_min, length_max;
    int64_t items_min, items_max, contains_min, contains_max;
    int64_t members_min, members_max;
    bool unique_items;
    bool keeps_nulls; /* x-weir-nulls: a member that is null is not as if it were absent */
    const struct schema *items, *contains, *additional, *names, *not, *when, *then, *otherwise, *ref;
    struct schema_list prefix_items, all_of, any_of, one_of;
    struct schema_members properties, dependent_required, dependent_schemas;
    struct str *required;
    uint32_t required_count;
};

#endif
