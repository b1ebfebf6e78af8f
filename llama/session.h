/* SPDX-License-Identifier: MIT
 * Inside of a session, for the files of this room. */
#ifndef TND_LLAMA_SESSION_H
#define TND_LLAMA_SESSION_H

#include "llama/batch_times.h"
#include "llama/best.h"
#include "llama/cache_choice.h"
#include "llama/model.h"
#include "tandem/sample.h"

/** One text. */
struct tnd_llama_sequence {
    int64_t n_past;
    float *logits;                  /* {vocabulary}; a copy, since the context is reset */
    float *embedding;               /* {dim}; NULL: the session keeps none */
    bool has_logits, has_embedding; /* encoders never have logits */
    tandem_sampler *sampler; /* that will choose behind the decode in hand; NULL: nobody knows */
    const tandem_sampler *chosen_for; /* whose choice `choice` is, in place of logits; NULL: none */
    struct tandem_sample_choice choice;
    int64_t second;    /* where the second of two texts begins in the next decode; 0: nowhere */
    bool is_in_flight; /* in a batch that was begun and has not ended */
};

/** Memory of what describes a batch. */
struct tnd_llama_batch_memory {
    int64_t capacity;
    int32_t *tokens, *positions, *sequences, *outputs, *types;
};

/** What experts are used, llama/expert_use.c; all NULL for models without any. */
struct tnd_llama_expert_counts {
    tandem_tensor **ids;   /* {layers, micro-batches}, of the graph in hand */
    int64_t *hits;         /* {experts, layers} */
    int64_t *expert_bytes; /* {layers}: the weights of one expert */
    uint8_t *is_used;      /* {experts}, while a batch is counted */
    int64_t batches, tokens, bytes_all, bytes_last, bytes_sum;
    int64_t cold_bytes_last, cold_bytes_sum; /* of experts that no device keeps */
};

/** Which experts devices keep, llama/hot_experts.c; all NULL for models without any. */
struct tnd_llama_hot {
    struct tnd_llama_hot_layer *layers; /* {layers} */
    struct tnd_llama_hot_layer *next;   /* {layers}, while they are placed anew */
    uint8_t *now;              /* {experts, layers}: backend that keeps it apart; 0: none */
    bool *whole;               /* {layers}: a device keeps all experts */
    double *recent;            /* {experts, layers}: tokens, older ones count less */
    double *use;               /* {experts, layers}: shares, for placing */
    double recent_tokens;      /* in the unit of `recent` */
    int64_t tokens_since;      /* the last look */
    int64_t period, next_look; /* tokens; period 0: nobody looks */
    bool is_placed;
    struct tandem_place_options options; /* of the last tandem_session_place */
    int64_t device_memory[16];           /* of those */
    int64_t n, bytes;                    /* of all layers */
    int64_t n_looks, n_moves;
};

/** Batches alike, by what was chosen for them. */
struct tnd_llama_micro_choice {
    uint64_t shape; /* tokens, texts, places of the layers; 0: none */
    int64_t cells;  /* the power of two for which `n` was chosen */
    int n;          /* micro-batches that are predicted to be fastest */
    enum { TND_LLAMA_MICRO_TRIAL, TND_LLAMA_MICRO_KEPT, TND_LLAMA_MICRO_DROPPED } state;
    struct tnd_batch_time time[2]; /* [0] whole, [1] cut */
    int n_turns;                   /* since the last trial began */
    int n_alone;                   /* uses of the cut batch since something ran at once */
};

/** Into how many micro-batches batches are cut, llama/micro_batches.c. */
struct tnd_llama_micro {
    int wanted;  /* tandem_session_options.micro_batches */
    bool is_off; /* for the batch in hand */
    struct tnd_llama_stages stages;
    struct tnd_llama_split split; /* of the batch in hand */
    struct tnd_llama_micro_choice choices[32];
    struct tnd_llama_micro_choice *choice; /* on trial with the batch in hand; NULL: none is */
    int next;                              /* choice to give up */
    bool was_at_once;                      /* the last batch: its plan has an order */
    int64_t n_batches, n_split;
    int n_last;
};

/** Choices of next tokens within a batch, llama/sampling.c. */
struct tnd_llama_sampling {
    struct tandem_sample_settings *settings; /* {sequences}: of the batch in hand */
    tandem_context *context;                 /* of the mask */
    tandem_tensor *mask;                     /* tokens that may begin a character; NULL: none yet */
};

/** A batch that was begun, llama/flights.c. */
struct tnd_llama_flight {
    struct tandem_batch_entry *entries; /* {sequences}; their tokens are gone */
    int64_t n_entries, m;
    bool is_step;                     /* one token for each text */
    bool is_done;                     /* results are with the sequences */
    struct tnd_llama_forward forward; /* without tensors while it is in flight */
    double begin_us;
};
struct tnd_llama_flights {
    struct tnd_llama_flight list[TANDEM_BATCHES_IN_FLIGHT];
    int n;         /* the first ones are the oldest */
    int wanted;    /* tandem_session_options.batches_in_flight */
    double end_us; /* of the last one */
};

struct tnd_llama_draft; /* llama/draft.c */

struct tandem_session {
    const tandem_model *model;
    tandem_model *part;        /* `model`, where a rank has a part of one: llama/ranks.c */
    tandem_model *prompt_part; /* of batches of `prompt_batch` tokens and more: phases.h; NULL */
    int64_t prompt_batch;
    tandem_communicator *leads; /* of rank 0, which tells the others; NULL: nobody follows */
    int64_t number;             /* by which they know the session */
    tandem_runtime *runtime;
    tandem_context *context; /* of the graph in hand: reset for each batch */
    struct tnd_llama_kv_cache cache;
    struct tnd_llama_cache_choices cache_choices; /* n is 0: the caller chose */
    int64_t n_positions;                          /* of a text */
    int64_t batch_max;                            /* tokens that the cache takes at once */
    int n_sequences;
    bool has_embeddings;
    enum tandem_pooling pooling; /* of an encoder */
    int64_t n_embedding;         /* floats of an embedding: dim, or scores */
    struct tnd_llama_sequence *sequences;
    struct tnd_llama_batch_memory batch;
    int32_t *deltas;   /* {cells}, of a shift */
    int64_t n_batches; /* computed so far; the cache knows them by their numbers */
    int64_t n_on_host; /* of these, keys and values reached host memory for sure */
    bool must_recover; /* keys and values of the others are lost with a device */
    struct tnd_llama_expert_counts experts;
    struct tnd_llama_hot hot;
    struct tnd_llama_micro micro;
    struct tnd_llama_sampling sampling;
    struct tnd_llama_best best;
    struct tnd_llama_flights flights;
    bool is_beginning; /* the batch in hand is computed up to this rank's layers */
    struct tnd_batch_times times;
    struct tnd_llama_draft *draft; /* NULL: nothing is drafted */
    const float *hidden;           /* {dim, m} of the batch in hand: tnd_llama_batch.hidden */
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;
    bool (*cancel)(void *user);
    void *cancel_user;
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
    void *timed_user;
    tandem_write_fn print; /* NULL: plans are not printed */
    void *print_user;
};

/** A session over a rank's part of a model, and the one of prompts (NULL: it is the same), which it
 *  owns from now on, also when it fails. Errors: as tandem_session_new. */
enum tandem_status tnd_llama_session_of_part(tandem_model *part, tandem_model *prompt_part,
                                             tandem_runtime *runtime,
                                             const struct tandem_session_options *options,
                                             tandem_session **out_session,
                                             struct tandem_error *error);

/** Checks that the model writes texts: an encoder does not. Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_llama_check_writer(const tandem_session *session,
                                          struct tandem_error *error);
/** MEMORY, said of a session. */
enum tandem_status tnd_llama_no_memory(struct tandem_error *error);
/** Host memory has all keys and values when it returns; those that a device was lost with are
 *  computed again. */
enum tandem_status tnd_llama_collect(tandem_session *session, struct tandem_error *error);

/** Waits for the results of batches in flight: up to that of a sequence, or -1: all. They are kept
 *  for tandem_session_end_batch. Errors: as tandem_session_end_batch. */
enum tandem_status tnd_llama_flights_finish(tandem_session *session, int32_t sequence,
                                            struct tandem_error *error);
/** ARGUMENT where a batch was begun and has not ended; `what` is not for then. */
enum tandem_status tnd_llama_flights_refuse(const tandem_session *session, const char *what,
                                            struct tandem_error *error);
void tnd_llama_flights_fini(struct tnd_llama_flights *flights);

/** Computes a batch. `drafted` (NULL: none): of each entry the last tokens that are drafts, whose
 *  results go to tnd_llama_draft_results, and which the sequence does not have yet. Errors: those
 *  of tandem_session_decode_batch, but entries are not checked. */
enum tandem_status tnd_llama_decode(tandem_session *session,
                                    const struct tandem_batch_entry *entries,
                                    const int64_t *drafted, int64_t n_entries,
                                    struct tandem_error *error);

/** This rank's layers of a batch, whose results are for tnd_llama_decode_end. `flight`: an unused
 *  one. Errors: as tnd_llama_decode. */
enum tandem_status tnd_llama_decode_begin(tandem_session *session,
                                          const struct tandem_batch_entry *entries,
                                          int64_t n_entries, struct tnd_llama_flight *flight,
                                          struct tandem_error *error);
/** Waits for its results, and copies them to the sequences. Errors: those of
 *  tandem_runtime_compute. */
enum tandem_status tnd_llama_decode_end(tandem_session *session, struct tnd_llama_flight *flight,
                                        struct tandem_error *error);
/** Checks entries as tandem_session_decode_batch does, and returns its errors. */
enum tandem_status tnd_llama_check_entries(const tandem_session *session,
                                           const struct tandem_batch_entry *entries,
                                           int64_t n_entries, struct tandem_error *error);

/** Samplers count for one call: none is left. Returns the status. */
enum tandem_status tnd_llama_forget_samplers(tandem_session *session, enum tandem_status status);

/** As tnd_llama_decode, for a session with `draft`. */
enum tandem_status tnd_llama_decode_ahead(tandem_session *session,
                                          const struct tandem_batch_entry *entries,
                                          int64_t n_entries, struct tandem_error *error);
/** Whether something is drafted behind sequence 0. */
bool tnd_llama_draft_is_ahead(const tandem_session *session);
/** Drops what is drafted behind a sequence; the same, and its text from token n on is not known.
 *  For all sessions. */
void tnd_llama_draft_drop(tandem_session *session, int32_t sequence);
void tnd_llama_draft_forget(tandem_session *session, int32_t sequence, int64_t n);
/** Where the logits behind drafted token i of a batch go, and behind them the embedding if the
 *  session keeps one. */
float *tnd_llama_draft_results(const tandem_session *session, int32_t sequence, int64_t i);
void tnd_llama_draft_fini(tandem_session *session);
/** Whether drafts need the state of each token that is decoded, and such a state {dim} at a
 *  position. */
bool tnd_llama_draft_wants_hidden(const tandem_session *session);
void tnd_llama_draft_note(tandem_session *session, int32_t sequence, int64_t position,
                          const float *state);

/** Where the samplers of a batch's texts allow it, and devices compute, the batch chooses. */
void tnd_llama_sampling_ask(tandem_session *session, const struct tandem_batch_entry *entries,
                            int64_t n_entries, struct tnd_llama_batch *batch);
void tnd_llama_sampling_fini(struct tnd_llama_sampling *sampling);

/** Errors: MEMORY. */
enum tandem_status tnd_llama_micro_init(struct tnd_llama_micro *micro, const tandem_model *model,
                                        struct tandem_error *error);
void tnd_llama_micro_fini(struct tnd_llama_micro *micro);
/** Sets the batch's `split`, whose cells are taken. Builds graphs in the session's context where a
 *  batch like it was not seen before. Errors: those of tnd_llama_forward and of
 *  tandem_runtime_predict. */
enum tandem_status tnd_llama_micro_choose(tandem_session *session, struct tnd_llama_batch *batch,
                                          struct tandem_error *error);
/** A batch took so long. */
void tnd_llama_micro_note(tandem_session *session, const struct tnd_llama_split *split, double us);

/** Predicts times of batches by the runtime's table, once, unless something is drafted that
 *  planning would drop. */
void tnd_llama_predict_times(tandem_session *session);

/** For a model without experts nothing is made. Errors: MEMORY. */
enum tandem_status tnd_llama_experts_init(struct tnd_llama_expert_counts *counts,
                                          const tandem_model *model, struct tandem_error *error);
void tnd_llama_experts_fini(struct tnd_llama_expert_counts *counts);
/** Before a batch: no layer has used any expert yet. */
void tnd_llama_experts_forget(tandem_session *session);
/** Counts a batch that was computed. */
void tnd_llama_experts_count(tandem_session *session, const struct tnd_llama_batch *batch);

/** For a model without experts nothing is made. Errors: MEMORY. */
enum tandem_status tnd_llama_hot_init(struct tnd_llama_hot *hot, const tandem_model *model,
                                      struct tandem_error *error);
/** After tnd_llama_hot_drop. */
void tnd_llama_hot_fini(struct tnd_llama_hot *hot);
/** No device keeps experts apart any more. */
void tnd_llama_hot_drop(tandem_session *session);
/** tandem_place_options.gather: fills `next`. `user` is the session. */
const void *tnd_llama_hot_gather(void *user, int weight, const int32_t *experts, int64_t n,
                                 int backend);
/** What was gathered counts, or does not. */
void tnd_llama_hot_take_next(tandem_session *session);
void tnd_llama_hot_drop_next(tandem_session *session);
/** {experts, layers}: share of recent tokens that used each expert; NULL: too few were counted. */
const double *tnd_llama_hot_use(tandem_session *session);
/** Notes that m tokens were counted. */
void tnd_llama_hot_count(struct tnd_llama_hot *hot, int64_t m);
/** Between two batches: places experts anew where it is time and where that pays. */
void tnd_llama_hot_look(tandem_session *session);
/** As tandem_session_place, with options of this library's size; nothing is kept of them. */
enum tandem_status tnd_llama_place(tandem_session *session,
                                   const struct tandem_place_options *wanted,
                                   struct tandem_error *error);

#endif
