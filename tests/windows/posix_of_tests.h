/* SPDX-License-Identifier: MIT
 * What tests use of POSIX beside the rooms. All of it is refused, so a test that needs it fails:
 * those are named in tests/windows/expected-failures. */
#ifndef TND_POSIX_OF_TESTS_H
#define TND_POSIX_OF_TESTS_H

#include <errno.h>
#include <sys/types.h>

static inline int tnd_refused(void)
{
    errno = ENOTSUP;
    return -1;
}
#include <sys/stat.h>
#include <time.h>

#define WNOHANG             1
#define WIFEXITED(status)   ((status) == 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((status) != 0)
#define WTERMSIG(status)    (status)
#define SIGKILL             9

static inline int mkfifo(const char *path, int mode)
{
    (void)path;
    (void)mode;
    return tnd_refused();
}
static inline int symlink(const char *to, const char *path)
{
    (void)to;
    (void)path;
    return tnd_refused();
}
static inline int link(const char *from, const char *to)
{
    (void)from;
    (void)to;
    return tnd_refused();
}
static inline int fork(void)
{
    return tnd_refused();
}
static inline int kill(int process, int number)
{
    (void)process;
    (void)number;
    return tnd_refused();
}
static inline int pipe(int *ends)
{
    ends[0] = ends[1] = -1;
    return tnd_refused();
}
static inline int waitpid(int process, int *out, int how)
{
    (void)process;
    (void)how;
    if (out != NULL) {
        *out = 0;
    }
    return tnd_refused();
}
static inline int utimensat(int fd, const char *path, const struct timespec *times, int flags)
{
    (void)fd;
    (void)path;
    (void)times;
    (void)flags;
    return tnd_refused();
}
static inline int chown(const char *path, int owner, int group)
{
    (void)path;
    (void)owner;
    (void)group;
    return tnd_refused();
}

#define AF_UNIX     1
#define SOCK_STREAM 1
struct sockaddr {
    int sa_family;
};
struct sockaddr_un {
    int sun_family;
    char sun_path[108];
};
static inline int socket(int family, int type, int protocol)
{
    (void)family;
    (void)type;
    (void)protocol;
    return tnd_refused();
}
static inline int bind(int fd, const struct sockaddr *address, size_t bytes)
{
    (void)fd;
    (void)address;
    (void)bytes;
    return tnd_refused();
}

#endif
