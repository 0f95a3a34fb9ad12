/* tests/egress/scripted_resolver.h - takes the place of the C library's getaddrinfo() in the program it is
 * linked into, libcurl's calls included. Names without a script do not exist: no test asks a real server. */
#ifndef WEIR_TESTS_SCRIPTED_RESOLVER_H
#define WEIR_TESTS_SCRIPTED_RESOLVER_H

#include <stdbool.h>

/* "name=ANSWER|ANSWER|...": one answer per lookup, the last for ever. An answer is "address,address,...", or
 * "nx" for no such host; "MS:..." in front of either answers so many milliseconds late. The text is
 * borrowed. All scripts come before the first lookup. */
bool scripted_resolver_add(const char *script);
unsigned scripted_resolver_lookups(void); /* so far, of all names */

#endif
