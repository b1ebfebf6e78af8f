/* SPDX-License-Identifier: MIT
 * Whole files: mapping, reading, folders, locks. Writing is in file_stream.c. Knows no format. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/tnd_mapped.h"

/* FILE with errno's reason: "name: what: reason". */
static enum tandem_status fail(struct tandem_error *error, const char *path, const char *what)
{
    int reason = errno;
    char text[128];
    /* GNU strerror_r: thread-safe, may give static text instead of filling the buffer. */
    const char *reason_text = strerror_r(reason, text, sizeof(text));
    return tnd_error_set(error, TANDEM_E_FILE, path, reason, 0, "%.140s: %s: %s", path, what,
                         reason_text);
}

static int open_again(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* ---- mapping and reading ---- */

static const uint8_t no_bytes[1] = {0};

/* Reads until the end of `fd` into memory that grows, with a zero byte behind. */
static enum tandem_status read_all(int fd, const char *path, size_t capacity, size_t limit_bytes,
                                   struct tnd_file *out_file, struct tandem_error *error)
{
    size_t n = 0;
    char *data = tnd_alloc(capacity);
    while (data != NULL) {
        if (n + 1 == capacity) {
            char *larger = capacity <= SIZE_MAX / 2 ? tnd_realloc(data, n, 2 * capacity) : NULL;
            if (larger == NULL) {
                break;
            }
            data = larger;
            capacity *= 2;
        }
        ssize_t got = read(fd, data + n, capacity - 1 - n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            enum tandem_status status = fail(error, path, "cannot read");
            tnd_free(data);
            return status;
        }
        n += (size_t)got;
        if (limit_bytes != 0 && n > limit_bytes) {
            tnd_free(data);
            return tnd_error_set(error, TANDEM_E_LIMIT, path, (int64_t)n, (int64_t)limit_bytes,
                                 "%.160s: is longer than the %zu bytes that are allowed", path,
                                 limit_bytes);
        }
        if (got == 0) {
            data[n] = '\0';
            *out_file = (struct tnd_file){(const uint8_t *)data, n, false};
            return TANDEM_OK;
        }
    }
    tnd_free(data);
    return tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)capacity, 0,
                         "%.160s: no memory for its contents (%zu bytes)", path, capacity);
}

static enum tandem_status open_regular(const char *path, int *out_fd, struct stat *out_info,
                                       struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    int fd = open_again(path, O_RDONLY | O_NONBLOCK, 0); /* a pipe must not block us */
    if (fd < 0) {
        return fail(error, path, "cannot open");
    }
    if (fstat(fd, out_info) != 0) {
        status = fail(error, path, "cannot look at");
    } else if (!S_ISREG(out_info->st_mode)) {
        status =
            tnd_error_set(error, TANDEM_E_FILE, path, 0, 0, "%.200s: is not a regular file", path);
    } else if ((uintmax_t)out_info->st_size > SIZE_MAX / 2) {
        errno = EFBIG;
        status = fail(error, path, "cannot map");
    }
    if (status != TANDEM_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return TANDEM_OK;
}

static bool wants_copies(void)
{
    const char *text = tnd_environment(TND_ENVIRONMENT_MAP);
    return text != NULL && strcmp(text, "copy") == 0;
}

enum tandem_status tnd_file_map(const char *path, bool copies, struct tnd_file *out_file,
                                struct tandem_error *error)
{
    struct stat info;
    int fd = -1;
    TND_TRY(open_regular(path, &fd, &info, error));
    enum tandem_status status = TANDEM_OK;
    size_t bytes = (size_t)info.st_size;
    if (bytes == 0) {
        *out_file = (struct tnd_file){no_bytes, 0, false};
    } else if (copies || wants_copies()) {
        status = read_all(fd, path, bytes + 2, 0, out_file, error);
    } else {
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = fail(error, path, "cannot map");
        } else {
            tnd_mapped_add(data, bytes, path, &info);
            *out_file = (struct tnd_file){data, bytes, true};
        }
    }
    close(fd);
    return status;
}

enum tandem_status tnd_file_check(const struct tnd_file *file, struct tandem_error *error)
{
    return file->is_mapped ? tnd_mapped_check_file(file->data, error) : TANDEM_OK;
}

enum tandem_status tnd_file_read(const char *path, size_t limit_bytes, struct tnd_file *out_file,
                                 struct tandem_error *error)
{
    struct stat info;
    int fd = open_again(path, O_RDONLY, 0);
    if (fd < 0) {
        return fail(error, path, "cannot open");
    }
    size_t capacity = 4096;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        /* Only a hint (it may be wrong by the time of reading); one more byte sees the end at
         * once. */
        uintmax_t hint = (uintmax_t)info.st_size + 2;
        size_t most =
            limit_bytes != 0 && limit_bytes < SIZE_MAX / 2 ? limit_bytes + 2 : SIZE_MAX / 2;
        capacity = hint < most ? (size_t)hint : most;
    }
    enum tandem_status status = read_all(fd, path, capacity, limit_bytes, out_file, error);
    close(fd);
    return status;
}

enum tandem_status tnd_file_reserve(size_t bytes, struct tnd_file *out_file,
                                    struct tandem_error *error)
{
    bytes = bytes > 0 ? bytes : 1;
    void *data = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "", (int64_t)bytes, 0,
                             "no space for %zu bytes of addresses: %s", bytes, strerror(errno));
    }
    *out_file = (struct tnd_file){data, bytes, true};
    return TANDEM_OK;
}

void tnd_file_close(struct tnd_file *file)
{
    if (file->is_mapped) {
        tnd_mapped_leave(file->data);
        munmap((void *)(uintptr_t)file->data, file->bytes);
    } else if (file->data != no_bytes) {
        tnd_free((void *)(uintptr_t)file->data);
    }
    memset(file, 0, sizeof(*file));
}

bool tnd_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- folders and locks ---- */

size_t tnd_file_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

enum tandem_status tnd_file_make_folders(const char *path, struct tandem_error *error)
{
    char folder[PATH_MAX];
    size_t n = tnd_file_folder_length(path);
    if (n >= sizeof(folder)) {
        errno = ENAMETOOLONG;
        return fail(error, path, "cannot make its folder");
    }
    memcpy(folder, path, n);
    folder[n] = '\0';
    for (size_t i = 1; i < n; i++) {
        if (folder[i] != '/') {
            continue;
        }
        folder[i] = '\0';
        struct stat info;
        if (mkdir(folder, 0777) != 0 && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))) {
            return fail(error, folder, "cannot make this folder");
        }
        folder[i] = '/';
    }
    return TANDEM_OK;
}

enum tandem_status tnd_file_lock(const char *path, int *out_lock, struct tandem_error *error)
{
    char name[PATH_MAX];
    if ((size_t)snprintf(name, sizeof(name), "%s.lock", path) >= sizeof(name)) {
        errno = ENAMETOOLONG;
        return fail(error, path, "cannot lock");
    }
    int fd = open_again(name, O_RDWR | O_CREAT, 0666);
    if (fd < 0) {
        return fail(error, name, "cannot open this lock");
    }
    while (flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            enum tandem_status status = fail(error, name, "cannot take this lock");
            close(fd);
            return status;
        }
    }
    *out_lock = fd;
    return TANDEM_OK;
}

void tnd_file_unlock(int lock)
{
    close(lock);
}
