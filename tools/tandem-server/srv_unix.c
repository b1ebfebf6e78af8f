/* SPDX-License-Identifier: MIT
 * Listening on a Unix socket. */
#include "tools/tandem-server/srv_unix.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128 };

const char *tnd_srv_unix_path(const char *host)
{
    const char *head = "unix:";
    return strncmp(host, head, strlen(head)) == 0 ? host + strlen(head) : NULL;
}

/* Removes the socket of a server that was killed. NULL: the path is free. */
static const char *make_room(const struct sockaddr_un *address)
{
    struct stat info;
    if (lstat(address->sun_path, &info) != 0) {
        return NULL;
    }
    if (!S_ISSOCK(info.st_mode)) {
        return "the file is there and no socket";
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_dead = fd >= 0 &&
                         connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
                         errno == ECONNREFUSED;
    (void)close(fd);
    return !is_dead                         ? "another server listens there"
           : unlink(address->sun_path) != 0 ? strerror(errno)
                                            : NULL;
}

const char *tnd_srv_unix_open(const char *path, struct srv_unix *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    if (path[0] == '\0' || strlen(path) >= sizeof(address.sun_path)) {
        return "a path of 1 to 107 bytes is needed";
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    const char *why = make_room(&address);
    if (why != NULL) {
        return why;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* nobody can connect before listen(), and by then the permissions are set */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(path, S_IRUSR | S_IWUSR) != 0 || lstat(path, &info) != 0 ||
        listen(fd, BACKLOG) != 0) {
        why = strerror(errno);
        (void)close(fd);
        return why;
    }
    *out = (struct srv_unix){.fd = fd, .device = info.st_dev, .inode = info.st_ino};
    memcpy(out->path, path, strlen(path) + 1);
    return NULL;
}

void tnd_srv_unix_close(struct srv_unix *socket)
{
    struct stat info;
    if (socket->fd < 0) {
        return;
    }
    if (lstat(socket->path, &info) == 0 && info.st_dev == socket->device &&
        info.st_ino == socket->inode) {
        (void)unlink(socket->path);
    }
    (void)close(socket->fd);
    socket->fd = -1;
}
