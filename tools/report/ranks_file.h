/* SPDX-License-Identifier: MIT
 * Files that rank 0 has and others lack: sent once, and kept in a cache. */
#ifndef TND_RANKS_FILE_H
#define TND_RANKS_FILE_H

#include <stddef.h>

#include "tandem/communicator.h"

/** Where this rank has the file that all call `path`: there, or a copy in its cache that holds what
 *  rank 0's file holds. Collective. `cache`: a folder; NULL: $XDG_CACHE_HOME/tandem/models or
 *  ~/.cache/tandem/models. Writes the path to `out` {out_bytes}. All ranks have their file, or all
 *  fail with the same words. `communicator` NULL: `path` itself. Errors: FILE (the rank is named),
 *  LIMIT (a path too long), RANK. */
enum tandem_status tnd_ranks_file(tandem_communicator *communicator, const char *path,
                                  const char *cache, char *out, size_t out_bytes,
                                  struct tandem_error *error);

#endif
