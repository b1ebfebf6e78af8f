/* SPDX-License-Identifier: MIT
 * Choosing a token when each rank has the logits of a part of the vocabulary: ranks send rank 0
 * their likeliest tokens instead of all logits. */
#ifndef TND_LLAMA_BEST_H
#define TND_LLAMA_BEST_H

#include "llama/shard.h"
#include "tandem/sample.h"

/** A requested choice, and its result. */
struct tnd_llama_best_column {
    struct tandem_sample_settings settings;
    int64_t k; /* likeliest tokens that each rank sends; 0: all logits are wanted */
    float penalty;
    const int32_t *recent; /* {n_recent}: tokens to which the penalty applies */
    int64_t n_recent;
    const uint32_t *mask;               /* {(vocabulary + 31) / 32}, bits; NULL: none */
    bool is_chosen;                     /* the same on all ranks; false: rank 0 has all logits */
    struct tandem_sample_choice choice; /* on rank 0 */
};

/** The choices of the current batch. */
struct tnd_llama_best {
    const struct tnd_llama_shard *shard;
    int64_t n;                             /* columns; 0: all logits are wanted */
    struct tnd_llama_best_column *columns; /* {sequences of the session} */
    char *told; /* {n_told} of {told_bytes}: rank 0's requests; columns point into it */
    size_t n_told, told_bytes;
    uint32_t *mask, *mask_before;           /* the last ones that were sent; NULL: none */
    struct {                                /* memory of the node */
        float *row;                         /* this rank's logits after the penalty */
        void *sample;                       /* scratch memory of tandem_sample_first and _parts */
        char *mine, *all;                   /* {message}, {ranks, message}: all candidates */
        float *largest;                     /* {columns}, {ranks, columns} */
        size_t *bytes;                      /* {ranks} */
        struct tandem_sample_part *parts;   /* {ranks} */
        struct tandem_sample_first *firsts; /* {ranks, most k} */
        size_t n_row, n_sample, n_mine, n_all, n_largest, n_bytes, n_parts, n_firsts; /* bytes */
    } memory;
};

struct tandem_session;

/** On rank 0 of a session by rows: collects the requests of its samplers for the batch. Else does
 * nothing. Errors: MEMORY. */
enum tandem_status tnd_llama_best_ask(struct tandem_session *session,
                                      const struct tandem_batch_entry *entries, int64_t n_entries,
                                      struct tandem_error *error);
/** On the other ranks: reads rank 0's requests, {n} bytes, for `n_columns` choices; 0 bytes: none.
 * `told` is aligned for int32_t, and must live until the batch is decoded. Errors: FORMAT,
 * MEMORY. */
enum tandem_status tnd_llama_best_take(struct tandem_session *session, const void *told, size_t n,
                                       int64_t n_columns, struct tandem_error *error);
/** On rank 0 after a request could not be sent: the next mask is sent in full. */
void tnd_llama_best_forget(struct tnd_llama_best *best);
void tnd_llama_best_fini(struct tnd_llama_best *best);

/** On rank 0: logits {vocabulary, M} of the columns that are not chosen, gathered from y {own, M}
 * of each rank. `best` NULL: of all columns. For a model that is not divided: y itself. */
tandem_tensor *tnd_llama_gather_logits(const tandem_model *model, tandem_context *context,
                                       struct tnd_llama_best *best, tandem_tensor *y);

#endif
