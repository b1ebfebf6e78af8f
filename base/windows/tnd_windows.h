/* SPDX-License-Identifier: MIT
 * What Windows with MinGW lacks of POSIX and Linux, as far as the rooms up to tune/ use it. The
 * cross build (mk/mingw.mk) includes this file before all others, and makes empty headers for those
 * that the system lacks, so the rooms need no code for Windows. Hints that Windows does not support
 * (pages, policies, priorities) fail as Linux fails them. */
#ifndef TND_WINDOWS_H
#define TND_WINDOWS_H

#define tell tnd_windows_tell /* (the name is used in our sources too) */
#include <fcntl.h>
#include <io.h>
#undef tell
#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <pthread_time.h>
#include <unistd.h>

/* ---- files: descriptors of the C runtime, always binary ---- */

#define O_CLOEXEC      _O_NOINHERIT
#define O_NOCTTY       0
#define O_NONBLOCK     0
#define O_NOFOLLOW     0
#define O_DIRECTORY    0
#define O_TMPFILE      0x40000000 /* always refused */
#define F_SETFL        4
#define S_ISSOCK(mode) ((void)(mode), 0)
#undef S_ISLNK
#define S_ISLNK(mode) ((void)(mode), 0)
#undef S_ISVTX
#undef S_IWOTH
#define S_IWOTH 0 /* Windows keeps the rights of others in ACLs, not in the mode */
#define S_ISVTX 0
#ifndef EWOULDBLOCK
#define EWOULDBLOCK EAGAIN
#endif
#define AT_FDCWD            (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_SYMLINK_FOLLOW   0x400
typedef int uid_t;

int tnd_windows_open(const char *path, int flags, ...);
#define open tnd_windows_open
int fcntl(int fd, int command, int flags);
int fsync(int fd);
ssize_t pread(int fd, void *out, size_t n, off_t at);
ssize_t pwrite(int fd, const void *from, size_t n, off_t at);
int tnd_windows_mkdir(const char *path, int mode);
#define mkdir tnd_windows_mkdir
/* Replaces an existing file, as POSIX requires. */
int tnd_windows_rename(const char *from, const char *to);
#define rename tnd_windows_rename
/* Always fails, so that removing stale temporary files finds none. */
DIR *fdopendir(int fd);
int fstatat(int fd, const char *name, struct stat *out, int flags);
int unlinkat(int fd, const char *name, int flags);
int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int fchmod(int fd, int mode);
#define lstat stat
uid_t geteuid(void);
char *realpath(const char *path, char *out);
const char *tnd_windows_program(void);
#define program_invocation_short_name tnd_windows_program()

/* ---- texts ---- */

typedef int locale_t; /* 1: "C"; 0: the thread's previous one */
#define LC_ALL_MASK 0
locale_t newlocale(int mask, const char *name, locale_t base);
locale_t uselocale(locale_t locale);
char *tnd_windows_strerror(int reason, char *out, size_t n);
#define strerror_r tnd_windows_strerror
char *secure_getenv(const char *name);
int setenv(const char *name, const char *value, int replaces);
int unsetenv(const char *name);
ssize_t readlink(const char *path, char *out, size_t n); /* always refused */
char *mkdtemp(char *name);
double tnd_windows_strtod(const char *text, char **end, locale_t locale);
#define strtod_l            tnd_windows_strtod
#define gmtime_r(time, out) (gmtime_s(out, time) == 0 ? (out) : NULL)

/* ---- memory: aligned blocks, with their own free (mk/mingw.mk) ---- */

int posix_memalign(void **out, size_t alignment, size_t bytes);
size_t malloc_usable_size(void *memory);
void tnd_windows_free(void *memory);
void *tnd_windows_aligned(size_t alignment, size_t bytes);

/* ---- the machine ---- */

enum {
    _SC_PAGESIZE,
    _SC_PHYS_PAGES,
    _SC_AVPHYS_PAGES,
    _SC_NPROCESSORS_ONLN,
    _SC_NPROCESSORS_CONF,
    _SC_LEVEL1_DCACHE_SIZE,
    _SC_LEVEL2_CACHE_SIZE,
    _SC_LEVEL3_CACHE_SIZE
};
long sysconf(int name);

/* One group of at most 64 processors. */
#define CPU_SETSIZE 64
typedef struct {
    uint64_t bits;
} cpu_set_t;
#define CPU_ZERO(set)       ((set)->bits = 0)
#define CPU_SET(cpu, set)   ((set)->bits |= UINT64_C(1) << (cpu))
#define CPU_CLR(cpu, set)   ((set)->bits &= ~(UINT64_C(1) << (cpu)))
#define CPU_ISSET(cpu, set) (((set)->bits >> (cpu)) & 1)
#define CPU_COUNT(set)      __builtin_popcountll((set)->bits)
#define CPU_AND(out, a, b)  ((out)->bits = (a)->bits & (b)->bits)
#define CPU_EQUAL(a, b)     ((a)->bits == (b)->bits)
int sched_getaffinity(int process, size_t bytes, cpu_set_t *out);
int sched_setaffinity(int process, size_t bytes, const cpu_set_t *set);
int sched_getcpu(void);
int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set);

/* ---- time ---- */

#ifndef TIMER_ABSTIME
#define TIMER_ABSTIME 1
#endif
/* Sleeps until a time of the monotonic clock; winpthreads can sleep only by the wall clock. */
int tnd_windows_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                          struct timespec *rest);
#define clock_nanosleep tnd_windows_nanosleep

/* ---- threads ---- */

/* Waits until a time of the monotonic clock; winpthreads can wait only by the wall clock. */
int tnd_windows_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          const struct timespec *until);
#define pthread_cond_timedwait tnd_windows_timedwait
/* There are no signals to block. */
#define sigset_t               uint64_t
#define SIG_SETMASK            2
#ifndef SIGBUS
#define SIGBUS 7
#endif
static inline int sigfillset(sigset_t *set)
{
    *set = ~(sigset_t)0;
    return 0;
}
static inline int sigemptyset(sigset_t *set)
{
    *set = 0;
    return 0;
}
static inline int sigdelset(sigset_t *set, int number)
{
    *set &= ~((sigset_t)1 << number);
    return 0;
}
static inline int sigismember(const sigset_t *set, int number)
{
    return (int)(*set >> number & 1);
}
static inline int tnd_windows_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how;
    (void)set;
    if (old != NULL) {
        *old = 0;
    }
    return 0;
}
#undef pthread_sigmask
#define pthread_sigmask tnd_windows_sigmask
static inline int tnd_windows_atfork(void (*before)(void), void (*parent)(void),
                                     void (*child)(void))
{
    (void)before;
    (void)parent;
    (void)child;
    return 0;
}
#undef pthread_atfork
#define pthread_atfork tnd_windows_atfork

/* ---- pages: sys/mman.h ---- */

#define PROT_NONE       0
#define PROT_READ       1
#define PROT_WRITE      2
#define MAP_PRIVATE     2
#define MAP_SHARED      1
#define MAP_ANONYMOUS   32
#define MAP_FIXED       16
#define MAP_NORESERVE   0x4000
#define MAP_FAILED      ((void *)-1)
#define MADV_HUGEPAGE   14
#define MADV_PAGEOUT    21
#define MADV_DONTNEED   4
#define MADV_WILLNEED   3
#define MADV_SEQUENTIAL 2

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int munmap(void *at, size_t bytes);
int mprotect(void *at, size_t bytes, int protection); /* for tests: libgcc has it */
int madvise(void *at, size_t bytes, int advice);

/* ---- locks of whole files: sys/file.h ---- */

#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8
int flock(int fd, int what);

/* ---- random bytes: sys/random.h ---- */

#define GRND_NONBLOCK 1
ssize_t getrandom(void *out, size_t n, unsigned flags);

/* ---- no program has more rights than its user: sys/auxv.h ---- */

#define AT_SECURE         23
#define getauxval(number) ((void)(number), 0UL)

/* ---- no system calls by number, so policies of NUMA are refused: sys/syscall.h ---- */

#define SYS_gettid      0
#define syscall(number) ((void)(number), 0L)

/* ---- priorities, which stay as they are: sys/resource.h ---- */

#define PRIO_PROCESS 0
typedef unsigned id_t;
static inline int getpriority(int which, id_t who)
{
    (void)which;
    (void)who;
    return 0;
}
static inline int setpriority(int which, id_t who, int nice)
{
    (void)which;
    (void)who;
    (void)nice;
    return -1;
}

/* ---- hints for Linux only: sys/prctl.h ---- */

#define PR_SET_TIMERSLACK 29
static inline int prctl(int what, ...)
{
    (void)what;
    return -1;
}

/* ---- libraries that are loaded when the program runs ---- */

#define RTLD_NOW    2
#define RTLD_LOCAL  0
#define RTLD_GLOBAL 0x100
typedef struct {
    const char *dli_fname;
} Dl_info;

void *dlopen(const char *name, int flags);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
char *dlerror(void);
/* Always 0: unknown. */
int dladdr(const void *address, Dl_info *out);

#endif
