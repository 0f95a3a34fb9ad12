/* api/host_check.h - the values of Host that a caller on this machine may send in dev.
 *
 * In dev a caller on this machine is trusted without credentials. A page in a browser is not: its site can
 * let its own name point to 127.0.0.1 (DNS rebinding) and so reach the server as the user of the machine. But
 * such a page always names the Host of its own site. */
#ifndef WEIR_API_HOST_CHECK_H
#define WEIR_API_HOST_CHECK_H

#include "config/settings.h"

/* `host` as in the header, with or without a port. True: an address, localhost or a name below it, the host
 * of server.listen or server.tls_listen, or one of server.hosts. */
bool host_is_known(const struct settings *s, struct str host);

#endif
