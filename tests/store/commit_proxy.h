/* store/commit_proxy.h - stands between a store and PostgreSQL and cuts the connection around COMMIT.
 *
 * It reads what the client sends: Parse gives a statement's name and text, Bind makes the portal of a named
 * statement, Execute runs it. The Execute of COMMIT is the place. That it was done is the server's
 * CommandComplete with the tag COMMIT, which comes after the transaction is durable.
 *
 * Threads: one that accepts, two for each connection; none is left after commit_proxy_stop. */
#ifndef WEIR_TESTS_COMMIT_PROXY_H
#define WEIR_TESTS_COMMIT_PROXY_H

#include <stdint.h>

enum proxy_fault {
    PROXY_PASSES,
    PROXY_CUTS_BEFORE, /* the next COMMIT is not passed on: nothing is committed */
    PROXY_CUTS_AFTER,  /* the commit is passed on and done, its answer is thrown away */
    PROXY_CUTS_LATE,   /* the client is cut off at once, the server gets the COMMIT PROXY_LATE_MS later */
    PROXY_HANGS,       /* nothing is passed on in either direction, nothing is closed */
    PROXY_REFUSES,     /* all connections are cut, new ones at once */
};
enum { PROXY_LATE_MS = 1500 };

struct commit_proxy;

/* Before the server at 127.0.0.1:port. */
struct commit_proxy *commit_proxy_start(uint16_t port);
struct commit_proxy *commit_proxy_stop(struct commit_proxy *p); /* always returns NULL */
uint16_t commit_proxy_port(const struct commit_proxy *p);
/* A cut happens once; then it passes again. */
void commit_proxy_set(struct commit_proxy *p, enum proxy_fault fault);
unsigned commit_proxy_cuts(struct commit_proxy *p); /* that really happened */

#endif
