/* SPDX-License-Identifier: MIT
 * Files that rank 0 has and others lack: sent once and kept in a cache. */
#ifndef TND_RANKS_FILE_H
#define TND_RANKS_FILE_H

#include <stddef.h>

#include "tandem/communicator.h"

/** The path on this rank of the file that all ranks call `path`: the same, or that of a copy in its
 * cache with the contents of rank 0's file. Collective. `cache`: a folder; NULL:
 * $XDG_CACHE_HOME/tandem/models or ~/.cache/tandem/models. Writes the path to `out` {out_bytes}.
 * Either all ranks have the file, or all fail with the same message. `communicator` NULL: `path`
 * itself. Errors: FILE (names the rank), LIMIT (a path too long), RANK. */
enum tandem_status tnd_ranks_file(tandem_communicator *communicator, const char *path,
                                  const char *cache, char *out, size_t out_bytes,
                                  struct tandem_error *error);

#endif
