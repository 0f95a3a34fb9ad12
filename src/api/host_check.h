/* api/host_check.h - which Host a caller on this machine may name in dev.
 *
 * There such a caller is trusted without credentials. A page in a browser is not: its site can let its own
 * name point to 127.0.0.1 (DNS rebinding) and so reach the server as the user of the machine. What it cannot
 * do is name another Host than its own. */
#ifndef WEIR_API_HOST_CHECK_H
#define WEIR_API_HOST_CHECK_H

#include "config/settings.h"

/* `host` as in the header, with or without a port. True: an address, localhost or a name below it, the host
 * of server.listen or server.tls_listen, or one of server.hosts. */
bool host_is_known(const struct settings *s, struct str host);

#endif
