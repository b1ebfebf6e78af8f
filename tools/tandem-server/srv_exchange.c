/* SPDX-License-Identifier: MIT
 * Connects libmicrohttpd with srv_server.h. Bodies are parsed on other threads (srv_work.h); a
 * connection is suspended until there is something to send. */
#include "tools/tandem-server/srv_exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { STREAM_BLOCK = 16384 };

/* A request being handled. */
struct exchange {
    struct srv_http *http;
    struct MHD_Connection *connection;
    struct srv_place *place; /* of the connection */
    int socket;
    struct srv_text body;
    size_t n_body;        /* bytes received, also of a body that is too large */
    int refused;          /* HTTP status that is known before the body has ended; 0: none */
    bool has_answer;      /* the request was read and a response is queued */
    bool is_handed_over;  /* `task` was submitted to another thread */
    struct srv_task task; /* the request and its reply */
    struct srv_job *job;  /* the current choice; NULL: none */
    struct srv_job *jobs; /* the first choice; holds a reference */
    struct srv_reader reader;
    struct srv_text out; /* of a stream; to be sent from `n_sent` on */
    size_t n_sent;
    bool is_last; /* nothing follows `out` */
    /* guarded by the job's mutex */
    bool is_suspended, has_news;
};

/* ---- the engine resumes a connection ---- */

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

/* Suspends the connection unless something happened since `has_news` was cleared. */
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

/* Moves to the next choice if the current one has ended. False: it has not, or was the last. */
static bool next_choice(struct exchange *exchange)
{
    const struct srv_listener listener = {wake, is_gone, exchange};
    struct srv_job *job = exchange->job;
    if (job->sibling == NULL || !tnd_srv_job_is_done(job)) {
        return false;
    }
    tnd_srv_job_listen(job, NULL);
    exchange->job = job->sibling;
    tnd_srv_job_listen(exchange->job, &listener);
    return true;
}

/* ---- the limits of connections ---- */

static bool enter(struct exchange *exchange, enum srv_phase phase)
{
    struct srv_http *http = exchange->http;
    pthread_mutex_lock(&http->mutex);
    const bool is_good =
        tnd_srv_limits_enter(&http->limits, exchange->place, phase, tnd_srv_seconds());
    pthread_mutex_unlock(&http->mutex);
    return is_good;
}

static void enter_send(struct exchange *exchange, size_t n)
{
    struct srv_http *http = exchange->http;
    pthread_mutex_lock(&http->mutex);
    tnd_srv_limits_send(&http->limits, exchange->place, n, tnd_srv_seconds());
    pthread_mutex_unlock(&http->mutex);
}

static bool has_room(struct exchange *exchange, size_t n)
{
    struct srv_http *http = exchange->http;
    pthread_mutex_lock(&http->mutex);
    const bool is_good = tnd_srv_limits_receive(&http->limits, exchange->place, n);
    pthread_mutex_unlock(&http->mutex);
    return is_good;
}

static void drop_body(struct exchange *exchange)
{
    struct srv_http *http = exchange->http;
    tnd_srv_text_free(&exchange->body);
    pthread_mutex_lock(&http->mutex);
    tnd_srv_limits_release(&http->limits, exchange->place);
    pthread_mutex_unlock(&http->mutex);
}

/* ---- replies ---- */

static enum MHD_Result queue(struct exchange *exchange, struct MHD_Response *response, int status)
{
    if (response == NULL) {
        return MHD_NO;
    }
    exchange->has_answer = true;
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (exchange->place->is_reserve) {
        (void)MHD_add_response_header(response, "Connection", "close");
    }
    const enum MHD_Result result =
        MHD_queue_response(exchange->connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

/* Queues a reply and takes ownership of it. */
static enum MHD_Result send_reply(struct exchange *exchange, struct srv_reply *reply)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->body.n, reply->body.bytes, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        tnd_srv_reply_free(reply);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "Content-Type", reply->type);
    if (reply->allow != NULL) {
        (void)MHD_add_response_header(response, "Allow", reply->allow);
    }
    if (reply->status == 401) {
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    }
    if (reply->status == 503 || reply->status == 429) {
        (void)MHD_add_response_header(response, "Retry-After", "1");
    }
    enter_send(exchange, reply->body.n);
    reply->body = (struct srv_text){0}; /* now owned by the response */
    return queue(exchange, response, reply->status);
}

/* Callback of libmicrohttpd: the next bytes of a stream. */
static ssize_t read_stream(void *user, uint64_t position, char *out, size_t capacity)
{
    struct exchange *exchange = user;
    (void)position;
    if (exchange->n_sent == exchange->out.n) {
        if (exchange->is_last) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        exchange->out.n = exchange->n_sent = 0;
        do {
            clear_news(exchange);
            exchange->is_last = tnd_srv_read_stream(exchange->http->server, exchange->job,
                                                    &exchange->reader, &exchange->out);
            if (exchange->is_last && next_choice(exchange)) {
                exchange->reader = (struct srv_reader){0};
                exchange->is_last = false;
                continue;
            }
            break;
        } while (exchange->out.n == 0);
        if (exchange->out.failed) {
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        if (exchange->out.n == 0 && !exchange->is_last) {
            (void)enter(exchange, SRV_COMPUTED);
            wait_for_news(exchange);
            return 0;
        }
    }
    (void)enter(exchange, SRV_SENT); /* the previous block was read: restarts its deadline */
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
    return queue(exchange, response, 200);
}

/* Sends the whole output of a job, once it is complete. */
static enum MHD_Result send_whole(struct exchange *exchange)
{
    struct srv_reply reply = {0};
    enum MHD_Result result = MHD_YES;
    do {
        clear_news(exchange);
    } while (next_choice(exchange));
    if (tnd_srv_read_whole(exchange->http->server, exchange->jobs, &reply)) {
        result = send_reply(exchange, &reply);
    } else {
        wait_for_news(exchange);
    }
    return result;
}

/* ---- requests ---- */

static enum MHD_Result refuse(struct exchange *exchange)
{
    struct srv_reply reply = {0};
    switch (exchange->refused) {
    case 413:
        tnd_srv_reply_error(&reply, 413, "the body is larger than %zu bytes",
                            exchange->http->options.max_body);
        break;
    case 429:
        tnd_srv_reply_error(&reply, 429, "too many requests of one address; try again later");
        break;
    default:
        tnd_srv_reply_error(&reply, 503, "too many connections or bodies; try again later");
        break;
    }
    return send_reply(exchange, &reply);
}

static const char *header(struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* Sends the reply of a request, or waits for its job. */
static enum MHD_Result send_answer(struct exchange *exchange)
{
    const struct srv_listener listener = {wake, is_gone, exchange};
    struct srv_reply *reply = &exchange->task.reply;
    drop_body(exchange);
    if (reply->job == NULL) {
        return send_reply(exchange, reply);
    }
    exchange->job = exchange->jobs = reply->job;
    reply->job = NULL;
    tnd_srv_job_listen(exchange->job, &listener);
    return exchange->job->params.is_stream ? send_stream(exchange) : send_whole(exchange);
}

/* Called when another thread has answered the request. */
static void task_done(void *user)
{
    struct exchange *exchange = user;
    MHD_resume_connection(exchange->connection);
}

static enum MHD_Result answer(struct exchange *exchange, const char *method, const char *url)
{
    (void)enter(exchange, SRV_COMPUTED);
    exchange->task = (struct srv_task){
        .server = exchange->http->server,
        .request = {.method = method,
                    .path = url,
                    .authorization = header(exchange, "Authorization"),
                    .host = header(exchange, "Host"),
                    .origin = header(exchange, "Origin"),
                    .body = exchange->body.bytes != NULL ? exchange->body.bytes : "",
                    .n = exchange->body.n},
        .done = task_done,
        .user = exchange};
    exchange->is_handed_over = true;
    if (strcmp(method, "POST") != 0) { /* takes no time, so is answered on this thread */
        tnd_srv_answer(exchange->http->server, &exchange->task.request, &exchange->task.reply);
        return send_answer(exchange);
    }
    MHD_suspend_connection(exchange->connection);
    if (!tnd_srv_work_submit(exchange->http->work, &exchange->task)) {
        tnd_srv_reply_error(&exchange->task.reply, 503, "the server ends");
        MHD_resume_connection(exchange->connection);
    }
    return MHD_YES;
}

struct srv_place *tnd_srv_place_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static struct exchange *begin(struct srv_http *http, struct MHD_Connection *connection)
{
    struct srv_place *place = tnd_srv_place_of(connection);
    struct exchange *exchange = place != NULL ? calloc(1, sizeof(*exchange)) : NULL;
    if (exchange != NULL) {
        exchange->http = http;
        exchange->connection = connection;
        exchange->place = place;
        exchange->socket = place->socket;
        atomic_fetch_add(&http->n_requests, 1);
    }
    return exchange;
}

/* Status that refuses a request by its headers alone; 0: accepted so far. */
static int refused_by_headers(struct exchange *exchange, const char *url)
{
    const char *length = header(exchange, "Content-Length");
    return exchange->place->is_reserve && strcmp(url, "/health") != 0 &&
                   strcmp(url, "/v1/health") != 0
               ? 503
           : !enter(exchange, SRV_BODY)                                                      ? 429
           : length != NULL && strtoull(length, NULL, 10) > exchange->http->options.max_body ? 413
                                                                                             : 0;
}

/* Takes part of a body. Without a Content-Length, a body that is too large is read to its end and
 * dropped, since no reply can be sent before. False: it never ends, or out of memory. */
static bool take_bytes(struct exchange *exchange, const char *data, size_t n)
{
    const size_t most = exchange->http->options.max_body;
    exchange->n_body += n;
    exchange->refused = exchange->refused != 0    ? exchange->refused
                        : exchange->n_body > most ? 413
                        : !has_room(exchange, n)  ? 503
                                                  : 0;
    if (exchange->refused != 0) {
        drop_body(exchange);
        return exchange->n_body / 2 <= most;
    }
    tnd_srv_add(&exchange->body, data, n);
    return !exchange->body.failed;
}

enum MHD_Result tnd_srv_exchange_handle(void *user, struct MHD_Connection *connection,
                                        const char *url, const char *method, const char *version,
                                        const char *data, size_t *n, void **state)
{
    /* called with the headers, with each part of the body, without data at its end, and again after
     * each resume */
    struct exchange *exchange = *state;
    (void)version;
    if (exchange == NULL) {
        *state = exchange = begin(user, connection);
        if (exchange == NULL) {
            return MHD_NO;
        }
        exchange->refused = refused_by_headers(exchange, url);
        return exchange->refused != 0 ? refuse(exchange) : MHD_YES;
    }
    if (*n > 0) {
        const size_t given = *n;
        *n = 0;
        return take_bytes(exchange, data, given) ? MHD_YES : MHD_NO;
    }
    return exchange->has_answer       ? MHD_YES
           : exchange->job != NULL    ? send_whole(exchange)
           : exchange->is_handed_over ? send_answer(exchange)
           : exchange->refused != 0   ? refuse(exchange)
                                      : answer(exchange, method, url);
}

void tnd_srv_exchange_completed(void *user, struct MHD_Connection *connection, void **state,
                                enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *state;
    (void)user;
    (void)connection;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    struct srv_job *job = exchange->job != NULL ? exchange->job : exchange->task.reply.job;
    if (job != NULL) {
        tnd_srv_job_listen(job, NULL);
        tnd_srv_job_cancel(job->first);
    }
    tnd_srv_job_unref(exchange->jobs);
    tnd_srv_reply_free(&exchange->task.reply); /* if it was not sent */
    (void)enter(exchange, SRV_WAITS);
    atomic_fetch_sub(&exchange->http->n_requests, 1);
    tnd_srv_text_free(&exchange->body);
    tnd_srv_text_free(&exchange->out);
    free(exchange);
    *state = NULL;
}
