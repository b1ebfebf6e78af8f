/* SPDX-License-Identifier: MIT
 * A request under way, as libmicrohttpd tells it: what came is collected, handed over, and what
 * comes of it is sent. */
#ifndef TANDEM_SERVER_SRV_EXCHANGE_H
#define TANDEM_SERVER_SRV_EXCHANGE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tools/tandem-server/srv_http.h"
#include "tools/tandem-server/srv_limits.h"
#include "tools/tandem-server/srv_unix.h"
#include "tools/tandem-server/srv_work.h"

struct srv_http {
    const struct srv_server *server;
    struct srv_http_options options;
    struct MHD_Daemon *daemon;
    struct srv_work *work;
    struct srv_unix unix_socket;
    int listening; /* after close; -1: not yet */
    int port;
    atomic_int n_requests; /* under way */

    pthread_t watcher; /* looks for connections behind their deadline */
    pthread_mutex_t mutex;
    pthread_cond_t end;       /* of the watcher */
    struct srv_limits limits; /* guarded by `mutex`, as is what follows */
    bool has_ended;
};

/** The place of a connection; NULL: there was no memory for one. */
struct srv_place *tnd_srv_place_of(struct MHD_Connection *connection);

/** libmicrohttpd's callbacks; `user` is the srv_http. */
enum MHD_Result tnd_srv_exchange_handle(void *user, struct MHD_Connection *connection,
                                        const char *url, const char *method, const char *version,
                                        const char *data, size_t *n, void **state);
void tnd_srv_exchange_completed(void *user, struct MHD_Connection *connection, void **state,
                                enum MHD_RequestTerminationCode code);

#endif
