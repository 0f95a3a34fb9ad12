/* api/ops/topology.h - what root says of its processes, for `GET /ops/v1/topology` and /metrics.
 *
 * Root writes DATA/topology.json on each change and nothing else talks to it: a request here never reaches
 * root. The file is read when its mtime, size or inode has changed, TOPOLOGY_BYTES_MAX of it at most.
 * Threads: any; a lock of its own. */
#ifndef WEIR_API_OPS_TOPOLOGY_H
#define WEIR_API_OPS_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum { TOPOLOGY_BYTES_MAX = 256 * 1024 };

struct overload_cascades;
struct topology;

struct topology *topology_new(const char *path);    /* NULL path: nothing to read */
struct topology *topology_free(struct topology *t); /* NULL is fine; always returns NULL */

/* The members "processes" and "domains" of the object that `w` is in. */
MUST_CHECK enum err_code topology_write(struct topology *t, struct json_writer *w, struct err *err);
/* weir_processes, weir_restarts_total ...; unreadable ones are left out. */
void topology_metrics(struct topology *t, struct strbuf *out);
/* Failures that spread to another domain, since root began. None while nothing can be read. */
void topology_cascades(struct topology *t, struct overload_cascades *ret);

#endif
