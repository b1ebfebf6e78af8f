/* SPDX-License-Identifier: MIT
 * Whole files: mapping, reading, atomic replacing, locks. Knows no format. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

static bool (*step_hook)(enum tnd_file_step step);

void tnd_file_set_hook(bool (*hook)(enum tnd_file_step step))
{
    step_hook = hook;
}

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

enum tandem_status tnd_file_map(const char *path, struct tnd_file *out_file,
                                struct tandem_error *error)
{
    struct stat info;
    enum tandem_status status = TANDEM_OK;
    int fd = open_again(path, O_RDONLY | O_NONBLOCK, 0); /* a pipe must not block us */
    if (fd < 0) {
        return fail(error, path, "cannot open");
    }
    if (fstat(fd, &info) != 0) {
        status = fail(error, path, "cannot look at");
    } else if (!S_ISREG(info.st_mode)) {
        status =
            tnd_error_set(error, TANDEM_E_FILE, path, 0, 0, "%.200s: is not a regular file", path);
    } else if (info.st_size == 0) {
        *out_file = (struct tnd_file){no_bytes, 0, false};
    } else if ((uintmax_t)info.st_size > SIZE_MAX) {
        errno = EFBIG;
        status = fail(error, path, "cannot map");
    } else {
        size_t bytes = (size_t)info.st_size;
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = fail(error, path, "cannot map");
        } else {
            *out_file = (struct tnd_file){data, bytes, true};
        }
    }
    close(fd);
    return status;
}

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
                             "no room for %zu bytes of addresses: %s", bytes, strerror(errno));
    }
    *out_file = (struct tnd_file){data, bytes, true};
    return TANDEM_OK;
}

void tnd_file_close(struct tnd_file *file)
{
    if (file->is_mapped) {
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

/* ---- writing ---- */

/* Length of the folder part of a path, its last slash included. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return false;
        }
        bytes += done;
        n -= (size_t)done;
    }
    return true;
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

/* Fills a fresh temporary file. */
static bool fill(int fd, const char *bytes, size_t n)
{
    return step_done(TND_FILE_CREATED) && write_all(fd, bytes, n / 2) &&
           step_done(TND_FILE_HALF_WRITTEN) && write_all(fd, bytes + n / 2, n - n / 2) &&
           step_done(TND_FILE_WRITTEN) && fsync(fd) == 0 && step_done(TND_FILE_SYNCED);
}

/* Makes the rename itself survive a crash. Some file systems cannot, which is no failure. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    size_t n = folder_length(path);
    snprintf(folder, sizeof(folder), "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
    int fd = open_again(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

enum tandem_status tnd_file_write_atomic(const char *path, const void *bytes, size_t n,
                                         struct tandem_error *error)
{
    static atomic_uint counter; /* keeps the threads of one process apart */
    char target[PATH_MAX], temporary[PATH_MAX + 48];
    struct stat old;
    mode_t mode = 0666;
    /* Through a symbolic link the file behind it is replaced, not the link. */
    if (realpath(path, target) == NULL) {
        if (strlen(path) >= sizeof(target)) {
            errno = ENAMETOOLONG;
            return fail(error, path, "cannot write");
        }
        strcpy(target, path);
    }
    bool had_old = stat(target, &old) == 0;
    if (had_old && !S_ISREG(old.st_mode)) {
        return tnd_error_set(error, TANDEM_E_FILE, path, 0, 0, "%.200s: is not a regular file",
                             path);
    }
    snprintf(temporary, sizeof(temporary), "%s.%ld.%u.tmp", target, (long)getpid(),
             atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
    int fd = open_again(temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (fd < 0) {
        return fail(error, path, "cannot make a temporary file beside it");
    }
    bool ok = fill(fd, bytes, n) && (!had_old || fchmod(fd, old.st_mode & 07777) == 0);
    int reason = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    if (ok && rename(temporary, target) != 0) {
        ok = false;
        reason = errno;
    }
    if (!ok) {
        unlink(temporary);
        errno = reason;
        return fail(error, path, "cannot write");
    }
    sync_folder(target);
    (void)step_done(TND_FILE_RENAMED);
    return TANDEM_OK;
}

enum tandem_status tnd_file_make_folders(const char *path, struct tandem_error *error)
{
    char folder[PATH_MAX];
    size_t n = folder_length(path);
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
