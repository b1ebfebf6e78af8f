/* SPDX-License-Identifier: MIT
 * Files that rank 0 has and others lack: what a rank needs of one is sent to it once, and kept in a
 * cache. */
#ifndef TND_RANKS_FILE_H
#define TND_RANKS_FILE_H

#include <stdbool.h>

#include "base/spans.h"
#include "tandem/communicator.h"

/** A file that all ranks call by one path. */
struct tnd_ranks_file;

/** Where this rank has the file that all call `path`: there, or a copy in its cache. Of a GGUF file
 *  the copy has what comes before the weights, unless `needs_all`; of others it is whole.
 *  Collective. `cache`: a folder; NULL: $XDG_CACHE_HOME/tandem/models or ~/.cache/tandem/models.
 *  All ranks have their file, or all fail with the same words. Errors: FILE (the rank is named),
 *  LIMIT (a path too long), RANK. */
enum tandem_status tnd_ranks_file_open(tandem_communicator *communicator, const char *path,
                                       const char *cache, bool needs_all,
                                       struct tnd_ranks_file **out_file,
                                       struct tandem_error *error);
/** Lives as long as the file. */
const char *tnd_ranks_file_path(struct tnd_ranks_file *file);
/** Whether this rank has a copy, to which tnd_ranks_file_fetch adds. */
bool tnd_ranks_file_is_copy(const struct tnd_ranks_file *file);
/** Adds to the copies what the ranks want of the file and lack. Collective; only the wishes of
 *  ranks with a copy count. Errors: as tnd_ranks_file_open. */
enum tandem_status tnd_ranks_file_fetch(struct tnd_ranks_file *file, const struct tnd_spans *wanted,
                                        struct tandem_error *error);
/** NULL is allowed. */
void tnd_ranks_file_close(struct tnd_ranks_file *file);

#endif
