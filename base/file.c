/* SPDX-License-Identifier: MIT
 * Whole files: mapping, reading, folders, locks. Writing is in file_stream.c. Independent of file
 * formats. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/mapped_digest.h"
#include "base/tnd_mapped.h"
#include "tandem/files.h"

/* Status FILE with errno's text: "name: what: reason". */
static enum tandem_status fail(struct tandem_error *error, const char *path, const char *what)
{
    int reason = errno;
    char text[128];
    /* GNU strerror_r: thread-safe, may return a static string instead of filling the buffer. */
    const char *reason_text = strerror_r(reason, text, sizeof(text));
    return tnd_error_set(error, TANDEM_E_FILE, path, reason, 0, "%.140s: %s: %s", path, what,
                         reason_text);
}

static int open_again(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static const char *kind_name(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a device"
           : S_ISBLK(mode)  ? "a disk"
                            : "something else";
}

static enum tandem_status check_regular(const struct stat *facts, const char *path,
                                        struct tandem_error *error)
{
    return S_ISREG(facts->st_mode) ? TANDEM_OK
                                   : tnd_error_set(error, TANDEM_E_FILE, path, 0, 0,
                                                   "%.180s: is %s, not a regular file", path,
                                                   kind_name(facts->st_mode));
}

/* Opening a pipe blocks and opening a device may have side effects, so only regular files are
 * opened; O_NONBLOCK in case another file takes its place between the check and the open. */
static enum tandem_status open_regular(const char *path, int flags, int *out_fd,
                                       struct stat *out_facts, struct tandem_error *error)
{
    if (stat(path, out_facts) == 0) {
        TND_TRY(check_regular(out_facts, path, error));
    }
    int fd = open_again(path, flags | O_NONBLOCK, 0664);
    if (fd < 0) {
        return fail(error, path, "cannot open");
    }
    enum tandem_status status =
        fstat(fd, out_facts) != 0 || fcntl(fd, F_SETFL, flags & O_ACCMODE) != 0
            ? fail(error, path, "cannot look at")
            : check_regular(out_facts, path, error);
    if (status == TANDEM_OK && (uintmax_t)out_facts->st_size > SIZE_MAX / 2) {
        errno = EFBIG;
        status = fail(error, path, "cannot read");
    }
    if (status != TANDEM_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return TANDEM_OK;
}

/* ---- mapping and reading ---- */

static const uint8_t no_bytes[1] = {0};

/* Reads `fd` to its end into a growing buffer and appends a zero byte. */
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

static bool wants_copies(void)
{
    return tnd_environment(TND_ENVIRONMENT_MAP) != NULL; /* "copy" is its only valid value */
}

/* Asks for pages of 2 MiB for what is not in the page cache yet (ext4 from Linux 6.16 on supports
 * it). Reading takes as long as before, but later processes map 2 MiB per fault and have their
 * first token in 0.7 of the time. */
static void ask_for_huge_pages(void *data, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(data, bytes, MADV_HUGEPAGE);
#else
    (void)data;
    (void)bytes;
#endif
}

enum tandem_status tnd_file_map(const char *path, bool copies, struct tnd_file *out_file,
                                struct tandem_error *error)
{
    struct stat info;
    int fd = -1;
    TND_TRY(open_regular(path, O_RDONLY, &fd, &info, error));
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
            ask_for_huge_pages(data, bytes);
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

void tnd_file_unload(const struct tnd_file *file)
{
    if (file->is_mapped) {
        (void)madvise((void *)(uintptr_t)file->data, file->bytes, MADV_DONTNEED); /* (a hint) */
    }
}

enum tandem_status tnd_file_read(const char *path, size_t limit_bytes, struct tnd_file *out_file,
                                 struct tandem_error *error)
{
    struct stat info;
    int fd;
    TND_TRY(open_regular(path, O_RDONLY, &fd, &info, error));
    size_t capacity = 4096;
    if (info.st_size > 0) {
        /* The size is a hint (the file may grow); one more byte lets the first read reach the
         * end. */
        uintmax_t hint = (uintmax_t)info.st_size + 2;
        size_t most =
            limit_bytes != 0 && limit_bytes < SIZE_MAX / 2 ? limit_bytes + 2 : SIZE_MAX / 2;
        capacity = hint < most ? (size_t)hint : most;
    }
    enum tandem_status status = read_all(fd, path, capacity, limit_bytes, out_file, error);
    close(fd);
    return status;
}

enum tandem_status tandem_file_read(const char *path, size_t limit_bytes, void **out_bytes,
                                    size_t *out_n, struct tandem_error *error)
{
    struct tnd_file file;
    TND_REQUIRE(path, "file_read", error);
    TND_REQUIRE(out_bytes, "file_read", error);
    TND_REQUIRE(out_n, "file_read", error);
    TND_TRY(tnd_file_read(path, limit_bytes, &file, error));
    *out_bytes = (void *)(uintptr_t)file.data; /* never mapped, so the caller may own it */
    *out_n = file.bytes;
    return TANDEM_OK;
}

void tandem_file_free(void *bytes)
{
    tnd_free(bytes);
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
        tnd_mapped_digests_leave(file->data);
        tnd_mapped_leave(file->data);
        munmap((void *)(uintptr_t)file->data, file->bytes);
    } else if (file->data != no_bytes) {
        tnd_free((void *)(uintptr_t)file->data);
    }
    memset(file, 0, sizeof(*file));
}

bool tnd_file_exists(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* ---- folders and locks ---- */

size_t tnd_file_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* FILE when other users may have replaced `path`: one of the folders that lead to it is writable
 * for all. With the sticky bit, a folder is safe if the entry in it belongs to this user or
 * root. */
enum tandem_status tnd_file_check_owner(const char *path, struct tandem_error *error)
{
    char part[PATH_MAX];
    struct stat facts;
    size_t n = strlen(path);
    if (n >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return fail(error, path, "cannot look at");
    }
    memcpy(part, path, n + 1);
    uid_t owner = geteuid();
    for (bool is_file = true; n > 1; is_file = false) {
        if (stat(part, &facts) == 0) {
            const bool is_open = (facts.st_mode & S_IWOTH) != 0;
            const bool is_sticky = !is_file && (facts.st_mode & S_ISVTX) != 0;
            if (is_open && !(is_sticky && (owner == geteuid() || owner == 0))) {
                return tnd_error_set(
                    error, TANDEM_E_FILE, path, (int64_t)(facts.st_mode & 07777), 0,
                    "%.100s: is not trusted: every user may write to %.80s (chmod o-w)", path,
                    part);
            }
            owner = facts.st_uid; /* owner of the next folder of the path */
        }
        n = tnd_file_folder_length(part);
        part[n] = '\0';
        while (n > 1 && part[n - 1] == '/') {
            part[--n] = '\0';
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_file_check_user(const char *path, const char *other,
                                       struct tandem_error *error)
{
    struct stat facts, others;
    if (stat(path, &facts) != 0) {
        return fail(error, path, "cannot look at");
    }
    if (facts.st_uid == geteuid() || facts.st_uid == 0 ||
        (stat(other, &others) == 0 && others.st_uid == facts.st_uid)) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_FILE, path, (int64_t)facts.st_uid, (int64_t)geteuid(),
                         "%.140s: is not trusted: it belongs to user %ld, and this is user %ld",
                         path, (long)facts.st_uid, (long)geteuid());
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
        if (mkdir(folder, 0775) != 0 && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))) {
            return fail(error, folder, "cannot make this folder");
        }
        folder[i] = '/';
    }
    return TANDEM_OK;
}

/* An error with the text that the holder wrote into its lock file. */
static enum tandem_status held_by(int fd, const char *name, int wait_ms, struct tandem_error *error)
{
    char who[64] = "";
    const ssize_t n = pread(fd, who, sizeof(who) - 1, 0);
    who[n > 0 ? n : 0] = '\0';
    return tnd_error_set(error, TANDEM_E_FILE, name, EWOULDBLOCK, wait_ms,
                         "%.120s: %.60s holds this lock for more than %g s", name,
                         who[0] != '\0' ? who : "another process", 1e-3 * wait_ms);
}

static enum tandem_status wait_for_lock(int fd, const char *name, int wait_ms,
                                        struct tandem_error *error)
{
    const struct timespec pause = {0, 2000000};
    const uint64_t begin_ns = tnd_clock_real()->now_ns(tnd_clock_real());
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const uint64_t now_ns = tnd_clock_real()->now_ns(tnd_clock_real());
        if (errno != EINTR && errno != EWOULDBLOCK) {
            return fail(error, name, "cannot take this lock");
        }
        if (now_ns - begin_ns >= (uint64_t)wait_ms * 1000000) {
            return held_by(fd, name, wait_ms, error);
        }
        (void)nanosleep(&pause, NULL);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_file_lock(const char *path, int wait_ms, int *out_lock,
                                 struct tandem_error *error)
{
    char name[PATH_MAX];
    char who[64];
    struct stat facts;
    int fd = -1;
    if ((size_t)snprintf(name, sizeof(name), "%s.lock", path) >= sizeof(name)) {
        errno = ENAMETOOLONG;
        return fail(error, path, "cannot lock");
    }
    /* Never through a symbolic link: the file behind it would be overwritten. */
    TND_TRY(open_regular(name, O_RDWR | O_CREAT | O_NOFOLLOW, &fd, &facts, error));
    enum tandem_status status = wait_for_lock(fd, name, wait_ms, error);
    if (status != TANDEM_OK) {
        close(fd);
        return status;
    }
    const int n = snprintf(who, sizeof(who), "process %ld (%.32s)", (long)getpid(),
                           program_invocation_short_name);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, who, (size_t)n, 0) < 0) {
        /* the lock also holds without its text (the disk may be full) */
    }
    *out_lock = fd;
    return TANDEM_OK;
}

void tnd_file_unlock(int lock)
{
    close(lock);
}
