/* SPDX-License-Identifier: MIT
 * Temporary file, fsync, rename: the only place that replaces files. */
#include "base/file_stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tnd_assert.h"
#include "tandem/files.h"

enum { MAX_NAMES = 100, RANDOM_DIGITS = 16, SECONDS_A_DAY = 86400 };

/* Temporary files are named PREFIX, random digits, SUFFIX, in the folder of their target: all of
 * one length, so that they fit wherever the target's name does, and recognisable when they are left
 * behind. */
static const char prefix[] = "tandem-";
static const char suffix[] = ".tmp";

static bool (*step_hook)(enum tnd_file_step step);

void tnd_file_set_hook(bool (*hook)(enum tnd_file_step step))
{
    step_hook = hook;
}

/* Calls the hook; when it returns false, the step fails like a disk error. */
static bool step_done(enum tnd_file_step step)
{
    if (step_hook != NULL && !step_hook(step)) {
        errno = EIO;
        return false;
    }
    return true;
}

static enum tandem_status fail(struct tandem_error *error, const char *path, const char *what,
                               int reason)
{
    char text[128];
    const char *reason_text = strerror_r(reason, text, sizeof(text));
    return tnd_error_set(error, TANDEM_E_FILE, path, reason, 0, "%.140s: %s: %s", path, what,
                         reason_text);
}

/* Not the process number: containers reuse it, and a file that a killed process left would block
 * the name for ever. */
static uint64_t random_number(void)
{
    static atomic_uint counter;
    uint64_t number;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number)) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        number = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 16 ^ (uint64_t)getpid() ^
                 (uint64_t)atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed) << 48;
    }
    return number;
}

/* The folder of a path. False: its name is too long. */
static bool folder_of(const char *path, char out[PATH_MAX])
{
    const size_t n = tnd_file_folder_length(path);
    if (n >= PATH_MAX) {
        return false;
    }
    memcpy(out, n > 0 ? path : ".", n > 0 ? n : 1);
    out[n > 0 ? n : 1] = '\0';
    return true;
}

static int open_folder(const char *path)
{
    char folder[PATH_MAX];
    return folder_of(path, folder) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

bool tnd_file_is_temporary(const char *name)
{
    const size_t n = sizeof(prefix) - 1;
    return strncmp(name, prefix, n) == 0 && strspn(name + n, "0123456789abcdef") == RANDOM_DIGITS &&
           strcmp(name + n + RANDOM_DIGITS, suffix) == 0;
}

/* Removes temporary files in the folder of `path` that killed writers left more than a day ago. */
static void remove_stale(const char *path)
{
    const int fd = open_folder(path);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    const time_t now = time(NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat facts;
        if (tnd_file_is_temporary(entry->d_name) &&
            fstatat(fd, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(facts.st_mode) && now - facts.st_mtime > SECONDS_A_DAY) {
            (void)unlinkat(fd, entry->d_name, 0);
        }
    }
    closedir(folder);
}

static void choose_name(struct tnd_file_stream *stream)
{
    snprintf(stream->temporary + tnd_file_folder_length(stream->path),
             sizeof(prefix) + RANDOM_DIGITS + sizeof(suffix), "%s%016llx%s", prefix,
             (unsigned long long)random_number(), suffix);
}

static mode_t mode_of(const struct tnd_file_stream *stream)
{
    return stream->is_private ? 0600 : 0664;
}

static void name_of_descriptor(int fd, char out[32])
{
    snprintf(out, 32, "/proc/self/fd/%d", fd);
}

/* Creates a nameless file: it vanishes when its writer ends, for whatever reason. Not every file
 * system supports it, and without /proc it cannot be named later (open(2), O_TMPFILE). */
static bool make_nameless(struct tnd_file_stream *stream)
{
    char folder[PATH_MAX];
    char own[32];
    const int fd = folder_of(stream->path, folder)
                       ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode_of(stream))
                       : -1;
    if (fd < 0) {
        return false;
    }
    name_of_descriptor(fd, own);
    if (access(own, F_OK) != 0) {
        close(fd);
        return false;
    }
    stream->fd = fd;
    stream->is_nameless = true;
    return true;
}

/* Creates the temporary file beside stream->path under an unused name. */
static bool make_temporary(struct tnd_file_stream *stream)
{
    for (int i = 0; i < MAX_NAMES; i++) {
        choose_name(stream);
        stream->fd =
            open(stream->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_of(stream));
        if (stream->fd >= 0) {
            return true;
        }
        if (errno != EEXIST && errno != EINTR) {
            return false;
        }
    }
    return false;
}

/* Links a nameless file to its temporary name: a link cannot replace the old file, a rename can. */
static bool name_it(struct tnd_file_stream *stream)
{
    char own[32];
    name_of_descriptor(stream->fd, own);
    for (int i = 0; i < MAX_NAMES; i++) {
        choose_name(stream);
        if (linkat(AT_FDCWD, own, AT_FDCWD, stream->temporary, AT_SYMLINK_FOLLOW) == 0) {
            stream->is_nameless = false;
            return true;
        }
        if (errno != EEXIST && errno != EINTR) {
            return false;
        }
    }
    return false;
}

enum tandem_status tnd_file_stream_open(const char *path, bool is_private,
                                        struct tnd_file_stream *out_stream,
                                        struct tandem_error *error)
{
    struct stat old;
    char target[PATH_MAX];
    /* If `path` is a symbolic link, its target is replaced, not the link; a private file replaces
     * the link itself. */
    const char *named = !is_private && realpath(path, target) != NULL ? target : path;
    if ((is_private ? lstat(named, &old) : stat(named, &old)) == 0) {
        if (!S_ISREG(old.st_mode) && !(is_private && S_ISLNK(old.st_mode))) {
            return tnd_error_set(error, TANDEM_E_FILE, path, 0, 0, "%.200s: is not a regular file",
                                 path);
        }
    } else if (errno != ENOENT) {
        return fail(error, path, "cannot look at", errno);
    }
    const size_t n =
        tnd_file_folder_length(named) + sizeof(prefix) + RANDOM_DIGITS + sizeof(suffix);
    struct tnd_file_stream stream = {tnd_strdup(named), tnd_alloc(n), -1, is_private, false};
    if (stream.path == NULL || stream.temporary == NULL) {
        tnd_free(stream.path);
        tnd_free(stream.temporary);
        return tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)n, 0,
                             "%.140s: no memory to write it", path);
    }
    memcpy(stream.temporary, named, tnd_file_folder_length(named));
    remove_stale(named);
    choose_name(&stream);
    if (!make_nameless(&stream) && !make_temporary(&stream)) {
        const int reason = errno;
        tnd_free(stream.path);
        tnd_free(stream.temporary);
        return fail(error, path, "cannot make a temporary file beside it", reason);
    }
    *out_stream = stream;
    return TANDEM_OK;
}

enum tandem_status tnd_file_stream_write(struct tnd_file_stream *stream, const void *bytes,
                                         size_t n, struct tandem_error *error)
{
    const char *at = bytes;
    TND_ASSERT(stream->fd >= 0);
    while (n > 0) {
        const ssize_t done = write(stream->fd, at, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return fail(error, stream->path, "cannot write", errno);
        }
        at += done;
        n -= (size_t)done;
    }
    return TANDEM_OK;
}

static void forget(struct tnd_file_stream *stream)
{
    tnd_free(stream->path);
    tnd_free(stream->temporary);
    *stream = (struct tnd_file_stream){NULL, NULL, -1, false, false};
}

/* Makes the rename durable. Some file systems cannot, which is no failure. */
static void sync_folder(const char *path)
{
    const int fd = open_folder(path);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

enum tandem_status tnd_file_stream_commit(struct tnd_file_stream *stream,
                                          struct tandem_error *error)
{
    struct stat old;
    bool ok = fsync(stream->fd) == 0 && step_done(TND_FILE_SYNCED);
    if (ok && !stream->is_private && stat(stream->path, &old) == 0) {
        ok = fchmod(stream->fd, old.st_mode & 07777) == 0;
    }
    ok = ok && (!stream->is_nameless || name_it(stream));
    int reason = errno;
    if (close(stream->fd) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    stream->fd = -1;
    if (ok && rename(stream->temporary, stream->path) != 0) {
        ok = false;
        reason = errno;
    }
    if (!ok) {
        const enum tandem_status status = fail(error, stream->path, "cannot write", reason);
        tnd_file_stream_abandon(stream);
        return status;
    }
    sync_folder(stream->path);
    forget(stream);
    (void)step_done(TND_FILE_RENAMED);
    return TANDEM_OK;
}

void tnd_file_stream_abandon(struct tnd_file_stream *stream)
{
    if (stream->fd >= 0) {
        close(stream->fd);
    }
    if (stream->temporary != NULL && !stream->is_nameless) {
        unlink(stream->temporary);
    }
    forget(stream);
}

static enum tandem_status write_halves(struct tnd_file_stream *stream, const char *bytes, size_t n,
                                       struct tandem_error *error)
{
    if (!step_done(TND_FILE_CREATED)) {
        return fail(error, stream->path, "cannot write", errno);
    }
    TND_TRY(tnd_file_stream_write(stream, bytes, n / 2, error));
    if (!step_done(TND_FILE_HALF_WRITTEN)) {
        return fail(error, stream->path, "cannot write", errno);
    }
    TND_TRY(tnd_file_stream_write(stream, bytes + n / 2, n - n / 2, error));
    return step_done(TND_FILE_WRITTEN) ? TANDEM_OK
                                       : fail(error, stream->path, "cannot write", errno);
}

enum tandem_status tandem_file_write(const char *path, const void *bytes, size_t n, bool is_private,
                                     struct tandem_error *error)
{
    TND_REQUIRE(path, "file_write", error);
    if (bytes == NULL && n > 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, path, 0, 0, "file_write: no bytes");
    }
    struct tnd_file_stream stream;
    TND_TRY(tnd_file_stream_open(path, is_private, &stream, error));
    const enum tandem_status status = write_halves(&stream, bytes, n, error);
    if (status != TANDEM_OK) {
        tnd_file_stream_abandon(&stream);
        return status;
    }
    return tnd_file_stream_commit(&stream, error);
}

enum tandem_status tnd_file_write_atomic(const char *path, const void *bytes, size_t n,
                                         struct tandem_error *error)
{
    return tandem_file_write(path, bytes, n, false, error);
}

/* "<path>.<why>-<yyyymmdd>", followed by a number if that name is taken. */
static bool name_backup(const char *path, const char *why, char *out, size_t n)
{
    struct stat facts;
    struct tm date;
    const time_t now = time(NULL);
    (void)gmtime_r(&now, &date);
    for (int i = 1; i <= MAX_NAMES; i++) {
        char number[16] = "";
        if (i > 1) {
            snprintf(number, sizeof(number), "-%d", i);
        }
        const int length = snprintf(out, n, "%s.%s-%04d%02d%02d%s", path, why, date.tm_year + 1900,
                                    date.tm_mon + 1, date.tm_mday, number);
        if (length < 0 || (size_t)length >= n) {
            errno = ENAMETOOLONG;
            return false;
        }
        if (lstat(out, &facts) != 0) {
            return errno == ENOENT;
        }
    }
    errno = EEXIST;
    return false;
}

enum tandem_status tnd_file_back_up(const char *path, const char *why, char *out_name, size_t n,
                                    struct tandem_error *error)
{
    char name[PATH_MAX];
    struct stat facts;
    struct tnd_file file;
    if (!name_backup(path, why, name, n < sizeof(name) ? n : sizeof(name))) {
        return fail(error, path, "cannot be kept aside", errno);
    }
    TND_TRY(tnd_file_read(path, 0, &file, error));
    const bool is_private = stat(path, &facts) != 0 || (facts.st_mode & 0077) == 0;
    enum tandem_status status = tandem_file_write(name, file.data, file.bytes, is_private, error);
    tnd_file_close(&file);
    if (status == TANDEM_OK) {
        memcpy(out_name, name, strlen(name) + 1);
    }
    return status;
}
