/* SPDX-License-Identifier: MIT
 * Sessions of several ranks: rank 0 sends orders for its session, which the other ranks follow. */
#ifndef TND_LLAMA_RANKS_H
#define TND_LLAMA_RANKS_H

#include "llama/session.h"

/* ---- orders ---- */

enum tnd_llama_command {
    TND_ORDER_NEW,
    TND_ORDER_DECODE,
    TND_ORDER_SHIFT,
    TND_ORDER_ROLLBACK,
    TND_ORDER_COPY,
    TND_ORDER_STATE_WRITE,
    TND_ORDER_STATE_READ,
    TND_ORDER_PLACE,
    TND_ORDER_FREE,
    TND_ORDER_END
};

/** An order from rank 0, followed by `bytes` bytes. All ranks have the same byte order and version.
 */
struct tnd_llama_order {
    int64_t command, session, n[3], bytes;
};

/** Follows NEW; then come shares {count} and layer shares {count}. */
struct tnd_llama_new_session {
    int64_t context, n_cells, n_sequences, cache_type, is_unfused, has_embeddings, division,
        micro_batches, prompt_batch, has_whole_experts;
};

/** Follows DECODE, one per entry; then come the tokens of all entries and the data of best.h. */
struct tnd_llama_told_entry {
    int64_t n, sequence, wants_logits;
};

/* ---- rank 0 ---- */

/** Starts a session of several ranks: all compare their model files and make their parts. Sets
 * session->part, session->model and session->leads. Errors: FORMAT (a rank has a different file),
 * those of a failed rank, of tnd_llama_shard_new and of communicators. */
enum tandem_status tnd_llama_lead(tandem_session *session,
                                  const struct tandem_session_options *options,
                                  struct tandem_error *error);
/** Ends the session on the other ranks. Like the functions below, does nothing for a session of one
 * rank. */
void tnd_llama_lead_end(tandem_session *session);

enum tandem_status tnd_llama_tell_decode(const tandem_session *session,
                                         const struct tandem_batch_entry *entries,
                                         int64_t n_entries, struct tandem_error *error);
enum tandem_status tnd_llama_tell_shift(const tandem_session *session, int32_t sequence,
                                        int64_t keep, int64_t n, struct tandem_error *error);
enum tandem_status tnd_llama_tell_copy(const tandem_session *session, int32_t from, int32_t to,
                                       int64_t n, struct tandem_error *error);
/** A failure is kept by the communicator and returned by the next decode. */
void tnd_llama_tell_rollback(const tandem_session *session, int32_t sequence, int64_t position);

/** Call before tandem_session_state_write collects the other ranks' heads, and before a valid state
 * of {n} bytes is taken over. `status` and `own`: this rank's result so far. If any rank has
 * failed, all return its error and nothing has changed. */
enum tandem_status tnd_llama_tell_state_write(const tandem_session *session,
                                              enum tandem_status status,
                                              const struct tandem_error *own,
                                              struct tandem_error *error);
enum tandem_status tnd_llama_tell_state_read(const tandem_session *session, const void *bytes,
                                             size_t n, struct tandem_error *error);
/** Makes all ranks place their parts by `options`, except for the memory of devices, which applies
 * to rank 0 only. Then they agree on the result (tnd_llama_agree). */
enum tandem_status tnd_llama_tell_place(const tandem_session *session,
                                        const struct tandem_place_options *options,
                                        struct tandem_error *error);
/** Appends ", while `what`" to the message about a lost rank. Returns `status`. */
enum tandem_status tnd_llama_during(enum tandem_status status, const char *what,
                                    struct tandem_error *error);
/** Compares the status of all ranks: the first failure becomes that of all, naming its rank.
 * Collective. */
enum tandem_status tnd_llama_agree(tandem_communicator *communicator, enum tandem_status status,
                                   const struct tandem_error *own, struct tandem_error *error);

/* ---- states on other ranks (state.c) ---- */

/** Sends this rank's heads of all cells to rank 0 if all ranks can. */
enum tandem_status tnd_llama_state_send(const tandem_session *session, struct tandem_error *error);
/** Upper bound of the bytes of a state of this session. */
size_t tnd_llama_state_most(const tandem_session *session);
/** Checks that a state validated by rank 0 has arrived intact. */
enum tandem_status tnd_llama_state_check(const tandem_session *session, const void *bytes, size_t n,
                                         struct tandem_error *error);
/** Restores this rank's heads from it. */
enum tandem_status tnd_llama_state_take(tandem_session *session, const void *bytes, size_t n,
                                        struct tandem_error *error);

/** Whether rank 0 has refused the call for the same reason: then it is no failure of another rank.
 */
bool tnd_llama_is_refusal(enum tandem_status status);
/** Returns UNSUPPORTED_BUILD for a session of several ranks, which `what` does not support. */
enum tandem_status tnd_llama_refuse_ranks(const tandem_session *session, const char *what,
                                          struct tandem_error *error);

#endif
