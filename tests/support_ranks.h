/* SPDX-License-Identifier: MIT
 * Ranks that are threads of one process: a transport over memory, on a clock that tests move. */
#ifndef TND_TESTS_SUPPORT_RANKS_H
#define TND_TESTS_SUPPORT_RANKS_H

#include "tandem/communicator.h"

enum { TND_RANKS_MOST = 16 };

/** What a rank does, on a thread of its own. Its result goes to tnd_ranks_run's `out`. */
typedef enum tandem_status (*tnd_rank_fn)(tandem_communicator *communicator, void *user,
                                          struct tandem_error *error);

struct tnd_rank_result {
    enum tandem_status status;
    struct tandem_error error;
};

/** Runs `fn` on 1 to 16 ranks and waits for them; a rank whose fn returns leaves. `out` {count}. A
 *  rank whose communicator could not be opened has that for a result. */
void tnd_ranks_run(int count, tnd_rank_fn fn, void *user, struct tnd_rank_result *out);

/** Whether the transport of later runs can post; it can at first. */
void tnd_ranks_set_posts(bool has_posts);
/** From now on a rank begins so many exchanges; those after them fail, on that rank alone. */
void tnd_ranks_let_die(int rank, int after);
/** A byte of the next message of so many bytes that a rank receives is another one. */
void tnd_ranks_damage(int rank, size_t bytes, size_t at);
/** Moves the clock of all ranks of this process, by which they wait. */
void tnd_ranks_advance(double seconds);
/** Waits until n ranks of the last tnd_ranks_run wait for messages. */
void tnd_ranks_await_waiting(int n);
/** What a rank tells of itself next, in place of its byte order: the first bytes of its first
 *  message. */
void tnd_ranks_forge_hello(int rank, const void *bytes, size_t offset, size_t n);

#endif
