/* SPDX-License-Identifier: MIT
 * Internals of a session, for the files of this room. */
#ifndef TND_LLAMA_SESSION_H
#define TND_LLAMA_SESSION_H

#include "llama/batch_times.h"
#include "llama/best.h"
#include "llama/cache_choice.h"
#include "llama/model.h"
#include "tandem/sample.h"

/** A sequence: one text. */
struct tnd_llama_sequence {
    int64_t n_past;
    float *logits;                  /* {vocabulary}; a copy, since the context is reset */
    float *embedding;               /* {dim}; NULL: the session keeps none */
    bool has_logits, has_embedding; /* encoders never have logits */
    tandem_sampler *sampler; /* chooses the next token after the current decode; NULL: unknown */
    const tandem_sampler *chosen_for; /* `choice`, not logits, is for it; NULL: none */
    struct tandem_sample_choice choice;
    int64_t second;    /* index of the second of two texts in the next decode; 0: there is none */
    bool is_in_flight; /* in a batch that has begun and not ended */
};

/** Memory for the description of a batch. */
struct tnd_llama_batch_memory {
    int64_t capacity;
    int32_t *tokens, *positions, *sequences, *outputs, *types;
};

/** Counts of used experts, llama/expert_use.c; all NULL for models without experts. */
struct tnd_llama_expert_counts {
    tandem_tensor **ids;   /* {layers, micro-batches}, of the current graph */
    int64_t *hits;         /* {experts, layers} */
    int64_t *expert_bytes; /* {layers}: the weights of one expert */
    uint8_t *is_used;      /* {experts}, while a batch is counted */
    int64_t batches, tokens, bytes_all, bytes_last, bytes_sum;
    int64_t cold_bytes_last, cold_bytes_sum; /* of experts that no device keeps */
};

/** Experts that devices keep, llama/hot_experts.c; all NULL for models without experts. */
struct tnd_llama_hot {
    struct tnd_llama_hot_layer *layers; /* {layers} */
    struct tnd_llama_hot_layer *next;   /* {layers}, during a new placement */
    uint8_t *now;              /* {experts, layers}: backend that keeps it separately; 0: none */
    bool *whole;               /* {layers}: a device keeps all experts */
    double *recent;            /* {experts, layers}: tokens, weighted by age */
    double *use;               /* {experts, layers}: shares of tokens, for placing */
    double recent_tokens;      /* in the unit of `recent` */
    int64_t tokens_since;      /* since the last check */
    int64_t period, next_look; /* in tokens; period 0: no checks */
    bool is_placed;
    struct tandem_place_options options; /* of the last tandem_session_place */
    int64_t device_memory[16];           /* memory that `options` points to */
    int64_t n, bytes;                    /* of all layers */
    int64_t n_looks, n_moves;
};

/** What was chosen for batches of one shape. */
struct tnd_llama_micro_choice {
    uint64_t shape; /* hash of tokens, texts, places of the layers; 0: none */
    int64_t cells;  /* rounded up to a power of two; `n` was chosen for it */
    int n;          /* number of micro-batches that is predicted to be fastest */
    enum { TND_LLAMA_MICRO_TRIAL, TND_LLAMA_MICRO_KEPT, TND_LLAMA_MICRO_DROPPED } state;
    struct tnd_batch_time time[2]; /* [0] whole, [1] cut */
    int n_turns;                   /* since the last trial began */
    int n_alone;                   /* uses of the cut batch since something last ran concurrently */
};

/** How batches are cut into micro-batches, llama/micro_batches.c. */
struct tnd_llama_micro {
    int wanted;  /* tandem_session_options.micro_batches */
    bool is_off; /* for the current batch */
    struct tnd_llama_stages stages;
    struct tnd_llama_split split; /* of the current batch */
    struct tnd_llama_micro_choice choices[32];
    struct tnd_llama_micro_choice *choice; /* on trial with the current batch; NULL: none */
    int next;                              /* index of the next choice to replace */
    bool was_at_once;                      /* the last batch's plan ran nodes concurrently */
    int64_t n_batches, n_split;
    int n_last;
};

/** Choosing next tokens within a batch's graph, llama/sampling.c. */
struct tnd_llama_sampling {
    struct tandem_sample_settings *settings; /* {sequences}: of the current batch */
    tandem_context *context;                 /* of the mask */
    tandem_tensor *mask;                     /* tokens that may begin a character; NULL: none yet */
};

/** A batch that has begun, llama/flights.c. */
struct tnd_llama_flight {
    struct tandem_batch_entry *entries; /* {sequences}; `tokens` are no longer valid */
    int64_t n_entries, m;
    bool is_step;                     /* one token for each text */
    bool is_done;                     /* results have been copied to the sequences */
    struct tnd_llama_forward forward; /* without tensors while in flight */
    double begin_us;
};
struct tnd_llama_flights {
    struct tnd_llama_flight list[TANDEM_BATCHES_IN_FLIGHT];
    int n;         /* the oldest come first */
    int wanted;    /* tandem_session_options.batches_in_flight */
    double end_us; /* end of the last batch */
};

struct tnd_llama_draft; /* llama/draft.c */

struct tandem_session {
    const tandem_model *model;
    tandem_model *part;        /* the rank's part that `model` points to: llama/ranks.c */
    tandem_model *prompt_part; /* for batches of `prompt_batch` tokens and more: phases.h; NULL */
    int64_t prompt_batch;
    tandem_communicator *leads; /* on rank 0, which leads the others; NULL: a single rank */
    int64_t number;             /* the session's number in orders */
    tandem_runtime *runtime;
    tandem_context *context; /* of the current graph; reset for each batch */
    struct tnd_llama_kv_cache cache;
    struct tnd_llama_cache_choices cache_choices; /* n is 0: the caller chose */
    int64_t n_positions;                          /* of a text */
    int64_t batch_max;                            /* most tokens per batch for the cache */
    int n_sequences;
    bool has_embeddings;
    enum tandem_pooling pooling; /* of an encoder */
    int64_t n_embedding;         /* floats of an embedding: dim, or scores */
    struct tnd_llama_sequence *sequences;
    struct tnd_llama_batch_memory batch;
    int32_t *deltas;   /* {cells}, during a shift */
    int64_t n_batches; /* computed so far; the cache stores batch numbers */
    int64_t n_on_host; /* of these, batches whose results are surely in host memory */
    bool must_recover; /* keys and values of the other batches were lost with a device */
    struct tnd_llama_expert_counts experts;
    struct tnd_llama_hot hot;
    struct tnd_llama_micro micro;
    struct tnd_llama_sampling sampling;
    struct tnd_llama_best best;
    struct tnd_llama_flights flights;
    bool is_beginning; /* the current batch stops after this rank's layers */
    struct tnd_batch_times times;
    struct tnd_llama_draft *draft; /* NULL: no drafts */
    const float *hidden;           /* {dim, m} of the current batch: tnd_llama_batch.hidden */
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;
    bool (*cancel)(void *user);
    void *cancel_user;
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
    void *timed_user;
    tandem_write_fn print; /* NULL: plans are not printed */
    void *print_user;
};

/** A session over a rank's part of a model, and the part for prompts (NULL: the same). Takes
 * ownership of both, even if it fails. Errors: as tandem_session_new. */
enum tandem_status tnd_llama_session_of_part(tandem_model *part, tandem_model *prompt_part,
                                             tandem_runtime *runtime,
                                             const struct tandem_session_options *options,
                                             tandem_session **out_session,
                                             struct tandem_error *error);

/** Checks that the model generates text; an encoder does not. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_llama_check_writer(const tandem_session *session,
                                          struct tandem_error *error);
/** Fails with MEMORY. */
enum tandem_status tnd_llama_no_memory(struct tandem_error *error);
/** Makes sure that host memory has all keys and values; recomputes those that were lost with a
 * device. */
enum tandem_status tnd_llama_collect(tandem_session *session, struct tandem_error *error);

/** Waits for the results of batches in flight, up to the one with a sequence, or -1: all. They are
 * kept for tandem_session_end_batch. Errors: as tandem_session_end_batch. */
enum tandem_status tnd_llama_flights_finish(tandem_session *session, int32_t sequence,
                                            struct tandem_error *error);
/** Fails with ARGUMENT if a batch has begun and not ended; `what` is not allowed then. */
enum tandem_status tnd_llama_flights_refuse(const tandem_session *session, const char *what,
                                            struct tandem_error *error);
void tnd_llama_flights_fini(struct tnd_llama_flights *flights);

/** Computes a batch. `drafted` (NULL: none): for each entry, how many of its last tokens are
 * drafts; their results go to tnd_llama_draft_results, and the sequence does not advance over them.
 * Errors: those of tandem_session_decode_batch, but entries are not checked. */
enum tandem_status tnd_llama_decode(tandem_session *session,
                                    const struct tandem_batch_entry *entries,
                                    const int64_t *drafted, int64_t n_entries,
                                    struct tandem_error *error);

/** Computes this rank's layers of a batch; tnd_llama_decode_end gets the results. `flight`: an
 * unused one. Errors: as tnd_llama_decode. */
enum tandem_status tnd_llama_decode_begin(tandem_session *session,
                                          const struct tandem_batch_entry *entries,
                                          int64_t n_entries, struct tnd_llama_flight *flight,
                                          struct tandem_error *error);
/** Waits for a batch's results, and copies them to the sequences. Errors: those of
 * tandem_runtime_compute. */
enum tandem_status tnd_llama_decode_end(tandem_session *session, struct tnd_llama_flight *flight,
                                        struct tandem_error *error);
/** Checks entries as tandem_session_decode_batch does, and returns its errors. */
enum tandem_status tnd_llama_check_entries(const tandem_session *session,
                                           const struct tandem_batch_entry *entries,
                                           int64_t n_entries, struct tandem_error *error);

/** Clears the samplers, which are valid for one call only. Returns `status`. */
enum tandem_status tnd_llama_forget_samplers(tandem_session *session, enum tandem_status status);

/** As tnd_llama_decode, for a session with `draft`. */
enum tandem_status tnd_llama_decode_ahead(tandem_session *session,
                                          const struct tandem_batch_entry *entries,
                                          int64_t n_entries, struct tandem_error *error);
/** Whether there are drafts after sequence 0. */
bool tnd_llama_draft_is_ahead(const tandem_session *session);
/** Drops the drafts of a sequence; the second one also marks its text from token n on as unknown.
 * Any session. */
void tnd_llama_draft_drop(tandem_session *session, int32_t sequence);
void tnd_llama_draft_forget(tandem_session *session, int32_t sequence, int64_t n);
/** Memory for the logits of drafted token i of a batch, followed by the embedding if the session
 * keeps one. */
float *tnd_llama_draft_results(const tandem_session *session, int32_t sequence, int64_t i);
void tnd_llama_draft_fini(tandem_session *session);
/** Whether drafts need the states of all decoded tokens; records such a state {dim} at a
 * position. */
bool tnd_llama_draft_wants_hidden(const tandem_session *session);
void tnd_llama_draft_note(tandem_session *session, int32_t sequence, int64_t position,
                          const float *state);

/** Makes the batch choose tokens itself, if devices compute and the samplers of its texts allow
 * it. */
void tnd_llama_sampling_ask(tandem_session *session, const struct tandem_batch_entry *entries,
                            int64_t n_entries, struct tnd_llama_batch *batch);
void tnd_llama_sampling_fini(struct tnd_llama_sampling *sampling);

/** Errors: MEMORY. */
enum tandem_status tnd_llama_micro_init(struct tnd_llama_micro *micro, const tandem_model *model,
                                        struct tandem_error *error);
void tnd_llama_micro_fini(struct tnd_llama_micro *micro);
/** Sets the batch's `split`. Its cells must have been taken. For a shape that was not seen before,
 * builds graphs in the session's context. Errors: those of tnd_llama_forward and of
 * tandem_runtime_predict. */
enum tandem_status tnd_llama_micro_choose(tandem_session *session, struct tnd_llama_batch *batch,
                                          struct tandem_error *error);
/** Records the time of a batch. */
void tnd_llama_micro_note(tandem_session *session, const struct tnd_llama_split *split, double us);

/** Predicts batch times with the runtime's table, once, unless planning would drop existing
 * drafts. */
void tnd_llama_predict_times(tandem_session *session);

/** Does nothing for a model without experts. Errors: MEMORY. */
enum tandem_status tnd_llama_experts_init(struct tnd_llama_expert_counts *counts,
                                          const tandem_model *model, struct tandem_error *error);
void tnd_llama_experts_fini(struct tnd_llama_expert_counts *counts);
/** Call before a batch: clears the expert ids of all layers. */
void tnd_llama_experts_forget(tandem_session *session);
/** Counts the experts of a computed batch. */
void tnd_llama_experts_count(tandem_session *session, const struct tnd_llama_batch *batch);

/** Does nothing for a model without experts. Errors: MEMORY. */
enum tandem_status tnd_llama_hot_init(struct tnd_llama_hot *hot, const tandem_model *model,
                                      struct tandem_error *error);
/** Call after tnd_llama_hot_drop. */
void tnd_llama_hot_fini(struct tnd_llama_hot *hot);
/** Drops all experts that devices keep separately. */
void tnd_llama_hot_drop(tandem_session *session);
/** tandem_place_options.gather: fills `next`. `user` is the session. */
const void *tnd_llama_hot_gather(void *user, int weight, const int32_t *experts, int64_t n,
                                 int backend);
/** Adopts the copies in `next`, or drops them. */
void tnd_llama_hot_take_next(tandem_session *session);
void tnd_llama_hot_drop_next(tandem_session *session);
/** {experts, layers}: share of recent tokens that used each expert; NULL: too few were counted. */
const double *tnd_llama_hot_use(tandem_session *session);
/** Records that m tokens were counted. */
void tnd_llama_hot_count(struct tnd_llama_hot *hot, int64_t m);
/** Call between batches: places experts anew if it is time and pays off. */
void tnd_llama_hot_look(tandem_session *session);
/** As tandem_session_place, with options of this library's size; keeps no reference to them. */
enum tandem_status tnd_llama_place(tandem_session *session,
                                   const struct tandem_place_options *wanted,
                                   struct tandem_error *error);

#endif
