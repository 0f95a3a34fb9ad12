/* store/row_rules.h - what a sound row looks like, written once and used twice: before a write a broken rule
 * is our bug (MUST), in a row read back it is damage (refused and reported, by the opening of the store and
 * by verify). NULL when sound, else the rule that is broken, in words. */
#ifndef WEIR_STORE_ROW_RULES_H
#define WEIR_STORE_ROW_RULES_H

#include "store/rows.h"

enum { CLIENT_NUMBER_MAX = INT32_MAX };

/* What its description says of any table's row: nothing is absent that must be there, every number is within
 * its range. Those below say what holds besides; that of a task begins with this one. */
const char *row_broken_rule(const struct table *t, const void *row);
bool table_has_rules(const struct table *t); /* else no row breaks one */
const char *job_broken_rule(const struct job_row *j);
const char *task_broken_rule(const struct task_row *t);
const char *end_broken_rule(const struct end_row *e);
const char *queue_broken_rule(const struct queue_row *q);
const char *api_key_broken_rule(const struct api_key_row *k);

#endif
