/* SPDX-License-Identifier: MIT
 * room: base
 *
 * Small files as a whole: read with a limit, and replaced atomically, so that neither a crash nor
 * another writer leaves a partial file. libtandem-llama stores conversations with it. */
#ifndef TANDEM_FILES_H
#define TANDEM_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "tandem/status.h"

TANDEM_BEGIN_C

/** Reads a regular file of at most `limit_bytes` (0: no limit). `out_bytes` gets its contents and a
 * zero byte, which the caller frees with tandem_file_free, `out_n` the length without the zero
 * byte. Pipes, devices and folders are refused at once. Any thread. Errors: ARGUMENT (NULL), FILE
 * (`got` is the errno, 0 where there is none), LIMIT, MEMORY. */
TANDEM_API enum tandem_status tandem_file_read(const char *path, size_t limit_bytes,
                                               void **out_bytes, size_t *out_n,
                                               struct tandem_error *error);

/** Frees the result of tandem_file_read; NULL is allowed. Never fails. Any thread. */
TANDEM_API void tandem_file_free(void *bytes);

/** Replaces the contents of `path` and syncs them to disk. A reader, meanwhile or after a crash,
 * sees the old file or the new one as a whole; of several writers one wins. A private file is
 * readable only by its user (mode 0600), and a symbolic link at `path` is replaced; otherwise the
 * target of the link is replaced and keeps its mode. Any thread. Errors: ARGUMENT (NULL), FILE (no
 * temporary file is left), MEMORY. */
TANDEM_API enum tandem_status tandem_file_write(const char *path, const void *bytes, size_t n,
                                                bool is_private, struct tandem_error *error);

TANDEM_END_C
#endif
