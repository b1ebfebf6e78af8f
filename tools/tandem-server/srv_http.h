/* SPDX-License-Identifier: MIT
 * HTTP by libmicrohttpd: one thread serves all connections, and lets those sleep that wait for the
 * engine; srv_limits.h says which ones may stay. */
#ifndef TANDEM_SERVER_SRV_HTTP_H
#define TANDEM_SERVER_SRV_HTTP_H

#include "tools/tandem-server/srv_server.h"

struct srv_http_options {
    const char *host; /* a numeric address, IPv4 or IPv6; or unix:PATH */
    int port;         /* 0: a free one */
    size_t max_body;  /* bytes of a request */
    int max_connections;
    double idle_seconds;    /* between requests, and until some of a reply is read */
    double receive_seconds; /* for the headers of a request to come, and again for its body */
    int max_of_address;     /* requests in hand of one address that is not this machine's */
};

struct srv_http;

/** Listens. `server` is borrowed; its `is_local` is set here. NULL: `error` says why. */
struct srv_http *tnd_srv_http_start(struct srv_server *server,
                                    const struct srv_http_options *options,
                                    struct tandem_error *error);
/** The port it listens on; 0: a Unix socket. */
int tnd_srv_http_port(const struct srv_http *http);
/** Takes no more connections. */
void tnd_srv_http_close(struct srv_http *http);
/** Waits at most `seconds` for replies that are under way, and ends; all jobs must have ended. */
void tnd_srv_http_stop(struct srv_http *http, double seconds);

#endif
