/* SPDX-License-Identifier: MIT
 * Messages over MPI: the only file that uses it, in a library of its own. All calls are
 * non-blocking and polled, so that a lost rank ends the wait and not the process, and a waiting
 * rank leaves its CPU to others. */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpi_library.h"

#define SPIN_S  50e-6 /* polls without pause: a message within a machine takes microseconds */
#define YIELD_S 3e-4  /* then yields between polls; */
#define NAP_NS  50000 /* then sleeps this long between polls */
#define ABORT_S 3     /* time for MPI to end this process */
#define PULSE_S 1     /* between signs of life */
#define MOVE_S  1e-4  /* between polls of posts in flight, while this rank computes */
#define STAY_S  12e-9 /* per byte: time that a post polls its message, as 1 Gb/s takes */
enum {
    TAG = 7,
    PULSE_TAG = 8,
    PIECE = 1 << 30 /* bytes: MPI counts by int */,
    MOST_MESSAGES = 1 << 16,
    MOST_POSTED = 64 << 20, /* bytes in flight before a post waits */
    LONG = 64 << 10         /* bytes: messages of prompts are longer, those of tokens shorter */
};

/* Copy of a message until it has been sent. */
struct post {
    struct post *next;
    MPI_Request request;
    int rank;
    size_t bytes;
    char data[];
};

struct transport {
    MPI_Comm comm;
    pthread_t opener;
    bool is_funneled; /* only the opener may call MPI */
    bool is_crowded;  /* our threads must not call MPI */
    MPI_Request *requests;
    int *ranks; /* of each request */
    int room;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    /* A thread sends a sign of life to all other ranks each second and polls posts in flight, since
     * not every MPI progresses them by itself. `lock` is held during each MPI call and guards the
     * members below. */
    pthread_t pulse;
    bool has_pulse; /* the thread runs: MPI may be called from it */
    pthread_mutex_t lock;
    pthread_cond_t wakes; /* wakes that thread */
    bool is_ending;       /* only the caller's thread calls MPI from now on */
    struct post *posts;
    size_t posted; /* bytes in flight */
    int post_code; /* MPI's code of a post that failed; */
    int post_rank; /* the rank it was for */
    int rank, count;
    double limit_s;      /* of the last call; below 0: limit of silence */
    int *missed;         /* {count}: pulses of ours since the last one of that rank */
    MPI_Request *pulses; /* {count}: in flight */
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool say(int code, char *why, size_t why_bytes)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    snprintf(why, why_bytes, "MPI says: %s", text);
    return false;
}

/* Call without the lock. */
static bool fail(struct transport *t, int code, char *why, size_t why_bytes)
{
    pthread_mutex_lock(&t->lock);
    (void)say(code, why, why_bytes);
    pthread_mutex_unlock(&t->lock);
    return false;
}

/* ---- signs of life ---- */

static void hear_pulses(struct transport *t)
{
    int is_there = 1;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, PULSE_TAG, t->comm, &is_there, &status) == MPI_SUCCESS &&
           is_there) {
        char byte;
        const int rank = status.MPI_SOURCE;
        if (MPI_Recv(&byte, 1, MPI_BYTE, rank, PULSE_TAG, t->comm, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS) {
            return;
        }
        t->missed[rank] = 0;
    }
}

/* Skips ranks to which the previous pulse is still in flight. */
static void send_pulses(struct transport *t)
{
    static char byte;
    for (int i = 0; i < t->count; i++) {
        int is_sent = 1;
        if (i != t->rank && t->pulses[i] != MPI_REQUEST_NULL) {
            MPI_Test(&t->pulses[i], &is_sent, MPI_STATUS_IGNORE);
        }
        if (i != t->rank && is_sent) {
            MPI_Isend(&byte, 1, MPI_BYTE, i, PULSE_TAG, t->comm, &t->pulses[i]);
        }
    }
}

/* Frees posts that have been sent. Call under the lock. */
static void move_posts(struct transport *t)
{
    for (struct post **at = &t->posts; *at != NULL;) {
        struct post *post = *at;
        int is_done = 0;
        const int code = MPI_Test(&post->request, &is_done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS && t->post_code == MPI_SUCCESS) {
            t->post_code = code;
            t->post_rank = post->rank;
        }
        if (code == MPI_SUCCESS && !is_done) {
            at = &post->next;
            continue;
        }
        *at = post->next;
        t->posted -= post->bytes;
        free(post);
    }
}

static void *run_pulse(void *user)
{
    struct transport *t = user;
    double next_s = seconds();
    pthread_mutex_lock(&t->lock);
    while (!t->is_ending) {
        struct timespec at;
        if (seconds() >= next_s) {
            for (int i = 0; i < t->count; i++) {
                t->missed[i]++;
            }
            hear_pulses(t);
            send_pulses(t);
            next_s = seconds() + PULSE_S;
        }
        move_posts(t);
        const double move_s = seconds() + MOVE_S;
        const double wake_s = t->posts != NULL && move_s < next_s ? move_s : next_s;
        at.tv_sec = (time_t)wake_s;
        at.tv_nsec = (long)(1e9 * (wake_s - (double)at.tv_sec));
        (void)pthread_cond_timedwait(&t->wakes, &t->lock, &at);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Without memory or a thread there are no signs of life, and waits for them never end. */
static void start_pulse(struct transport *t)
{
    pthread_condattr_t attributes;
    sigset_t all, before;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    t->missed = calloc((size_t)t->count, sizeof(t->missed[0]));
    t->pulses = malloc((size_t)t->count * sizeof(t->pulses[0]));
    if (t->is_crowded || t->missed == NULL || t->pulses == NULL) {
        return;
    }
    for (int i = 0; i < t->count; i++) {
        t->pulses[i] = MPI_REQUEST_NULL;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* leaves signals to the program's threads */
    t->has_pulse = pthread_create(&t->pulse, NULL, run_pulse, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A failed call leaves messages in flight that MPI would still write to the program's memory. MPI
 * does so only inside its calls, so our thread stops making them. Returns false. */
static bool give_up(struct transport *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_ending = true;
    pthread_cond_broadcast(&t->wakes);
    pthread_mutex_unlock(&t->lock);
    return false;
}

static void stop_pulse(struct transport *t)
{
    (void)give_up(t);
    if (t->has_pulse) {
        pthread_join(t->pulse, NULL);
    }
}

/* Receives all pulses before MPI ends, since MPI may report messages that nobody received. Each
 * rank marks its last pulse. */
static void take_last_pulses(struct transport *t)
{
    const char last = 1;
    for (int i = 0; i < t->count; i++) {
        if (i != t->rank) {
            MPI_Send(&last, 1, MPI_BYTE, i, PULSE_TAG, t->comm);
        }
    }
    for (int i = 0; i < t->count; i++) {
        char byte = i == t->rank;
        while (byte == 0 && MPI_Recv(&byte, 1, MPI_BYTE, i, PULSE_TAG, t->comm,
                                     MPI_STATUS_IGNORE) == MPI_SUCCESS) {
        }
        if (t->has_pulse && i != t->rank && t->pulses[i] != MPI_REQUEST_NULL) {
            MPI_Wait(&t->pulses[i], MPI_STATUS_IGNORE);
        }
    }
}

/* ---- one exchange ---- */

static int pieces_of(const struct tandem_message *messages, int n)
{
    size_t pieces = 0;
    for (int i = 0; i < n; i++) {
        pieces += (messages[i].bytes + PIECE - 1) / PIECE;
    }
    return pieces < MOST_MESSAGES ? (int)pieces : MOST_MESSAGES;
}

static bool reserve(struct transport *t, int n)
{
    if (n <= t->room) {
        return true;
    }
    free(t->requests);
    free(t->ranks);
    t->requests = malloc((size_t)n * sizeof(t->requests[0]));
    t->ranks = malloc((size_t)n * sizeof(t->ranks[0]));
    t->room = t->requests != NULL && t->ranks != NULL ? n : 0;
    return t->room > 0;
}

/* Starts all messages of one direction. Returns MPI's code. */
static int begin(struct transport *t, const struct tandem_message *messages, int n, bool is_send,
                 int *io_n)
{
    for (int i = 0; i < n; i++) {
        for (size_t at = 0; at < messages[i].bytes; at += PIECE) {
            const size_t left = messages[i].bytes - at;
            const int bytes = left < PIECE ? (int)left : PIECE;
            char *data = (char *)messages[i].data + at;
            const int rank = messages[i].rank;
            MPI_Request *request = &t->requests[*io_n];
            const int code = is_send
                                 ? MPI_Isend(data, bytes, MPI_BYTE, rank, TAG, t->comm, request)
                                 : MPI_Irecv(data, bytes, MPI_BYTE, rank, TAG, t->comm, request);
            if (code != MPI_SUCCESS) {
                return code;
            }
            t->ranks[(*io_n)++] = rank;
        }
    }
    return MPI_SUCCESS;
}

/* Yields or sleeps, depending on the time waited so far. */
static void rest(double waited_s)
{
    if (waited_s > YIELD_S) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    } else if (waited_s > SPIN_S) {
        sched_yield();
    }
}

/* Whether the wait for a rank has exceeded its limit: of time, or of silence (limit_s below 0). */
static bool has_waited(double waited_s, double silent_s, double limit_s, char *why,
                       size_t why_bytes)
{
    if (limit_s > 0 && waited_s > limit_s) {
        snprintf(why, why_bytes,
                 "no answer within %.1f s: it has ended, hangs, or cannot be reached", limit_s);
        return true;
    }
    if (limit_s < 0 && waited_s > -limit_s && silent_s > -limit_s) {
        snprintf(why, why_bytes,
                 "no sign of life within %.1f s: it has ended, hangs, or cannot be reached",
                 -limit_s);
        return true;
    }
    return false;
}

static bool finish(struct transport *t, int n, double limit_s, int *out_rank, char *why,
                   size_t why_bytes)
{
    const double begin_s = seconds();
    for (int i = 0; i < n;) {
        int is_done = 0;
        pthread_mutex_lock(&t->lock);
        const int code = MPI_Test(&t->requests[i], &is_done, MPI_STATUS_IGNORE);
        const double silent_s = t->has_pulse ? PULSE_S * t->missed[t->ranks[i]] : 0;
        pthread_mutex_unlock(&t->lock);
        *out_rank = t->ranks[i];
        if (code != MPI_SUCCESS) {
            return fail(t, code, why, why_bytes);
        }
        if (is_done) {
            i++;
            continue;
        }
        const double waited_s = seconds() - begin_s;
        if (has_waited(waited_s, silent_s, limit_s, why, why_bytes)) {
            return false;
        }
        rest(waited_s);
    }
    return true;
}

static bool exchange(void *self, const struct tandem_message *sends, int n_sends,
                     const struct tandem_message *receives, int n_receives, double limit_s,
                     int *out_rank, char *why, size_t why_bytes)
{
    struct transport *t = self;
    int n = 0;
    *out_rank = -1;
    t->limit_s = limit_s;
    if (t->is_funneled && !pthread_equal(t->opener, pthread_self())) {
        snprintf(why, why_bytes, "this MPI is only for the thread that started it");
        return false;
    }
    const int n_all = pieces_of(sends, n_sends) + pieces_of(receives, n_receives);
    if (n_all >= MOST_MESSAGES || !reserve(t, n_all + 1)) {
        snprintf(why, why_bytes, "no memory for %d messages", n_all);
        return false;
    }
    pthread_mutex_lock(&t->lock);
    move_posts(t);
    if (t->post_code != MPI_SUCCESS) {
        *out_rank = t->post_rank;
        n = t->post_code;
        pthread_mutex_unlock(&t->lock);
        return fail(t, n, why, why_bytes);
    }
    /* Sends start first: a long one is announced before the peer's message is requested. Otherwise
     * that message would begin at once, and on TCP the reply to our announcement would queue behind
     * it. */
    int code = begin(t, sends, n_sends, true, &n);
    code = code == MPI_SUCCESS ? begin(t, receives, n_receives, false, &n) : code;
    pthread_mutex_unlock(&t->lock);
    const bool is_good = code == MPI_SUCCESS ? finish(t, n, limit_s, out_rank, why, why_bytes)
                                             : fail(t, code, why, why_bytes);
    return is_good || give_up(t);
}

/* ---- posts ---- */

/* Waits until `bytes` more may be in flight; a message above the limit waits until it is alone. */
static bool await_room(struct transport *t, size_t bytes, double limit_s, int *out_rank, char *why,
                       size_t why_bytes)
{
    const double begin_s = seconds();
    for (;;) {
        pthread_mutex_lock(&t->lock);
        move_posts(t);
        const bool has_room = t->posts == NULL || t->posted + bytes <= MOST_POSTED;
        const int code = t->post_code;
        *out_rank = code != MPI_SUCCESS ? t->post_rank : has_room ? -1 : t->posts->rank;
        const double silent_s = t->has_pulse && *out_rank >= 0 ? PULSE_S * t->missed[*out_rank] : 0;
        pthread_mutex_unlock(&t->lock);
        if (code != MPI_SUCCESS) {
            return fail(t, code, why, why_bytes);
        }
        if (has_room) {
            return true;
        }
        const double waited_s = seconds() - begin_s;
        if (has_waited(waited_s, silent_s, limit_s, why, why_bytes)) {
            return false;
        }
        rest(waited_s);
    }
}

/* Polls a long message for a while: others wait for the states of a prompt, and it is sent sooner
 * than with the thread's occasional polls. */
static void stay(struct transport *t, size_t bytes)
{
    const double begin_s = seconds();
    bool is_there = bytes >= LONG;
    while (is_there && seconds() - begin_s < STAY_S * (double)bytes) {
        pthread_mutex_lock(&t->lock);
        move_posts(t);
        is_there = t->posts != NULL;
        pthread_mutex_unlock(&t->lock);
        rest(is_there ? seconds() - begin_s : 0);
    }
}

static bool post(void *self, const struct tandem_message *send, double limit_s, int *out_rank,
                 char *why, size_t why_bytes)
{
    struct transport *t = self;
    t->limit_s = limit_s;
    if (!await_room(t, send->bytes, limit_s, out_rank, why, why_bytes)) {
        return false;
    }
    for (size_t at = 0; at < send->bytes; at += PIECE) {
        const size_t left = send->bytes - at, bytes = left < PIECE ? left : PIECE;
        struct post *one = malloc(sizeof(*one) + bytes);
        if (one == NULL) {
            snprintf(why, why_bytes, "no memory for a message of %zu bytes", bytes);
            return false;
        }
        one->rank = send->rank;
        one->bytes = bytes;
        memcpy(one->data, (const char *)send->data + at, bytes);
        pthread_mutex_lock(&t->lock);
        const int code =
            MPI_Isend(one->data, (int)bytes, MPI_BYTE, one->rank, TAG, t->comm, &one->request);
        if (code == MPI_SUCCESS) {
            one->next = t->posts;
            t->posts = one;
            t->posted += bytes;
            move_posts(t);
            pthread_cond_broadcast(&t->wakes);
        }
        pthread_mutex_unlock(&t->lock);
        if (code != MPI_SUCCESS) {
            *out_rank = send->rank;
            free(one);
            return fail(t, code, why, why_bytes);
        }
    }
    stay(t, send->bytes);
    return true;
}

/* False: a rank has not received everything within the limit, and is not waited for. */
static bool finish_posts(struct transport *t)
{
    const double begin_s = seconds();
    double waited_s = 0;
    while (t->posts != NULL && t->post_code == MPI_SUCCESS && waited_s <= fabs(t->limit_s)) {
        move_posts(t);
        waited_s = seconds() - begin_s;
        rest(t->posts != NULL ? waited_s : 0);
    }
    return t->posts == NULL;
}

/* ---- beginning and end ---- */

/* Ends the process by SIGALRM: MPICH's MPI_Abort neither returns nor ends it if it cannot reach its
 * launcher. */
static void end_in_any_case(void)
{
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(ABORT_S);
}

/* Silences stderr: the reason has been printed, and with MPICH each rank would add a line about
 * MPI_Abort. */
static void silence(void)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
}

/* After a failure, does not wait for the other ranks: MPI ends them. */
static void close_transport(void *self, bool has_failed)
{
    struct transport *t = self;
    stop_pulse(t);
    if (has_failed || !finish_posts(t)) {
        fflush(NULL);
        silence();
        end_in_any_case();
        MPI_Abort(t->comm, 1);
    }
    if (!t->is_funneled) {
        take_last_pulses(t);
    }
    MPI_Comm_free(&t->comm);
    MPI_Finalize();
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wakes);
    free(t->missed);
    free(t->pulses);
    free(t->requests);
    free(t->ranks);
    free(t);
}

static void find_name(struct transport *t)
{
    int n = 0;
    MPI_Get_library_version(t->name, &n);
    t->name[strcspn(t->name, ",\n")] = '\0';
    char *version = strstr(t->name, " Version:"); /* "MPICH Version:\t4.0.2" */
    if (version != NULL) {
        const char *number = version + strlen(" Version:");
        number += strspn(number, " \t");
        memmove(version + 1, number, strlen(number) + 1);
    }
}

__attribute__((visibility("default"))) bool tandem_mpi_transport(const char *version,
                                                                 struct tandem_transport *out,
                                                                 char *why, size_t why_bytes);

bool tandem_mpi_transport(const char *version, struct tandem_transport *out, char *why,
                          size_t why_bytes)
{
    int level = MPI_THREAD_SINGLE, is_started = 0, code;
    if (strcmp(version, TANDEM_VERSION_STRING) != 0) {
        snprintf(why, why_bytes, "libtandem-mpi is of version %s, the library of %s",
                 TANDEM_VERSION_STRING, version);
        return false;
    }
    struct transport *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        snprintf(why, why_bytes, "no memory");
        return false;
    }
    /* The program may have started MPI itself. */
    MPI_Initialized(&is_started);
    code = is_started ? MPI_Query_thread(&level)
                      : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS || level < MPI_THREAD_FUNNELED) {
        snprintf(why, why_bytes,
                 "this MPI offers thread level %d; expected MPI_THREAD_FUNNELED (%d) or more",
                 level, MPI_THREAD_FUNNELED);
        free(t);
        return false;
    }
    t->opener = pthread_self();
    t->is_funneled = level == MPI_THREAD_FUNNELED;
    /* Below these levels, the program's own MPI calls would have to wait for those of our thread.
     */
    t->is_crowded = level < (is_started ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED);
    code = MPI_Comm_dup(MPI_COMM_WORLD, &t->comm);
    code = code == MPI_SUCCESS ? MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN) : code;
    if (code != MPI_SUCCESS) {
        free(t);
        return say(code, why, why_bytes);
    }
    *out = (struct tandem_transport){.size = sizeof(*out),
                                     .self = t,
                                     .exchange = exchange,
                                     .close = close_transport,
                                     .name = t->name,
                                     .post = t->is_crowded ? NULL : post};
    MPI_Comm_rank(t->comm, &out->rank);
    MPI_Comm_size(t->comm, &out->count);
    t->rank = out->rank;
    t->count = out->count;
    find_name(t);
    start_pulse(t);
    return true;
}
