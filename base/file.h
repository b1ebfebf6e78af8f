/* SPDX-License-Identifier: MIT
 * Files: mapped or read as a whole, replaced at once, locked. Knows no format. */
#ifndef TND_FILE_H
#define TND_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tnd_status.h"

/** A file in memory. */
struct tnd_file {
    const uint8_t *data; /* never NULL after success, readable for `bytes` bytes */
    size_t bytes;
    bool is_mapped; /* private */
};

/** Maps a regular file read-only; an empty one gives 0 bytes. With `copies`, and where TANDEM_MAP
 * says so, its contents are read in place of that, and later changes of the file do not matter.
 * Errors: FILE (missing, directory, ...), MEMORY. */
enum tandem_status tnd_file_map(const char *path, bool copies, struct tnd_file *out_file,
                                struct tandem_error *error);
/** After using a mapped file: FILE when it was not the same all the time (base/tnd_mapped.h). */
enum tandem_status tnd_file_check(const struct tnd_file *file, struct tandem_error *error);

/** Gives back the memory that a mapped file's pages take; whoever reads them again gets them from
 * the file. For files whose contents were copied. */
void tnd_file_unload(const struct tnd_file *file);

/** Reads a whole regular file, behind whose last byte stands a zero byte. `limit_bytes` (0: none)
 * bounds its size. Works for /proc too. Errors: FILE, LIMIT, MEMORY. */
enum tandem_status tnd_file_read(const char *path, size_t limit_bytes, struct tnd_file *out_file,
                                 struct tandem_error *error);

/** Addresses without memory, in place of a file's: nobody may read or write there. Errors:
 * MEMORY. */
enum tandem_status tnd_file_reserve(size_t bytes, struct tnd_file *out_file,
                                    struct tandem_error *error);

/** Unmaps or frees, and zeroes `file`. A zeroed one is allowed. */
void tnd_file_close(struct tnd_file *file);

/** Makes `path` hold exactly these bytes: whoever reads it, at any moment and after any crash, sees
 * the old file or the new one as a whole. Errors: FILE; no temporary file is left then. */
enum tandem_status tnd_file_write_atomic(const char *path, const void *bytes, size_t n,
                                         struct tandem_error *error);

/** Makes all missing folders that lead to the file `path` (its last part is not made). Errors:
 * FILE. */
enum tandem_status tnd_file_make_folders(const char *path, struct tandem_error *error);

/** FILE when every user may have put `path` where it is: a folder on the way, or the file, is
 * writable for all. A folder with the sticky bit is good if what lies in it is ours or root's. What
 * is not there may be made. */
enum tandem_status tnd_file_check_owner(const char *path, struct tandem_error *error);

/** FILE when the file `path`, which is there, belongs to somebody who is neither this user nor root
 * nor the owner of `other` ("": none). */
enum tandem_status tnd_file_check_user(const char *path, const char *other,
                                       struct tandem_error *error);

/** Length of the folder part of a path, its last slash included. */
size_t tnd_file_folder_length(const char *path);

/** Whether there is something, or may be: false only if the system says that nothing is. (Who
 * takes a disk's error for "nothing there" starts anew over what is there.) */
bool tnd_file_exists(const char *path);

enum { TND_LOCK_WAIT_MS = 10000 }; /* a writer holds a lock for milliseconds */

/** Takes the lock of `path` (the file `path`.lock, which stays and names its holder) and waits at
 * most `wait_ms` for other processes and threads that hold it. `out_lock` is given to
 * tnd_file_unlock. Errors: FILE. */
enum tandem_status tnd_file_lock(const char *path, int wait_ms, int *out_lock,
                                 struct tandem_error *error);
void tnd_file_unlock(int lock);

/* ---- for tests ---- */

/** Steps of tnd_file_write_atomic, in order. */
enum tnd_file_step {
    TND_FILE_CREATED,
    TND_FILE_HALF_WRITTEN,
    TND_FILE_WRITTEN,
    TND_FILE_SYNCED,
    TND_FILE_RENAMED
};
/** Called after each step; returning false makes the write fail there. NULL: none. Not
 * thread-safe. */
void tnd_file_set_hook(bool (*hook)(enum tnd_file_step step));

#endif
