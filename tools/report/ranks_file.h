/* SPDX-License-Identifier: MIT
 * Files that rank 0 has and other ranks lack: the parts that a rank needs are sent to it once and
 * kept in a cache. */
#ifndef TND_RANKS_FILE_H
#define TND_RANKS_FILE_H

#include <stdbool.h>

#include "base/spans.h"
#include "tandem/communicator.h"

/** A file, known by one path on all ranks. */
struct tnd_ranks_file;

/** Opens the file that all ranks call `path`: at this path, or as a copy in this rank's cache. A
 * copy of a GGUF file first gets only the bytes before the weights, unless `needs_all`; others are
 * copied whole. Collective. `cache`: a folder; NULL: $XDG_CACHE_HOME/tandem/models or
 * ~/.cache/tandem/models. Succeeds on all ranks, or fails on all with the same message. Errors:
 * FILE (naming the rank), LIMIT (the path is too long), RANK. */
enum tandem_status tnd_ranks_file_open(tandem_communicator *communicator, const char *path,
                                       const char *cache, bool needs_all,
                                       struct tnd_ranks_file **out_file,
                                       struct tandem_error *error);
/** Path of the file on this rank. Valid until the file is closed. */
const char *tnd_ranks_file_path(struct tnd_ranks_file *file);
/** Whether this rank has a copy, to which tnd_ranks_file_fetch adds. */
bool tnd_ranks_file_is_copy(const struct tnd_ranks_file *file);
/** Sends ranks with a copy the bytes in `wanted` that it lacks. Collective; ignores `wanted` on
 * other ranks. Errors: as tnd_ranks_file_open. */
enum tandem_status tnd_ranks_file_fetch(struct tnd_ranks_file *file, const struct tnd_spans *wanted,
                                        struct tandem_error *error);
/** NULL is allowed. */
void tnd_ranks_file_close(struct tnd_ranks_file *file);

#endif
