/* SPDX-License-Identifier: MIT
 * The part of a model that a rank computes: a model of its own over the same file. By rows it has
 * some of the heads, of the feed-forward network's rows and of the vocabulary (shard.c); by layers
 * some layers, whole (shard_layers.c). A session may have one of each: phases.h. */
#ifndef TND_LLAMA_SHARD_H
#define TND_LLAMA_SHARD_H

#include "tandem/communicator.h"
#include "tandem/llama.h"

/** Units begin .. end - 1. */
struct tnd_llama_range {
    int64_t begin, end;
};

/** Tells of bytes that are read: `times` runs of `bytes` bytes, one `stride` behind the other. */
typedef void (*tnd_llama_reads_fn)(void *user, const void *data, size_t bytes, size_t stride,
                                   int64_t times);
struct tnd_llama_shard;

/** The user of a message's node. */
struct tnd_llama_peer {
    const struct tnd_llama_shard *shard;
    int rank;
};

/** What a rank has. By rows of all layers: what is empty gives zeros to the sum. By layers all rows
 *  and heads of `layers[rank]`. */
struct tnd_llama_shard {
    tandem_communicator *communicator; /* borrowed */
    int rank, count;
    enum tandem_division division;
    struct tnd_llama_range *layers;  /* {count}: of each rank; empty ones begin behind the last */
    struct tnd_llama_peer *peers;    /* {count} */
    int before, behind;              /* by layers: ranks that states come from and go to; -1: the
                                        embedding; the classifier */
    int last, head;                  /* by layers: ranks of the last layer, and of the classifier */
    bool is_alone;                   /* by rows: rank 0 has all of them, and the others wait */
    struct tnd_llama_range *heads;   /* {count}: of keys and values, of each rank by rows */
    struct tnd_llama_range kv_heads; /* each with the heads of queries that it serves */
    int64_t all_kv_heads;            /* of all ranks together */
    struct tnd_llama_range hidden;   /* of the feed-forward network */
    struct tnd_llama_range expert_hidden;
    struct tnd_llama_range experts; /* of these the rows above */
    struct tnd_llama_range shared_hidden;
    struct tnd_llama_range vocabulary;
    size_t *logit_bytes;       /* {count}: of one token, of each rank */
    int64_t bytes;             /* of weights that are divided: those of this rank */
    int64_t copied_bytes;      /* of them, those that are columns, and so were copied */
    struct tandem_error fault; /* of the first copy that failed */
    tnd_llama_reads_fn tell;   /* what would be copied is told, and left out; NULL: it is copied */
    void *tell_user;
};

/** A model of the shard of communicator's rank, by rows or by layers, over the same source; shares
 *  {count}: how much of the work each rank gets; NULL: the same. `has_whole_experts`: by rows, each
 *  rank has some of them. `whole` outlives it. Errors: ARGUMENT (shares or division),
 *  UNSUPPORTED_BUILD (a model that cannot be divided so), MEMORY. */
enum tandem_status tnd_llama_shard_new(const tandem_model *whole, tandem_communicator *communicator,
                                       enum tandem_division division, bool has_whole_experts,
                                       const double *shares, tandem_model **out_model,
                                       struct tandem_error *error);

/** Bytes of each tensor that ranks compare before a session begins (ranks.c). */
enum { TND_LLAMA_COMPARED = 64 };
/** Tells all bytes of weights that this rank reads in a session of several ranks with these
 *  options, those that are compared among them; none of them is read here. Errors: as
 *  tnd_llama_shard_new. */
enum tandem_status tnd_llama_shard_reads(const tandem_model *whole,
                                         const struct tandem_session_options *options,
                                         tnd_llama_reads_fn tell, void *user,
                                         struct tandem_error *error);

/** NULL is allowed. */
void tnd_llama_shard_free(struct tnd_llama_shard *shard);

/** Whether this rank computes anything of a batch. */
bool tnd_llama_takes_part(const tandem_model *model);
/** Whether a rank has a part of every layer; some layers. Neither: it has all of the model. */
bool tnd_llama_by_rows(const tandem_model *model);
bool tnd_llama_by_layers(const tandem_model *model);
/** Layers that this rank computes. */
struct tnd_llama_range tnd_llama_own_layers(const tandem_model *model);

/* ---- by layers (shard_layers.c) ---- */

/** Fills in who has which layers; shares {count} are right. */
void tnd_llama_find_layers(const tandem_model *whole, const double *shares,
                           struct tnd_llama_shard *shard);
/** Ranks that have layers. */
int tnd_llama_layer_ranks(const struct tnd_llama_shard *shard);
/** Micro-batches of a batch of m tokens, the same on every rank; `wanted`: 0, or this many. */
int tnd_llama_layers_cut(const struct tnd_llama_shard *shard, int64_t m, int wanted);
/** x {n, M} that another rank sends; x to another rank (F32 {1}, without meaning). `io_after`: the
 *  message before it, which it follows in the graph, or any tensor at first; becomes this one. */
tandem_tensor *tnd_llama_receive(const tandem_model *model, tandem_context *context, int rank,
                                 int64_t n, int64_t m, tandem_tensor **io_after);
tandem_tensor *tnd_llama_send(const tandem_model *model, tandem_context *context, int rank,
                              tandem_tensor *x, tandem_tensor **io_after);

/* ---- by rows ---- */

/** y {n, M}, a sum of which each rank has a part, on all ranks. y itself for a model that is whole.
 */
tandem_tensor *tnd_llama_sum_ranks(const tandem_model *model, tandem_context *context,
                                   tandem_tensor *y);
/** {n, m}, which a rank adds that has nothing of a block. */
tandem_tensor *tnd_llama_zeros(tandem_context *context, int64_t n, int64_t m);
/** {n, M} that `fn` makes of y {any, M}: one item, so that one worker, that of the caller, talks to
 *  the other ranks. */
tandem_tensor *tnd_llama_rank_node(tandem_context *context, tandem_tensor *y, int64_t n,
                                   tandem_custom_fn fn, const void *user, const char *name);

#endif
