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
};

/** Makes a temporary file beside `path`. Ends with commit or abandon. Errors: FILE, MEMORY. */
enum tandem_status tnd_file_stream_open(const char *path, struct tnd_file_stream *out_stream,
                                        struct tandem_error *error);
/** Adds bytes. After a failure only abandon makes sense. Errors: FILE. */
enum tandem_status tnd_file_stream_write(struct tnd_file_stream *stream, const void *bytes,
                                         size_t n, struct tandem_error *error);
/** Puts the file, safely on the disk, in its place; abandons it when that fails. Errors: FILE. */
enum tandem_status tnd_file_stream_commit(struct tnd_file_stream *stream,
                                          struct tandem_error *error);
/** Removes the temporary file. */
void tnd_file_stream_abandon(struct tnd_file_stream *stream);

#endif
