/* SPDX-License-Identifier: MIT
 * HTTP with libmicrohttpd: one thread serves all connections and suspends those that wait for the
 * engine; srv_limits.h decides which connections may stay. */
#ifndef TANDEM_SERVER_SRV_HTTP_H
#define TANDEM_SERVER_SRV_HTTP_H

#include "tools/tandem-server/srv_server.h"

struct srv_http_options {
    const char *host; /* a numeric address, IPv4 or IPv6; or unix:PATH */
    int port;         /* 0: any free port */
    size_t max_body;  /* maximum bytes of a request */
    int max_connections;
    double idle_seconds;    /* between requests, and until part of a reply is read */
    double receive_seconds; /* for receiving the headers of a request, and again for its body */
    int max_of_address;     /* concurrent requests of one address other than this machine's */
};

struct srv_http;

/** Starts listening. `server` is borrowed; sets its `is_local`. NULL: `error` has the reason. */
struct srv_http *tnd_srv_http_start(struct srv_server *server,
                                    const struct srv_http_options *options,
                                    struct tandem_error *error);
/** The port; 0: a Unix socket. */
int tnd_srv_http_port(const struct srv_http *http);
/** Stops accepting connections. */
void tnd_srv_http_close(struct srv_http *http);
/** Waits at most `seconds` for replies being sent, and stops; all jobs must have ended. */
void tnd_srv_http_stop(struct srv_http *http, double seconds);

#endif
