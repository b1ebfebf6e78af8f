/* SPDX-License-Identifier: MIT
 * The part of a model that one rank computes: a model over the same file. Divided by rows, it has
 * some of the heads, of the feed-forward network's rows and of the vocabulary (shard.c); divided by
 * layers, some whole layers (shard_layers.c). A session may have one of each: phases.h. */
#ifndef TND_LLAMA_SHARD_H
#define TND_LLAMA_SHARD_H

#include "tandem/communicator.h"
#include "tandem/llama.h"

/** Units begin .. end - 1. */
struct tnd_llama_range {
    int64_t begin, end;
};

/** Receives a range of bytes that will be read: `times` runs of `bytes` bytes, `stride` bytes
 * apart. */
typedef void (*tnd_llama_reads_fn)(void *user, const void *data, size_t bytes, size_t stride,
                                   int64_t times);
struct tnd_llama_shard;

/** `user` of a message's node. */
struct tnd_llama_peer {
    const struct tnd_llama_shard *shard;
    int rank;
};

/** A rank's part of a model. Divided by rows: a part of each layer; an empty part adds zeros to the
 * sum. Divided by layers: all rows and heads of `layers[rank]`. */
struct tnd_llama_shard {
    tandem_communicator *communicator; /* borrowed */
    int rank, count;
    enum tandem_division division;
    struct tnd_llama_range
        *layers; /* {count}: of each rank; empty ranges begin after the last layer */
    struct tnd_llama_peer *peers; /* {count} */
    int before, behind; /* by layers: ranks that states are received from and sent to; -1: none */
    int last, head;     /* by layers: ranks of the last layer, and of the classifier */
    bool is_alone;      /* by rows: rank 0 has all rows, and the others wait */
    struct tnd_llama_range *heads;   /* {count}: by rows, each rank's heads of keys and values */
    struct tnd_llama_range kv_heads; /* this rank's, each with the heads of queries that share it */
    int64_t all_kv_heads;            /* on all ranks together */
    struct tnd_llama_range hidden;   /* of the feed-forward network */
    struct tnd_llama_range expert_hidden;
    struct tnd_llama_range experts; /* this rank's; of each, the rows expert_hidden */
    struct tnd_llama_range shared_hidden;
    struct tnd_llama_range vocabulary;
    size_t *logit_bytes;       /* {count}: bytes of a token's logits on each rank */
    int64_t bytes;             /* divided weights of this rank */
    int64_t copied_bytes;      /* part of `bytes` copied because divided by columns */
    struct tandem_error fault; /* from the first copy that failed */
    tnd_llama_reads_fn tell;   /* if set, called instead of copying */
    void *tell_user;
};

/** Makes a model of this rank's part, divided by rows or by layers, over the same source. shares
 * {count}: each rank's part of the work; NULL: equal. `has_whole_experts`: when dividing by rows,
 * each rank has some experts instead of some rows of each. `whole` must outlive it. Errors:
 * ARGUMENT (shares or division), UNSUPPORTED_BUILD (the model cannot be divided like this), MEMORY.
 */
enum tandem_status tnd_llama_shard_new(const tandem_model *whole, tandem_communicator *communicator,
                                       enum tandem_division division, bool has_whole_experts,
                                       const double *shares, tandem_model **out_model,
                                       struct tandem_error *error);

/** Bytes of each tensor that ranks compare before a session starts (ranks.c). */
enum { TND_LLAMA_COMPARED = 64 };
/** Reports all bytes of weights that this rank reads in a session of several ranks with these
 * options, including those compared; reads none of them. Errors: as tnd_llama_shard_new. */
enum tandem_status tnd_llama_shard_reads(const tandem_model *whole,
                                         const struct tandem_session_options *options,
                                         tnd_llama_reads_fn tell, void *user,
                                         struct tandem_error *error);

/** NULL is allowed. */
void tnd_llama_shard_free(struct tnd_llama_shard *shard);

/** Whether this rank takes part in computing a batch. */
bool tnd_llama_takes_part(const tandem_model *model);
/** Whether a rank has a part of every layer, or some whole layers; neither is true of an undivided
 * model. */
bool tnd_llama_by_rows(const tandem_model *model);
bool tnd_llama_by_layers(const tandem_model *model);
/** Layers that this rank computes. */
struct tnd_llama_range tnd_llama_own_layers(const tandem_model *model);

/* ---- by layers (shard_layers.c) ---- */

/** Assigns layers to ranks. `shares` {count} must be valid. */
void tnd_llama_find_layers(const tandem_model *whole, const double *shares,
                           struct tnd_llama_shard *shard);
/** Number of ranks that have layers. */
int tnd_llama_layer_ranks(const struct tnd_llama_shard *shard);
/** Number of micro-batches of a batch of m tokens, the same on every rank. `wanted`: the number, or
 * 0 to choose it. */
int tnd_llama_layers_cut(const struct tnd_llama_shard *shard, int64_t m, int wanted);
/** Nodes that receive x {n, M} from another rank, and send x to one (their result, F32 {1}, is
 * unused). `io_after`: the node of the previous message, which this one follows in the graph
 * (initially any tensor); set to this node. */
tandem_tensor *tnd_llama_receive(const tandem_model *model, tandem_context *context, int rank,
                                 int64_t n, int64_t m, tandem_tensor **io_after);
tandem_tensor *tnd_llama_send(const tandem_model *model, tandem_context *context, int rank,
                              tandem_tensor *x, tandem_tensor **io_after);

/* ---- by rows ---- */

/** Node that sums y {n, M} over all ranks; returns y if the model is not divided by rows. */
tandem_tensor *tnd_llama_sum_ranks(const tandem_model *model, tandem_context *context,
                                   tandem_tensor *y);
/** Zeros {n, m}: the summand of a rank that has no part of a block. */
tandem_tensor *tnd_llama_zeros(tandem_context *context, int64_t n, int64_t m);
/** Node {n, M} computed by `fn` from y {any, M}. It is a single item, so that only the caller's
 * thread communicates. */
tandem_tensor *tnd_llama_rank_node(tandem_context *context, tandem_tensor *y, int64_t n,
                                   tandem_custom_fn fn, const void *user, const char *name);

#endif
