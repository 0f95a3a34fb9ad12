/* tokens/key_files.h - a key set on disk: DATA/keys/manifest.json and one KID.pem for each key that signs.
 *
 * Owns the folder (mode 0700) and everything in it (0600). A file appears whole or not at all: temporary
 * file, fsync, rename, fsync of the folder. A private key is on disk before the manifest names it, and goes
 * when its key no longer signs. Changes hold the folder's lock; readers need none.
 * Fails: ERR_STORAGE_UNAVAILABLE for the disk, ERR_CONFIG_INVALID for what stands in the files, and
 * ERR_AUTH_KEY_NOT_FOUND when there is no key set. Messages name the file. */
#ifndef WEIR_TOKENS_KEY_FILES_H
#define WEIR_TOKENS_KEY_FILES_H

#include "tokens/key_set.h"

struct key_place {
    const char *data_dir;
    const char *environment;
    struct str passphrase; /* of private keys; absent: they lie there in clear */
    struct key_rules rules;
};

/* The file facts by which a changed manifest is seen. */
struct key_files_version {
    int64_t modified_ns, bytes;
    uint64_t inode;
};

MUST_CHECK enum err_code key_files_load(const struct key_place *p, struct key_set *ret_set,
                                        struct key_files_version *ret_version, struct err *err);
MUST_CHECK enum err_code key_files_version(const struct key_place *p, struct key_files_version *ret_version,
                                           struct err *err);
/* The private key of a record; refused when others may read the file or it is another key. */
MUST_CHECK enum err_code key_files_private(const struct key_place *p, const struct key_record *k,
                                           struct token_key *ret_key, struct err *err);

/* Makes a key and adds it (key_set.h, key_set_add); makes the key set when there is none. */
MUST_CHECK enum err_code key_files_rotate(const struct key_place *p, enum token_alg alg, struct str actor,
                                          int64_t now, struct key_record *ret_record, struct err *err);
/* Revokes; when it was the key that signs, a new one of its algorithm signs at once: *ret_successor, else its
 * kid is empty. ERR_AUTH_KEY_CONFLICT when it was revoked before. */
MUST_CHECK enum err_code key_files_revoke(const struct key_place *p, struct str kid, struct str actor,
                                          struct str reason, int64_t now, struct key_record *ret_successor,
                                          struct err *err);
/* The key that signs now, private; the key set is made with `alg` when there is none. */
MUST_CHECK enum err_code key_files_signer(const struct key_place *p, enum token_alg alg, struct str actor,
                                          int64_t now, char ret_kid[KEY_ID_MAX + 1],
                                          struct token_key *ret_key, struct err *err);

#endif
