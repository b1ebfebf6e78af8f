/* SPDX-License-Identifier: MIT
 * Writing a large file in parts that appears, or replaces an old one, at once when it is
 * complete. For small ones see tnd_file_write_atomic. */
#ifndef TND_FILE_STREAM_H
#define TND_FILE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/tnd_status.h"

struct tnd_file_stream {
    char *path; /* owned, as all members */
    char *temporary;
    int fd;
    bool is_private;
    bool is_nameless; /* O_TMPFILE: gets its temporary name in commit */
};

/** Makes a temporary file beside `path`, where the file system can one that vanishes when the
 * process is killed; removes those that killed writers left in the folder more than a day ago.
 * `is_private` as in tandem_file_write. Ends with commit or abandon. Errors: FILE, MEMORY. */
enum tandem_status tnd_file_stream_open(const char *path, bool is_private,
                                        struct tnd_file_stream *out_stream,
                                        struct tandem_error *error);
/** Adds bytes. After a failure only abandon makes sense. Errors: FILE. */
enum tandem_status tnd_file_stream_write(struct tnd_file_stream *stream, const void *bytes,
                                         size_t n, struct tandem_error *error);
/** Puts the file, safely on the disk, in its place; abandons it when that fails. Errors: FILE. */
enum tandem_status tnd_file_stream_commit(struct tnd_file_stream *stream,
                                          struct tandem_error *error);
/** Removes the temporary file. */
void tnd_file_stream_abandon(struct tnd_file_stream *stream);

/** Whether a file of this name (without folder) is one of our temporary files. */
bool tnd_file_is_temporary(const char *name);

/** Copies the file at `path` to a new one beside it, "<path>.<why>-<yyyymmdd>" with a number behind
 * where that is taken; `out_name` (room for `n` bytes) gets the name. Nothing is replaced if all
 * who do this to `path` hold its lock. Errors: FILE, MEMORY. */
enum tandem_status tnd_file_back_up(const char *path, const char *why, char *out_name, size_t n,
                                    struct tandem_error *error);

#endif
