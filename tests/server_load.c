/* SPDX-License-Identifier: MIT
 * usage: server-load PORT CLIENTS SECONDS [KEY=VALUE..]
 * Loads a tandem-server on this machine: clients stream answers one after the other, with prompts
 * of many lengths that begin alike in part; some leave in the middle, some read slowly. Prints the
 * time to the first token, between tokens, and tokens a second; exit code 1 after any error.
 * KEYs: tokens=N of an answer (24), prompt=N tokens at most (200), rude=N: one of N clients leaves
 * early or reads slowly (8; 0: none), text=1: prompts are strings of as many letters, for servers
 * that take no ids, seed=N. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CLIENTS = 1024, MAX_TIMES = 1 << 16, BUFFER = 1 << 16 };

static int port, n_tokens = 24, n_prompt = 200, rude = 8, is_text;
static double end_at;
static uint64_t first_seed = 1;
static atomic_long n_requests, n_errors, n_busy, n_left, n_seen;

struct times {
    float values[MAX_TIMES]; /* milliseconds, a sample of them */
    size_t n, n_all;
};

struct client {
    pthread_t thread;
    int index;
    uint64_t state;
    struct times first, between;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Vigna's splitmix64. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Every value while there is room, then a random one in place of another. */
static void note(struct client *client, struct times *times, double ms)
{
    size_t at = times->n;
    if (times->n < MAX_TIMES / MAX_CLIENTS * 16) {
        times->n++;
    } else {
        at = (size_t)(draw(&client->state) % (times->n_all + 1));
    }
    times->n_all++;
    if (at < times->n) {
        times->values[at] = (float)ms;
    }
}

static int open_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 120};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* A prompt of token ids, or letters: one of eight beginnings, and an end of its own. */
static void ask(struct client *client, int fd)
{
    char body[65536], head[256];
    const int n = 2 + (int)(draw(&client->state) % (uint64_t)n_prompt);
    const unsigned kind = (unsigned)(draw(&client->state) % 8);
    int at = snprintf(body, sizeof(body),
                      "{\"stream\":true,\"max_tokens\":%d,\"seed\":%u,\"temperature\":%d,"
                      "\"prompt\":%s",
                      n_tokens, (unsigned)(draw(&client->state) % 1000), client->index % 2,
                      is_text ? "\"" : "[1");
    for (int i = 1; i < n && at < (int)sizeof(body) - 32; i++) {
        const unsigned id =
            i < n * 3 / 4 ? kind * 31 + (unsigned)i * 7 : (unsigned)draw(&client->state);
        at += is_text ? snprintf(body + at, sizeof(body) - (size_t)at, "%c", 'a' + (int)(id % 26))
                      : snprintf(body + at, sizeof(body) - (size_t)at, ",%u", 3 + id % 250);
    }
    at += snprintf(body + at, sizeof(body) - (size_t)at, is_text ? "\"}" : "]}");
    const int m = snprintf(head, sizeof(head),
                           "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                           "Content-Type: application/json\r\n"
                           "Connection: close\r\nContent-Length: %d\r\n\r\n",
                           at);
    (void)!send(fd, head, (size_t)m, MSG_NOSIGNAL);
    (void)!send(fd, body, (size_t)at, MSG_NOSIGNAL);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        n++;
    }
    return n;
}

/* Reads a stream. `leaves`: after some events; `is_slow`: with pauses. */
static void read_stream(struct client *client, int fd, bool leaves, bool is_slow)
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    char *text = calloc(1, BUFFER);
    const double begin = now();
    double last = begin;
    size_t n = 0;
    int n_events = 0;
    for (ssize_t got = 1; got > 0 && n < BUFFER - 1;) {
        got = recv(fd, text + n, is_slow ? 64 : BUFFER - 1 - n, 0);
        n += got > 0 ? (size_t)got : 0;
        const int events = count(text, "data: {");
        if (events > n_events && !is_slow) {
            note(client, n_events == 0 ? &client->first : &client->between,
                 1e3 * (now() - last) / (n_events == 0 ? 1 : events - n_events));
            last = now();
        }
        n_events = events;
        if (leaves && n_events > 2) {
            atomic_fetch_add(&n_left, 1);
            break;
        }
        if (is_slow) {
            (void)nanosleep(&pause, NULL);
        }
    }
    if (strncmp(text, "HTTP/1.1 503", 12) == 0) {
        atomic_fetch_add(&n_busy, 1);
    } else if (!leaves &&
               (strncmp(text, "HTTP/1.1 200", 12) != 0 || strstr(text, "data: [DONE]") == NULL ||
                strstr(text, "data: {\"error\"") != NULL)) { /* models may write the word, too */
        if (atomic_fetch_add(&n_errors, 1) < 3) {
            fprintf(stderr, "server-load: %s\n",
                    n > 600 ? text + n - 600
                    : n > 0 ? text
                            : "no reply");
        }
    }
    atomic_fetch_add(&n_seen, n_events > 0 ? n_events - 1 : 0);
    free(text);
}

static void *run(void *user)
{
    struct client *client = user;
    while (now() < end_at) {
        const bool is_rude = rude > 0 && client->index % rude == rude - 1;
        const int fd = open_socket();
        if (fd < 0) {
            atomic_fetch_add(&n_errors, 1);
            break;
        }
        ask(client, fd);
        read_stream(client, fd, is_rude && draw(&client->state) % 2 == 0, is_rude);
        (void)close(fd);
        atomic_fetch_add(&n_requests, 1);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a;
    const float y = *(const float *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, struct client *clients, int n, size_t offset)
{
    static float all[MAX_CLIENTS * 1024];
    size_t m = 0;
    for (int i = 0; i < n; i++) {
        const struct times *t = (const void *)((const char *)&clients[i] + offset);
        for (size_t k = 0; k < t->n && m < sizeof(all) / sizeof(all[0]); k++) {
            all[m++] = t->values[k];
        }
    }
    qsort(all, m, sizeof(all[0]), compare);
    if (m > 0) {
        printf("%s: p50 %.1f ms, p95 %.1f ms, most %.1f ms\n", what, (double)all[m / 2],
               (double)all[m * 95 / 100], (double)all[m - 1]);
    }
}

static bool read_options(int argc, char **argv)
{
    for (int i = 4; i < argc; i++) {
        unsigned long long seed;
        if (sscanf(argv[i], "tokens=%d", &n_tokens) != 1 &&
            sscanf(argv[i], "prompt=%d", &n_prompt) != 1 &&
            sscanf(argv[i], "rude=%d", &rude) != 1 && sscanf(argv[i], "text=%d", &is_text) != 1 &&
            sscanf(argv[i], "seed=%llu", &seed) != 1) {
            return false;
        }
        first_seed = sscanf(argv[i], "seed=%llu", &seed) == 1 ? seed : first_seed;
    }
    return n_prompt > 0 && n_tokens > 0;
}

int main(int argc, char **argv)
{
    const int n = argc > 3 ? atoi(argv[2]) : 0;
    const double seconds = argc > 3 ? atof(argv[3]) : 0.0;
    if (n < 1 || n > MAX_CLIENTS || seconds <= 0.0 || !read_options(argc, argv)) {
        fprintf(stderr, "usage: server-load PORT CLIENTS SECONDS [KEY=VALUE..]\n");
        return 2;
    }
    port = atoi(argv[1]);
    struct client *clients = calloc((size_t)n, sizeof(clients[0]));
    if (clients == NULL) {
        return 1;
    }
    const double begin = now();
    end_at = begin + seconds;
    int n_started = 0;
    for (int i = 0; i < n; i++) {
        clients[i].index = i;
        clients[i].state = first_seed * 1000003 + (uint64_t)i;
        n_started += pthread_create(&clients[i].thread, NULL, run, &clients[i]) == 0;
    }
    for (int i = 0; i < n_started; i++) {
        (void)pthread_join(clients[i].thread, NULL);
    }
    printf("%d clients, %.1f s: %ld requests, %ld errors, %ld refused for now, %ld left early\n", n,
           now() - begin, atomic_load(&n_requests), atomic_load(&n_errors), atomic_load(&n_busy),
           atomic_load(&n_left));
    printf("tokens a second: %.1f\n", (double)atomic_load(&n_seen) / (now() - begin));
    tell("time to the first token", clients, n, offsetof(struct client, first));
    tell("time between tokens", clients, n, offsetof(struct client, between));
    free(clients);
    return atomic_load(&n_errors) > 0 || n_started < n;
}
