/* SPDX-License-Identifier: MIT
 * Rank 0 leads: what it does with a session it tells the other ranks, which follow. */
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

/** What rank 0 tells; `bytes` more follow. Ranks have the same byte order and version. */
struct tnd_llama_order {
    int64_t command, session, n[3], bytes;
};

/** Behind NEW, before shares {count}, and those of layers {count}. */
struct tnd_llama_new_session {
    int64_t context, n_cells, n_sequences, cache_type, is_unfused, has_embeddings, division,
        micro_batches, prompt_batch, has_whole_experts;
};

/** Behind DECODE, of each entry, before the tokens of all and what is told of choices (best.h). */
struct tnd_llama_told_entry {
    int64_t n, sequence, wants_logits;
};

/* ---- rank 0 ---- */

/** Begins a session of several ranks: all compare the model's file, and make their parts of it.
 *  Sets session->part, session->model and session->leads. Errors: FORMAT (a rank has another
 *  file), those of a rank that has failed, of tnd_llama_shard_new and of communicators. */
enum tandem_status tnd_llama_lead(tandem_session *session,
                                  const struct tandem_session_options *options,
                                  struct tandem_error *error);
/** Tells that the session is done with. For all sessions, as those below. */
void tnd_llama_lead_end(tandem_session *session);

enum tandem_status tnd_llama_tell_decode(const tandem_session *session,
                                         const struct tandem_batch_entry *entries,
                                         int64_t n_entries, struct tandem_error *error);
enum tandem_status tnd_llama_tell_shift(const tandem_session *session, int32_t sequence,
                                        int64_t keep, int64_t n, struct tandem_error *error);
enum tandem_status tnd_llama_tell_copy(const tandem_session *session, int32_t from, int32_t to,
                                       int64_t n, struct tandem_error *error);
/** (A failure stays with the communicator, and is the next decode's.) */
void tnd_llama_tell_rollback(const tandem_session *session, int32_t sequence, int64_t position);

/** Before tandem_session_state_write asks the others for their heads, and before a state that is
 *  good, {n} bytes, is taken over. `status` and `own` are what this rank has come to: where one of
 *  the ranks cannot go on, all fail as that one does, and nothing has changed. */
enum tandem_status tnd_llama_tell_state_write(const tandem_session *session,
                                              enum tandem_status status,
                                              const struct tandem_error *own,
                                              struct tandem_error *error);
enum tandem_status tnd_llama_tell_state_read(const tandem_session *session, const void *bytes,
                                             size_t n, struct tandem_error *error);
/** Tells all ranks to place their parts, as `options` say but for the memory of devices, which is
 *  that of rank 0. They agree on the outcome then (tnd_llama_agree). */
enum tandem_status tnd_llama_tell_place(const tandem_session *session,
                                        const struct tandem_place_options *options,
                                        struct tandem_error *error);
/** Adds to the message of a rank that is lost, ", while `what`". Returns the status. */
enum tandem_status tnd_llama_during(enum tandem_status status, const char *what,
                                    struct tandem_error *error);
/** Whether all ranks have come so far: the first failure is that of all, with its rank. Collective.
 */
enum tandem_status tnd_llama_agree(tandem_communicator *communicator, enum tandem_status status,
                                   const struct tandem_error *own, struct tandem_error *error);

/* ---- of another rank (state.c) ---- */

/** Sends this rank's heads of all cells to rank 0, which collects them, if all ranks can. */
enum tandem_status tnd_llama_state_send(const tandem_session *session, struct tandem_error *error);
/** The most bytes that a state of this session may have. */
size_t tnd_llama_state_most(const tandem_session *session);
/** Whether a state that rank 0 has checked has come as it was sent. */
enum tandem_status tnd_llama_state_check(const tandem_session *session, const void *bytes, size_t n,
                                         struct tandem_error *error);
/** Takes over this rank's heads of it. */
enum tandem_status tnd_llama_state_take(tandem_session *session, const void *bytes, size_t n,
                                        struct tandem_error *error);

/** A call that rank 0 has refused for the same reason is no failure of another rank. */
bool tnd_llama_is_refusal(enum tandem_status status);
/** UNSUPPORTED_BUILD for a session of several ranks, which `what` is not for. */
enum tandem_status tnd_llama_refuse_ranks(const tandem_session *session, const char *what,
                                          struct tandem_error *error);

#endif
