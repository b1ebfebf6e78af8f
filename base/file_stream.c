/* SPDX-License-Identifier: MIT
 * Temporary file, fsync, rename: the only place that replaces files. */
#include "base/file_stream.h"

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

enum { SUFFIX_BYTES = 32, MAX_NAMES = 100 };

static bool (*step_hook)(enum tnd_file_step step);

void tnd_file_set_hook(bool (*hook)(enum tnd_file_step step))
{
    step_hook = hook;
}

/* Tells the hook; a refusal looks like a failure of the disk. */
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

/* Process numbers repeat in containers, and a file that a killed process left must not stand in the
 * way for ever. */
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

/* Makes the temporary file beside stream->path under a name that nobody has. */
static bool make_temporary(struct tnd_file_stream *stream, size_t name_bytes)
{
    for (int i = 0; i < MAX_NAMES; i++) {
        snprintf(stream->temporary, name_bytes, "%s.%016llx.tmp", stream->path,
                 (unsigned long long)random_number());
        stream->fd = open(stream->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (stream->fd >= 0) {
            return true;
        }
        if (errno != EEXIST && errno != EINTR) {
            return false;
        }
    }
    return false;
}

enum tandem_status tnd_file_stream_open(const char *path, struct tnd_file_stream *out_stream,
                                        struct tandem_error *error)
{
    struct stat old;
    char target[PATH_MAX];
    /* Through a symbolic link the file behind it is replaced, not the link. */
    const char *named = realpath(path, target) != NULL ? target : path;
    if (stat(named, &old) == 0 && !S_ISREG(old.st_mode)) {
        return tnd_error_set(error, TANDEM_E_FILE, path, 0, 0, "%.200s: is not a regular file",
                             path);
    }
    const size_t n = strlen(named) + SUFFIX_BYTES;
    struct tnd_file_stream stream = {tnd_strdup(named), tnd_alloc(n), -1};
    if (stream.path == NULL || stream.temporary == NULL) {
        tnd_free(stream.path);
        tnd_free(stream.temporary);
        return tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)n, 0,
                             "%.140s: no memory to write it", path);
    }
    if (!make_temporary(&stream, n)) {
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
    *stream = (struct tnd_file_stream){NULL, NULL, -1};
}

/* Makes the rename itself survive a crash. Some file systems cannot, which is no failure. */
static void sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        slash[slash == path ? 1 : 0] = '\0';
    }
    const int fd = open(slash != NULL ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    if (ok && stat(stream->path, &old) == 0) {
        ok = fchmod(stream->fd, old.st_mode & 07777) == 0;
    }
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
    if (stream->temporary != NULL) {
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

enum tandem_status tnd_file_write_atomic(const char *path, const void *bytes, size_t n,
                                         struct tandem_error *error)
{
    struct tnd_file_stream stream;
    TND_TRY(tnd_file_stream_open(path, &stream, error));
    const enum tandem_status status = write_halves(&stream, bytes, n, error);
    if (status != TANDEM_OK) {
        tnd_file_stream_abandon(&stream);
        return status;
    }
    return tnd_file_stream_commit(&stream, error);
}
