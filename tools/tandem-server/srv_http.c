/* SPDX-License-Identifier: MIT
 * Requests of libmicrohttpd to srv_server.h, and back. */
#include "tools/tandem-server/srv_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { STREAM_BLOCK = 16384, HEADER_BYTES = 32768 };

struct srv_http {
    const struct srv_server *server;
    struct srv_http_options options;
    struct MHD_Daemon *daemon;
    int listening; /* after close; -1: not yet */
    int port;
    atomic_int n_requests; /* under way */
};

/* A request under way. */
struct exchange {
    struct srv_http *http;
    struct MHD_Connection *connection;
    int socket;
    struct srv_text body;
    size_t n_body;       /* bytes that came, also of what is too large */
    bool has_answer;     /* the request was read and handed over */
    struct srv_job *job; /* NULL: none, or none any more */
    struct srv_reader reader;
    struct srv_text out; /* of a stream, from `n_sent` on still to be sent */
    size_t n_sent;
    bool is_last; /* nothing follows `out` */
    /* guarded by the job's mutex */
    bool is_suspended, has_news;
};

/* ---- the engine wakes a connection ---- */

static void wake(void *user)
{
    struct exchange *exchange = user;
    exchange->has_news = true;
    if (exchange->is_suspended) {
        exchange->is_suspended = false;
        MHD_resume_connection(exchange->connection);
    }
}

static bool is_gone(void *user)
{
    const struct exchange *exchange = user;
    char byte;
    const ssize_t n = recv(exchange->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Lets the connection sleep unless there were news since `has_news` was cleared. */
static void wait_for_news(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->job->mutex);
    if (!exchange->has_news) {
        exchange->is_suspended = true;
        MHD_suspend_connection(exchange->connection);
    }
    pthread_mutex_unlock(&exchange->job->mutex);
}

static void clear_news(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->job->mutex);
    exchange->has_news = false;
    pthread_mutex_unlock(&exchange->job->mutex);
}

/* ---- replies ---- */

static enum MHD_Result queue(struct MHD_Connection *connection, struct MHD_Response *response,
                             int status)
{
    if (response == NULL) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    const enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_reply(struct exchange *exchange, struct srv_reply *reply)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->body.n, reply->body.bytes, MHD_RESPMEM_MUST_COPY);
    if (response != NULL) {
        (void)MHD_add_response_header(response, "Content-Type", reply->type);
        if (reply->allow != NULL) {
            (void)MHD_add_response_header(response, "Allow", reply->allow);
        }
        if (reply->status == 401) {
            (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
        }
        if (reply->status == 503) {
            (void)MHD_add_response_header(response, "Retry-After", "1");
        }
    }
    return queue(exchange->connection, response, reply->status);
}

/* libmicrohttpd asks for the next bytes of a stream. */
static ssize_t read_stream(void *user, uint64_t position, char *out, size_t capacity)
{
    struct exchange *exchange = user;
    (void)position;
    if (exchange->n_sent == exchange->out.n) {
        if (exchange->is_last) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        exchange->out.n = exchange->n_sent = 0;
        clear_news(exchange);
        exchange->is_last = tnd_srv_read_stream(exchange->http->server, exchange->job,
                                                &exchange->reader, &exchange->out);
        if (exchange->out.failed) {
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        if (exchange->out.n == 0 && !exchange->is_last) {
            wait_for_news(exchange);
            return 0;
        }
    }
    const size_t left = exchange->out.n - exchange->n_sent;
    const size_t n = left < capacity ? left : capacity;
    memcpy(out, exchange->out.bytes + exchange->n_sent, n);
    exchange->n_sent += n;
    return (ssize_t)n;
}

static enum MHD_Result send_stream(struct exchange *exchange)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, exchange, NULL);
    if (response != NULL) {
        (void)MHD_add_response_header(response, "Content-Type", "text/event-stream");
        (void)MHD_add_response_header(response, "Cache-Control", "no-cache");
    }
    return queue(exchange->connection, response, 200);
}

/* The whole output of a job, once it is there. */
static enum MHD_Result send_whole(struct exchange *exchange)
{
    struct srv_reply reply = {0};
    enum MHD_Result result = MHD_YES;
    clear_news(exchange);
    if (tnd_srv_read_whole(exchange->http->server, exchange->job, &reply)) {
        result = send_reply(exchange, &reply);
        tnd_srv_reply_free(&reply);
    } else {
        wait_for_news(exchange);
    }
    return result;
}

/* ---- requests ---- */

static enum MHD_Result too_large(struct exchange *exchange)
{
    struct srv_reply reply = {0};
    tnd_srv_reply_error(&reply, 413, "the body is larger than %zu bytes",
                        exchange->http->options.max_body);
    exchange->has_answer = true;
    const enum MHD_Result result = send_reply(exchange, &reply);
    tnd_srv_reply_free(&reply);
    return result;
}

static const char *header(struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result answer(struct exchange *exchange, const char *method, const char *url)
{
    const struct srv_request request = {
        .method = method,
        .path = url,
        .authorization = header(exchange, "Authorization"),
        .host = header(exchange, "Host"),
        .origin = header(exchange, "Origin"),
        .body = exchange->body.bytes != NULL ? exchange->body.bytes : "",
        .n = exchange->body.n,
    };
    const struct srv_listener listener = {wake, is_gone, exchange};
    struct srv_reply reply;
    exchange->has_answer = true;
    tnd_srv_answer(exchange->http->server, &request, &reply);
    tnd_srv_text_free(&exchange->body);
    if (reply.job == NULL) {
        const enum MHD_Result result = send_reply(exchange, &reply);
        tnd_srv_reply_free(&reply);
        return result;
    }
    exchange->job = reply.job;
    tnd_srv_job_listen(exchange->job, &listener);
    return exchange->job->params.is_stream ? send_stream(exchange) : send_whole(exchange);
}

static struct exchange *begin(struct srv_http *http, struct MHD_Connection *connection)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange != NULL) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        exchange->http = http;
        exchange->connection = connection;
        exchange->socket = info != NULL ? info->connect_fd : -1;
        atomic_fetch_add(&http->n_requests, 1);
    }
    return exchange;
}

/* A part of the body. Where its headers said no length, what is too large is dropped up to its end,
 * because nothing can be answered before. False: there is no end, or no memory. */
static bool take_bytes(struct exchange *exchange, const char *data, size_t n)
{
    const size_t most = exchange->http->options.max_body;
    exchange->n_body += n;
    if (exchange->n_body > most) {
        tnd_srv_text_free(&exchange->body);
        return exchange->n_body / 2 <= most;
    }
    tnd_srv_add(&exchange->body, data, n);
    return !exchange->body.failed;
}

/* Called with the headers, then with each part of the body, then without any, and again after a
 * connection slept. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *n,
                              void **state)
{
    struct srv_http *http = user;
    struct exchange *exchange = *state;
    (void)version;
    if (exchange == NULL) {
        *state = exchange = begin(http, connection);
        if (exchange == NULL) {
            return MHD_NO;
        }
        const char *length = header(exchange, "Content-Length");
        return length != NULL && strtoull(length, NULL, 10) > http->options.max_body
                   ? too_large(exchange)
                   : MHD_YES;
    }
    if (*n > 0) {
        const size_t given = *n;
        *n = 0;
        return take_bytes(exchange, data, given) ? MHD_YES : MHD_NO;
    }
    if (exchange->job != NULL) {
        return send_whole(exchange);
    }
    return exchange->has_answer                        ? MHD_YES
           : exchange->n_body > http->options.max_body ? too_large(exchange)
                                                       : answer(exchange, method, url);
}

static void completed(void *user, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *state;
    (void)user;
    (void)connection;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    if (exchange->job != NULL) {
        tnd_srv_job_listen(exchange->job, NULL);
        atomic_store_explicit(&exchange->job->is_cancelled, true, memory_order_release);
        tnd_srv_job_unref(exchange->job);
    }
    atomic_fetch_sub(&exchange->http->n_requests, 1);
    tnd_srv_text_free(&exchange->body);
    tnd_srv_text_free(&exchange->out);
    free(exchange);
    *state = NULL;
}

/* ---- listening ---- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* False: no numeric address. */
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

static void say_nothing(void *user, const char *format, va_list arguments)
{
    (void)user;
    (void)format;
    (void)arguments;
}

static bool start(struct srv_http *http, const union address *address)
{
    const struct srv_http_options *o = &http->options;
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_USE_ERROR_LOG | MHD_USE_ITC |
                           (address->any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0U);
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, http, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
        MHD_OPTION_SOCK_ADDR, &address->any, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)o->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_END);
    if (http->daemon == NULL) {
        return false;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    http->port = info != NULL && info->port != 0 ? info->port : o->port;
    return true;
}

struct srv_http *tnd_srv_http_start(struct srv_server *server,
                                    const struct srv_http_options *options,
                                    struct tandem_error *error)
{
    union address address;
    bool is_local = false;
    struct srv_http *http = calloc(1, sizeof(*http));
    const char *why = "no memory";
    if (http != NULL) {
        http->server = server;
        http->options = *options;
        http->listening = -1;
        errno = 0;
        why = !read_address(options->host, options->port, &address, &is_local)
                  ? "expected a numeric address such as 127.0.0.1"
              : start(http, &address) ? NULL
              : errno != 0            ? strerror(errno)
                                      : "the address cannot be used";
    }
    if (why != NULL) {
        free(http);
        snprintf(error->text, sizeof(error->text), "%.60s port %d: %s", options->host,
                 options->port, why);
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
    while (atomic_load(&http->n_requests) > 0 && tnd_srv_seconds() < end) {
        (void)nanosleep(&moment, NULL);
    }
    MHD_stop_daemon(http->daemon);
    if (http->listening >= 0) {
        (void)close(http->listening);
    }
    free(http);
}
