/* SPDX-License-Identifier: MIT
 * The server on a socket of this machine: whole replies, streams, clients that leave or do not
 * read, requests that are none, an end under load. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/suite_server.h"
#include "tools/tandem-server/srv_http.h"
#include "tools/tandem-server/srv_unix.h"

enum { BYTES = 1 << 16 };

struct setup {
    struct tnd_served served;
    struct srv_http *http;
};

static bool setup_with(struct setup *s, const struct tnd_served_options *options,
                       const struct srv_http_options *http)
{
    struct tandem_error error = {0};
    if (!tnd_served_open(&s->served, options)) {
        return false;
    }
    s->http = tnd_srv_http_start(&s->served.server, http, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->http);
    return check_ok(tnd_srv_engine_start(s->served.server.engine, &error));
}

static bool setup_new(struct setup *s, const struct tnd_served_options *options)
{
    const struct srv_http_options http = {.host = "127.0.0.1",
                                          .max_body = 4096,
                                          .max_connections = 100,
                                          .idle_seconds = 10.0,
                                          .receive_seconds = 10.0,
                                          .max_of_address = 50};
    return setup_with(s, options, &http);
}

static void setup_free(struct setup *s)
{
    tnd_srv_http_close(s->http);
    tnd_srv_engine_stop(s->served.server.engine, 0.0);
    tnd_srv_http_stop(s->http, 5.0);
    tnd_served_close(&s->served);
}

static int connect_to(const struct setup *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)tnd_srv_http_port(s->http)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 60};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void send_text(int fd, const char *text, size_t n)
{
    (void)!send(fd, text, n, MSG_NOSIGNAL);
}

static void send_request(int fd, const char *method, const char *path, const char *body)
{
    char text[8192];
    const int n = snprintf(text, sizeof(text),
                           "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           method, path, strlen(body), body);
    send_text(fd, text, (size_t)n);
}

/* Reads to the end and closes; the status, 0: none. */
static int read_reply(int fd, char *out)
{
    size_t at = 0;
    ssize_t n = 1;
    while (n > 0 && at < BYTES - 1) {
        n = recv(fd, out + at, BYTES - 1 - at, 0);
        at += n > 0 ? (size_t)n : 0;
    }
    out[at] = '\0';
    (void)close(fd);
    return strncmp(out, "HTTP/1.1 ", 9) == 0 ? atoi(out + 9) : 0;
}

static int ask(const struct setup *s, const char *method, const char *path, const char *body,
               char *out)
{
    const int fd = connect_to(s);
    send_request(fd, method, path, body);
    return read_reply(fd, out);
}

static void replies_and_streams_come_over_a_socket(void)
{
    struct setup s;
    static char out[BYTES];
    if (!setup_new(&s, NULL)) {
        return;
    }
    check_int(ask(&s, "GET", "/health", "", out), 200);
    check_contains(out, "{\"status\":\"ok\"}");
    check_int(ask(&s, "POST", "/v1/completions", "{\"prompt\":\"Once\",\"max_tokens\":9}", out),
              200);
    check_contains(out, "\"completion_tokens\":9");
    check_contains(out, "Content-Type: application/json");
    check_int(ask(&s, "POST", "/v1/completions",
                  "{\"prompt\":\"Once\",\"max_tokens\":60,\"stream\":true}", out),
              200);
    check_contains(out, "Content-Type: text/event-stream");
    check_contains(out, "data: [DONE]\n\n");
    check_int(ask(&s, "POST", "/v1/completions", "{", out), 400);
    check_int(ask(&s, "DELETE", "/completion", "", out), 405);
    check_contains(out, "Allow: POST");
    check_int(ask(&s, "HEAD", "/health", "", out), 200);
    setup_free(&s);
}

static void bodies_that_are_too_large_are_refused(void)
{
    struct setup s;
    static char out[BYTES];
    if (!setup_new(&s, NULL)) {
        return;
    }
    int fd = connect_to(&s);
    const char *head = "POST /completion HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    send_text(fd, head, strlen(head));
    send_text(fd, "Content-Length: 4097\r\n\r\n", 24);
    check_int(read_reply(fd, out), 413);
    fd = connect_to(&s); /* without saying how much there is */
    send_text(fd, head, strlen(head));
    send_text(fd, "Transfer-Encoding: chunked\r\n\r\n", 30);
    for (int i = 0; i < 70; i++) {
        send_text(fd, "40\r\n{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{\r\n",
                  70);
    }
    send_text(fd, "0\r\n\r\n", 5);
    check_int(read_reply(fd, out), 413);
    check_contains(out, "larger than 4096 bytes");
    fd = connect_to(&s); /* without an end */
    send_text(fd, head, strlen(head));
    send_text(fd, "Transfer-Encoding: chunked\r\n\r\n", 30);
    for (int i = 0; i < 300; i++) {
        send_text(fd, "40\r\n{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{\r\n",
                  70);
    }
    (void)read_reply(fd, out); /* the server has closed it */
    check_int(ask(&s, "GET", "/health", "", out), 200);
    setup_free(&s);
}

static void noise_on_the_socket_does_no_harm(void)
{
    struct setup s;
    static char out[BYTES];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    if (!setup_new(&s, NULL)) {
        return;
    }
    static const char *const begins[] = {"",
                                         "GET / HTTP/1.1\r\n",
                                         "POST /completion HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                                         "POST /completion HTTP/1.1\r\nContent-Length: 10\r\n\r\n",
                                         "POST /completion HTTP/9.9\r\n\r\n",
                                         "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"};
    for (int i = 0; i < 60; i++) {
        char noise[512];
        const int fd = connect_to(&s);
        const char *begin = begins[i % 6];
        const size_t n = (size_t)tnd_test_rng_int(&rng, 1, (int64_t)sizeof(noise));
        for (size_t k = 0; k < n; k++) {
            noise[k] = (char)tnd_test_rng_next(&rng);
        }
        send_text(fd, begin, strlen(begin));
        send_text(fd, noise, n);
        (void)close(fd);
    }
    check_int(ask(&s, "GET", "/health", "", out), 200);
    setup_free(&s);
}

/* Waits until the engine has nothing to do. */
static bool becomes_idle(const struct setup *s)
{
    struct srv_counts counts = {0};
    const double end = tnd_srv_seconds() + 60.0;
    do {
        (void)usleep(2000);
        tnd_srv_engine_count(s->served.server.engine, &counts);
    } while ((counts.n_running > 0 || counts.n_waiting > 0 || counts.n_steps == 0) &&
             tnd_srv_seconds() < end);
    return counts.n_running == 0 && counts.n_waiting == 0;
}

static void clients_that_leave_stop_their_texts(void)
{
    const struct tnd_served_options options = {.n_parallel = 2, .max_queue = 30};
    struct setup s;
    struct srv_counts counts;
    static char out[BYTES];
    if (!setup_new(&s, &options)) {
        return;
    }
    for (int i = 0; i < 24; i++) { /* streams and whole replies; some are running, some wait */
        char first[64];
        const int fd = connect_to(&s);
        send_request(fd, "POST", "/v1/completions",
                     i % 2 == 0 ? "{\"prompt\":\"Once\",\"max_tokens\":250,\"stream\":true}"
                                : "{\"prompt\":\"Once\",\"max_tokens\":250}");
        if (i % 4 == 0) {
            (void)!recv(fd, first, sizeof(first), 0);
        }
        (void)close(fd);
    }
    CU_ASSERT_TRUE(becomes_idle(&s));
    check_int(ask(&s, "POST", "/v1/completions", "{\"prompt\":\"Once\",\"max_tokens\":5}", out),
              200);
    tnd_srv_engine_count(s.served.server.engine, &counts);
    check_int(counts.n_failed, 0);
    setup_free(&s);
}

static void who_does_not_read_delays_nobody(void)
{
    const struct tnd_served_options options = {.max_queue = 30};
    struct setup s;
    static char out[BYTES];
    if (!setup_new(&s, &options)) {
        return;
    }
    int sleepers[8];
    for (int i = 0; i < 8; i++) {
        sleepers[i] = connect_to(&s);
        send_request(sleepers[i], "POST", "/v1/completions",
                     "{\"prompt\":\"Once\",\"max_tokens\":200,\"logprobs\":5,\"stream\":true}");
    }
    check_int(ask(&s, "POST", "/v1/completions", "{\"prompt\":\"Tom\",\"max_tokens\":20}", out),
              200);
    CU_ASSERT_TRUE(becomes_idle(&s)); /* the texts are done, read or not */
    for (int i = 0; i < 8; i++) {
        check_int(read_reply(sleepers[i], out), 200);
    }
    setup_free(&s);
}

/* ---- an end under load ---- */

struct client {
    const struct setup *setup;
    int status;
    bool is_whole;
    pthread_t thread;
};

static void *run_client(void *user)
{
    struct client *client = user;
    char *out = malloc(BYTES);
    const int fd = connect_to(client->setup);
    send_request(fd, "POST", "/v1/completions",
                 "{\"prompt\":\"Once upon\",\"max_tokens\":120,\"stream\":true}");
    client->status = read_reply(fd, out);
    client->is_whole = strstr(out, "data: [DONE]") != NULL;
    free(out);
    return NULL;
}

static void an_end_finishes_what_runs(void)
{
    const struct tnd_served_options options = {.n_parallel = 4, .max_queue = 20};
    struct client clients[12];
    struct setup s;
    struct srv_counts counts = {0};
    if (!setup_new(&s, &options)) {
        return;
    }
    for (int i = 0; i < 12; i++) {
        clients[i] = (struct client){.setup = &s};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (int i = 0; i < 30000 && counts.n_jobs < 12; i++) {
        (void)usleep(1000);
        tnd_srv_engine_count(s.served.server.engine, &counts);
    }
    tnd_srv_http_close(s.http);
    tnd_srv_engine_stop(s.served.server.engine, 120.0);
    tnd_srv_http_stop(s.http, 60.0);
    for (int i = 0; i < 12; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        check_int(clients[i].status, 200);
        CU_ASSERT_TRUE(clients[i].is_whole);
    }
    tnd_served_close(&s.served);
}

static void an_end_without_patience_says_so(void)
{
    const struct tnd_served_options options = {.n_parallel = 1, .max_queue = 20};
    struct setup s;
    static char out[BYTES];
    int fds[8];
    struct srv_counts counts = {0};
    if (!setup_new(&s, &options)) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        fds[i] = connect_to(&s);
        send_request(fds[i], "POST", "/v1/completions",
                     "{\"prompt\":\"Once\",\"max_tokens\":250,\"temperature\":0}");
    }
    for (int i = 0; i < 30000 && counts.n_jobs < 8; i++) {
        (void)usleep(1000);
        tnd_srv_engine_count(s.served.server.engine, &counts);
    }
    tnd_srv_http_close(s.http);
    tnd_srv_engine_stop(s.served.server.engine, 0.0);
    tnd_srv_http_stop(s.http, 60.0);
    for (int i = 0; i < 8; i++) {
        const int status = read_reply(fds[i], out);
        CU_ASSERT_TRUE(status == 200 || status == 503);
    }
    tnd_served_close(&s.served);
}

/* ---- clients that keep others out ---- */

static void half_open_connections_do_not_keep_others_out(void)
{
    enum { N = 300 };
    struct setup s;
    static char out[BYTES];
    int fds[N];
    if (!setup_new(&s, NULL)) {
        return;
    }
    for (int i = 0; i < N; i++) { /* three times as many as are taken; some with a part of a body */
        fds[i] = connect_to(&s);
        const char *head = i % 2 == 0 ? "GET /health HTTP/1.1\r\nHo"
                                      : "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
                                        "Content-Length: 100\r\n\r\n{";
        send_text(fds[i], head, strlen(head));
    }
    check_int(ask(&s, "GET", "/health", "", out), 200);
    check_int(ask(&s, "POST", "/v1/completions", "{\"prompt\":\"Once\",\"max_tokens\":3}", out),
              200);
    check_int(read_reply(fds[0], out), 0); /* the oldest one has made room */
    for (int i = 1; i < N; i++) {
        (void)close(fds[i]);
    }
    setup_free(&s);
}

/* Texts in hand are not cut off for newcomers, which are told so; health has places of its own. */
static void health_has_places_of_its_own(void)
{
    const struct srv_http_options http = {.host = "127.0.0.1",
                                          .max_body = 4096,
                                          .max_connections = 4,
                                          .idle_seconds = 60.0,
                                          .receive_seconds = 60.0,
                                          .max_of_address = 50};
    const struct tnd_served_options options = {.n_parallel = 1, .max_queue = 8};
    struct setup s;
    struct srv_counts counts = {0};
    static char out[BYTES];
    int fds[4];
    if (!setup_with(&s, &options, &http)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_to(&s);
        send_request(fds[i], "POST", "/v1/completions",
                     "{\"prompt\":\"Once\",\"max_tokens\":250,\"stream\":true}");
    }
    for (int i = 0; i < 30000 && counts.n_jobs < 4; i++) {
        (void)usleep(1000);
        tnd_srv_engine_count(s.served.server.engine, &counts);
    }
    check_int(ask(&s, "GET", "/health", "", out), 200);
    const int status = ask(&s, "POST", "/v1/completions", "{\"prompt\":\"a\"}", out);
    CU_ASSERT_TRUE(status == 503 || status == 200); /* (200: the first ones are done already) */
    for (int i = 0; i < 4; i++) {
        check_int(read_reply(fds[i], out), 200);
        check_contains(out, "data: [DONE]");
    }
    setup_free(&s);
}

static void a_connection_that_sends_nothing_is_closed(void)
{
    const struct srv_http_options http = {.host = "127.0.0.1",
                                          .max_body = 4096,
                                          .max_connections = 4,
                                          .idle_seconds = 0.05,
                                          .receive_seconds = 0.05,
                                          .max_of_address = 50};
    struct setup s;
    static char out[BYTES];
    if (!setup_with(&s, NULL, &http)) {
        return;
    }
    int fds[] = {connect_to(&s), connect_to(&s), connect_to(&s)};
    send_text(fds[1], "GET /health HTTP/1.1\r\n", 22);
    send_text(fds[2], "POST /completion HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 49);
    for (int i = 0; i < 3; i++) {
        check_int(read_reply(fds[i], out), 0);
    }
    setup_free(&s);
}

/* ---- a Unix socket ---- */

static int ask_unix(const char *path, char *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(fd);
        return -1;
    }
    send_request(fd, "GET", "/v1/models", "");
    return read_reply(fd, out);
}

static void a_unix_socket_is_its_owners_and_removed_at_the_end(void)
{
    char host[128], folder[] = "/tmp/tandem-socket-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(host, sizeof(host), "unix:%s/s", folder);
    const char *path = host + 5;
    const struct srv_http_options http = {.host = host,
                                          .max_body = 4096,
                                          .max_connections = 4,
                                          .idle_seconds = 60.0,
                                          .receive_seconds = 60.0};
    struct setup s;
    struct stat info;
    struct tandem_error error = {0};
    static char out[BYTES];
    if (!setup_with(&s, NULL, &http)) {
        (void)rmdir(folder);
        return;
    }
    CU_ASSERT_TRUE(stat(path, &info) == 0 && S_ISSOCK(info.st_mode));
    check_int(info.st_mode & 0777, 0600);
    check_int(ask_unix(path, out), 200);
    CU_ASSERT_PTR_NULL(tnd_srv_http_start(&s.served.server, &http, &error));
    check_contains(error.text, "another server listens there");
    check_int(ask_unix(path, out), 200);
    setup_free(&s);
    CU_ASSERT_TRUE(lstat(path, &info) != 0);
    check_int(rmdir(folder), 0);
}

static void a_file_is_not_taken_for_a_socket(void)
{
    char folder[] = "/tmp/tandem-socket-XXXXXX", path[64];
    struct srv_unix socket = {.fd = -1};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/f", folder);
    fclose(fopen(path, "w"));
    check_string(tnd_srv_unix_open(path, &socket), "the file is there and no socket");
    CU_ASSERT_PTR_NOT_NULL(tnd_srv_unix_open("", &socket));
    CU_ASSERT_PTR_NOT_NULL(tnd_srv_unix_open("/nowhere/at/all", &socket));
    check_int(socket.fd, -1);
    check_int(unlink(path), 0);
    CU_ASSERT_PTR_NULL(tnd_srv_unix_open(path, &socket));
    struct srv_unix dead = socket; /* as after kill -9: the file stays */
    dead.fd = -1;
    (void)close(socket.fd);
    CU_ASSERT_PTR_NULL(tnd_srv_unix_open(path, &socket));
    tnd_srv_unix_close(&dead);
    check_int(access(path, F_OK), 0);
    tnd_srv_unix_close(&socket);
    check_int(rmdir(folder), 0);
}

static CU_TestInfo tests[] = {
    {"replies_and_streams_come_over_a_socket", replies_and_streams_come_over_a_socket},
    {"bodies_that_are_too_large_are_refused", bodies_that_are_too_large_are_refused},
    {"noise_on_the_socket_does_no_harm", noise_on_the_socket_does_no_harm},
    {"clients_that_leave_stop_their_texts", clients_that_leave_stop_their_texts},
    {"who_does_not_read_delays_nobody", who_does_not_read_delays_nobody},
    {"an_end_finishes_what_runs", an_end_finishes_what_runs},
    {"an_end_without_patience_says_so", an_end_without_patience_says_so},
    {"half_open_connections_do_not_keep_others_out", half_open_connections_do_not_keep_others_out},
    {"health_has_places_of_its_own", health_has_places_of_its_own},
    {"a_connection_that_sends_nothing_is_closed", a_connection_that_sends_nothing_is_closed},
    {"a_unix_socket_is_its_owners_and_removed_at_the_end",
     a_unix_socket_is_its_owners_and_removed_at_the_end},
    {"a_file_is_not_taken_for_a_socket", a_file_is_not_taken_for_a_socket},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_http[];
CU_SuiteInfo suites_server_http[] = {
    {"http", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
