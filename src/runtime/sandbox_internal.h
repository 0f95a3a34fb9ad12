/* runtime/sandbox_internal.h - the two walls. sandbox.c puts them up in order. */
#ifndef WEIR_RUNTIME_SANDBOX_INTERNAL_H
#define WEIR_RUNTIME_SANDBOX_INTERNAL_H

#include "runtime/sandbox.h"

/* The run-time of AddressSanitizer looks for leaks with a thread that traces the others, and reads maps
 * and debugging information; that of ThreadSanitizer reads maps. A test that goes without all that builds
 * these files with SANDBOX_STRICT. */
#if defined(SANDBOX_STRICT)
#define SANDBOX_SANITIZED 0
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZED 1
#else
#define SANDBOX_SANITIZED 0
#endif

/* 0, or a negative errno. */
int sandbox_syscalls_enter(enum sandbox_id id, enum sandbox_mode mode);
int sandbox_syscalls_close_network(enum sandbox_mode mode);

/* 0, or a negative errno. `abi` is Landlock's, at most the kernel's; with 0 there is nothing to do. */
int sandbox_paths_enter(enum sandbox_id id, const struct settings *s, int abi);

void sandbox_syscalls_markdown(FILE *out);
void sandbox_paths_markdown(FILE *out);
const char *sandbox_name(enum sandbox_id id);

#endif
