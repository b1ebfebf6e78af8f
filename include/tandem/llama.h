/* SPDX-License-Identifier: MIT
 * room: llama
 *
 * Sessions of language models (docs/architectures.md lists the architectures): load, decode,
 * logits, sampling, state, chat. A separate library, libtandem-llama (pkg-config: tandem-llama),
 * which uses only the other public headers. docs/session.md has an example.
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
/** Opaque. Tokens seen so far, as keys and values, and the logits after them. */
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
    TANDEM_DIVIDE_ROWS,   /**< each has some heads, rows and rows of experts of every layer */
    TANDEM_DIVIDE_LAYERS, /**< each has some whole layers; the ranks form a pipeline */
    /** Batches of at least `prompt_batch` tokens are divided by layers, smaller ones by rows: each
     * rank has both parts, and keys and values are moved to the rank that needs them next. */
    TANDEM_DIVIDE_MIXED
};
/** Minimum tokens of a micro-batch when ranks divide a model by layers. Each rank reads its weights
 * once per micro-batch; from this many tokens on, CPUs are limited by arithmetic, not by
 * reading. */
#define TANDEM_MICRO_BATCH_TOKENS 64

struct tandem_session_options {
    size_t size;     /**< sizeof(struct tandem_session_options) */
    int64_t context; /**< positions of a text; 0, or more than the model supports: its context */
    int64_t n_cells; /**< tokens that the KV cache holds, of all sequences; 0: as needed */
    int n_sequences; /**< independent texts at once, 1 to 127; 0: 1 */
    enum tandem_type cache_type; /**< of keys and values: F32, F16, Q8_0 or Q4_0 */
    bool is_unfused;             /**< attention by two products and soft_max, for comparison */
    /** May change the plan of each graph before it is computed, on the thread that decodes; NULL:
     * plans are used as they are. */
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;   /**< passed to `adjust` */
    bool has_embeddings; /**< keep embeddings for tandem_session_embedding */
    /** Number of micro-batches into which a batch is split when layers lie on several devices
     * (tandem_session_place), so that the devices work as a pipeline. 0: as many as the timing
     * table predicts to be fastest; 1: batches stay whole; 2 to 8: exactly this many. */
    int micro_batches;
    /** Ranks that compute the session together (docs/cluster.md), of which this is rank 0 and the
     * others are in tandem_session_follow: each has a part of the model, as `division` says.
     * Borrowed; NULL, or a single rank: this process has the whole model. Nodes that exchange data
     * between ranks run on the thread that decodes. Not yet supported: drafts, placing weights on
     * devices (UNSUPPORTED_BUILD); a decode is cancelled only between batches. */
    tandem_communicator *communicator;
    const double *shares; /**< {ranks}: relative shares of the work; NULL: equal */
    /** How a text's token embeddings are combined; NONE: as the model's file says. Encoders take
     * MEAN, CLS or LAST; decoders always return the last token's embedding, rerankers their
     * scores. */
    enum tandem_pooling pooling;
    /** Chooses the type of keys and values among F16, Q8_0 and Q4_0 by memory, rounding error and
     * the timing table (tandem_session_cache); `cache_type` is ignored. */
    bool is_cache_planned;
    int64_t cache_memory; /**< limit of bytes for planned keys and values; 0: none */
    /** How ranks divide the model. By layers, results are bit-identical to those of one machine
     * that decodes the same micro-batches in sequence; `micro_batches` 0 then means as many as can
     * have TANDEM_MICRO_BATCH_TOKENS tokens each, at most 8. */
    enum tandem_division division;
    const double *layer_shares; /**< {ranks}: for MIXED: shares of layers; NULL: as `shares` */
    int64_t prompt_batch;       /**< for MIXED; 0: 2 * TANDEM_MICRO_BATCH_TOKENS */
    bool has_whole_experts;     /**< by rows: each rank has some whole experts, not rows of each */
    /** By layers: number of batches in flight, each on other ranks
     * (tandem_session_batches_in_flight returns this if there are as many texts). 0: as many as
     * ranks have layers; 1: one after the other; 2 to TANDEM_BATCHES_IN_FLIGHT. */
    int batches_in_flight;
};
#define TANDEM_SESSION_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_session_options), 0, 0, 0, TANDEM_TYPE_F32, false, NULL, NULL, false, \
            0, NULL, NULL, TANDEM_POOLING_NONE, false, 0, TANDEM_DIVIDE_ROWS, NULL, 0, false, 0    \
    }

/** A session without tokens. Borrows model and runtime, which must outlive it; owns its KV cache,
 * whose addresses are reserved at once, 2 * layers * cells * kv_dim values, while memory is used as
 * tokens arrive: cells are filled from the first one on, and nothing is copied. `options` may be
 * NULL. Several sessions may share a model and a runtime. Errors: ABI, ARGUMENT, MEMORY; of several
 * ranks also FORMAT (a rank has another model file; it is named), RANK, UNSUPPORTED_BUILD (a model
 * that cannot be divided), and the failure of another rank. */
TANDEM_API enum tandem_status tandem_session_new(const tandem_model *model, tandem_runtime *runtime,
                                                 const struct tandem_session_options *options,
                                                 tandem_session **out_session,
                                                 struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_session_free(tandem_session *session);

/** A type for keys and values, as tandem_session_new compared it. The layout is fixed for good. */
struct tandem_cache_info {
    enum tandem_type type;
    bool is_planned;     /**< the session chose; else the caller did, and this is the only entry */
    bool is_chosen;      /**< used by the session */
    bool fits;           /**< within `cache_memory` */
    int64_t bytes;       /**< of all cells */
    double error;        /**< rounding error for normal values: squared errors over squares; 0:
                          * F32 */
    double attention_us; /**< predicted, for a token at half of the context; 0: unknown */
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
/** Call on rank 0, after freeing its sessions: tandem_session_follow returns on the others. Errors:
 * RANK. */
TANDEM_API enum tandem_status tandem_session_dismiss(tandem_communicator *communicator,
                                                     struct tandem_error *error);

/** Decides which weights of the model the runtime's devices keep (tandem_runtime_place), with room
 * for the session's keys and values. Context, their type and the experts that a token uses are the
 * session's own, whatever `options` (may be NULL) says. Later decodes use it. Errors: ABI, MEMORY,
 * those of tandem_runtime_place. */
TANDEM_API enum tandem_status tandem_session_place(tandem_session *session,
                                                   const struct tandem_place_options *options,
                                                   struct tandem_error *error);

/** Appends n tokens to sequence 0 and computes the logits after the last one. At most `batch`
 * tokens are computed together (0: as many as the KV cache takes). The tokens of an encoder are a
 * whole text, computed together, for a sequence that is empty. Errors: LIMIT (the context is full;
 * nothing is appended), ARGUMENT (a token outside of the vocabulary), CANCELLED, those of
 * tandem_runtime_compute; after these, the position is at the end of the last complete batch. Cost:
 * memory is allocated for the largest batch so far and kept. */
TANDEM_API enum tandem_status tandem_session_decode(tandem_session *session, const int32_t *tokens,
                                                    int64_t n, int64_t batch,
                                                    struct tandem_error *error);

/** Tokens that a batch appends to one sequence, at the positions that follow those it has. The
 *  layout is fixed for good. */
struct tandem_batch_entry {
    const int32_t *tokens; /**< {n}, borrowed during the call */
    int64_t n;             /**< 1 or more */
    int32_t sequence;      /**< 0 to n_sequences - 1; at most once in a batch */
    bool wants_logits;     /**< compute the logits after the last of these tokens */
};
/** Appends to several sequences in one pass through the model. Errors: as tandem_session_decode,
 * and ARGUMENT for entries that break the rules above; nothing is appended then. */
TANDEM_API enum tandem_status tandem_session_decode_batch(tandem_session *session,
                                                          const struct tandem_batch_entry *entries,
                                                          int64_t n_entries,
                                                          struct tandem_error *error);

/** Maximum number of batches in flight. */
enum { TANDEM_BATCHES_IN_FLIGHT = 8 };
/** Begins a batch, whose results come with tandem_session_end_batch: if ranks divide the layers, it
 * returns once this rank has computed its own layers, so that the ranks compute different batches
 * at the same time. Otherwise the batch is decoded here. Until its end, the sequences of a batch
 * may be in no other one, and states cannot be saved or loaded (ARGUMENT); other calls may wait for
 * it. Errors: as tandem_session_decode_batch, and ARGUMENT (a sequence is in a batch in flight, or
 * TANDEM_BATCHES_IN_FLIGHT batches are). */
TANDEM_API enum tandem_status tandem_session_begin_batch(tandem_session *session,
                                                         const struct tandem_batch_entry *entries,
                                                         int64_t n_entries,
                                                         struct tandem_error *error);
/** Ends the oldest batch in flight and makes its results available. Errors: ARGUMENT (none was
 * begun), those of tandem_runtime_compute; the batch has ended then, too. */
TANDEM_API enum tandem_status tandem_session_end_batch(tandem_session *session,
                                                       struct tandem_error *error);
/** How many batches should be in flight when this many texts each get one token at a time; 1: more
 * do not help. Never fails. */
TANDEM_API int tandem_session_batches_in_flight(const tandem_session *session, int n_texts);

/** Logits after the last token of a sequence: `vocabulary` floats, borrowed until the sequence
 * changes. NULL if the sequence's last entry did not want them, before the first entry, if a device
 * or ranks have chosen a token (tandem_session_sample_with; generators and chats use it), and for
 * an unknown sequence. */
TANDEM_API const float *tandem_session_logits(const tandem_session *session, int32_t sequence);
/** The hidden state of a sequence's last token after the final norm; of an encoder the pooled
 * vector of the text, or its scores: tandem_session_embedding_size floats, not normalised. Borrowed
 * like the sequence's logits (encoders have none); also available if a token was chosen instead of
 * computing logits. NULL for sessions of decoders without `has_embeddings`, and after
 * tandem_session_state_read. */
TANDEM_API const float *tandem_session_embedding(const tandem_session *session, int32_t sequence);
/** `dim`; for a reranker, its number of scores; 0: there are no embeddings. */
TANDEM_API int64_t tandem_session_embedding_size(const tandem_session *session);
/** Announces that the next decode of a sequence has two texts (a question and a document), the
 * second of which begins with token `begin`; 0: one text. Encoders with token_types distinguish
 * them; others ignore it. */
TANDEM_API void tandem_session_set_second(tandem_session *session, int32_t sequence, int64_t begin);
/** Number of tokens in a sequence, which is the position of its next one. 0 for an unknown
 * sequence. */
TANDEM_API int64_t tandem_session_position(const tandem_session *session, int32_t sequence);
/** Maximum number of tokens of a sequence: the context length. */
TANDEM_API int64_t tandem_session_context(const tandem_session *session);

/** Drops the tokens of a sequence from `position` on (0: all). Returns the position reached: 0 if a
 * sliding window has dropped what the tokens before `position` would have to see, and the current
 * one if `position` is beyond it. The logits stay as they are. */
TANDEM_API int64_t tandem_session_rollback(tandem_session *session, int32_t sequence,
                                           int64_t position);
/** Makes the empty sequence `to` begin with the first n tokens of sequence `from`: copies their
 * keys and values, so that a common prefix is decoded only once. The next tokens get the same
 * logits, bit for bit, as if `to` had decoded the n tokens in the same batches (nearly the same if
 * attention is not fused). It has no logits until then. Keys and values on a device are fetched to
 * the host first. Errors: ARGUMENT (there are no such sequences or tokens, `to` is not empty),
 * LIMIT (no cells are free), NOT_FOUND (a sliding window has lost what the next token would have to
 * see), those of tandem_runtime_fetch. */
TANDEM_API enum tandem_status tandem_session_copy(tandem_session *session, int32_t from, int32_t to,
                                                  int64_t n, struct tandem_error *error);
/** Context shift: drops tokens keep .. keep + n - 1 of a sequence and moves those after them
 * forward, by rotating their keys; nothing is decoded again. Cannot be cancelled. Errors: ARGUMENT
 * (there are no such tokens), MEMORY, those of tandem_runtime_compute. */
TANDEM_API enum tandem_status tandem_session_shift(tandem_session *session, int32_t sequence,
                                                   int64_t keep, int64_t n,
                                                   struct tandem_error *error);

/** Speculative decoding: drafted tokens are decoded together with the one that the program decodes;
 * if the program then decodes the drafted ones, their logits are available already. */
struct tandem_draft_options {
    size_t size; /**< sizeof(struct tandem_draft_options) */
    /** A session of a smaller model with the same vocabulary, whose most likely tokens are drafted:
     * borrowed until drafts are switched off, used by nothing else, with as many sequences as this
     * one. NULL: drafts the tokens that followed the longest earlier match of the end of the
     * text. */
    tandem_session *model;
    int most;      /**< tokens of a draft, 1 to 16; 0: 16. Fewer if that is expected to be faster */
    bool is_fixed; /**< never fewer, to measure the gain of drafts */
    bool by_heads; /**< drafts by the model's own nextn layer; `model` is NULL */
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

/** Drafts tokens from now on (options NULL: no more) whenever one token is appended to a sequence
 * and its logits are wanted. Their number depends on the times of batches, predicted by the timing
 * table and then measured, and on the share of correct drafts so far: none while drafts would cost
 * time. Every token's logits are the model's own, so that any sampler chooses as without drafts, up
 * to the rounding of batches of another size. Errors: ABI, ARGUMENT (another vocabulary, too few
 * sequences), NOT_FOUND (no layer predicts ahead), MEMORY. */
TANDEM_API enum tandem_status tandem_session_set_draft(tandem_session *session,
                                                       const struct tandem_draft_options *options,
                                                       struct tandem_error *error);
/** Never fails: false, and `out` is untouched, for a session that drafts nothing. */
TANDEM_API bool tandem_session_draft_info(const tandem_session *session,
                                          struct tandem_draft_info *out);

/** Called between the nodes of later decodes, on any thread of the runtime; returning true ends the
 * decode with CANCELLED. NULL: none. */
TANDEM_API void tandem_session_set_cancel(tandem_session *session, bool (*cancel)(void *user),
                                          void *user);
/** Called with the microseconds of each stage of later decodes, as tandem_compute_options.timed.
 * NULL: none. */
TANDEM_API void tandem_session_set_timed(tandem_session *session,
                                         void (*timed)(void *user, const tandem_tensor *node,
                                                       enum tandem_stage stage, double us),
                                         void *user);
/** Runs later decodes on another runtime, which must outlive the session. The previous one frees
 * what its devices hold of the KV cache. */
TANDEM_API void tandem_session_set_runtime(tandem_session *session, tandem_runtime *runtime);

struct tandem_expected {
    double us, error_us; /**< microseconds, and the standard error */
};

/** The time that a batch of m tokens is expected to take now, from the times of earlier batches of
 * this session and from the timing table's predictions; the first call makes a few plans. Never
 * fails: false, and `out` is untouched, while the time is unknown. */
TANDEM_API bool tandem_session_expect(tandem_session *session, int64_t m,
                                      struct tandem_expected *out);

/** Builds and plans, but does not compute, the graph that appends m more tokens to sequence 0. The
 *  graph is borrowed until the next decode or plan; the plan is the caller's (tandem_plan_free).
 *  Errors: LIMIT, MEMORY, those of tandem_runtime_plan. */
TANDEM_API enum tandem_status tandem_session_plan(tandem_session *session, int64_t m,
                                                  tandem_graph **out_graph, tandem_plan **out_plan,
                                                  struct tandem_error *error);
/** Prints the plan of every later batch as text. `write` NULL: no more. */
TANDEM_API void tandem_session_print_plans(tandem_session *session, tandem_write_fn write,
                                           void *user);
/** Bytes of graphs and their inputs; bytes of the KV cache. */
TANDEM_API size_t tandem_session_graph_bytes(const tandem_session *session);
TANDEM_API size_t tandem_session_cache_bytes(const tandem_session *session);

/** How often a session used the experts of a model, on any backend. `hits` shows which are hot, and
 * worth the memory of a device. The layout is fixed for good. */
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

/** The hot experts, which devices keep apart from others of their layer after tandem_session_place;
 * they are copies, which the host keeps too. The layout is fixed for good. */
struct tandem_hot_experts {
    int64_t n_experts;       /**< of the model, all layers */
    int64_t n_hot;           /**< hot ones, without layers that are entirely on a device */
    int64_t hot_bytes;       /**< of the copies, in host memory and on devices */
    int64_t cold_bytes_last; /**< of the last batch's experts that no device keeps, each counted
                              * once */
    int64_t cold_bytes_sum;  /**< the same, summed over all batches */
    int64_t n_looks;         /**< checks by tandem_session_replan_experts */
    int64_t n_moves;         /**< checks after which experts were moved */
    const uint8_t *is_hot;   /**< {experts, layers}: the backend that keeps the expert apart, 0:
                              * none; borrowed from the session, whose next decode may change it */
};
/** Never fails: false, and `out` is untouched, for a model without experts. */
TANDEM_API bool tandem_session_hot_experts(const tandem_session *session,
                                           struct tandem_hot_experts *out);
/** How batches passed through layers on several places (devices or the CPU). The layout is fixed
 * for good. */
struct tandem_micro_batches {
    int n_places;      /**< places that have weights of layers */
    int n_last;        /**< micro-batches of the last batch; 1: not split */
    int64_t n_batches; /**< of two tokens and more, with layers on several places */
    int64_t n_split;   /**< of them, those split into micro-batches */
};
/** Never fails: false, and `out` is untouched, before the first such batch. */
TANDEM_API bool tandem_session_micro_batches(const tandem_session *session,
                                             struct tandem_micro_batches *out);
/** How often the session checks whether devices should keep other experts, after
 * tandem_session_place: between two batches, at least `tokens` tokens after the last change, and up
 * to 16 times less often while nothing changes. 0: never; default 512. Experts move only if, by the
 * timing table, 2048 tokens save twice the time of the uploads. The placement belongs to the
 * runtime: of several sessions on one, only one should check. */
TANDEM_API void tandem_session_replan_experts(tandem_session *session, int64_t tokens);

/* ---- states: sessions saved, to continue later without decoding again ---- */

/** Writes keys, values, positions and logits of all sequences to a file, which appears atomically
 * when it is complete and which only its user may read (tandem_file_write, private). Errors: FILE,
 * MEMORY, those of tandem_runtime_fetch and of tandem_source_identity. */
TANDEM_API enum tandem_status tandem_session_save(const tandem_session *session, const char *path,
                                                  struct tandem_error *error);
/** Restores a state that a session of the same model (tandem_source_identity), cache type and
 * number of sequences has saved. After an error the session is unchanged. The file is untrusted:
 * all of it is checked first. Errors: FILE, MEMORY, FORMAT (also another version and a wrong
 * checksum), TRUNCATED, LIMIT (more tokens than this session can hold). */
TANDEM_API enum tandem_status tandem_session_load(tandem_session *session, const char *path,
                                                  struct tandem_error *error);
/** The same in memory: the number of bytes, writing them to `out`, and reading them. `name` is used
 * in messages. Errors: as save and load, without FILE. */
TANDEM_API size_t tandem_session_state_bytes(const tandem_session *session);
TANDEM_API enum tandem_status tandem_session_state_write(const tandem_session *session, void *out,
                                                         struct tandem_error *error);
TANDEM_API enum tandem_status tandem_session_state_read(tandem_session *session, const void *bytes,
                                                        size_t n, const char *name,
                                                        struct tandem_error *error);

/* ---- samplers ---- */

/** How the next token is chosen from logits, in this order: a penalty for recent tokens (Keskar et
 * al. 2019); the mask of valid UTF-8; temperature 0 takes the most likely token, else p =
 * soft_max(logits / temperature); top-k keeps the k most likely (Fan et al. 2018); of these, top-p
 * keeps the smallest set with top_p of their probability (Holtzman et al. 2020); of these, min-p
 * keeps those with at least min_p of the largest probability (Nguyen et al. 2024); one is drawn. Of
 * equal probabilities the lower token comes first. A NaN or -infinity is chosen only if there is
 * nothing else; tokens of +infinity share all probability. Zeros switch a step off. */
struct tandem_sampler_options {
    size_t size;          /**< sizeof(struct tandem_sampler_options) */
    int64_t vocabulary;   /**< floats in the logits */
    float temperature;    /**< 0: always the most likely token */
    float top_p;          /**< share of the probability that is kept; 0 and 1: all */
    float min_p;          /**< share of the largest probability below which tokens are dropped */
    float repeat_penalty; /**< 0 and 1: none; logits above 0 are divided by it, others multiplied */
    int64_t top_k;        /**< tokens that are kept; 0: all */
    int64_t repeat_last;  /**< recent tokens that the penalty covers; 0: 64 */
    uint64_t seed;        /**< same seed and logits: same choices on every machine */
    bool any_bytes;       /**< chats and generators may output invalid UTF-8 */
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
 * numbers start from the seed. The vocabulary must be the same. Errors: as tandem_sampler_new; the
 * sampler is unchanged then. */
TANDEM_API enum tandem_status tandem_sampler_renew(tandem_sampler *sampler,
                                                   const struct tandem_sampler_options *options,
                                                   struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_sampler_free(tandem_sampler *sampler);
/** Restricts choices to tokens that keep the output valid UTF-8, as long as there are any; tokens
 * without text are allowed only between characters. Copies what it needs from the tokenizer. Chats
 * and generators call it unless the sampler has `any_bytes`; other users of samplers call it
 * themselves. Errors: MEMORY. */
TANDEM_API enum tandem_status tandem_sampler_keep_utf8(tandem_sampler *sampler,
                                                       const tandem_tokenizer *tokenizer,
                                                       struct tandem_error *error);
/** Chooses the next token. `logits`: `vocabulary` floats. Cost: O(vocabulary); allocates nothing,
 * except with a grammar. */
TANDEM_API int32_t tandem_sampler_sample(tandem_sampler *sampler, const float *logits);
/** Announces that the next token of a sequence will be chosen by tandem_session_sample with this
 * sampler. The next tandem_session_decode, tandem_session_decode_batch or
 * tandem_session_begin_batch (and no later one) may then choose it where the logits are, on a
 * device or among ranks by rows, so that they are not copied; tandem_session_logits returns NULL
 * then. The sampler must not change in between. NULL: logits are wanted. Devices do not choose, and
 * the logits are available, with penalties, grammars, within a character, with drafts, for sessions
 * with `has_embeddings`, with only a CPU, and if a text of the batch that wants logits has no
 * sampler; ranks do not with a top-k above 256, with only a temperature, and if the tokens kept by
 * top-p and min-p may not be among the 128 most likely ones of each rank. Errors: ARGUMENT (no such
 * sequence). */
TANDEM_API enum tandem_status tandem_session_sample_with(tandem_session *session, int32_t sequence,
                                                         tandem_sampler *sampler,
                                                         struct tandem_error *error);
/** Chooses the next token of a sequence: the one that the decode has chosen with this sampler, or
 * else tandem_sampler_sample of the sequence's logits: the result is the same. Call it once per
 * decode. `out_probability` (NULL: not wanted) gets its probability among the kept ones. -1 where
 * tandem_sampler_sample returns -1, and without logits. */
TANDEM_API int32_t tandem_session_sample(tandem_session *session, int32_t sequence,
                                         tandem_sampler *sampler, float *out_probability);
/** Adds a token of the text, for the penalty; and its bytes for the UTF-8 mask if it `is_output`. A
 * token of a prompt restarts the output. Tokens outside of the vocabulary are ignored. */
TANDEM_API void tandem_sampler_accept(tandem_sampler *sampler, int32_t token, bool is_output);
/** Drops all accepted tokens; the next choice begins a text. The random sequence continues. */
TANDEM_API void tandem_sampler_reset(tandem_sampler *sampler);

/* ---- grammars: restricting the output ---- */

enum tandem_grammar_kind {
    TANDEM_GRAMMAR_GBNF,        /**< rules as llama.cpp writes them: docs/grammars.md */
    TANDEM_GRAMMAR_JSON_SCHEMA, /**< a JSON Schema; {"type":"object"} is any object */
    TANDEM_GRAMMAR_REGEX,       /**< a regular expression for the whole text */
    TANDEM_GRAMMAR_CHOICE       /**< a JSON array of strings, one of which is the text */
};
struct tandem_grammar_options {
    size_t size;                   /**< sizeof(struct tandem_grammar_options) */
    enum tandem_grammar_kind kind; /**< of `text` */
    const char *text;              /**< {n} UTF-8 */
    size_t n;
    const char *root;   /**< for GBNF: the first rule; NULL: "root" */
    const char *before; /**< required before the text; NULL: nothing */
    const char *after;  /**< required after it; NULL: nothing */
};
#define TANDEM_GRAMMAR_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_grammar_options), TANDEM_GRAMMAR_GBNF, NULL, 0, NULL, NULL, NULL      \
    }

/** Parses an untrusted grammar: rules, states, nesting and stacks are bounded. Immutable
 * afterwards; any thread may use it. Cost: at most some hundred milliseconds, usually one. Errors:
 * ABI, ARGUMENT, MEMORY, LIMIT, FORMAT (a fault with its position, a left-recursive rule),
 * UNSUPPORTED_BUILD (names the keyword or construct: none is ignored). */
TANDEM_API enum tandem_status tandem_grammar_new(const struct tandem_grammar_options *options,
                                                 tandem_grammar **out_grammar,
                                                 struct tandem_error *error);
/** Samplers must be done with it. NULL is allowed. */
TANDEM_API void tandem_grammar_free(tandem_grammar *grammar);
/** The tokens of a model (`vocabulary`: how many logits it has) in the order of their bytes, for
 * any number of samplers and threads. `ends` {n_ends, at most 72}, those that end a text
 * (tandem_chat_ends), are allowed where the grammar may end. Copies all that it needs. Errors:
 * ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_token_trie_new(const tandem_tokenizer *tokenizer,
                                                    int64_t vocabulary, const int32_t *ends,
                                                    size_t n_ends, tandem_token_trie **out_trie,
                                                    struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_token_trie_free(tandem_token_trie *trie);
/** Restricts the sampler to tokens that the grammar allows after the output so far, which begins
 * after the last accepted token that was not output; tandem_sampler_sample returns -1 if there is
 * none. Borrows both until another grammar is set (NULL: none), or tandem_sampler_renew. The UTF-8
 * mask is not needed then. Errors: ARGUMENT (another vocabulary), MEMORY. */
TANDEM_API enum tandem_status tandem_sampler_set_grammar(tandem_sampler *sampler,
                                                         const tandem_grammar *grammar,
                                                         const tandem_token_trie *trie,
                                                         struct tandem_error *error);
enum tandem_grammar_state {
    TANDEM_GRAMMAR_NONE,     /**< no grammar is set */
    TANDEM_GRAMMAR_OPEN,     /**< more text must follow */
    TANDEM_GRAMMAR_MAY_END,  /**< more text may follow */
    TANDEM_GRAMMAR_COMPLETE, /**< no text may follow */
    TANDEM_GRAMMAR_BROKEN    /**< the output does not match, or is too ambiguous */
};
/** Whether the output so far is a complete text of the grammar. */
TANDEM_API enum tandem_grammar_state tandem_sampler_grammar_state(const tandem_sampler *sampler);

/* ---- chats ---- */

/** The tokens that end an answer: those in the model file, or else the tokenizer's end token; the
 * beginning token; and ends of turns that the template (NULL: none) writes. Writes at most
 * `capacity` of them to `out_ids`; returns how many there are, at most 76. Any thread. */
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
    const char *system;                        /**< the system message; NULL: none */
    int64_t max_answer;                        /**< maximum tokens; 0: half of the context */
    bool (*cancel)(void *user); /**< called between tokens and nodes; NULL: never cancelled */
    /** Receives the next part of an answer, whole characters; returning false ends the answer. */
    bool (*emit)(void *user, const char *text, size_t n);
    void *user; /**< passed to `emit` */
    /** Further variables of the template, as members of a JSON object without its braces:
     *  "\"enable_thinking\":false"; NULL: none. */
    const char *variables;
};
#define TANDEM_CHAT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_chat_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL,     \
            NULL                                                                                   \
    }

/** Read-only: later versions append members. */
struct tandem_chat_info {
    size_t size;        /**< of this structure */
    int64_t n_turns;    /**< questions with their answers */
    int64_t n_shifted;  /**< tokens dropped by context shifts */
    int64_t n_prompt;   /**< tokens of the last question */
    int64_t n_answer;   /**< tokens of its answer */
    bool was_cancelled; /**< the last answer */
};

/** A conversation. When the context is full, drops the older half after the system message. Errors:
 * ABI, ARGUMENT (an unknown template), MEMORY. */
TANDEM_API enum tandem_status tandem_chat_new(const struct tandem_chat_options *options,
                                              tandem_chat **out_chat, struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_chat_free(tandem_chat *chat);
/** Decodes the user's message (n bytes of UTF-8; special tokens in it are plain text) and emits the
 * answer. Of a cancelled answer, the part so far stays in the conversation; that is no error.
 * Errors: LIMIT (the text does not fit into the context), those of the tokenizer and of
 * tandem_session_decode. */
TANDEM_API enum tandem_status tandem_chat_say(tandem_chat *chat, const char *text, size_t n,
                                              struct tandem_error *error);
/** Drops the conversation. */
TANDEM_API void tandem_chat_reset(tandem_chat *chat);
/** Call after tandem_session_load: the next tandem_chat_say continues the restored conversation. */
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
    const int32_t *prompt;             /**< {n_prompt}, with the beginning token first, if there is
                                        * one */
    int64_t n_prompt;                  /**< at least 1 */
    int64_t steps; /**< positions, counted as in llama2.c, with the beginning token at 0; 0, or more
                    * than the context: the whole context */
    int64_t batch; /**< as tandem_session_decode */
};
#define TANDEM_GENERATOR_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(struct tandem_generator_options), NULL, NULL, NULL, NULL, 0, 0, 0                   \
    }

/** Decodes the prompt, up to `steps`. Errors: ABI, ARGUMENT, MEMORY, those of
 * tandem_session_decode. */
TANDEM_API enum tandem_status tandem_generator_new(const struct tandem_generator_options *options,
                                                   tandem_generator **out_generator,
                                                   struct tandem_error *error);
/** NULL is allowed. */
TANDEM_API void tandem_generator_free(tandem_generator *generator);
/** The next part of the text, whole characters, those of the prompt first: writes at most
 * `capacity` bytes to `out` and their number to `out_n`. `out_more` is false when the text ends
 * with this part, which may be empty: the model ended it, or began a new text. Errors: LIMIT (256
 * bytes suffice), those of tandem_session_decode. */
TANDEM_API enum tandem_status tandem_generator_next(tandem_generator *generator, char *out,
                                                    size_t capacity, size_t *out_n, bool *out_more,
                                                    struct tandem_error *error);

TANDEM_END_C
#endif
