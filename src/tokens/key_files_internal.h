/* tokens/key_files_internal.h - names of the files of a key set, and how a fault with one is told. */
#ifndef WEIR_TOKENS_KEY_FILES_INTERNAL_H
#define WEIR_TOKENS_KEY_FILES_INTERNAL_H

#include "tokens/key_files.h"

enum { KEY_PATH_MAX = 4096 };
#define KEY_MANIFEST       "manifest.json"
#define KEY_LOCK           "lock"
#define KEY_PRIVATE_ENDING ".pem"
#define KEY_PARTIAL_ENDING ".partial"

/* DATA/keys/NAME.ENDING; DATA/keys for an empty name. */
MUST_CHECK enum err_code key_path(const struct key_place *p, const char *name, const char *ending,
                                  char out[KEY_PATH_MAX], struct err *err);
/* By errno. */
enum err_code key_file_fault(const char *doing, const char *path, struct err *err);

#endif
