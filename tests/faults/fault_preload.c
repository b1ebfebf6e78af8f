/* SPDX-License-Identifier: MIT
 * Lets the N-th call of the process fail, whoever makes it: tests/faults.sh preloads it into our
 * tools (LD_PRELOAD), before libc's allocations and file calls, so that hwloc, cJSON, PCRE2 and
 * OpenBLAS fail too. It also counts what our own code leaves allocated.
 *
 * FAULT=memory:N   allocations (malloc family, anonymous mmap, pthread_create), the N-th from 1
 * FAULT=file:N     file calls; the kind of error goes by N: EIO, ENOSPC, EMFILE, EINTR, cut short
 * FAULT=clock:N    readings of the wall clock: a day ahead, a day back, 1970, 200 years ahead
 * N+               that call and every later one
 * FAULT_REPORT=F   F gets a line for the first failure, one for a crash (both say in which module),
 *                  and one at the end with the counts */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY, FILES, CLOCK, N_CLASSES };
enum { SLOTS = 1 << 20 }; /* live allocations that are told apart; a power of two */

static atomic_long n_calls[N_CLASSES];
static atomic_long n_failed;
static long fail_at[N_CLASSES]; /* 0: never */
static bool fails_on[N_CLASSES];
static int report_fd = -1;
static bool is_counting; /* set once libc is ready, reset when the process ends */
static uintptr_t own_begin;
static uintptr_t own_end;
static void **live; /* hashed pointers that our own code has allocated */
static atomic_flag live_lock = ATOMIC_FLAG_INIT;
static long n_live;

/* ---- the report ---- */

static void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (report_fd >= 0 && n > 0) {
        (void)!syscall(SYS_write, report_fd, line, (size_t)n < sizeof(line) ? n : 511);
    }
}

/* ---- which call fails ---- */

/* Writes where a call or a crash comes from: the innermost function outside of libc and of us. */
static void say_where(const char *what, const char *name)
{
    void *frames[48];
    Dl_info info = {0};
    const char *module = "?";
    void *at = NULL;
    const int n = backtrace(frames, 48);
    for (int i = 0; i < n; i++) {
        if (dladdr(frames[i], &info) != 0 && info.dli_fname != NULL &&
            strstr(info.dli_fname, "libfaults") == NULL &&
            strstr(info.dli_fname, "/libc.so") == NULL) {
            module = info.dli_fname;
            at = frames[i];
            break;
        }
    }
    const char *slash = strrchr(module, '/');
    say("%s %s %s %s+%#lx\n", what, name, slash != NULL ? slash + 1 : module,
        info.dli_sname != NULL ? info.dli_sname : "",
        (unsigned long)((uintptr_t)at - (uintptr_t)info.dli_fbase));
}

static void on_crash(int number)
{
    signal(number, SIG_DFL);
    say_where("crash", strsignal(number));
    raise(number);
}

static bool fails(int class, const char *name)
{
    if (!is_counting) {
        return false;
    }
    long n = atomic_fetch_add(&n_calls[class], 1) + 1;
    if (fail_at[class] == 0 || (fails_on[class] ? n < fail_at[class] : n != fail_at[class])) {
        return false;
    }
    if (atomic_fetch_add(&n_failed, 1) == 0) {
        say_where("failed", name);
    }
    return true;
}

/* The error of the n-th file call; 0: a transfer is cut short instead. (Who retries after EINTR may
 * do so for ever.) */
static int file_error(void)
{
    static const int errors[] = {EIO, ENOSPC, EMFILE, EINTR, 0};
    return errors[fail_at[FILES] % (fails_on[FILES] ? 3 : 5)];
}

/* ---- what our own code leaves ---- */

static void lock_live(void)
{
    while (atomic_flag_test_and_set_explicit(&live_lock, memory_order_acquire)) {
    }
}

static size_t slot_of(const void *memory)
{
    return (size_t)(((uintptr_t)memory >> 4) * 0x9E3779B97F4A7C15U >> 40) % SLOTS;
}

static void *born(void *memory, void *caller)
{
    if (memory != NULL && live != NULL && (uintptr_t)caller >= own_begin &&
        (uintptr_t)caller < own_end) {
        lock_live();
        size_t slot = slot_of(memory);
        for (int i = 0; i < 1024 && live[slot] != NULL && live[slot] != (void *)1; i++) {
            slot = (slot + 1) % SLOTS;
        }
        n_live += live[slot] == NULL || live[slot] == (void *)1;
        live[slot] = memory;
        atomic_flag_clear_explicit(&live_lock, memory_order_release);
    }
    return memory;
}

static void gone(const void *memory)
{
    if (memory == NULL || live == NULL) {
        return;
    }
    lock_live();
    size_t slot = slot_of(memory);
    for (int i = 0; i < 1024 && live[slot] != NULL; i++, slot = (slot + 1) % SLOTS) {
        if (live[slot] == memory) {
            live[slot] = (void *)1; /* was used: the search goes on behind it */
            n_live--;
            break;
        }
    }
    atomic_flag_clear_explicit(&live_lock, memory_order_release);
}

/* ---- beginning and end ---- */

static int find_own(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            own_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            own_end = own_begin + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1; /* the first one is the program */
}

__attribute__((constructor)) static void begin(void)
{
    const char *fault = getenv("FAULT");
    const char *path = getenv("FAULT_REPORT");
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM};
    char *end = NULL;
    if (path != NULL) {
        report_fd = (int)syscall(SYS_openat, AT_FDCWD, path,
                                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    if (fault != NULL && strchr(fault, ':') != NULL) {
        const int class = fault[0] == 'f' ? FILES : fault[0] == 'c' ? CLOCK : MEMORY;
        fail_at[class] = strtol(strchr(fault, ':') + 1, &end, 10);
        fails_on[class] = *end == '+';
    }
    unsetenv("LD_PRELOAD"); /* not in children of ours */
    dl_iterate_phdr(find_own, NULL);
    live = (void **)syscall(SYS_mmap, NULL, sizeof(void *) * SLOTS, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)backtrace((void *[1]){NULL}, 1); /* loads what it needs */
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        signal(deadly[i], on_crash);
    }
    is_counting = true;
}

__attribute__((destructor)) static void end(void)
{
    is_counting = false;
    say("end memory=%ld file=%ld failed=%ld live=%ld\n", atomic_load(&n_calls[MEMORY]),
        atomic_load(&n_calls[FILES]), atomic_load(&n_failed), n_live);
    for (size_t i = 0; i < SLOTS && n_live > 0 && getenv("FAULT_LIVE") != NULL; i++) {
        if ((uintptr_t)live[i] > 1) {
            say("live %p\n", live[i]);
        }
    }
}

/* ---- allocations ---- */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

#define CALLER __builtin_return_address(0)

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return fails(MEMORY, "malloc") ? no_memory() : born(__libc_malloc(bytes), CALLER);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(MEMORY, "calloc") ? no_memory() : born(__libc_calloc(n, bytes), CALLER);
}

void *realloc(void *memory, size_t bytes)
{
    if (fails(MEMORY, "realloc")) {
        return no_memory();
    }
    gone(memory);
    return born(__libc_realloc(memory, bytes), CALLER);
}

void *memalign(size_t alignment, size_t bytes)
{
    return fails(MEMORY, "memalign") ? no_memory()
                                     : born(__libc_memalign(alignment, bytes), CALLER);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(MEMORY, "aligned_alloc") ? no_memory()
                                          : born(__libc_memalign(alignment, bytes), CALLER);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *memory =
        fails(MEMORY, "posix_memalign") ? NULL : born(__libc_memalign(alignment, bytes), CALLER);
    if (memory != NULL) {
        *out = memory;
    }
    return memory != NULL ? 0 : ENOMEM;
}

void free(void *memory)
{
    gone(memory);
    __libc_free(memory);
}

/* ---- the others: found in libc behind us ---- */

#define REAL(result, name, ...)                                                                    \
    static result (*real)(__VA_ARGS__);                                                            \
    if (real == NULL) {                                                                            \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }
/* A file call that returns `bad` and sets errno when it fails. */
#define FILE_CALL(result, name, bad, parameters, arguments, ...)                                   \
    result name parameters                                                                         \
    {                                                                                              \
        REAL(result, name, __VA_ARGS__)                                                            \
        if (fails(FILES, #name)) {                                                                 \
            errno = file_error() != 0 ? file_error() : EIO;                                        \
            return bad;                                                                            \
        }                                                                                          \
        return real arguments;                                                                     \
    }
/* A call that moves `n` bytes: may also be cut short. Messages always come through. */
#define TRANSFER(name, parameters, part, arguments, ...)                                           \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        REAL(ssize_t, name, __VA_ARGS__)                                                           \
        if (fd != STDERR_FILENO && fails(FILES, #name)) {                                          \
            if (file_error() == 0 && n > 1) {                                                      \
                return real part;                                                                  \
            }                                                                                      \
            errno = file_error() != 0 ? file_error() : EIO;                                        \
            return -1;                                                                             \
        }                                                                                          \
        return real arguments;                                                                     \
    }

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    REAL(void *, mmap, void *, size_t, int, int, int, off_t)
    if (fails((flags & MAP_ANONYMOUS) != 0 ? MEMORY : FILES, "mmap")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(at, bytes, protection, flags, fd, offset);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
    return fails(MEMORY, "pthread_create") ? EAGAIN : real(out, attributes, run, argument);
}

/* The mode of an open stands in the variable arguments, and is there only for new files. */
#define OPEN_CALL(name, parameters, arguments, ...)                                                \
    int name parameters                                                                            \
    {                                                                                              \
        int mode = 0;                                                                              \
        REAL(int, name, __VA_ARGS__, ...)                                                          \
        if ((flags & (O_CREAT | __O_TMPFILE)) != 0) {                                              \
            va_list more;                                                                          \
            va_start(more, flags);                                                                 \
            mode = va_arg(more, int);                                                              \
            va_end(more);                                                                          \
        }                                                                                          \
        if (fails(FILES, #name)) {                                                                 \
            errno = file_error() != 0 ? file_error() : EIO;                                        \
            return -1;                                                                             \
        }                                                                                          \
        return real arguments;                                                                     \
    }
#define AT int folder, const char *path
OPEN_CALL(open, (const char *path, int flags, ...), (path, flags, mode), const char *, int)
OPEN_CALL(open64, (const char *path, int flags, ...), (path, flags, mode), const char *, int)
OPEN_CALL(openat, (AT, int flags, ...), (folder, path, flags, mode), int, const char *, int)

/* What FORTIFY makes of open and read. */
FILE_CALL(int, __open_2, -1, (const char *path, int flags), (path, flags), const char *, int)
FILE_CALL(int, __open64_2, -1, (const char *path, int flags), (path, flags), const char *, int)
TRANSFER(__read_chk, (int fd, void *to, size_t n, size_t room), (fd, to, n / 2, room),
         (fd, to, n, room), int, void *, size_t, size_t)
FILE_CALL(char *, __realpath_chk, NULL, (const char *path, char *to, size_t room), (path, to, room),
          const char *, char *, size_t)

TRANSFER(read, (int fd, void *to, size_t n), (fd, to, n / 2), (fd, to, n), int, void *, size_t)
TRANSFER(write, (int fd, const void *from, size_t n), (fd, from, n / 2), (fd, from, n), int,
         const void *, size_t)
TRANSFER(pread, (int fd, void *to, size_t n, off_t at), (fd, to, n / 2, at), (fd, to, n, at), int,
         void *, size_t, off_t)
TRANSFER(pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n / 2, at),
         (fd, from, n, at), int, const void *, size_t, off_t)
FILE_CALL(FILE *, fopen, NULL, (const char *path, const char *how), (path, how), const char *,
          const char *)
FILE_CALL(FILE *, fopen64, NULL, (const char *path, const char *how), (path, how), const char *,
          const char *)
FILE_CALL(FILE *, fdopen, NULL, (int fd, const char *how), (fd, how), int, const char *)
FILE_CALL(int, fflush, EOF, (FILE * file), (file), FILE *)
FILE_CALL(int, fsync, -1, (int fd), (fd), int)
FILE_CALL(int, fdatasync, -1, (int fd), (fd), int)
FILE_CALL(int, rename, -1, (const char *from, const char *to), (from, to), const char *,
          const char *)
FILE_CALL(int, link, -1, (const char *from, const char *to), (from, to), const char *, const char *)
FILE_CALL(int, linkat, -1, (AT, int other, const char *to, int flags),
          (folder, path, other, to, flags), int, const char *, int, const char *, int)
FILE_CALL(int, unlink, -1, (const char *path), (path), const char *)
FILE_CALL(int, unlinkat, -1, (AT, int flags), (folder, path, flags), int, const char *, int)
FILE_CALL(int, mkdir, -1, (const char *path, mode_t mode), (path, mode), const char *, mode_t)
FILE_CALL(int, access, -1, (const char *path, int mode), (path, mode), const char *, int)
FILE_CALL(int, stat, -1, (const char *path, struct stat *out), (path, out), const char *,
          struct stat *)
FILE_CALL(int, lstat, -1, (const char *path, struct stat *out), (path, out), const char *,
          struct stat *)
FILE_CALL(int, fstat, -1, (int fd, struct stat *out), (fd, out), int, struct stat *)
FILE_CALL(int, fstatat, -1, (AT, struct stat *out, int flags), (folder, path, out, flags), int,
          const char *, struct stat *, int)
FILE_CALL(int, ftruncate, -1, (int fd, off_t bytes), (fd, bytes), int, off_t)
FILE_CALL(int, flock, -1, (int fd, int what), (fd, what), int, int)
FILE_CALL(int, fchmod, -1, (int fd, mode_t mode), (fd, mode), int, mode_t)
FILE_CALL(DIR *, opendir, NULL, (const char *path), (path), const char *)
FILE_CALL(ssize_t, readlink, -1, (const char *path, char *to, size_t n), (path, to, n),
          const char *, char *, size_t)
FILE_CALL(ssize_t, getrandom, -1, (void *to, size_t n, unsigned flags), (to, n, flags), void *,
          size_t, unsigned)

/* Closing fails after it has closed. */
int close(int fd)
{
    REAL(int, close, int)
    int result = real(fd);
    if (fails(FILES, "close")) {
        errno = EIO;
        return -1;
    }
    return result;
}

int fclose(FILE *file)
{
    REAL(int, fclose, FILE *)
    int result = real(file);
    if (fails(FILES, "fclose")) {
        errno = EIO;
        return EOF;
    }
    return result;
}

int fcntl(int fd, int command, ...)
{
    REAL(int, fcntl, int, int, ...)
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (fails(FILES, "fcntl")) {
        errno = file_error() != 0 ? file_error() : EIO;
        return -1;
    }
    return real(fd, command, argument);
}

/* ---- the wall clock (the monotonic one cannot jump) ---- */

static time_t jumped(time_t seconds)
{
    const time_t days[] = {seconds + 86400, seconds - 86400, 0, seconds + 200L * 365 * 86400};
    return days[atomic_load(&n_calls[CLOCK]) % 4];
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    REAL(int, clock_gettime, clockid_t, struct timespec *)
    int result = real(clock, out);
    if (result == 0 && clock == CLOCK_REALTIME && fails(CLOCK, "clock_gettime")) {
        out->tv_sec = jumped(out->tv_sec);
    }
    return result;
}

time_t time(time_t *out)
{
    REAL(time_t, time, time_t *)
    time_t now = real(NULL);
    now = fails(CLOCK, "time") ? jumped(now) : now;
    if (out != NULL) {
        *out = now;
    }
    return now;
}
