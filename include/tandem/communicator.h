/* SPDX-License-Identifier: MIT
 * room: cluster
 *
 * Ranks: processes, on one machine or several, that compute together. A transport carries bytes
 * between them (MPI, or what a program brings); a communicator builds collective operations on it,
 * whose results have the same bits on every transport.
 *
 * Threads: a communicator is used by one thread at a time; MPI may want the one that opened it.
 * Collective calls (gather, all-gather, all-to-all, all-reduce, broadcast, barrier) are made by all
 * ranks, in the same order. A call that fails with RANK leaves the communicator failed: later calls
 * return the same error at once. */
#ifndef TANDEM_COMMUNICATOR_H
#define TANDEM_COMMUNICATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "tandem/status.h"

TANDEM_BEGIN_C

/** Opaque. One rank's view of all of them. */
typedef struct tandem_communicator tandem_communicator;

/** A message to or from another rank. The layout is fixed for good. */
struct tandem_message {
    int rank;     /**< the other rank */
    void *data;   /**< {bytes}; of an outgoing message, only read */
    size_t bytes; /**< both ranks pass the same number */
};

/** Carries messages. A program may bring its own. */
struct tandem_transport {
    size_t size; /**< sizeof(struct tandem_transport) */
    void *self;  /**< passed to the functions */
    int rank;    /**< of this process, 0 to count - 1 */
    int count;   /**< of all ranks */
    /** Sends and receives all messages, none of them to this rank itself, and returns when that is
     * done. Between two ranks, messages arrive in the order in which they were sent. Gives up after
     * `limit_s` seconds (0: never). Below 0 it waits as long as the other rank's process gives
     * signs of life, and gives up -limit_s seconds after the last one; a transport without such
     * signs waits forever. On failure, `out_rank` is a rank whose message is missing (-1: unknown),
     * and `why` (`why_bytes` bytes) the transport's message. Must not keep a CPU busy for long.
     * Returns whether all messages were exchanged. */
    bool (*exchange)(void *self, const struct tandem_message *sends, int n_sends,
                     const struct tandem_message *receives, int n_receives, double limit_s,
                     int *out_rank, char *why, size_t why_bytes);
    /** Frees `self`. `has_failed`: other ranks may be gone, so do not wait for them. */
    void (*close)(void *self, bool has_failed);
    const char *name; /**< "Open MPI 4.1.4", for people; lives as long as the transport */
    /** NULL: not supported. Sends a copy of a message and returns before it has arrived; it arrives
     * in order with the messages of `exchange`. With many bytes in flight it may wait first, as
     * `exchange` does. A later call may fail because of it. */
    bool (*post)(void *self, const struct tandem_message *send, double limit_s, int *out_rank,
                 char *why, size_t why_bytes);
};

/** A communicator over a transport, which it owns from then on, even if this call fails.
 * Collective: every rank compares byte order and version of this library with rank 0's. Errors: ABI
 * (those differ; the rank is named), ARGUMENT, MEMORY, RANK. */
TANDEM_API enum tandem_status tandem_communicator_new(const struct tandem_transport *transport,
                                                      tandem_communicator **out_communicator,
                                                      struct tandem_error *error);

/** Number of processes that an MPI launcher (mpirun, srun) reports to have started; 0: no launcher.
 * Never fails. Any thread. */
TANDEM_API int tandem_communicator_launched(void);
/** A communicator over all ranks of the MPI launcher, by libtandem-mpi*.so. Once in a process, on
 *  its main thread. Errors: UNSUPPORTED_MACHINE (no such library, or it does not load), those of
 *  tandem_communicator_new. */
TANDEM_API enum tandem_status tandem_communicator_open(tandem_communicator **out_communicator,
                                                       struct tandem_error *error);
/** Collective, unless it has failed. Waits for posted messages as long as the limit says; if a rank
 * has not received one by then, MPI ends all ranks. NULL is allowed. Never fails. */
TANDEM_API void tandem_communicator_close(tandem_communicator *communicator);

/** This rank; 0 for NULL. Never fails. */
TANDEM_API int tandem_communicator_rank(const tandem_communicator *communicator);
/** Number of ranks; 1 for NULL. Never fails. */
TANDEM_API int tandem_communicator_count(const tandem_communicator *communicator);
/** Host name of a rank; "" outside. Lives as long as the communicator. Never fails. */
TANDEM_API const char *tandem_communicator_host(const tandem_communicator *communicator, int rank);
/** Name of the transport. Never fails. */
TANDEM_API const char *tandem_communicator_name(const tandem_communicator *communicator);
/** Seconds after which a call gives up waiting; 0: never; below 0: only for a rank whose process
 * has given no sign of life for this many seconds, if the transport can tell (MPI can, unless it
 * supports only one thread, or the program has started it with less than MPI_THREAD_MULTIPLE).
 * Default: 60. Never fails. */
TANDEM_API void tandem_communicator_set_limit(tandem_communicator *communicator, double seconds);
/** The limit of tandem_communicator_set_limit. Never fails. */
TANDEM_API double tandem_communicator_limit(const tandem_communicator *communicator);
/** Allocates memory for an all-reduce of this many bytes, so that later ones do not allocate.
 * Errors: MEMORY. */
TANDEM_API enum tandem_status tandem_communicator_reserve(tandem_communicator *communicator,
                                                          size_t bytes, struct tandem_error *error);
/** Marks this rank as failed: later calls return `why`, and closing ends the other ranks. Never
 * fails. */
TANDEM_API void tandem_communicator_fail(tandem_communicator *communicator,
                                         const struct tandem_error *why);
/** Why the communicator has failed; NULL: it has not. Lives as long as the communicator. Never
 *  fails. */
TANDEM_API const struct tandem_error *
tandem_communicator_error(const tandem_communicator *communicator);

/** Sends bytes to one rank; receives bytes from one rank. Errors: ARGUMENT, RANK. */
TANDEM_API enum tandem_status tandem_communicator_send(tandem_communicator *communicator, int rank,
                                                       const void *data, size_t bytes,
                                                       struct tandem_error *error);
TANDEM_API enum tandem_status tandem_communicator_receive(tandem_communicator *communicator,
                                                          int rank, void *out, size_t bytes,
                                                          struct tandem_error *error);
/** Like tandem_communicator_send, but returns before the bytes have arrived, if the transport
 * supports that. A later call may fail because of it. Errors: ARGUMENT, RANK. */
TANDEM_API enum tandem_status tandem_communicator_post(tandem_communicator *communicator, int rank,
                                                       const void *data, size_t bytes,
                                                       struct tandem_error *error);
/** Whether tandem_communicator_post returns early. Never fails. */
TANDEM_API bool tandem_communicator_can_post(const tandem_communicator *communicator);
/** Copies `data` of rank 0 to all others. Errors: RANK. */
TANDEM_API enum tandem_status tandem_communicator_broadcast(tandem_communicator *communicator,
                                                            void *data, size_t bytes,
                                                            struct tandem_error *error);
/** Concatenates the data of all ranks in rank order: `bytes` {count}, the same on all of them;
 * `mine` {bytes[rank]}; `out` {sum of bytes}. Errors: MEMORY, RANK. */
TANDEM_API enum tandem_status tandem_communicator_all_gather(tandem_communicator *communicator,
                                                             const void *mine, const size_t *bytes,
                                                             void *out, struct tandem_error *error);
/** Like tandem_communicator_all_gather, but only to rank 0; `out` may be NULL elsewhere. Errors:
 * RANK. */
TANDEM_API enum tandem_status tandem_communicator_gather(tandem_communicator *communicator,
                                                         const void *mine, const size_t *bytes,
                                                         void *out, struct tandem_error *error);
/** Sends different data to each other rank, in rank order: to[i] bytes of `mine` go to rank i, and
 * from[i] bytes come from it to `out`; both {count}, 0: none. to[rank] bytes are copied locally,
 * equal to from[rank]. Errors: ARGUMENT, RANK. */
TANDEM_API enum tandem_status tandem_communicator_all_to_all(tandem_communicator *communicator,
                                                             const void *mine, const size_t *to,
                                                             void *out, const size_t *from,
                                                             struct tandem_error *error);
/** values[i] becomes the sum of values[i] of all ranks, added in rank order: all get the same bits
 * on every transport. Errors: MEMORY, RANK. */
TANDEM_API enum tandem_status tandem_communicator_all_reduce(tandem_communicator *communicator,
                                                             float *values, size_t n,
                                                             struct tandem_error *error);
/** Returns when all ranks have called it. Errors: RANK. */
TANDEM_API enum tandem_status tandem_communicator_barrier(tandem_communicator *communicator,
                                                          struct tandem_error *error);

TANDEM_END_C
#endif
