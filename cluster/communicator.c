/* SPDX-License-Identifier: MIT
 * A communicator: all-reduce, all-gather and others over a transport, which only exchanges
 * messages. How data is cut into messages depends only on sizes and the number of ranks, and sums
 * are added in rank order, so results are identical bit for bit on all ranks and transports. */
#include "cluster/among.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/tnd_assert.h"

/* From this size on, an all-reduce divides the vector into one segment per rank: twice as many
 * messages, but each rank receives two vectors' worth of data instead of one vector per other rank.
 * Both take equally long at this size with 1 Gb/s and 0.2 ms. */
#define SEGMENTS_FROM_BYTES (16 * 1024)
#define LIMIT_S             60.0

enum { HOST = 64, VERSION = 32, MOST_RANKS = 4096 };

/* The first message between ranks. Its layout never changes: it is read before the versions have
 * been compared. */
struct hello {
    uint64_t order; /* ORDER in the sender's byte order */
    char version[VERSION];
    char host[HOST];
    int64_t process;
    uint64_t spare[4];
};
#define ORDER UINT64_C(0x0102030405060708)

struct tandem_communicator {
    struct tandem_transport transport;
    struct hello *hellos; /* {count} */
    struct tandem_message *sends, *receives;
    float *scratch; /* {scratch_bytes}: one vector per rank */
    size_t scratch_bytes;
    double limit_s;
    bool has_failed;
    struct tandem_error error;
};

/* ---- messages ---- */

static int count_of(const tandem_communicator *c)
{
    return c->transport.count;
}

static enum tandem_status repeat_failure(const tandem_communicator *c, struct tandem_error *error)
{
    return tnd_error_set(error, c->error.status, c->error.where, c->error.got, c->error.limit, "%s",
                         c->error.text);
}

/* Records the failure: later calls return it and send no messages. */
static enum tandem_status fail(tandem_communicator *c, int rank, const char *what, size_t bytes,
                               const char *why, struct tandem_error *error)
{
    char who[HOST + 64] = "another rank";
    if (rank >= 0 && rank < count_of(c)) {
        const struct hello *other = &c->hellos[rank];
        const bool is_known = other->host[0] != '\0';
        snprintf(who, sizeof(who), "rank %d%s%s", rank, is_known ? " on " : "", other->host);
    }
    c->has_failed = true;
    (void)tnd_error_set(&c->error, TANDEM_E_RANK, "cluster", rank, count_of(c),
                        "cluster: %s did not take part in %s of %zu bytes: %s", who, what, bytes,
                        why);
    return repeat_failure(c, error);
}

/* `what` and `bytes`: the operation and its size, for error messages. */
static enum tandem_status exchange(tandem_communicator *c, int n_sends, int n_receives,
                                   const char *what, size_t bytes, struct tandem_error *error)
{
    int rank = -1;
    char why[160] = "";
    if (c->has_failed) {
        return repeat_failure(c, error);
    }
    return c->transport.exchange(c->transport.self, c->sends, n_sends, c->receives, n_receives,
                                 c->limit_s, &rank, why, sizeof(why))
               ? TANDEM_OK
               : fail(c, rank, what, bytes, why, error);
}

/* ---- opening ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", 0, 0, "cluster: no memory");
}

/* Every rank sees all hellos, so all return the same result. */
static enum tandem_status compare_hellos(const tandem_communicator *c, struct tandem_error *error)
{
    for (int i = 0; i < count_of(c); i++) {
        struct hello *other = &c->hellos[i];
        other->version[VERSION - 1] = other->host[HOST - 1] = '\0';
    }
    for (int i = 1; i < count_of(c); i++) {
        const struct hello *first = &c->hellos[0], *other = &c->hellos[i];
        if (other->order != first->order) {
            return tnd_error_set(error, TANDEM_E_ABI, "cluster", i, 0,
                                 "cluster: rank %d on %s has another byte order than rank 0 on %s",
                                 i, other->host, first->host);
        }
        if (strcmp(other->version, first->version) != 0) {
            return tnd_error_set(error, TANDEM_E_ABI, "cluster", i, 0,
                                 "cluster: rank %d on %s runs version %s of Tandem, rank 0 on %s "
                                 "version %s; expected the same",
                                 i, other->host, other->version, first->host, first->version);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status greet(tandem_communicator *c, struct tandem_error *error)
{
    struct hello mine = {.order = ORDER, .process = getpid()};
    size_t *bytes = tnd_calloc((size_t)count_of(c), sizeof(bytes[0]));
    if (bytes == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < count_of(c); i++) {
        bytes[i] = sizeof(mine);
    }
    snprintf(mine.version, sizeof(mine.version), "%s", TANDEM_VERSION_STRING);
    if (gethostname(mine.host, sizeof(mine.host) - 1) != 0) {
        mine.host[0] = '\0';
    }
    const enum tandem_status status =
        tandem_communicator_all_gather(c, &mine, bytes, c->hellos, error);
    tnd_free(bytes);
    return status == TANDEM_OK ? compare_hellos(c, error) : status;
}

enum tandem_status tandem_communicator_new(const struct tandem_transport *transport,
                                           tandem_communicator **out_communicator,
                                           struct tandem_error *error)
{
    struct tandem_transport read = {.size = 0};
    TND_REQUIRE(transport, "communicator_new", error);
    TND_REQUIRE(out_communicator, "communicator_new", error);
    TND_TRY(tnd_options_read(transport, "transport", &read, sizeof(read), error));
    const bool is_right = read.exchange != NULL && read.close != NULL && read.rank >= 0 &&
                          read.rank < read.count && read.count <= MOST_RANKS;
    tandem_communicator *c = is_right ? tnd_calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        if (read.close != NULL) {
            read.close(read.self, true);
        }
        return is_right ? no_memory(error)
                        : tnd_error_set(error, TANDEM_E_ARGUMENT, "cluster", read.rank, read.count,
                                        "cluster: a transport with rank %d of %d; expected both "
                                        "functions, and 1 to %d ranks",
                                        read.rank, read.count, MOST_RANKS);
    }
    const size_t count = (size_t)read.count;
    c->transport = read;
    c->limit_s = LIMIT_S;
    c->hellos = tnd_calloc(count, sizeof(c->hellos[0]));
    c->sends = tnd_calloc(count, sizeof(c->sends[0]));
    c->receives = tnd_calloc(count, sizeof(c->receives[0]));
    const bool has_memory = c->hellos != NULL && c->sends != NULL && c->receives != NULL;
    const enum tandem_status status = has_memory ? greet(c, error) : no_memory(error);
    if (status != TANDEM_OK) {
        c->has_failed = c->has_failed || !has_memory;
        tandem_communicator_close(c);
        return status;
    }
    *out_communicator = c;
    return TANDEM_OK;
}

void tandem_communicator_close(tandem_communicator *c)
{
    if (c != NULL) {
        c->transport.close(c->transport.self, c->has_failed);
        tnd_free(c->hellos);
        tnd_free(c->sends);
        tnd_free(c->receives);
        tnd_free(c->scratch);
        tnd_free(c);
    }
}

/* ---- properties ---- */

int tandem_communicator_rank(const tandem_communicator *c)
{
    return c != NULL ? c->transport.rank : 0;
}

int tandem_communicator_count(const tandem_communicator *c)
{
    return c != NULL ? count_of(c) : 1;
}

const char *tandem_communicator_host(const tandem_communicator *c, int rank)
{
    return c != NULL && rank >= 0 && rank < count_of(c) ? c->hellos[rank].host : "";
}

const char *tandem_communicator_name(const tandem_communicator *c)
{
    return c != NULL && c->transport.name != NULL ? c->transport.name : "";
}

void tandem_communicator_set_limit(tandem_communicator *c, double seconds)
{
    if (c != NULL) {
        c->limit_s = seconds;
    }
}

double tandem_communicator_limit(const tandem_communicator *c)
{
    return c != NULL ? c->limit_s : 0;
}

void tandem_communicator_fail(tandem_communicator *c, const struct tandem_error *why)
{
    if (c != NULL && why != NULL && !c->has_failed) {
        c->has_failed = true;
        c->error = *why;
    }
}

const struct tandem_error *tandem_communicator_error(const tandem_communicator *c)
{
    return c != NULL && c->has_failed ? &c->error : NULL;
}

enum tandem_status tandem_communicator_reserve(tandem_communicator *c, size_t bytes,
                                               struct tandem_error *error)
{
    size_t all;
    TND_REQUIRE(c, "communicator_reserve", error);
    if (!tnd_mul_size(bytes, (size_t)count_of(c), &all) ||
        !tnd_reserve((void **)&c->scratch, &c->scratch_bytes, all)) {
        return no_memory(error);
    }
    return TANDEM_OK;
}

/* ---- subsets of ranks ---- */

/* A transport over that of another communicator, which stays open. */
struct among {
    tandem_communicator *all;
    int n;
    int *ranks;                      /* {n}: ranks in `all` */
    struct tandem_message *messages; /* {2 n} */
};

static bool exchange_among(void *self, const struct tandem_message *sends, int n_sends,
                           const struct tandem_message *receives, int n_receives, double limit_s,
                           int *out_rank, char *why, size_t why_bytes)
{
    struct among *a = self;
    const struct tandem_transport *t = &a->all->transport;
    TND_ASSERT(n_sends <= a->n && n_receives <= a->n);
    for (int i = 0; i < n_sends; i++) {
        a->messages[i] = sends[i];
        a->messages[i].rank = a->ranks[sends[i].rank];
    }
    for (int i = 0; i < n_receives; i++) {
        a->messages[a->n + i] = receives[i];
        a->messages[a->n + i].rank = a->ranks[receives[i].rank];
    }
    int rank = -1;
    const bool is_good = t->exchange(t->self, a->messages, n_sends, a->messages + a->n, n_receives,
                                     limit_s, &rank, why, why_bytes);
    for (int i = 0; i < a->n && !is_good; i++) {
        *out_rank = a->ranks[i] == rank ? i : *out_rank;
    }
    return is_good;
}

static bool post_among(void *self, const struct tandem_message *send, double limit_s, int *out_rank,
                       char *why, size_t why_bytes)
{
    const struct among *a = self;
    const struct tandem_transport *t = &a->all->transport;
    struct tandem_message message = *send;
    message.rank = a->ranks[send->rank];
    int rank = -1;
    const bool is_good = t->post(t->self, &message, limit_s, &rank, why, why_bytes);
    *out_rank = !is_good && rank == message.rank ? send->rank : -1;
    return is_good;
}

static void close_among(void *self, bool has_failed)
{
    struct among *a = self;
    const struct tandem_error why = {.status = TANDEM_E_RANK, .text = "some of the ranks failed"};
    if (has_failed) {
        tandem_communicator_fail(a->all, &why);
    }
    tnd_free(a->ranks);
    tnd_free(a->messages);
    tnd_free(a);
}

enum tandem_status tnd_communicator_among(tandem_communicator *all, const int *ranks, int n,
                                          tandem_communicator **out, struct tandem_error *error)
{
    struct tandem_transport transport = {.size = sizeof(transport),
                                         .rank = -1,
                                         .count = n,
                                         .exchange = exchange_among,
                                         .close = close_among,
                                         .name = all->transport.name,
                                         .post = all->transport.post != NULL ? post_among : NULL};
    struct among *a = tnd_calloc(1, sizeof(*a));
    if (a == NULL) {
        return no_memory(error);
    }
    *a = (struct among){.all = all, .n = n};
    a->ranks = tnd_calloc((size_t)n + 1, sizeof(a->ranks[0]));
    a->messages = tnd_calloc(2 * (size_t)n + 1, sizeof(a->messages[0]));
    if (a->ranks == NULL || a->messages == NULL) {
        close_among(a, false);
        return no_memory(error);
    }
    for (int i = 0; i < n; i++) {
        a->ranks[i] = ranks[i];
        transport.rank = ranks[i] == all->transport.rank ? i : transport.rank;
    }
    transport.self = a;
    TND_TRY(tandem_communicator_new(&transport, out, error));
    tandem_communicator_set_limit(*out, all->limit_s);
    return TANDEM_OK;
}

/* ---- one to one, one to all ---- */

static enum tandem_status check_rank(const tandem_communicator *c, int rank,
                                     struct tandem_error *error)
{
    if (rank < 0 || rank >= count_of(c) || rank == c->transport.rank) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "cluster", rank, count_of(c),
                             "cluster: a message between rank %d and rank %d of %d",
                             c->transport.rank, rank, count_of(c));
    }
    return TANDEM_OK;
}

/* The transport only reads the data of sends, so const is cast away. */
static struct tandem_message message(int rank, const void *data, size_t bytes)
{
    return (struct tandem_message){rank, (void *)(uintptr_t)data, bytes};
}

enum tandem_status tandem_communicator_send(tandem_communicator *c, int rank, const void *data,
                                            size_t bytes, struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_send", error);
    TND_REQUIRE(data, "communicator_send", error);
    TND_TRY(check_rank(c, rank, error));
    c->sends[0] = message(rank, data, bytes);
    return exchange(c, 1, 0, "a message", bytes, error);
}

enum tandem_status tandem_communicator_receive(tandem_communicator *c, int rank, void *out,
                                               size_t bytes, struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_receive", error);
    TND_REQUIRE(out, "communicator_receive", error);
    TND_TRY(check_rank(c, rank, error));
    c->receives[0] = message(rank, out, bytes);
    return exchange(c, 0, 1, "a message", bytes, error);
}

enum tandem_status tandem_communicator_post(tandem_communicator *c, int rank, const void *data,
                                            size_t bytes, struct tandem_error *error)
{
    int missing = -1;
    char why[160] = "";
    TND_REQUIRE(c, "communicator_post", error);
    TND_REQUIRE(data, "communicator_post", error);
    TND_TRY(check_rank(c, rank, error));
    if (c->transport.post == NULL) {
        return tandem_communicator_send(c, rank, data, bytes, error);
    }
    if (c->has_failed) {
        return repeat_failure(c, error);
    }
    const struct tandem_message sent = message(rank, data, bytes);
    return c->transport.post(c->transport.self, &sent, c->limit_s, &missing, why, sizeof(why))
               ? TANDEM_OK
               : fail(c, missing, "a message", bytes, why, error);
}

bool tandem_communicator_can_post(const tandem_communicator *c)
{
    return c != NULL && c->transport.post != NULL;
}

enum tandem_status tandem_communicator_broadcast(tandem_communicator *c, void *data, size_t bytes,
                                                 struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_broadcast", error);
    TND_REQUIRE(data, "communicator_broadcast", error);
    if (c->transport.rank != 0) {
        c->receives[0] = message(0, data, bytes);
        return exchange(c, 0, 1, "a broadcast", bytes, error);
    }
    for (int i = 1; i < count_of(c); i++) {
        c->sends[i - 1] = message(i, data, bytes);
    }
    return exchange(c, count_of(c) - 1, 0, "a broadcast", bytes, error);
}

/* ---- all to all ---- */

/* Concatenates the data of all ranks in rank order, on all ranks or on rank 0 only. */
static enum tandem_status gather(tandem_communicator *c, const void *mine, const size_t *bytes,
                                 char *out, bool to_all, const char *what,
                                 struct tandem_error *error)
{
    const int rank = c->transport.rank;
    const bool receives = to_all || rank == 0;
    int n_sends = 0, n_receives = 0;
    size_t at = 0, largest = 0;
    for (int i = 0; i < count_of(c); i++) {
        if (i != rank && bytes[rank] > 0 && (to_all || i == 0)) {
            c->sends[n_sends++] = message(i, mine, bytes[rank]);
        }
        if (receives && bytes[i] > 0) {
            if (i != rank) {
                c->receives[n_receives++] = message(i, out + at, bytes[i]);
            } else if (out + at != mine) {
                memcpy(out + at, mine, bytes[i]);
            }
        }
        at += bytes[i];
        largest = bytes[i] > largest ? bytes[i] : largest;
    }
    return exchange(c, n_sends, n_receives, what, largest, error);
}

enum tandem_status tandem_communicator_all_gather(tandem_communicator *c, const void *mine,
                                                  const size_t *bytes, void *out,
                                                  struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_all_gather", error);
    TND_REQUIRE(mine, "communicator_all_gather", error);
    TND_REQUIRE(bytes, "communicator_all_gather", error);
    TND_REQUIRE(out, "communicator_all_gather", error);
    return gather(c, mine, bytes, out, true, "an all-gather", error);
}

enum tandem_status tandem_communicator_gather(tandem_communicator *c, const void *mine,
                                              const size_t *bytes, void *out,
                                              struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_gather", error);
    TND_REQUIRE(mine, "communicator_gather", error);
    TND_REQUIRE(bytes, "communicator_gather", error);
    if (c->transport.rank == 0) {
        TND_REQUIRE(out, "communicator_gather", error);
    }
    return gather(c, mine, bytes, out, false, "a gather", error);
}

enum tandem_status tandem_communicator_all_to_all(tandem_communicator *c, const void *mine,
                                                  const size_t *to, void *out, const size_t *from,
                                                  struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_all_to_all", error);
    TND_REQUIRE(mine, "communicator_all_to_all", error);
    TND_REQUIRE(to, "communicator_all_to_all", error);
    TND_REQUIRE(out, "communicator_all_to_all", error);
    TND_REQUIRE(from, "communicator_all_to_all", error);
    const int rank = c->transport.rank;
    const char *at = mine;
    char *out_at = out;
    int n_sends = 0, n_receives = 0;
    size_t largest = 0;
    if (to[rank] != from[rank]) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "cluster", (int64_t)to[rank], (int64_t)from[rank],
            "cluster: rank %d sends itself %zu bytes, and expects %zu", rank, to[rank], from[rank]);
    }
    for (int i = 0; i < count_of(c); at += to[i], out_at += from[i], i++) {
        if (i == rank) {
            memmove(out_at, at, to[i]);
            continue;
        }
        if (to[i] > 0) {
            c->sends[n_sends++] = message(i, at, to[i]);
        }
        if (from[i] > 0) {
            c->receives[n_receives++] = message(i, out_at, from[i]);
        }
        largest = to[i] > largest ? to[i] : largest;
        largest = from[i] > largest ? from[i] : largest;
    }
    return exchange(c, n_sends, n_receives, "an all-to-all", largest, error);
}

/* out = sum of `vectors` {n} of all ranks; this rank's vector is `own`, which `out` may be. */
static void add_up(const tandem_communicator *c, const float *vectors, const float *own, size_t n,
                   float *out)
{
    const float *const first = c->transport.rank == 0 ? own : vectors;
    for (size_t i = 0; i < n; i++) {
        float sum = first[i];
        for (int r = 1; r < count_of(c); r++) {
            sum += r == c->transport.rank ? own[i] : vectors[(size_t)r * n + i];
        }
        out[i] = sum;
    }
}

/* Sends all vectors to every rank. */
static enum tandem_status reduce_whole(tandem_communicator *c, float *values, size_t n,
                                       struct tandem_error *error)
{
    int k = 0;
    for (int i = 0; i < count_of(c); i++) {
        if (i != c->transport.rank) {
            c->sends[k] = message(i, values, n * sizeof(values[0]));
            c->receives[k++] = message(i, c->scratch + (size_t)i * n, n * sizeof(values[0]));
        }
    }
    TND_TRY(exchange(c, k, k, "an all-reduce", n * sizeof(values[0]), error));
    add_up(c, c->scratch, values, n, values);
    return TANDEM_OK;
}

static size_t segment_begin(const tandem_communicator *c, int rank, size_t n)
{
    return n / (size_t)count_of(c) * (size_t)rank +
           n % (size_t)count_of(c) * (size_t)rank / (size_t)count_of(c);
}

/* Rank r receives segment r of all vectors and sends the sum to all ranks. */
static enum tandem_status reduce_segments(tandem_communicator *c, float *values, size_t n,
                                          struct tandem_error *error)
{
    const int rank = c->transport.rank;
    const size_t own = segment_begin(c, rank, n);
    const size_t own_n = segment_begin(c, rank + 1, n) - own;
    int k = 0;
    for (int i = 0; i < count_of(c); i++) {
        const size_t at = segment_begin(c, i, n);
        const size_t n_at = segment_begin(c, i + 1, n) - at;
        if (i != rank) {
            c->sends[k] = message(i, values + at, n_at * sizeof(values[0]));
            c->receives[k++] =
                message(i, c->scratch + (size_t)i * own_n, own_n * sizeof(values[0]));
        }
    }
    TND_TRY(exchange(c, k, k, "an all-reduce", n * sizeof(values[0]), error));
    add_up(c, c->scratch, values + own, own_n, values + own);
    k = 0;
    for (int i = 0; i < count_of(c); i++) {
        const size_t at = segment_begin(c, i, n);
        const size_t n_at = segment_begin(c, i + 1, n) - at;
        if (i != rank) {
            c->sends[k] = message(i, values + own, own_n * sizeof(values[0]));
            c->receives[k++] = message(i, values + at, n_at * sizeof(values[0]));
        }
    }
    return exchange(c, k, k, "an all-reduce", n * sizeof(values[0]), error);
}

enum tandem_status tandem_communicator_all_reduce(tandem_communicator *c, float *values, size_t n,
                                                  struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_all_reduce", error);
    TND_REQUIRE(values, "communicator_all_reduce", error);
    const size_t bytes = n * sizeof(values[0]);
    if (count_of(c) == 1 || n == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tandem_communicator_reserve(c, bytes, error));
    return count_of(c) > 2 && bytes >= SEGMENTS_FROM_BYTES ? reduce_segments(c, values, n, error)
                                                           : reduce_whole(c, values, n, error);
}

enum tandem_status tandem_communicator_barrier(tandem_communicator *c, struct tandem_error *error)
{
    TND_REQUIRE(c, "communicator_barrier", error);
    TND_TRY(tandem_communicator_reserve(c, 1, error));
    char mine = 1;
    int k = 0;
    for (int i = 0; i < count_of(c); i++) {
        if (i != c->transport.rank) {
            c->sends[k] = message(i, &mine, 1);
            c->receives[k++] = message(i, (char *)c->scratch + i, 1);
        }
    }
    return exchange(c, k, k, "a barrier", 1, error);
}
