/* Certificates for tests: authorities, and what they sign, as PEM files in a directory of the test. */
#ifndef WEIR_TESTS_HTTP_CERTS_H
#define WEIR_TESTS_HTTP_CERTS_H

#include <stdint.h>

enum { CERTS_PATH_MAX = 128 };

/* A directory with, for each name asked for, NAME.pem and NAME.key. */
struct certs {
    char dir[CERTS_PATH_MAX / 2];
    char path[CERTS_PATH_MAX]; /* of the last certs_path */
};

void certs_open(struct certs *c);
void certs_close(struct certs *c); /* removes everything */
/* `signer` NULL: an authority that signs itself. Files are put in place by rename. */
void certs_make(struct certs *c, const char *name, const char *signer, int64_t seconds);
const char *certs_path(struct certs *c, const char *name, const char *suffix); /* good until the next one */

#endif
