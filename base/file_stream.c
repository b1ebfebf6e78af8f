/* SPDX-License-Identifier: MIT
 * Temporary file, fsync, rename. */
#include "base/file_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define SUFFIX_BYTES 48

static enum tandem_status fail(struct tandem_error *error, const char *path, const char *what,
                               int reason)
{
    char text[128];
    const char *reason_text = strerror_r(reason, text, sizeof(text));
    return tnd_error_set(error, TANDEM_E_FILE, path, reason, 0, "%.140s: %s: %s", path, what,
                         reason_text);
}

enum tandem_status tnd_file_stream_open(const char *path, struct tnd_file_stream *out_stream,
                                        struct tandem_error *error)
{
    static atomic_uint counter; /* keeps the threads of one process apart */
    struct stat old;
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode)) {
        return tnd_error_set(error, TANDEM_E_FILE, path, 0, 0, "%.200s: is not a regular file",
                             path);
    }
    const size_t n = strlen(path) + SUFFIX_BYTES;
    struct tnd_file_stream stream = {tnd_strdup(path), tnd_alloc(n), -1};
    if (stream.path == NULL || stream.temporary == NULL) {
        tnd_free(stream.path);
        tnd_free(stream.temporary);
        return tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)n, 0,
                             "%.140s: no memory to write it", path);
    }
    snprintf(stream.temporary, n, "%s.%ld.s%u.tmp", path, (long)getpid(),
             atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
    stream.fd = open(stream.temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (stream.fd < 0) {
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
    bool ok = fsync(stream->fd) == 0;
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
