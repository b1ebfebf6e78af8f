/* SPDX-License-Identifier: MIT
 * Listening on a Unix socket: a file that only its owner may open. */
#ifndef TANDEM_SERVER_SRV_UNIX_H
#define TANDEM_SERVER_SRV_UNIX_H

#include <sys/stat.h>
#include <sys/un.h>

struct srv_unix {
    int fd; /* -1: none */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    dev_t device; /* of the file, so that only our own is removed */
    ino_t inode;
};

/** The path in "unix:PATH"; NULL: another kind of address. */
const char *tnd_srv_unix_path(const char *host);
/** Listens at `path`, replacing a socket without a listener. NULL on success, otherwise the reason;
 * then `out` is unchanged. */
const char *tnd_srv_unix_open(const char *path, struct srv_unix *out);
/** Closes the socket and removes its file. */
void tnd_srv_unix_close(struct srv_unix *socket);

#endif
