/* SPDX-License-Identifier: MIT
 * Writes a large file in parts; it appears, or replaces an old one, atomically on commit. For small
 * files see tnd_file_write_atomic. */
#ifndef TND_FILE_STREAM_H
#define TND_FILE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tnd_status.h"

struct tnd_file_stream {
    char *path; /* owned, like all members */
    char *temporary;
    int fd;
    bool is_private;
    bool is_nameless; /* created with O_TMPFILE: gets its temporary name in commit */
};

/** Creates a temporary file beside `path`: a nameless one, which vanishes when the process is
 * killed, if the file system supports that. Removes temporary files that killed writers left in the
 * folder more than a day ago. `is_private` as in tandem_file_write. End with commit or abandon.
 * Errors: FILE, MEMORY. */
enum tandem_status tnd_file_stream_open(const char *path, bool is_private,
                                        struct tnd_file_stream *out_stream,
                                        struct tandem_error *error);
/** Appends bytes. After a failure, only abandon is allowed. Errors: FILE. */
enum tandem_status tnd_file_stream_write(struct tnd_file_stream *stream, const void *bytes,
                                         size_t n, struct tandem_error *error);
/** Syncs the file to disk and renames it to its path; abandons it when that fails. Errors: FILE. */
enum tandem_status tnd_file_stream_commit(struct tnd_file_stream *stream,
                                          struct tandem_error *error);
/** Removes the temporary file. */
void tnd_file_stream_abandon(struct tnd_file_stream *stream);

/** Whether `name` (without folder) is that of one of our temporary files. */
bool tnd_file_is_temporary(const char *name);

/** Copies the file at `path` to a new file beside it, "<path>.<why>-<yyyymmdd>", followed by a
 * number if that name is taken; `out_name` (room for `n` bytes) gets the name. No file is replaced
 * as long as all callers for `path` hold its lock. Errors: FILE, MEMORY. */
enum tandem_status tnd_file_back_up(const char *path, const char *why, char *out_name, size_t n,
                                    struct tandem_error *error);

#endif
