/* runtime/scratch_file.h - a file without a name, for a process that may open none.
 *
 * In $TMPDIR, or /tmp. It is gone with its descriptor: a crash leaves nothing behind. */
#ifndef WEIR_RUNTIME_SCRATCH_FILE_H
#define WEIR_RUNTIME_SCRATCH_FILE_H

int scratch_file_open(void); /* -1: there is nowhere to make one */
const char *scratch_dir(void);

#endif
