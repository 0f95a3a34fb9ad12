/* contract/suite_translate.h - the public suite's newest draft in Debian 12 is 7; this says it in
 * 2020-12.
 *
 * definitions -> $defs, items [..] -> prefixItems, additionalItems -> items, dependencies ->
 * dependentRequired and dependentSchemas; references follow. Nothing else is touched. */
#ifndef WEIR_TESTS_CONTRACT_SUITE_TRANSLATE_H
#define WEIR_TESTS_CONTRACT_SUITE_TRANSLATE_H

#include "base/json.h"

void suite_translate(const struct json *schema, struct strbuf *out);
/* Why schema_compile must refuse this 2020-12 schema; NULL when it must not. Decided without it. */
const char *suite_refusal(const struct json *schema);

#endif
