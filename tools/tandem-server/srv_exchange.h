/* SPDX-License-Identifier: MIT
 * A request in libmicrohttpd: collects its body, submits it, and sends the reply. */
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
    int listening; /* kept after close; -1: still open */
    int port;
    atomic_int n_requests; /* being handled */

    pthread_t watcher; /* closes connections that are past their deadline */
    pthread_mutex_t mutex;
    pthread_cond_t end;       /* ends the watcher */
    struct srv_limits limits; /* guarded by `mutex`, like all that follows */
    bool has_ended;
};

/** The entry of a connection; NULL: there was no memory for it. */
struct srv_place *tnd_srv_place_of(struct MHD_Connection *connection);

/** Callbacks of libmicrohttpd; `user` is the srv_http. */
enum MHD_Result tnd_srv_exchange_handle(void *user, struct MHD_Connection *connection,
                                        const char *url, const char *method, const char *version,
                                        const char *data, size_t *n, void **state);
void tnd_srv_exchange_completed(void *user, struct MHD_Connection *connection, void **state,
                                enum MHD_RequestTerminationCode code);

#endif
