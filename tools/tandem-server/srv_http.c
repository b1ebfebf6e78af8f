/* SPDX-License-Identifier: MIT
 * Listening, limiting connections, and stopping. */
#include "tools/tandem-server/srv_exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 32768,
    SLACK = 32,     /* closed connections that libmicrohttpd has not released yet */
    MAX_BODIES = 16 /* memory for this many of the largest bodies at once */
};

/* ---- listening ---- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* False: not a numeric address. */
static bool read_address(const char *host, int port, union address *out, bool *out_is_local)
{
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons((uint16_t)port);
        *out_is_local = ntohl(out->v4.sin_addr.s_addr) >> 24 == 127;
        return true;
    }
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons((uint16_t)port);
    if (inet_pton(AF_INET6, host, &out->v6.sin6_addr) != 1) {
        return false;
    }
    *out_is_local = IN6_IS_ADDR_LOOPBACK(&out->v6.sin6_addr) != 0;
    return true;
}

/* A number for each client: of IPv6 only the network, since hosts choose the rest of their
 * addresses. 0: this machine, including proxies that serve many clients. */
static uint64_t client_of(const struct sockaddr *address)
{
    uint64_t network = 0;
    if (address != NULL && address->sa_family == AF_INET) {
        const uint32_t v4 =
            ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
        return v4 >> 24 == 127 ? 0 : v4;
    }
    if (address != NULL && address->sa_family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        memcpy(&network, v6, sizeof(network));
        network = IN6_IS_ADDR_LOOPBACK(v6) ? 0 : network | 1; /* (never that of an IPv4 client) */
    }
    return network;
}

/* ---- limits ---- */

static void cut(int socket)
{
    (void)shutdown(socket, SHUT_RDWR); /* libmicrohttpd notices and closes it */
}

static void connection_changed(void *user, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode code)
{
    struct srv_http *http = user;
    pthread_mutex_lock(&http->mutex);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        tnd_srv_limits_remove(&http->limits, *context);
        *context = NULL;
    } else {
        const int socket =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        const struct sockaddr *address =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
        *context = tnd_srv_limits_add(&http->limits, socket, client_of(address), tnd_srv_seconds());
    }
    pthread_mutex_unlock(&http->mutex);
}

/* Called when the first line of a request has arrived. */
static void *request_began(void *user, const char *uri, struct MHD_Connection *connection)
{
    struct srv_http *http = user;
    struct srv_place *place = tnd_srv_place_of(connection);
    (void)uri;
    pthread_mutex_lock(&http->mutex);
    if (place != NULL && place->phase == SRV_WAITS) {
        (void)tnd_srv_limits_enter(&http->limits, place, SRV_HEADERS, tnd_srv_seconds());
    }
    pthread_mutex_unlock(&http->mutex);
    return NULL;
}

static void *watch(void *user)
{
    struct srv_http *http = user;
    pthread_mutex_lock(&http->mutex);
    while (!http->has_ended) {
        struct timespec next;
        (void)tnd_srv_limits_expire(&http->limits, tnd_srv_seconds());
        (void)clock_gettime(CLOCK_REALTIME, &next);
        next.tv_nsec += 250000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&http->end, &http->mutex, &next);
    }
    pthread_mutex_unlock(&http->mutex);
    return NULL;
}

static void end_watch(struct srv_http *http)
{
    pthread_mutex_lock(&http->mutex);
    http->has_ended = true;
    (void)pthread_cond_signal(&http->end);
    pthread_mutex_unlock(&http->mutex);
    (void)pthread_join(http->watcher, NULL);
}

/* ---- starting and stopping ---- */

static void say_nothing(void *user, const char *format, va_list arguments)
{
    (void)user;
    (void)format;
    (void)arguments;
}

static bool start_daemon(struct srv_http *http, const union address *address, int unix_socket)
{
    const struct srv_http_options *o = &http->options;
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_USE_ERROR_LOG | MHD_USE_ITC |
                           (address->any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0U);
    const struct MHD_OptionItem where[] = {
        {unix_socket >= 0 ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_SOCK_ADDR, unix_socket,
         unix_socket >= 0 ? NULL : (void *)(uintptr_t)&address->any},
        {MHD_OPTION_END, 0, NULL}};
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, tnd_srv_exchange_handle, http, MHD_OPTION_EXTERNAL_LOGGER,
        say_nothing, NULL, MHD_OPTION_ARRAY, where, MHD_OPTION_NOTIFY_COMPLETED,
        tnd_srv_exchange_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, http,
        MHD_OPTION_URI_LOG_CALLBACK, request_began, http, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(o->max_connections + SRV_RESERVE + SLACK), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADER_BYTES, MHD_OPTION_END);
    if (http->daemon == NULL) {
        return false;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    http->port = unix_socket >= 0 ? 0 : info != NULL && info->port != 0 ? info->port : o->port;
    return true;
}

static bool start_threads(struct srv_http *http)
{
    http->work = tnd_srv_work_new();
    if (http->work != NULL && pthread_create(&http->watcher, NULL, watch, http) == 0) {
        return true;
    }
    if (http->work != NULL) {
        tnd_srv_work_stop(http->work);
    }
    return false;
}

/* Call after the threads have ended. */
static void http_free(struct srv_http *http)
{
    if (http != NULL) {
        tnd_srv_work_free(http->work);
        tnd_srv_unix_close(&http->unix_socket);
        (void)pthread_cond_destroy(&http->end);
        (void)pthread_mutex_destroy(&http->mutex);
        free(http);
    }
}

/* Starts listening; NULL on success, otherwise the reason. */
static const char *start(struct srv_http *http, bool *out_is_local)
{
    union address address = {.any = {.sa_family = AF_UNIX}};
    const char *path = tnd_srv_unix_path(http->options.host);
    const char *why =
        path != NULL ? tnd_srv_unix_open(path, &http->unix_socket)
        : !read_address(http->options.host, http->options.port, &address, out_is_local)
            ? "expected a numeric address such as 127.0.0.1, or unix:PATH"
            : NULL;
    if (why != NULL) {
        return why;
    }
    if (!start_threads(http)) {
        return "no threads";
    }
    errno = 0;
    if (!start_daemon(http, &address, http->unix_socket.fd)) {
        why = errno != 0 ? strerror(errno) : "the address cannot be used";
        tnd_srv_work_stop(http->work);
        end_watch(http);
    }
    return why;
}

struct srv_http *tnd_srv_http_start(struct srv_server *server,
                                    const struct srv_http_options *options,
                                    struct tandem_error *error)
{
    bool is_local = false;
    struct srv_http *http = calloc(1, sizeof(*http));
    const char *why = "no memory";
    if (http != NULL) {
        (void)pthread_mutex_init(&http->mutex, NULL); /* (cannot fail without attributes) */
        (void)pthread_cond_init(&http->end, NULL);
        http->server = server;
        http->options = *options;
        http->listening = http->unix_socket.fd = -1;
        http->limits.options =
            (struct srv_limit_options){.max_connections = options->max_connections,
                                       .max_of_address = options->max_of_address,
                                       .idle_seconds = options->idle_seconds,
                                       .headers_seconds = options->receive_seconds,
                                       .body_seconds = options->receive_seconds,
                                       .max_bytes = MAX_BODIES * options->max_body,
                                       .close = cut};
        why = start(http, &is_local);
    }
    if (why != NULL) {
        char port[16] = "";
        if (strncmp(options->host, "unix:", 5) != 0) {
            snprintf(port, sizeof(port), " port %d", options->port);
        }
        snprintf(error->text, sizeof(error->text), "%.108s%s: %s", options->host, port, why);
        http_free(http);
        return NULL;
    }
    server->is_local = is_local;
    return http;
}

int tnd_srv_http_port(const struct srv_http *http)
{
    return http->port;
}

void tnd_srv_http_close(struct srv_http *http)
{
    if (http->listening < 0) {
        http->listening = MHD_quiesce_daemon(http->daemon);
    }
}

void tnd_srv_http_stop(struct srv_http *http, double seconds)
{
    const double end = tnd_srv_seconds() + seconds;
    const struct timespec moment = {.tv_nsec = 10000000};
    tnd_srv_http_close(http);
    while (atomic_load(&http->n_requests) > 0 && tnd_srv_seconds() < end) {
        (void)nanosleep(&moment, NULL);
    }
    tnd_srv_work_stop(http->work); /* resumes suspended connections, else MHD cannot stop */
    MHD_stop_daemon(http->daemon);
    end_watch(http);
    if (http->listening >= 0 && http->listening != http->unix_socket.fd) {
        (void)close(http->listening);
    }
    http_free(http);
}
