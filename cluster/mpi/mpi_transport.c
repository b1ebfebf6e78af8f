/* SPDX-License-Identifier: MIT
 * Messages by MPI: the one file that knows it, in a library of its own. Every call is made without
 * blocking and asked after, so that a rank that is gone ends the wait and not the process, and so
 * that a rank that waits leaves its CPU to others. */
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

#define SPIN_S  50e-6 /* asked again and again: a message within a machine takes microseconds */
#define YIELD_S 3e-4  /* then after others have run; */
#define NAP_NS  50000 /* then after a nap */
#define ABORT_S 3     /* for MPI to end this process */
#define PULSE_S 1     /* between signs of life */
#define MOVE_S  1e-4  /* between looks at what was posted, while this rank computes */
#define STAY_S  12e-9 /* a byte: a post stays with its message as long as 1 Gb/s takes for it */
enum {
    TAG = 7,
    PULSE_TAG = 8,
    PIECE = 1 << 30 /* bytes: MPI counts by int */,
    MOST_MESSAGES = 1 << 16,
    MOST_POSTED = 64 << 20, /* bytes in flight, before a post waits */
    LONG = 64 << 10         /* bytes: of a prompt, not of tokens */
};

/* A copy of a message, until it has left. */
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
    bool is_crowded;  /* MPI may not be called from a thread of ours */
    MPI_Request *requests;
    int *ranks; /* of each request */
    int room;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    /* A thread tells all other ranks each second that this process lives, and moves on what was
     * posted: not every MPI does that by itself. `lock` is held for each call of MPI, and guards
     * what follows. */
    pthread_t pulse;
    bool has_pulse; /* MPI may be called from another thread */
    pthread_mutex_t lock;
    pthread_cond_t wakes; /* that thread */
    bool is_ending;       /* no thread but that of the caller calls MPI any more */
    struct post *posts;
    size_t posted; /* bytes of them */
    int post_code; /* MPI's, of one that has failed; */
    int post_rank; /* it was for that rank */
    int rank, count;
    double limit_s;      /* of the last call, in seconds: below 0, of silence */
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

/* Not under the lock. */
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

/* (To a rank that does not take them no further ones are sent.) */
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

/* Frees what has left. Under the lock. */
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

/* Without memory or a thread there are no signs of life, and waiting for them has no end. */
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
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's threads */
    t->has_pulse = pthread_create(&t->pulse, NULL, run_pulse, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A call that has failed leaves messages that MPI would still write to memory of the program: only
 * a thread that calls MPI moves them. Returns false. */
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

/* All pulses are received before MPI ends, which minds messages that nobody took: each rank's last
 * one says so. */
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

/* Begins all messages of one direction. Returns MPI's code. */
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

/* Leaves the CPU to others, the longer the longer we have waited. */
static void rest(double waited_s)
{
    if (waited_s > YIELD_S) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    } else if (waited_s > SPIN_S) {
        sched_yield();
    }
}

/* Whether a rank has waited for long enough, for one that was silent for so long. */
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
    /* (Sends come first: a long one is announced before the other's is asked for, which would else
     * begin at once, and on TCP the answer to ours would wait behind all of it.) */
    int code = begin(t, sends, n_sends, true, &n);
    code = code == MPI_SUCCESS ? begin(t, receives, n_receives, false, &n) : code;
    pthread_mutex_unlock(&t->lock);
    const bool is_good = code == MPI_SUCCESS ? finish(t, n, limit_s, out_rank, why, why_bytes)
                                             : fail(t, code, why, why_bytes);
    return is_good || give_up(t);
}

/* ---- posts ---- */

/* Waits until there is room for `bytes`, or for what must be alone. */
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

/* A long message of a prompt wants answers from this rank: it leaves sooner where somebody waits
 * for them than where a thread looks now and then. */
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

/* False where a rank has not received all within the limit: nothing waits for that rank then. */
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

/* MPICH's MPI_Abort does not return, nor end the process, where it cannot reach its launcher. */
static void end_in_any_case(void)
{
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(ABORT_S);
}

/* The reason has been told; MPICH would have each rank add that it called MPI_Abort. */
static void silence(void)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
}

/* After a failure nobody waits for the others: MPI ends them. */
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
    /* (A program that uses MPI itself has started it.) */
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
    /* (Below that, a program's own calls would have to wait for those of a thread of ours.) */
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
