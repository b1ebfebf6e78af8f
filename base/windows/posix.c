/* SPDX-License-Identifier: MIT
 * The functions of tnd_windows.h, implemented with those of Windows. Source of their contracts: the
 * pages of the same names of POSIX.1-2017 and Linux. */
#include <stdio.h>

#include "base/windows/tnd_windows.h"

#undef open
#undef mkdir
#undef rename
#undef pthread_cond_timedwait
#undef clock_nanosleep
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define RtlGenRandom SystemFunction036 /* (its exported name in advapi32) */
BOOLEAN NTAPI RtlGenRandom(PVOID out, ULONG n);

/* ---- files ---- */

int tnd_windows_open(const char *path, int flags, ...)
{
    if ((flags & O_TMPFILE) != 0) {
        errno = ENOTSUP;
        return -1;
    }
    return _open(path, flags | _O_BINARY, _S_IREAD | _S_IWRITE);
}

int fcntl(int fd, int command, int flags)
{
    (void)fd;
    (void)command;
    (void)flags;
    return 0;
}

int fsync(int fd)
{
    return _commit(fd);
}

ssize_t pread(int fd, void *out, size_t n, off_t at)
{
    const __int64 before = _telli64(fd);
    ssize_t got = -1;
    if (before >= 0 && _lseeki64(fd, at, SEEK_SET) >= 0) {
        got = _read(fd, out, (unsigned)n);
        (void)_lseeki64(fd, before, SEEK_SET);
    }
    return got;
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    const __int64 before = _telli64(fd);
    ssize_t put = -1;
    if (before >= 0 && _lseeki64(fd, at, SEEK_SET) >= 0) {
        put = _write(fd, from, (unsigned)n);
        (void)_lseeki64(fd, before, SEEK_SET);
    }
    return put;
}

int tnd_windows_mkdir(const char *path, int mode)
{
    (void)mode;
    return mkdir(path);
}

int tnd_windows_rename(const char *from, const char *to)
{
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) {
        return 0;
    }
    errno = EACCES;
    return -1;
}

DIR *fdopendir(int fd)
{
    (void)fd;
    errno = ENOTSUP;
    return NULL;
}

static int refuse(void)
{
    errno = ENOTSUP;
    return -1;
}

int fstatat(int fd, const char *name, struct stat *out, int flags)
{
    (void)fd;
    (void)name;
    (void)out;
    (void)flags;
    return refuse();
}

int unlinkat(int fd, const char *name, int flags)
{
    (void)fd;
    (void)name;
    (void)flags;
    return refuse();
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    (void)from_fd;
    (void)from;
    (void)to_fd;
    (void)to;
    (void)flags;
    return refuse();
}

int fchmod(int fd, int mode)
{
    (void)fd;
    (void)mode;
    return 0;
}

uid_t geteuid(void)
{
    return 0;
}

char *realpath(const char *path, char *out)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? _fullpath(out, path, PATH_MAX) : NULL;
}

const char *tnd_windows_program(void)
{
    static char name[MAX_PATH];
    if (name[0] == '\0' && GetModuleFileNameA(NULL, name, sizeof(name)) == 0) {
        strcpy(name, "?");
    }
    const char *slash = strrchr(name, '\\');
    return slash == NULL ? name : slash + 1;
}

int flock(int fd, int what)
{
    OVERLAPPED whole = {0};
    const HANDLE file = (HANDLE)_get_osfhandle(fd);
    const DWORD flags = ((what & LOCK_EX) != 0 ? LOCKFILE_EXCLUSIVE_LOCK : 0) |
                        ((what & LOCK_NB) != 0 ? LOCKFILE_FAIL_IMMEDIATELY : 0);
    /* A byte far beyond the file's text, so that others can read the text while it is locked. */
    whole.OffsetHigh = 1;
    if ((what & LOCK_UN) != 0 ? UnlockFileEx(file, 0, 1, 0, &whole)
                              : LockFileEx(file, flags, 0, 1, 0, &whole)) {
        return 0;
    }
    errno = EWOULDBLOCK;
    return -1;
}

/* ---- texts ---- */

locale_t newlocale(int mask, const char *name, locale_t base)
{
    (void)mask;
    (void)name;
    (void)base;
    return 1;
}

/* Two states per thread: "C", and the previous one. */
locale_t uselocale(locale_t locale)
{
    static _Thread_local char before[64];
    if (locale == 0) {
        (void)setlocale(LC_ALL, before);
        return 1;
    }
    (void)_configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    (void)snprintf(before, sizeof(before), "%s", setlocale(LC_ALL, NULL));
    (void)setlocale(LC_ALL, "C");
    return 0;
}

double tnd_windows_strtod(const char *text, char **end, locale_t locale)
{
    const locale_t before = uselocale(locale);
    const double value = strtod(text, end);
    (void)uselocale(before);
    return value;
}

char *tnd_windows_strerror(int reason, char *out, size_t n)
{
    return strerror_s(out, n, reason) == 0 ? out : "unknown";
}

char *secure_getenv(const char *name)
{
    return getenv(name);
}

int setenv(const char *name, const char *value, int replaces)
{
    return !replaces && getenv(name) != NULL ? 0 : _putenv_s(name, value);
}

int unsetenv(const char *name)
{
    return _putenv_s(name, "");
}

ssize_t readlink(const char *path, char *out, size_t n)
{
    (void)path;
    (void)out;
    (void)n;
    return refuse();
}

char *mkdtemp(char *name)
{
    const size_t n = strlen(name);
    for (unsigned i = 0; n >= 6 && i < 1000; i++) {
        uint32_t number = 0;
        (void)getrandom(&number, sizeof(number), 0);
        (void)snprintf(name + n - 6, 7, "%06x", (unsigned)(number & 0xffffff));
        if (mkdir(name) == 0) {
            return name;
        }
    }
    return NULL;
}

/* ---- memory ---- */

/* Lies directly before an aligned block. */
struct piece {
    void *memory;
    size_t bytes;
};

void *tnd_windows_aligned(size_t alignment, size_t bytes)
{
    const size_t more = alignment + sizeof(struct piece);
    char *memory = bytes <= SIZE_MAX - more ? malloc(bytes + more) : NULL;
    if (memory == NULL) {
        return NULL;
    }
    const uintptr_t first = (uintptr_t)memory + sizeof(struct piece);
    char *aligned = memory + sizeof(struct piece) + (alignment - first % alignment) % alignment;
    const struct piece piece = {memory, bytes};
    memcpy(aligned - sizeof(piece), &piece, sizeof(piece));
    return aligned;
}

static struct piece piece_of(const void *aligned)
{
    struct piece piece;
    memcpy(&piece, (const char *)aligned - sizeof(piece), sizeof(piece));
    return piece;
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *memory = tnd_windows_aligned(alignment, bytes);
    if (memory == NULL) {
        return ENOMEM;
    }
    *out = memory;
    return 0;
}

size_t malloc_usable_size(void *memory)
{
    return memory == NULL ? 0 : piece_of(memory).bytes;
}

void tnd_windows_free(void *memory)
{
    if (memory != NULL) {
        free(piece_of(memory).memory);
    }
}

/* Windows can neither replace nor remove a mapped file, so the file is read. */
static bool read_file(int fd, void *out, size_t bytes)
{
    for (size_t n = 0; n < bytes;) {
        const size_t left = bytes - n;
        const int got = _read(fd, (char *)out + n, left < 1 << 30 ? (unsigned)left : 1U << 30);
        if (got <= 0) {
            return false;
        }
        n += (size_t)got;
    }
    return true;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    const bool is_reserved = protection == PROT_NONE;
    void *pages = NULL;
    (void)at;
    if ((flags & MAP_FIXED) == 0 && offset == 0) {
        pages = VirtualAlloc(NULL, bytes, is_reserved ? MEM_RESERVE : MEM_RESERVE | MEM_COMMIT,
                             is_reserved ? PAGE_NOACCESS : PAGE_READWRITE);
    }
    if (pages != NULL && (flags & MAP_ANONYMOUS) == 0 && !read_file(fd, pages, bytes)) {
        (void)munmap(pages, bytes);
        errno = EIO;
        return MAP_FAILED;
    }
    if (pages == NULL) {
        errno = ENOMEM;
    }
    return pages == NULL ? MAP_FAILED : pages;
}

int munmap(void *at, size_t bytes)
{
    (void)bytes;
    return VirtualFree(at, 0, MEM_RELEASE) ? 0 : -1;
}

int madvise(void *at, size_t bytes, int advice)
{
    (void)at;
    (void)bytes;
    (void)advice;
    return refuse();
}

ssize_t getrandom(void *out, size_t n, unsigned flags)
{
    (void)flags;
    return RtlGenRandom(out, (ULONG)n) ? (ssize_t)n : -1;
}

/* ---- the machine ---- */

long sysconf(int name)
{
    SYSTEM_INFO system;
    MEMORYSTATUSEX memory = {.dwLength = sizeof(memory)};
    GetSystemInfo(&system);
    (void)GlobalMemoryStatusEx(&memory);
    switch (name) {
    case _SC_PAGESIZE:
        return (long)system.dwPageSize;
    case _SC_PHYS_PAGES:
        return (long)(memory.ullTotalPhys / system.dwPageSize);
    case _SC_AVPHYS_PAGES:
        return (long)(memory.ullAvailPhys / system.dwPageSize);
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
        return (long)system.dwNumberOfProcessors;
    default:
        return -1; /* cache sizes: callers have defaults for unknown ones */
    }
}

int sched_getaffinity(int process, size_t bytes, cpu_set_t *out)
{
    DWORD_PTR ours = 0;
    DWORD_PTR all = 0;
    (void)process;
    (void)bytes;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)) {
        return refuse();
    }
    out->bits = ours;
    return 0;
}

int sched_setaffinity(int process, size_t bytes, const cpu_set_t *set)
{
    (void)process;
    (void)bytes;
    return SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)set->bits) != 0 ? 0 : refuse();
}

int sched_getcpu(void)
{
    return (int)GetCurrentProcessorNumber();
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
    (void)bytes;
    return SetThreadAffinityMask(pthread_gethandle(thread), (DWORD_PTR)set->bits) != 0 ? 0 : EINVAL;
}

/* ---- threads ---- */

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Sleeps in whole milliseconds and yields for the rest. */
int tnd_windows_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                          struct timespec *rest)
{
    (void)flags;
    (void)rest;
    for (;;) {
        struct timespec now;
        (void)clock_gettime(clock, &now);
        const int64_t left = ns_of(until) - ns_of(&now);
        if (left <= 0) {
            return 0;
        }
        Sleep((DWORD)(left / 1000000));
    }
}

int tnd_windows_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          const struct timespec *until)
{
    struct timespec monotonic;
    struct timespec day;
    (void)clock_gettime(CLOCK_MONOTONIC, &monotonic);
    (void)clock_gettime(CLOCK_REALTIME, &day);
    const int64_t when = ns_of(&day) + ns_of(until) - ns_of(&monotonic);
    const struct timespec then = {.tv_sec = (time_t)(when / 1000000000),
                                  .tv_nsec = (long)(when % 1000000000)};
    return pthread_cond_timedwait(cond, mutex, &then);
}

/* ---- libraries ---- */

void *dlopen(const char *name, int flags)
{
    (void)flags;
    return (void *)LoadLibraryA(name);
}

void *dlsym(void *library, const char *name)
{
    void *address = NULL;
    const FARPROC function = GetProcAddress((HMODULE)library, name);
    memcpy(&address, &function, sizeof(address));
    return address;
}

int dlclose(void *library)
{
    return FreeLibrary((HMODULE)library) ? 0 : -1;
}

char *dlerror(void)
{
    static char text[64];
    (void)snprintf(text, sizeof(text), "error %lu of Windows", (unsigned long)GetLastError());
    return text;
}

int dladdr(const void *address, Dl_info *out)
{
    (void)address;
    (void)out;
    return 0;
}
