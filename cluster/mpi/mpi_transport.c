/* SPDX-License-Identifier: MIT
 * Messages by MPI: the one file that knows it, in a library of its own. Every call is made without
 * blocking and asked after, so that a rank that is gone ends the wait and not the process, and so
 * that a rank that waits leaves its CPU to others. */
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
enum { TAG = 7, PIECE = 1 << 30 /* bytes: MPI counts by int */, MOST_MESSAGES = 1 << 16 };

struct transport {
    MPI_Comm comm;
    pthread_t opener;
    bool is_funneled; /* only the opener may call MPI */
    MPI_Request *requests;
    int *ranks; /* of each request */
    int room;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool fail(int code, char *why, size_t why_bytes)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    snprintf(why, why_bytes, "MPI says: %s", text);
    return false;
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

static bool finish(struct transport *t, int n, double limit_s, int *out_rank, char *why,
                   size_t why_bytes)
{
    const double begin_s = seconds();
    for (int i = 0; i < n;) {
        int is_done = 0;
        const int code = MPI_Test(&t->requests[i], &is_done, MPI_STATUS_IGNORE);
        *out_rank = t->ranks[i];
        if (code != MPI_SUCCESS) {
            return fail(code, why, why_bytes);
        }
        if (is_done) {
            i++;
            continue;
        }
        const double waited_s = seconds() - begin_s;
        if (limit_s > 0 && waited_s > limit_s) {
            snprintf(why, why_bytes,
                     "no answer within %.1f s: it has ended, hangs, or cannot be reached", limit_s);
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
    if (t->is_funneled && !pthread_equal(t->opener, pthread_self())) {
        snprintf(why, why_bytes, "this MPI is only for the thread that started it");
        return false;
    }
    const int n_all = pieces_of(sends, n_sends) + pieces_of(receives, n_receives);
    if (n_all >= MOST_MESSAGES || !reserve(t, n_all + 1)) {
        snprintf(why, why_bytes, "no memory for %d messages", n_all);
        return false;
    }
    int code = begin(t, receives, n_receives, false, &n);
    code = code == MPI_SUCCESS ? begin(t, sends, n_sends, true, &n) : code;
    return code == MPI_SUCCESS ? finish(t, n, limit_s, out_rank, why, why_bytes)
                               : fail(code, why, why_bytes);
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

/* After a failure nobody waits for the others: MPI ends them. */
static void close_transport(void *self, bool has_failed)
{
    struct transport *t = self;
    if (has_failed) {
        fflush(NULL);
        end_in_any_case();
        MPI_Abort(t->comm, 1);
    }
    MPI_Comm_free(&t->comm);
    MPI_Finalize();
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
    code = MPI_Comm_dup(MPI_COMM_WORLD, &t->comm);
    code = code == MPI_SUCCESS ? MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN) : code;
    if (code != MPI_SUCCESS) {
        free(t);
        return fail(code, why, why_bytes);
    }
    *out = (struct tandem_transport){.size = sizeof(*out),
                                     .self = t,
                                     .exchange = exchange,
                                     .close = close_transport,
                                     .name = t->name};
    MPI_Comm_rank(t->comm, &out->rank);
    MPI_Comm_size(t->comm, &out->count);
    find_name(t);
    return true;
}
