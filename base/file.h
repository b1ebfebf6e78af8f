/* SPDX-License-Identifier: MIT
 * Files: mapped or read as a whole, replaced atomically, locked. Independent of file formats. */
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
    bool is_mapped; /* (private) */
};

/** Maps a regular file read-only; an empty one has 0 bytes. With `copies`, or if TANDEM_MAP says
 * so, reads the contents into memory instead, so that later changes of the file do not matter.
 * Errors: FILE (missing, directory, ...), MEMORY. */
enum tandem_status tnd_file_map(const char *path, bool copies, struct tnd_file *out_file,
                                struct tandem_error *error);
/** Call after using a mapped file: FILE when it was changed in the meantime (base/tnd_mapped.h). */
enum tandem_status tnd_file_check(const struct tnd_file *file, struct tandem_error *error);

/** Releases the memory of a mapped file's pages; the next access reads them from the file again.
 * For files whose contents were copied. */
void tnd_file_unload(const struct tnd_file *file);

/** Reads a whole regular file and appends a zero byte. `limit_bytes` (0: none) bounds its size.
 * Works for /proc too. Errors: FILE, LIMIT, MEMORY. */
enum tandem_status tnd_file_read(const char *path, size_t limit_bytes, struct tnd_file *out_file,
                                 struct tandem_error *error);

/** Reserves addresses without memory in place of a file's contents: no access is allowed. Errors:
 * MEMORY. */
enum tandem_status tnd_file_reserve(size_t bytes, struct tnd_file *out_file,
                                    struct tandem_error *error);

/** Unmaps or frees the file and zeroes `file`. A zeroed one is allowed. */
void tnd_file_close(struct tnd_file *file);

/** Replaces the contents of `path` atomically: a reader sees, at any moment and after any crash,
 * either the old file or the new one as a whole. Errors: FILE; no temporary file is left then. */
enum tandem_status tnd_file_write_atomic(const char *path, const void *bytes, size_t n,
                                         struct tandem_error *error);

/** Creates all missing folders above the file `path`, but not the file. Errors: FILE. */
enum tandem_status tnd_file_make_folders(const char *path, struct tandem_error *error);

/** FILE when other users may have replaced `path`: the file or a folder above it is writable for
 * all. A folder with the sticky bit is safe if the entry in it belongs to this user or root. Parts
 * of the path that do not exist are no error. */
enum tandem_status tnd_file_check_owner(const char *path, struct tandem_error *error);

/** FILE when the existing file `path` belongs to somebody other than this user, root or the owner
 * of `other` ("": none). */
enum tandem_status tnd_file_check_user(const char *path, const char *other,
                                       struct tandem_error *error);

/** Length of the folder part of a path, its last slash included. */
size_t tnd_file_folder_length(const char *path);

/** Whether the file exists or may exist: false only if the system says that it does not. (A disk
 * error must not pass for a missing file, or its caller would overwrite the file.) */
bool tnd_file_exists(const char *path);

enum { TND_LOCK_WAIT_MS = 10000 }; /* a writer holds a lock for milliseconds */

/** Takes the lock of `path` (the file `path`.lock, which is never removed and names its holder),
 * waiting at most `wait_ms` for other processes and threads. Release *out_lock with
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
/** Called after each step; if it returns false, the write fails there. NULL: no hook. Not
 * thread-safe. */
void tnd_file_set_hook(bool (*hook)(enum tnd_file_step step));

#endif
