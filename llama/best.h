/* SPDX-License-Identifier: MIT
 * Choosing a token where each rank has the logits of a part of the vocabulary: ranks tell rank 0
 * their likeliest tokens in place of all logits. */
#ifndef TND_LLAMA_BEST_H
#define TND_LLAMA_BEST_H

#include "llama/shard.h"
#include "tandem/sample.h"

/** A choice that is wanted, and what became of it. */
struct tnd_llama_best_column {
    struct tandem_sample_settings settings;
    int64_t k; /* likeliest tokens that each rank sends; 0: all logits are wanted */
    float penalty;
    const int32_t *recent; /* {n_recent}: tokens whose logits the penalty weakens */
    int64_t n_recent;
    const uint32_t *mask;               /* {(vocabulary + 31) / 32}, bits; NULL: none */
    bool is_chosen;                     /* on all ranks; false: rank 0 has the logits */
    struct tandem_sample_choice choice; /* on rank 0 */
};

/** Choices of the batch in hand. */
struct tnd_llama_best {
    const struct tnd_llama_shard *shard;
    int64_t n;                             /* columns; 0: all logits are wanted */
    struct tnd_llama_best_column *columns; /* {sequences of the session} */
    char *told; /* {n_told} of {told_bytes}: what rank 0 tells of the columns, which point to it */
    size_t n_told, told_bytes;
    uint32_t *mask, *mask_before;           /* the last one that was told; NULL: none */
    struct {                                /* of the node */
        float *row;                         /* logits of this rank, changed */
        void *sample;                       /* of tandem_sample_first and _parts */
        char *mine, *all;                   /* {message}, {ranks, message}: each column's firsts */
        float *largest;                     /* {columns}, {ranks, columns} */
        size_t *bytes;                      /* {ranks} */
        struct tandem_sample_part *parts;   /* {ranks} */
        struct tandem_sample_first *firsts; /* {ranks, most k} */
        size_t n_row, n_sample, n_mine, n_all, n_largest, n_bytes, n_parts, n_firsts; /* bytes */
    } memory;
};

struct tandem_session;

/** On rank 0 of a session by rows: sets what its samplers ask of the batch. Others: nothing.
 *  Errors: MEMORY. */
enum tandem_status tnd_llama_best_ask(struct tandem_session *session,
                                      const struct tandem_batch_entry *entries, int64_t n_entries,
                                      struct tandem_error *error);
/** Takes over what rank 0 tells, {n} bytes, of `n_columns` choices; 0 bytes: none. `told` is
 *  aligned for int32_t, and stays until the batch is decoded. Errors: FORMAT, MEMORY. */
enum tandem_status tnd_llama_best_take(struct tandem_session *session, const void *told, size_t n,
                                       int64_t n_columns, struct tandem_error *error);
/** On rank 0, where the others could not be told what was asked: the next mask is told anew. */
void tnd_llama_best_forget(struct tnd_llama_best *best);
void tnd_llama_best_fini(struct tnd_llama_best *best);

/** Logits {vocabulary, M} on rank 0 of the columns that are not chosen, y {own, M} on each rank.
 *  `best` NULL: of all columns. y itself for a model that is whole. */
tandem_tensor *tnd_llama_gather_logits(const tandem_model *model, tandem_context *context,
                                       struct tnd_llama_best *best, tandem_tensor *y);

#endif
