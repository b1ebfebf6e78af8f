/* SPDX-License-Identifier: MIT
 * The part of a model that a rank computes: a model of its own over the same file, with some of the
 * heads, of the feed-forward network's rows and of the vocabulary. */
#ifndef TND_LLAMA_SHARD_H
#define TND_LLAMA_SHARD_H

#include "tandem/communicator.h"
#include "tandem/llama.h"

/** Units begin .. end - 1. */
struct tnd_llama_range {
    int64_t begin, end;
};

/** What a rank has of all layers. What is empty gives zeros to the sum. */
struct tnd_llama_shard {
    tandem_communicator *communicator; /* borrowed */
    int rank, count;
    struct tnd_llama_range kv_heads; /* each with the heads of queries that it serves */
    int64_t all_kv_heads;            /* of all ranks together */
    struct tnd_llama_range hidden;   /* of the feed-forward network */
    struct tnd_llama_range expert_hidden;
    struct tnd_llama_range shared_hidden;
    struct tnd_llama_range vocabulary;
    size_t *logit_bytes;  /* {count}: of one token, of each rank */
    int64_t bytes;        /* of weights that are divided: those of this rank */
    int64_t copied_bytes; /* of them, those that are columns, and so were copied */
};

/** A model of the shard of communicator's rank, over the same source; shares {count}: how much of
 *  the work each rank gets; NULL: the same. `whole` outlives it. Errors: ARGUMENT (shares),
 *  UNSUPPORTED_BUILD (a model that cannot be divided), MEMORY. */
enum tandem_status tnd_llama_shard_new(const tandem_model *whole, tandem_communicator *communicator,
                                       const double *shares, tandem_model **out_model,
                                       struct tandem_error *error);

/** NULL is allowed. */
void tnd_llama_shard_free(struct tnd_llama_shard *shard);

/** y {n, M}, a sum of which each rank has a part, on all ranks. y itself for a model that is whole.
 */
tandem_tensor *tnd_llama_sum_ranks(const tandem_model *model, tandem_context *context,
                                   tandem_tensor *y);
/** {n, m}, which a rank adds that has nothing of a block. */
tandem_tensor *tnd_llama_zeros(tandem_context *context, int64_t n, int64_t m);
/** Logits {vocabulary, M} of those that each rank has. y itself for a model that is whole. */
tandem_tensor *tnd_llama_gather_logits(const tandem_model *model, tandem_context *context,
                                       tandem_tensor *y);

#endif
