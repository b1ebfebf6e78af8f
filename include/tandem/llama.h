/* SPDX-License-Identifier: MIT
 * room: llama
 *
 * Sessions of language models (docs/architectures.md lists the architectures): load, decode,
 * logits, sampling, state, chat. A library of its own, libtandem-llama (pkg-config:
 * tandem-llama), made with the other public headers alone. docs/session.md has a program.
 *
 * Order of use: a source (tandem/formats.h) holds the weights, a model finds them, a runtime
 * (tandem/runtime.h) computes, a session keeps the tokens seen so far, a sampler chooses the next
 * one; a chat or a generator does all that for a text. Free in reverse order.
 *
 * Threads: a model is never changed and may be shared by any number of threads, a runtime too; a
 * session, sampler, chat or generator is used by one thread at a time. Functions that fail leave
 * their out-parameters untouched and fill `error`, which may be NULL. Functions that return no
 * status never fail; given NULL where they need an object, they do nothing and return 0, false or
 * NULL, the others ARGUMENT. Structures that begin with
 * `size` are initialised by their _INIT macro; members that are zero have the default. */
#ifndef TANDEM_LLAMA_H
#define TANDEM_LLAMA_H

#include "tandem/chat_template.h"
#include "tandem/communicator.h"
#include "tandem/formats.h"
#include "tandem/runtime.h"
#include "tandem/tokenizer.h"

TANDEM_BEGIN_C

/** Opaque. A model: weights that were found and checked. */
typedef struct tandem_model tandem_model;
/** Opaque. Tokens seen so far as keys and values, and the logits behind them. */
typedef struct tandem_session tandem_session;
/** Opaque. How tokens are chosen. */
typedef struct tandem_sampler tandem_sampler;
/** Opaque. A conversation; a text that is continued. */
typedef struct tandem_chat tandem_chat;
typedef struct tandem_generator tandem_generator;
/** Opaque. A grammar that restricts texts; the tokens of a vocabulary, ordered by their bytes. */
typedef struct tandem_grammar tandem_grammar;
typedef struct tandem_token_trie tandem_token_trie;

/* ---- models ---- */

/** Finds all weights in a source that tandem_source_hparams accepts. Borrows the source, which must
 *  outlive the model. Cost: no weight is copied or read. Errors: those of tandem_source_hparams,
 *  MEMORY. */
TANDEM_API enum tandem_status
tandem_model_new(const tandem_source *source, tandem_model **out_model, struct tandem_error *error);
/** tandem_model_new on a file or folder, which is mapped; the model owns the source that it opens.
 *  (To have it read, not mapped, open a source with tandem_source_open_with.) Errors also: those of
 *  tandem_source_open. */
TANDEM_API enum tandem_status tandem_model_load(const char *path, tandem_model **out_model,
                                                struct tandem_error *error);
/** Sessions of the model must be gone. NULL is allowed. */
TANDEM_API void tandem_model_free(tandem_model *model);
/** Borrowed: lives as long as the model. Any thread. */
TANDEM_API const struct tandem_hparams *tandem_model_hparams(const tandem_model *model);
/** The source of the weights, for its tokenizer and its other values. Borrowed. Any thread. */
TANDEM_API const tandem_source *tandem_model_source(const tandem_model *model);

/* ---- sessions ---- */

/** How the ranks of a session share its work. */
enum tandem_division {
    TANDEM_DIVIDE_ROWS,   /**< each has some heads, rows and experts' rows of every layer */
    TANDEM_DIVIDE_LAYERS, /**< each has some whole layers; ranks form a pipeline */
    /** Batches of `prompt_batch` tokens and more are computed by layers, smaller ones by rows: each
     *  rank has both parts, and keys and values are moved to the rank that needs them next. */
    TANDEM_DIVIDE_MIXED
};
/** Fewest tokens of a micro-batch where ranks divide a model by layers. Each rank reads its weights
 *  once a micro-batch; from this many tokens on, CPUs are limited by arithmetic, not by reading. */
#define TANDEM_MICRO_BATCH_TOKENS 64

struct tandem_session_options {
    size_t size;     /**< sizeof(struct tandem_session_options) */
    int64_t context; /**< positions of a text; 0, or more than the model knows: the model's */
    int64_t n_cells; /**< tokens that the KV cache holds, of all sequences; 0: as many as needed */
    int n_sequences; /**< independent texts at once, 1 to 127; 0: 1 */
    enum tandem_type cache_type; /**< of keys and values: F32, F16, Q8_0 or Q4_0 */
    bool is_unfused;             /**< attention by two products and soft_max, for comparison */
    /** May change the plan of each graph before it is computed, on the thread that decodes; NULL:
     *  plans serve as they are. */
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;   /**< handed to `adjust` */
    bool has_embeddings; /**< keep what tandem_session_embedding gives */
    /** Micro-batches into which a batch is cut where layers lie on several devices
     *  (tandem_session_place), so that the devices work as a pipeline. 0: as many as the timing
     *  table predicts to be fastest; 1: batches stay whole; 2 to 8: exactly this many. */
    int micro_batches;
    /** Ranks that compute the session together (docs/cluster.md), of which this is rank 0 and the
     *  others are in tandem_session_follow: each has a part of the model, as `division` says.
     *  Borrowed; NULL, or one rank alone: this process has all. The runtime computes on the
     *  thread that decodes what ranks exchange. Not yet: drafts, placing weights on devices
     *  (UNSUPPORTED_BUILD); a decode is cancelled between batches, not in one. */
    tandem_communicator *communicator;
    const double *shares; /**< {ranks}: the work of each in proportion; NULL: the same */
    /** How the vectors of a text's tokens become one; NONE: as the model's file says. Encoders take
     *  MEAN, CLS or LAST; decoders always give the last token's vector, rerankers their scores. */
    enum tandem_pooling pooling;
    /** The type of keys and values is chosen of F16, Q8_0 and Q4_0 by memory, error of rounding and
     *  the timing table (tandem_session_cache); `cache_type` does not count. */
    bool is_cache_planned;
    int64_t cache_memory; /**< bytes that planned keys and values may take; 0: no bound */
    /** How ranks divide the model. By layers the results have the bits of one machine that decodes
     *  the same micro-batches in sequence; `micro_batches` 0 then means as many as can have
     *  TANDEM_MICRO_BATCH_TOKENS tokens each, at most 8. */
    enum tandem_division division;
    const double *layer_shares; /**< {ranks}: MIXED: of the layers; NULL: as `shares` */
    int64_t prompt_batch;       /**< of MIXED; 0: 2 * TANDEM_MICRO_BATCH_TOKENS */
    bool has_whole_experts;     /**< by rows: each rank has some experts, whole, not rows of each */
    /** By layers: batches that are computed at the same time, each by other ranks
     *  (tandem_session_batches_in_flight answers this if there are as many texts). 0: as many as
     *  ranks have layers; 1: one after the other; 2 to TANDEM_BATCHES_IN_FLIGHT. */
    int batches_in_flight;
};
#define TANDEM_SESSION_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_session_options), 0, 0, 0, TANDEM_TYPE_F32, false, NULL, NULL, false, \
            0, NULL, NULL, TANDEM_POOLING_NONE, false, 0, TANDEM_DIVIDE_ROWS, NULL, 0, false, 0    \
    }

/** A session without tokens. Borrows model and runtime, which must outlive it; owns its KV cache,
 *  which is reserved at once, 2 * layers * cells * kv_dim values, and takes memory as tokens come:
 *  cells are used from the first one on, and nothing is copied. `options` may be NULL. Several
 *  sessions may share a model and a runtime. Errors: ABI, ARGUMENT, MEMORY; of several ranks also
 *  FORMAT (a rank has another model file; it is named), RANK, UNSUPPORTED_BUILD (a model that
 *  cannot be divided), and what another rank has failed with. */
TANDEM_API enum tandem_status tandem_session_new(const tandem_model *model, tandem_runtime *runtime,
                                                 const struct tandem_session_options *options,
                                                 tandem_session **out_session,
                                                 struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_session_free(tandem_session *session);

/** A type for keys and values, as tandem_session_new compared it. The layout is fixed for good. */
struct tandem_cache_info {
    enum tandem_type type;
    bool is_planned;     /**< the session chose; else the caller did: the only entry */
    bool is_chosen;      /**< the session has it */
    bool fits;           /**< within `cache_memory` */
    int64_t bytes;       /**< of all cells */
    double error;        /**< of rounding normal values: squared errors over squares; 0: F32 */
    double attention_us; /**< predicted, of a token at half of the context; 0: not known */
};
/** Type i of those compared, the most exact one first. False: there are fewer, or NULL. */
TANDEM_API bool tandem_session_cache(const tandem_session *session, int i,
                                     struct tandem_cache_info *out);

/** The main loop of ranks other than 0: repeats each call of rank 0 on its sessions of
 *  `communicator` with this rank's part of the same model, until rank 0 dismisses it. A failure
 *  fails the communicator too: closing it ends the other ranks. Errors: those of sessions, RANK. */
TANDEM_API enum tandem_status tandem_session_follow(const tandem_model *model,
                                                    tandem_runtime *runtime,
                                                    tandem_communicator *communicator,
                                                    struct tandem_error *error);
/** On rank 0, once its sessions are gone: tandem_session_follow returns on the others. Errors:
 *  RANK. */
TANDEM_API enum tandem_status tandem_session_dismiss(tandem_communicator *communicator,
                                                     struct tandem_error *error);

/** Decides which weights of the model the runtime's devices keep (tandem_runtime_place), with room
 *  for the session's keys and values. Context, their type and the experts that a token uses are the
 *  session's own, whatever `options` (may be NULL) says. Later decodes go by it. Errors: ABI,
 *  MEMORY, those of tandem_runtime_place. */
TANDEM_API enum tandem_status tandem_session_place(tandem_session *session,
                                                   const struct tandem_place_options *options,
                                                   struct tandem_error *error);

/** Appends n tokens to sequence 0 and computes the logits behind the last one. At most `batch`
 *  tokens are computed together (0: as many as the KV cache takes). The tokens of an encoder are a
 *  whole text, computed together, for a sequence that is empty. Errors: LIMIT (the context is
 *  full; nothing is appended), ARGUMENT (a token outside of the vocabulary), CANCELLED, those of
 *  tandem_runtime_compute; after these the position is where the last complete batch ended. Cost:
 *  memory is allocated for the largest batch so far and kept. */
TANDEM_API enum tandem_status tandem_session_decode(tandem_session *session, const int32_t *tokens,
                                                    int64_t n, int64_t batch,
                                                    struct tandem_error *error);

/** Tokens that a batch appends to one sequence, at the positions that follow those it has. The
 *  layout is fixed for good. */
struct tandem_batch_entry {
    const int32_t *tokens; /**< {n}, borrowed during the call */
    int64_t n;             /**< 1 or more */
    int32_t sequence;      /**< 0 to n_sequences - 1; at most once in a batch */
    bool wants_logits;     /**< compute the logits behind the last of these tokens */
};
/** Appends to several sequences with one pass through the model. Errors: as tandem_session_decode,
 *  and ARGUMENT for entries that break the rules above; nothing is appended then. */
TANDEM_API enum tandem_status tandem_session_decode_batch(tandem_session *session,
                                                          const struct tandem_batch_entry *entries,
                                                          int64_t n_entries,
                                                          struct tandem_error *error);

/** Batches that may be begun and have not ended. */
enum { TANDEM_BATCHES_IN_FLIGHT = 8 };
/** Begins a batch, whose results come with tandem_session_end_batch: where ranks have the layers,
 *  it returns once this rank has computed its own, so that the ranks compute different batches at
 *  the same time. Elsewhere it is decoded here. Until its end the sequences of a batch are in no
 *  other one, and states are not saved or read (ARGUMENT); other calls may wait for it. Errors: as
 *  tandem_session_decode_batch, and ARGUMENT (a sequence is in a batch that was begun, or
 *  TANDEM_BATCHES_IN_FLIGHT were). */
TANDEM_API enum tandem_status tandem_session_begin_batch(tandem_session *session,
                                                         const struct tandem_batch_entry *entries,
                                                         int64_t n_entries,
                                                         struct tandem_error *error);
/** Ends the batch that was begun first, and has its results. Errors: ARGUMENT (none was begun),
 *  those of tandem_runtime_compute; the batch has ended then, too. */
TANDEM_API enum tandem_status tandem_session_end_batch(tandem_session *session,
                                                       struct tandem_error *error);
/** How many batches should be begun before the first one ends, where this many texts each get a
 *  token at a time; 1: more bring nothing. Never fails. */
TANDEM_API int tandem_session_batches_in_flight(const tandem_session *session, int n_texts);

/** Logits behind the last token of a sequence: `vocabulary` floats, borrowed until the sequence is
 *  next changed. NULL when the last entry of the sequence wanted none, before the first one, where
 *  a device or ranks have chosen a token (tandem_session_sample_with; generators and chats use it),
 *  and for a sequence that does not exist. */
TANDEM_API const float *tandem_session_logits(const tandem_session *session, int32_t sequence);
/** The hidden state of a sequence's last token after the final norm; of an encoder the pooled
 *  vector of the text, or its scores: tandem_session_embedding_size floats, not normalised.
 *  Borrowed as long as the sequence's logits are (encoders have none); also there where a token
 *  was chosen in place of logits. NULL for sessions of decoders without `has_embeddings`, and
 *  behind tandem_session_state_read. */
TANDEM_API const float *tandem_session_embedding(const tandem_session *session, int32_t sequence);
/** `dim` floats; of a reranker as many as it gives scores; 0: there are none. */
TANDEM_API int64_t tandem_session_embedding_size(const tandem_session *session);
/** The next decode of a sequence brings two texts (a question and a document), of which the second
 *  one begins with token `begin`; 0: one text. Encoders with token_types tell them apart; others
 *  ignore it. */
TANDEM_API void tandem_session_set_second(tandem_session *session, int32_t sequence, int64_t begin);
/** Tokens of a sequence so far, which is the position of its next one. 0 for a sequence that does
 *  not exist. */
TANDEM_API int64_t tandem_session_position(const tandem_session *session, int32_t sequence);
/** Most tokens that a sequence can have: the context length. */
TANDEM_API int64_t tandem_session_context(const tandem_session *session);

/** Drops the tokens of a sequence from `position` on (0: all). Returns the position reached: it is
 *  0 where a sliding window has lost what the tokens before `position` would have to see, and the
 *  present one when `position` lies behind it. The logits stay as they are. */
TANDEM_API int64_t tandem_session_rollback(tandem_session *session, int32_t sequence,
                                           int64_t position);
/** Makes the empty sequence `to` begin with the first n tokens of sequence `from`: copies their
 *  keys and values, so that what two texts have in common is decoded once. The next tokens get the
 *  same logits, bit for bit, as if `to` had decoded the n tokens in the same batches (nearly the
 *  same where attention is not fused). It has no logits before. Keys and values that a device keeps
 *  come to the host first. Errors: ARGUMENT (there are no such sequences or tokens, `to` is not
 *  empty), LIMIT (no cells are free), NOT_FOUND (a sliding window has lost what the next token
 *  would have to see), those of tandem_runtime_fetch. */
TANDEM_API enum tandem_status tandem_session_copy(tandem_session *session, int32_t from, int32_t to,
                                                  int64_t n, struct tandem_error *error);
/** Context shift: drops tokens keep .. keep + n - 1 of a sequence and moves those behind them
 *  forward, by rotating their keys; nothing is decoded again. Cannot be cancelled. Errors: ARGUMENT
 *  (there are no such tokens), MEMORY, those of tandem_runtime_compute. */
TANDEM_API enum tandem_status tandem_session_shift(tandem_session *session, int32_t sequence,
                                                   int64_t keep, int64_t n,
                                                   struct tandem_error *error);

/** Speculation: tokens that may follow are drafted and decoded together with the one that the
 *  program decodes; if it then decodes the drafted ones, their logits are there already. */
struct tandem_draft_options {
    size_t size; /**< sizeof(struct tandem_draft_options) */
    /** A session of a smaller model with the same vocabulary, whose likeliest tokens are drafted:
     *  borrowed until drafts are switched off, used by nobody else, with as many sequences as this
     *  one. NULL: the tokens that followed the longest earlier stretch that equals the end of the
     *  text. */
    tandem_session *model;
    int most; /**< tokens of a draft, 1 to 16; 0: 16. Fewer where that is expected to be faster */
    bool is_fixed; /**< never fewer, to measure what drafts bring */
    bool by_heads; /**< by the model's own layer that predicts ahead (nextn), `model` is NULL */
};
#define TANDEM_DRAFT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct tandem_draft_options), NULL, 0, false, false                                 \
    }

/** Statistics of drafts so far. The layout is fixed for good. */
struct tandem_draft_info {
    int64_t tokens;   /**< tokens that the program asked to decode */
    int64_t batches;  /**< that were computed for them */
    int64_t drafted;  /**< tokens that were decoded as drafts */
    int64_t accepted; /**< of these, the ones that the program then decoded */
    int last;         /**< drafted tokens of the last batch */
    bool has_failed;  /**< the draft model failed several times and is no longer used */
};

/** Drafts tokens from now on (options NULL: no more) wherever one token is appended to a sequence
 *  and its logits are wanted. How many follows from the times of batches, which the timing table
 *  predicts and later decodes measure, and from how many were right so far: none where drafts would
 *  cost time, until they would gain again. Every token's logits are the model's own, so that any
 *  sampler chooses as without drafts, up to the rounding of batches of another size. Errors: ABI,
 *  ARGUMENT (another vocabulary, too few sequences), NOT_FOUND (no layer predicts ahead),
 *  MEMORY. */
TANDEM_API enum tandem_status tandem_session_set_draft(tandem_session *session,
                                                       const struct tandem_draft_options *options,
                                                       struct tandem_error *error);
/** Never fails: false, and `out` is untouched, for a session that drafts nothing. */
TANDEM_API bool tandem_session_draft_info(const tandem_session *session,
                                          struct tandem_draft_info *out);

/** Asked between the nodes of later decodes, on any thread of the runtime; true ends the decode
 *  with CANCELLED. NULL: nobody is asked. */
TANDEM_API void tandem_session_set_cancel(tandem_session *session, bool (*cancel)(void *user),
                                          void *user);
/** Told the microseconds of each stage of later decodes, as tandem_compute_options.timed. NULL:
 *  nobody is told. */
TANDEM_API void tandem_session_set_timed(tandem_session *session,
                                         void (*timed)(void *user, const tandem_tensor *node,
                                                       enum tandem_stage stage, double us),
                                         void *user);
/** Runs later decodes on another runtime, which must outlive the session. The one before gives up
 *  what its devices keep of the KV cache. */
TANDEM_API void tandem_session_set_runtime(tandem_session *session, tandem_runtime *runtime);

struct tandem_expected {
    double us, error_us; /**< microseconds, and the standard error */
};

/** The time that a batch of m tokens is expected to take now, from the times of earlier batches of
 *  this session and from the timing table's predictions; the first call makes a few plans.
 *  Never fails: false, and `out` is untouched, while nothing is known. */
TANDEM_API bool tandem_session_expect(tandem_session *session, int64_t m,
                                      struct tandem_expected *out);

/** Builds and plans, but does not compute, the graph that appends m more tokens to sequence 0. The
 *  graph is borrowed until the next decode or plan; the plan is the caller's (tandem_plan_free).
 *  Errors: LIMIT, MEMORY, those of tandem_runtime_plan. */
TANDEM_API enum tandem_status tandem_session_plan(tandem_session *session, int64_t m,
                                                  tandem_graph **out_graph, tandem_plan **out_plan,
                                                  struct tandem_error *error);
/** Writes the plan of every later batch as text. `write` NULL: no more. */
TANDEM_API void tandem_session_print_plans(tandem_session *session, tandem_write_fn write,
                                           void *user);
/** Bytes of graphs and their inputs; and of the KV cache. */
TANDEM_API size_t tandem_session_graph_bytes(const tandem_session *session);
TANDEM_API size_t tandem_session_cache_bytes(const tandem_session *session);

/** How the experts of a model were used by a session, whatever backends ran them. Which are hot,
 *  and worth the memory of a device, follows from `hits`. The layout is fixed for good. */
struct tandem_expert_use {
    int64_t layers, experts; /**< of the model */
    const int64_t *hits; /**< {experts, layers}: how many tokens used each expert; borrowed from the
                              session, whose next decode changes it */
    int64_t batches;     /**< that were computed */
    int64_t tokens;      /**< in all of them */
    int64_t bytes_all;   /**< of the weights of all experts */
    int64_t bytes_last;  /**< of the experts that the last batch used, each counted once */
    int64_t bytes_sum;   /**< `bytes_last`, summed over all batches */
};
/** Never fails: false, and `out` is untouched, for a model without experts. */
TANDEM_API bool tandem_session_expert_use(const tandem_session *session,
                                          struct tandem_expert_use *out);

/** Experts that devices keep apart from others of their layer, the hot ones, after
 *  tandem_session_place: copies of them, which the host has too. The layout is fixed for good. */
struct tandem_hot_experts {
    int64_t n_experts;       /**< of the model, all layers */
    int64_t n_hot;           /**< of them; those of layers that are on a device as a whole do not
                                  count */
    int64_t hot_bytes;       /**< of the copies, in host memory and on devices */
    int64_t cold_bytes_last; /**< of the experts that the last batch used and no device keeps, each
                                  once */
    int64_t cold_bytes_sum;  /**< the same of all batches, added up */
    int64_t n_looks;         /**< at the use of experts, by tandem_session_replan_experts */
    int64_t n_moves;         /**< of them, those after which experts changed places */
    const uint8_t *is_hot;   /**< {experts, layers}: the backend that keeps it apart, 0: none;
                                  borrowed from the session, whose next decode may change it */
};
/** Never fails: false, and `out` is untouched, for a model without experts. */
TANDEM_API bool tandem_session_hot_experts(const tandem_session *session,
                                           struct tandem_hot_experts *out);
/** How batches passed through layers that lie in several places (devices or the CPU). The layout is
 *  fixed for good. */
struct tandem_micro_batches {
    int n_places;      /**< that have weights of layers */
    int n_last;        /**< micro-batches of the last batch; 1: it was whole */
    int64_t n_batches; /**< of two tokens and more, computed with layers in several places */
    int64_t n_split;   /**< of them, those in two micro-batches or more */
};
/** Never fails: false, and `out` is untouched, before the first such batch. */
TANDEM_API bool tandem_session_micro_batches(const tandem_session *session,
                                             struct tandem_micro_batches *out);
/** How often the session looks whether devices should keep other experts, after
 *  tandem_session_place: between two batches, `tokens` tokens after the last change at the least,
 *  and up to 16 times as seldom while nothing changes. 0: never; 512 unless set. Experts move only
 *  where, by the timing table, 2048 tokens save twice the time of the uploads. What is placed
 *  belongs to the runtime: of several sessions on one, one should look. */
TANDEM_API void tandem_session_replan_experts(tandem_session *session, int64_t tokens);

/* ---- states: sessions saved, to continue later without decoding again ---- */

/** Writes keys, values, positions and logits of all sequences to a file, which appears at once when
 *  it is complete and which its user alone may read (tandem_file_write, private). Errors: FILE,
 *  MEMORY, those of tandem_runtime_fetch and of tandem_source_identity. */
TANDEM_API enum tandem_status tandem_session_save(const tandem_session *session, const char *path,
                                                  struct tandem_error *error);
/** Takes over a state that a session of the same model (tandem_source_identity), cache type and
 *  number of sequences has saved. After an error the session is as it was. The file is not trusted:
 *  all of it is checked first. Errors: FILE, MEMORY, FORMAT (also another version and a wrong
 *  checksum), TRUNCATED, LIMIT (more tokens than this session can hold). */
TANDEM_API enum tandem_status tandem_session_load(tandem_session *session, const char *path,
                                                  struct tandem_error *error);
/** The same in memory: the number of bytes, writing them to `out`, and reading them. `name` stands
 *  in messages. Errors: as save and load, but for FILE. */
TANDEM_API size_t tandem_session_state_bytes(const tandem_session *session);
TANDEM_API enum tandem_status tandem_session_state_write(const tandem_session *session, void *out,
                                                         struct tandem_error *error);
TANDEM_API enum tandem_status tandem_session_state_read(tandem_session *session, const void *bytes,
                                                        size_t n, const char *name,
                                                        struct tandem_error *error);

/* ---- samplers ---- */

/** How the next token is chosen from logits, in this order: a penalty for recent tokens (Keskar et
 *  al. 2019); the mask of valid UTF-8; temperature 0 takes the likeliest token, else p =
 *  soft_max(logits / temperature); top-k keeps the k likeliest (Fan et al. 2018); top-p of these
 *  the smallest set with top_p of their probability (Holtzman et al. 2020); min-p of these what has
 *  at least min_p of the likeliest's probability (Nguyen et al. 2024); one is drawn. Of equal
 *  probabilities the lower token comes first. A logit that is NaN or -infinity is not chosen while
 *  another can be; tokens of +infinity share all probability. Zeros switch a step off. */
struct tandem_sampler_options {
    size_t size;          /**< sizeof(struct tandem_sampler_options) */
    int64_t vocabulary;   /**< floats in the logits */
    float temperature;    /**< 0: always the likeliest token */
    float top_p;          /**< share of the probability that is kept; 0 and 1: all */
    float min_p;          /**< share of the largest probability below which tokens are dropped */
    float repeat_penalty; /**< 0 and 1: none; logits above 0 are divided by it, others multiplied */
    int64_t top_k;        /**< tokens that are kept; 0: all */
    int64_t repeat_last;  /**< recent tokens that the penalty concerns; 0: 64 */
    uint64_t seed;        /**< the same seed and logits give the same choices on every machine */
    bool any_bytes;       /**< chats and generators let the text become invalid UTF-8 */
};
#define TANDEM_SAMPLER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_sampler_options), 0, 0, 0, 0, 0, 0, 0, 0, false                       \
    }

/** Copies the options. Errors: ABI, ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_sampler_new(const struct tandem_sampler_options *options,
                                                 tandem_sampler **out_sampler,
                                                 struct tandem_error *error);
/** Restarts a sampler with other options without allocating: accepted tokens are dropped, random
 *  numbers start from the seed. The vocabulary must stay. Errors: as tandem_sampler_new; the
 *  sampler is as it was then. */
TANDEM_API enum tandem_status tandem_sampler_renew(tandem_sampler *sampler,
                                                   const struct tandem_sampler_options *options,
                                                   struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_sampler_free(tandem_sampler *sampler);
/** From now on only tokens are chosen whose bytes keep the output valid UTF-8, as long as there are
 *  any; tokens without text only between characters. Copies what it needs of the tokenizer. Chats
 *  and generators do it unless the sampler has `any_bytes`; who samples without them calls it.
 *  Errors: MEMORY. */
TANDEM_API enum tandem_status tandem_sampler_keep_utf8(tandem_sampler *sampler,
                                                       const tandem_tokenizer *tokenizer,
                                                       struct tandem_error *error);
/** Chooses the next token. `logits`: `vocabulary` floats. Cost: O(vocabulary), no allocation but
 *  for a grammar's. */
TANDEM_API int32_t tandem_sampler_sample(tandem_sampler *sampler, const float *logits);
/** Tells that the next token of a sequence will be chosen by tandem_session_sample with this
 *  sampler, which the next tandem_session_decode, tandem_session_decode_batch or
 *  tandem_session_begin_batch, and no later one, may do where the logits lie, so that they are not
 *  copied: on a device, or among ranks by rows. Logits are NULL then. The sampler must not change
 *  between the two. NULL: logits are wanted. Devices make no choice, and the logits are there, with
 *  penalties, grammars, within a character, with drafts, for sessions with `has_embeddings`, on a
 *  CPU alone, and where a text of the batch that wants logits has no sampler; ranks with a top-k
 *  above 256, with temperature alone, and where what top-p and min-p keep may not be among the 128
 *  likeliest tokens of each rank. Errors: ARGUMENT (no such sequence). */
TANDEM_API enum tandem_status tandem_session_sample_with(tandem_session *session, int32_t sequence,
                                                         tandem_sampler *sampler,
                                                         struct tandem_error *error);
/** Chooses the next token of a sequence: what the decode has chosen with this sampler, or else
 *  tandem_sampler_sample of the sequence's logits: the same token. Once for each decode.
 *  `out_probability` (NULL: not wanted) gets its probability among those that were kept. -1 where
 *  tandem_sampler_sample returns -1, and without logits. */
TANDEM_API int32_t tandem_session_sample(tandem_session *session, int32_t sequence,
                                         tandem_sampler *sampler, float *out_probability);
/** Notes a token that stands in the text, for the penalty; and its bytes for the UTF-8 mask if it
 *  `is_output`, not part of a prompt, behind which the output begins anew. Tokens outside of the
 *  vocabulary are ignored. */
TANDEM_API void tandem_sampler_accept(tandem_sampler *sampler, int32_t token, bool is_output);
/** Drops all noted tokens; the next choice begins a text. The random numbers go on. */
TANDEM_API void tandem_sampler_reset(tandem_sampler *sampler);

/* ---- grammars: only texts of a given form ---- */

enum tandem_grammar_kind {
    TANDEM_GRAMMAR_GBNF,        /**< rules as llama.cpp writes them: docs/grammars.md */
    TANDEM_GRAMMAR_JSON_SCHEMA, /**< a JSON Schema; {"type":"object"} is any object */
    TANDEM_GRAMMAR_REGEX,       /**< a regular expression for the whole text */
    TANDEM_GRAMMAR_CHOICE       /**< a JSON array of strings, of which the text is one */
};
struct tandem_grammar_options {
    size_t size;                   /**< sizeof(struct tandem_grammar_options) */
    enum tandem_grammar_kind kind; /**< of `text` */
    const char *text;              /**< {n} UTF-8 */
    size_t n;
    const char *root;   /**< of GBNF: the first rule; NULL: "root" */
    const char *before; /**< stands in front of the text, NULL: nothing; */
    const char *after;  /**< and behind it */
};
#define TANDEM_GRAMMAR_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_grammar_options), TANDEM_GRAMMAR_GBNF, NULL, 0, NULL, NULL, NULL      \
    }

/** Reads a grammar that nobody need trust: rules, states, nesting and stacks are bounded. It is not
 *  changed any more; any thread may use it. Cost: at most some hundred milliseconds, usually one.
 *  Errors: ABI, ARGUMENT, MEMORY, LIMIT, FORMAT (a fault with its place, a rule that begins with
 *  itself), UNSUPPORTED_BUILD (a keyword or construct, which is named: none is ignored). */
TANDEM_API enum tandem_status tandem_grammar_new(const struct tandem_grammar_options *options,
                                                 tandem_grammar **out_grammar,
                                                 struct tandem_error *error);
/** Samplers must be done with it. NULL is allowed. */
TANDEM_API void tandem_grammar_free(tandem_grammar *grammar);
/** The tokens of a model (`vocabulary`: how many logits it has) in the order of their bytes, for
 *  any number of samplers and threads. `ends` {n_ends, at most 72}, those that end a text
 *  (tandem_chat_ends), are allowed where the grammar lets it end. Copies all that it needs. Errors:
 *  ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_token_trie_new(const tandem_tokenizer *tokenizer,
                                                    int64_t vocabulary, const int32_t *ends,
                                                    size_t n_ends, tandem_token_trie **out_trie,
                                                    struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_token_trie_free(tandem_token_trie *trie);
/** From now on the sampler chooses only tokens that the grammar allows behind the output so far,
 *  which begins behind the last token that was accepted and no output; tandem_sampler_sample
 *  returns -1 where there is none. Borrows both until another grammar is set (NULL: none), or
 *  tandem_sampler_renew. The mask of valid UTF-8 is not needed then. Errors: ARGUMENT (another
 *  vocabulary), MEMORY. */
TANDEM_API enum tandem_status tandem_sampler_set_grammar(tandem_sampler *sampler,
                                                         const tandem_grammar *grammar,
                                                         const tandem_token_trie *trie,
                                                         struct tandem_error *error);
enum tandem_grammar_state {
    TANDEM_GRAMMAR_NONE,     /**< no grammar is set */
    TANDEM_GRAMMAR_OPEN,     /**< something has to follow */
    TANDEM_GRAMMAR_MAY_END,  /**< something may follow */
    TANDEM_GRAMMAR_COMPLETE, /**< nothing may follow */
    TANDEM_GRAMMAR_BROKEN    /**< the output does not match, or in too many ways */
};
/** Whether the output so far is a complete text of the grammar. */
TANDEM_API enum tandem_grammar_state tandem_sampler_grammar_state(const tandem_sampler *sampler);

/* ---- chats ---- */

/** The tokens that end an answer: those that the model file names, else the tokenizer's end token;
 *  the beginning token; and ends of turns that the template (NULL: none) writes. Writes at most
 *  `capacity` of them to `out_ids`; returns how many there are, at most 76. Any thread. */
TANDEM_API size_t tandem_chat_ends(const tandem_chat_template *chat_template,
                                   const tandem_model *model, const tandem_tokenizer *tokenizer,
                                   int32_t *out_ids, size_t capacity);

/** All pointers are borrowed and must outlive the chat. */
struct tandem_chat_options {
    size_t size;                               /**< sizeof(struct tandem_chat_options) */
    tandem_session *session;                   /**< an empty one; the chat is sequence 0 */
    tandem_sampler *sampler;                   /**< borrowed */
    const tandem_tokenizer *tokenizer;         /**< borrowed */
    const tandem_chat_template *chat_template; /**< borrowed; NULL: plain text */
    const char *system;                        /**< what the model is told first; NULL: nothing */
    int64_t max_answer;                        /**< tokens; 0: half of the context */
    bool (*cancel)(void *user); /**< asked between tokens and nodes; NULL: nobody is asked */
    /** Takes the next part of an answer, whole characters; returning false ends the answer. */
    bool (*emit)(void *user, const char *text, size_t n);
    void *user; /**< handed to `emit` */
    /** Further variables of the template, as members of a JSON object without its braces:
     *  "\"enable_thinking\":false"; NULL: none. */
    const char *variables;
};
#define TANDEM_CHAT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_chat_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL,     \
            NULL                                                                                   \
    }

/** Only read: later versions append members. */
struct tandem_chat_info {
    size_t size;        /**< of this structure */
    int64_t n_turns;    /**< questions with their answers */
    int64_t n_shifted;  /**< tokens that context shifts have dropped */
    int64_t n_prompt;   /**< tokens of the last question */
    int64_t n_answer;   /**< tokens of its answer */
    bool was_cancelled; /**< the last answer */
};

/** A conversation. When the context is full, the oldest half behind the system's text is dropped.
 *  Errors: ABI, ARGUMENT (an unknown template), MEMORY. */
TANDEM_API enum tandem_status tandem_chat_new(const struct tandem_chat_options *options,
                                              tandem_chat **out_chat, struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_chat_free(tandem_chat *chat);
/** Decodes what the user says (n bytes of UTF-8; in it special tokens are plain text) and emits the
 *  answer. An answer that is cancelled stays in the conversation as far as it came; that is no
 *  error. Errors: LIMIT (the text does not fit into the context), those of the tokenizer and of
 *  tandem_session_decode. */
TANDEM_API enum tandem_status tandem_chat_say(tandem_chat *chat, const char *text, size_t n,
                                              struct tandem_error *error);
/** Drops the conversation. */
TANDEM_API void tandem_chat_reset(tandem_chat *chat);
/** To be called after tandem_session_load: the next tandem_chat_say continues the restored
 *  conversation. */
TANDEM_API void tandem_chat_resume(tandem_chat *chat);
/** Borrowed: lives as long as the chat. */
TANDEM_API const struct tandem_chat_info *tandem_chat_info(const tandem_chat *chat);

/* ---- generators: a text continued token by token ---- */

/** All pointers are borrowed and must outlive the generator. */
struct tandem_generator_options {
    size_t size;                       /**< sizeof(struct tandem_generator_options) */
    tandem_session *session;           /**< an empty one */
    tandem_sampler *sampler;           /**< borrowed */
    const tandem_tokenizer *tokenizer; /**< borrowed */
    const int32_t *prompt;             /**< {n_prompt}, the beginning token first if there is one */
    int64_t n_prompt;                  /**< at least 1 */
    int64_t steps; /**< positions, counted as llama2.c does, with the beginning token at 0; 0, or
                        more than the context: as many as that */
    int64_t batch; /**< as tandem_session_decode */
};
#define TANDEM_GENERATOR_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(struct tandem_generator_options), NULL, NULL, NULL, NULL, 0, 0, 0                   \
    }

/** Decodes the prompt, as far as the steps go. Errors: ABI, ARGUMENT, MEMORY, those of
 *  tandem_session_decode. */
TANDEM_API enum tandem_status tandem_generator_new(const struct tandem_generator_options *options,
                                                   tandem_generator **out_generator,
                                                   struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_generator_free(tandem_generator *generator);
/** The next part of the text, whole characters, those of the prompt first: writes at most
 *  `capacity` bytes to `out` and their number to `out_n`. `out_more` is false when the text has
 *  ended with this part, which may be empty: the model ended it, or began another one. Errors:
 *  LIMIT (256 bytes suffice), those of tandem_session_decode. */
TANDEM_API enum tandem_status tandem_generator_next(tandem_generator *generator, char *out,
                                                    size_t capacity, size_t *out_n, bool *out_more,
                                                    struct tandem_error *error);

TANDEM_END_C
#endif
