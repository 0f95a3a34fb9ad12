/* store/postgres/postgres_reach.h - what the connections of a process tell each other about their database:
 * when one was last made, whether it is silent, and at which of its hosts to begin.
 *
 * Silent:  a connection waited for an answer and none came in time. Every thread that found out by itself
 *          would stand still for as long. Readers of a server do not: they refuse until a lane or the
 *          listener, which try all the time and on threads of their own, has had an answer.
 * Hosts:   libpq tries the hosts of a URL one after the other and always begins with the first. One that
 *          takes the connection and then says nothing, or drops what is sent to it, would use up all the
 *          time there is, every time. So the next connection begins with the host behind.
 * Threads: any. One database is known, the last that was in trouble: more than a process has. */
#ifndef WEIR_STORE_POSTGRES_REACH_H
#define WEIR_STORE_POSTGRES_REACH_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

void reach_connected(uint64_t url); /* a hash of the URL says which database */
int64_t reach_connected_ms(void);   /* monotonic: the last time, whichever database it was */

void reach_answered(uint64_t url);
void reach_not_answered(uint64_t url);
bool reach_is_silent(uint64_t url);

/* The lists that libpq calls so, in the order in which to try; NULL: as the URL says. */
struct reach_hosts {
    char *host, *hostaddr, *port;
    uint64_t turn; /* how often they were turned */
};
void reach_hosts(uint64_t url, struct reach_hosts *ret_hosts); /* for reach_hosts_free */
void reach_hosts_free(struct reach_hosts *h);
/* A connection that began with these hosts was not made in time. */
void reach_hosts_hang(uint64_t url, const struct reach_hosts *tried, PGconn *conn);

#endif
