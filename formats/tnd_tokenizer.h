/* SPDX-License-Identifier: MIT
 * Internals of a tokenizer: filled by a loader, read by encoding and decoding (public API:
 * tandem/tokenizer.h). Read-only after opening, so that any thread may use it. Start with
 * tokenizer.c: a text is split at added tokens, transformed by steps, and each remaining piece is
 * encoded by a model. */
#ifndef TND_TOKENIZER_H
#define TND_TOKENIZER_H

#include "base/arena.h"
#include "base/file.h"
#include "formats/tokenizer_steps.h"
#include "tandem/tokenizer.h"

/* Numbers of sentencepiece_model.proto, also used by GGUF's tokenizer.ggml.token_type. */
enum tnd_token_type {
    TND_TOKEN_NORMAL = 1,
    TND_TOKEN_UNKNOWN = 2,
    TND_TOKEN_CONTROL = 3,
    TND_TOKEN_USER = 4, /* found anywhere in a text */
    TND_TOKEN_UNUSED = 5,
    TND_TOKEN_BYTE = 6
};

struct tnd_token {
    const char *text; /* borrowed from `file` or `memory`, not terminated; decoded bytes */
    uint32_t length;
    enum tnd_token_type type;
    double score; /* priority of merging into this token (highest first), or log probability */
};

/* How a piece of text becomes tokens. */
enum tnd_tokenizer_model {
    TND_MODEL_SCORES,   /* merges neighbours that form a token, by its score */
    TND_MODEL_RANKS,    /* merges neighbours in the order of a list */
    TND_MODEL_UNIGRAM,  /* the most probable sequence of tokens */
    TND_MODEL_WORDPIECE /* greedily the longest token from the left, per word */
};

/* Which blanks at the start of a decoded text were added by encoding, and are removed. */
enum tnd_strip {
    TND_STRIP_NONE,
    TND_STRIP_ONE,        /* the first character, if it is a blank */
    TND_STRIP_EACH,       /* each token's first one while the text is empty */
    TND_STRIP_FIRST_TOKEN /* all at the start of the first token */
};

/* One pair of a merge list. */
struct tnd_merge {
    uint64_t pair; /* left id in the upper half, right id in the lower; all ones: free */
    uint32_t rank;
    int32_t merged;
};

/* Tokens sorted by text, to find those that start at a position. */
struct tnd_prefix_item {
    const char *text;
    uint32_t length;
    int32_t id;
};
struct tnd_prefix_index {
    struct tnd_prefix_item *items; /* owned */
    size_t n;
    uint32_t first[257]; /* first item whose text starts with this byte */
};

/* An added token with more properties than its type. */
struct tnd_added {
    bool is_outside_model; /* merging never produces it */
    bool is_normalized;    /* searched for after the normalizing steps */
    bool takes_left;       /* includes the white space before it */
    bool takes_right;
    const char *text; /* a normalized one's text after these steps, in `memory`; or NULL */
    uint32_t length;
};

struct tandem_tokenizer {
    enum tnd_tokenizer_model model;
    struct tnd_token *tokens;
    int64_t n_tokens;
    int32_t bos; /* -1: none */
    int32_t eos;
    int32_t unknown;       /* the token of unknown text; -1: unknown text is dropped */
    int32_t byte_ids[256]; /* -1: none */
    bool adds_bos;         /* settings of the file for new texts */
    bool adds_eos;
    bool is_byte_level;     /* the smallest symbols are bytes, not characters */
    bool has_byte_fallback; /* unknown characters become bytes */
    bool fuses_unknown;     /* neighbouring unknown characters become one token */
    bool whole_words;       /* a piece that is a token is not merged (Llama 3) */
    bool joins_texts;   /* RANKS: neighbours that form a token merge, best score first (tiktoken) */
    bool sums_in_float; /* UNIGRAM: sums scores in float, as sentencepiece does */
    bool matches_inside; /* the model finds user-defined tokens, not the search before the steps */

    bool escapes_blanks; /* U+2581 in tokens stands for a blank */
    enum tnd_strip strip;
    bool restarts_at_bos;     /* decoding a BOS token starts a new text */
    bool joins_with_blank;    /* decoded tokens are separated by blanks */
    bool names_bytes;         /* any token like <0x0A> is decoded to that byte */
    const char *unknown_text; /* decoded text of <unk>, in `memory`; NULL: empty */

    uint32_t max_length;   /* bytes of the longest token */
    bool cuts_at_blank[2]; /* for ' ' and U+2581: no token has it after another character */
    uint32_t *slots;       /* hash table of ids + 1, open addressing; 0: free */
    size_t n_slots;        /* a power of two, more than n_tokens */
    struct tnd_merge *merges;
    size_t n_merge_slots; /* a power of two */

    const char *continuation; /* WORDPIECE: prefix of tokens within a word, in `memory` */
    size_t n_continuation;
    size_t max_word;  /* max. characters of a word; longer ones are unknown */
    int n_between;    /* end tokens between the texts of a pair; 0: no pairs */
    bool tells_pairs; /* the second text of a pair has another token type */

    double unknown_score; /* UNIGRAM: score of a character without token */
    double highest_score;
    struct tnd_prefix_index pieces;     /* UNIGRAM: all usable tokens */
    struct tnd_prefix_index users;      /* user-defined tokens */
    struct tnd_prefix_index specials;   /* user-defined and control tokens */
    struct tnd_prefix_index normalized; /* added tokens for the normalized text */
    struct tnd_added *added;            /* NULL, or one per token */

    struct tnd_token_step *steps; /* in `memory`; their patterns are freed with the tokenizer */
    size_t n_steps;
    size_t n_normalizing; /* the leading steps run before normalized tokens are searched */

    struct tnd_arena memory; /* texts and steps */
    struct tnd_file file;
    bool is_from_files; /* read from more files than `file` */
};

/* A growing list of ids. Once `failed`, it stays so. */
struct tnd_ids {
    int32_t *items;
    size_t n;
    size_t capacity;
    bool failed;
    bool last_is_unknown;
};
void tnd_ids_add(struct tnd_ids *ids, int32_t id);

/** Makes a tokenizer without tokens. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_new(const char *name, tandem_tokenizer **out_tokenizer,
                                     struct tandem_error *error);
/** Frees everything but `file`. */
void tnd_tokenizer_free(tandem_tokenizer *tokenizer);
/** Returns the tokenizer in `out_tokenizer`, or frees it (may be NULL) if `status` is an error.
 * Returns `status`. */
enum tandem_status tnd_tokenizer_end(enum tandem_status status, tandem_tokenizer *tokenizer,
                                     tandem_tokenizer **out_tokenizer);
/** Reads a tokenizer file from memory; detects the format by its contents. Only llama2.c's borrows
 * the bytes. Errors: those of tandem_tokenizer_open. */
enum tandem_status tnd_tokenizer_read(const void *bytes, size_t n, const char *name,
                                      int64_t vocabulary, tandem_tokenizer **out_tokenizer,
                                      struct tandem_error *error);
/** Sets the error "no memory for ...". */
enum tandem_status tnd_tokenizer_no_memory(const char *name, size_t bytes,
                                           struct tandem_error *error);

/* ---- tokenizer_index.c ---- */

/** Builds the hash table over `tokens`; of equal texts the lowest id is found. Control, unknown and
 * byte tokens are left out for the models that merge by text. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_index(tandem_tokenizer *tokenizer, struct tandem_error *error);
/** Id of a token by its text, or -1. Any thread. */
int32_t tnd_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text, size_t n);
/** Builds the prefix indices from the types of the tokens. Errors: MEMORY, FORMAT (a token of more
 *  than TND_MAX_TOKEN_BYTES). */
enum tandem_status tnd_tokenizer_index_prefixes(tandem_tokenizer *tokenizer, const char *name,
                                                struct tandem_error *error);
/* Twice the largest vocabulary of the field; a bound on what a hostile file makes us allocate. */
#define TND_MAX_TOKENS      ((int64_t)1 << 19)
/* Longer tokens would make searching slow, and no tokenizer has any. */
#define TND_MAX_TOKEN_BYTES 4096

/** Finds the tokens that start at a position: `walk = tnd_prefix_begin(index)`, then step byte by
 * byte. */
struct tnd_prefix_walk {
    const struct tnd_prefix_index *index;
    size_t low;
    size_t high;
    uint32_t depth;
};
struct tnd_prefix_walk tnd_prefix_begin(const struct tnd_prefix_index *index);
/** Advances by a byte; false: no token continues with it. */
bool tnd_prefix_step(struct tnd_prefix_walk *walk, char byte);
/** Id of the token that equals the bytes so far, or -1. */
int32_t tnd_prefix_id(const struct tnd_prefix_walk *walk);
/** Id of the longest token of the index at the start of `text`, and its length; or -1. */
int32_t tnd_prefix_longest(const struct tnd_prefix_index *index, const char *text, size_t n,
                           size_t *out_length);

/* ---- tokenizer_merge.c ---- */

struct tnd_symbol {
    size_t start;    /* in the text */
    uint32_t length; /* 0: merged into the symbol before it */
    int32_t id;      /* -1: no token */
    uint32_t previous;
    uint32_t next;
    bool is_fixed; /* never merged */
};
struct tnd_merge_pair;
/** Memory for merging, reused for each piece. Initialise with zeros. */
struct tnd_merger {
    struct tnd_symbol *symbols;
    size_t n;
    size_t capacity;
    struct tnd_merge_pair *heap; /* heap with the best pair on top */
    size_t n_heap;
    size_t heap_capacity;
    bool failed; /* no memory */
};
void tnd_merger_add(struct tnd_merger *merger, struct tnd_symbol symbol);
/** Merges the added symbols: repeatedly the best pair of neighbours that form a token, the leftmost
 * of equal ones. O(n log n). False: out of memory. */
bool tnd_merger_run(struct tnd_merger *merger, const tandem_tokenizer *tokenizer, const char *text);
void tnd_merger_fini(struct tnd_merger *merger);

/** Length of the first run that merges with nothing after it: words are merged one by one where the
 * tokens allow it, so that memory grows with the longest word, not with the text. */
size_t tnd_tokenizer_run(const tandem_tokenizer *tokenizer, const char *text, size_t n);

/* ---- models: append the ids of a piece; errors stay in `ids` and `merger` ---- */

void tnd_scores_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                       struct tnd_merger *merger, struct tnd_ids *ids);
void tnd_ranks_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                      struct tnd_merger *merger, struct tnd_ids *ids);
void tnd_unigram_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                        struct tnd_ids *ids);
/** Finds the lowest and the highest score. */
void tnd_unigram_prepare(tandem_tokenizer *tokenizer);
void tnd_wordpiece_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                          struct tnd_ids *ids);
/** Appends the tokens of a character without token: its bytes, or <unk>. */
void tnd_ids_add_unknown(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                         struct tnd_ids *ids);

/** The text of a token in searches and decoding: its own, or the normalized one. */
struct tnd_shown_text {
    const char *text;
    uint32_t length;
};
struct tnd_shown_text tnd_token_text(const tandem_tokenizer *tokenizer, int64_t id);

/* ---- tokenizer_bpe.c ---- */

/** Reserves memory for `n` merges. Errors: MEMORY. */
enum tandem_status tnd_merges_reserve(tandem_tokenizer *tokenizer, size_t n, const char *name,
                                      struct tandem_error *error);
/** The merge of two tokens, or NULL. */
const struct tnd_merge *tnd_merges_find(const tandem_tokenizer *tokenizer, int32_t left,
                                        int32_t right);
/** Adds the merge of rank `rank` of two texts, spelt as in the file. False: they or their
 * concatenation are not tokens. A repeated pair is ignored. */
bool tnd_merges_add_texts(tandem_tokenizer *tokenizer, const char *left, size_t n_left,
                          const char *right, size_t n_right, uint32_t rank);
/** Decodes a text in the alphabet of byte-level tokenizers to `out` (space for `n` bytes), and
 * returns the number of bytes; a text with other characters is copied. */
size_t tnd_byte_level_decode(const char *text, size_t n, char *out);
/** Appends the bytes in that alphabet. */
void tnd_byte_level_encode(const char *text, size_t n, struct tnd_text *out);
/** Fills byte_ids from tokens of one byte. */
void tnd_byte_level_find_bytes(tandem_tokenizer *tokenizer);

/* ---- loaders ---- */

/** Reads llama2.c's tokenizer.bin from memory, which the tokenizer borrows. `vocabulary`: number of
 * tokens expected; 0: any. Errors: FORMAT, TRUNCATED, MEMORY. */
enum tandem_status tnd_tokenizer_llama2c_read(const void *bytes, size_t n, const char *name,
                                              int64_t vocabulary, tandem_tokenizer **out_tokenizer,
                                              struct tandem_error *error);
/** Reads sentencepiece's tokenizer.model from memory; nothing is borrowed. Errors: FORMAT,
 *  TRUNCATED, UNSUPPORTED_BUILD (model types other than unigram and BPE), MEMORY. */
enum tandem_status tnd_tokenizer_sentencepiece_read(const void *bytes, size_t n, const char *name,
                                                    tandem_tokenizer **out_tokenizer,
                                                    struct tandem_error *error);
/** Reads the tokenizer.json of Hugging Face's tokenizers from memory; nothing is borrowed. Errors:
 *  FORMAT, UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_json_read(const void *bytes, size_t n, const char *name,
                                           tandem_tokenizer **out_tokenizer,
                                           struct tandem_error *error);

/** Reads a tokenizer.model in tiktoken's format (Llama 3) from memory; nothing is borrowed. Errors:
 * FORMAT, UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_tiktoken_read(const void *bytes, size_t n, const char *name,
                                               tandem_tokenizer **out_tokenizer,
                                               struct tandem_error *error);
/** Reads Mistral's tekken.json from memory; nothing is borrowed. Errors: FORMAT, UNSUPPORTED_BUILD
 * (without PCRE2), LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_tekken_read(const void *bytes, size_t n, const char *name,
                                             tandem_tokenizer **out_tokenizer,
                                             struct tandem_error *error);
/** Whether a file is a tekken.json: JSON whose config has the expected keys. */
bool tnd_tokenizer_tekken_is(const void *bytes, size_t n);
/** Sets the roles of tokens from the tokenizer_config.json next to tokenizer.json, tokenizer.model
 * or vocab.json (tokenizer_roles.c). Errors: FILE, FORMAT, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_read_config(const char *path, tandem_tokenizer *tokenizer,
                                             struct tandem_error *error);
/** Decodes base64 (RFC 4648) up to the first other character, to at most `capacity` bytes (plus two
 * that may be overwritten); returns the bytes read; 0: invalid. */
size_t tnd_take_base64(const uint8_t *bytes, size_t n, char *out, size_t capacity, size_t *out_n);
/** Whether a file starts like tiktoken's format. */
bool tnd_tokenizer_tiktoken_is(const uint8_t *bytes, size_t n);

/** Reads BERT's vocab.txt from memory (tokenizer_wordpiece.c); nothing is borrowed. Errors: FORMAT,
 * UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_wordpiece_read(const void *bytes, size_t n, const char *name,
                                                tandem_tokenizer **out_tokenizer,
                                                struct tandem_error *error);
/** Whether a file's name is that of a vocab.txt: its contents are any text. */
bool tnd_tokenizer_wordpiece_is(const char *name);
/** Sets the model to WordPiece. Errors: LIMIT, MEMORY. */
enum tandem_status tnd_wordpiece_prepare(tandem_tokenizer *tokenizer, const char *continuation,
                                         size_t max_word, struct tandem_error *error);
/** Options of BERT's normalizer. */
struct tnd_bert_text {
    bool cleans, isolates_chinese, strips_accents, lowers;
};
/** Append the steps of BERT's normalizer, and of its pre-tokenizer. Errors: MEMORY,
 * UNSUPPORTED_BUILD. */
enum tandem_status tnd_bert_add_normalizer(tandem_tokenizer *tokenizer, struct tnd_bert_text how,
                                           struct tandem_error *error);
enum tandem_status tnd_bert_add_pretokenizer(tandem_tokenizer *tokenizer,
                                             struct tandem_error *error);
/** Completes a BERT tokenizer that was read without steps; roles that are -1 are found by token
 * names, and case sensitivity is derived from the tokens. Errors: MEMORY, UNSUPPORTED_BUILD. */
enum tandem_status tnd_bert_finish(tandem_tokenizer *tokenizer, struct tandem_error *error);

/* ---- tokenizer_build.c: what loaders share ---- */

/** Reserves memory for `n` tokens and sets their number. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_reserve(tandem_tokenizer *tokenizer, int64_t n, const char *name,
                                         struct tandem_error *error);
/** Fills byte_ids from the tokens of type BYTE, and from all tokens like <0x0A> if `by_name`. */
void tnd_tokenizer_find_byte_tokens(tandem_tokenizer *tokenizer, bool by_name);
/** Appends a step, and takes ownership of its pattern. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_add_step(tandem_tokenizer *tokenizer, struct tnd_token_step step,
                                          struct tandem_error *error);
/** Appends a step that splits at a pattern's matches. Errors: MEMORY, FORMAT, UNSUPPORTED_BUILD. */
enum tandem_status tnd_tokenizer_add_split(tandem_tokenizer *tokenizer, const char *pattern,
                                           struct tandem_error *error);
/** Appends the splits that GGUF's tokenizer.ggml.pre names (tokenizer_pretokens.c), and sets
 * `whole_words` and `adds_bos` as the name implies. Errors: MEMORY, UNSUPPORTED_BUILD (unknown
 * name). */
enum tandem_status tnd_tokenizer_add_pretokenizer(tandem_tokenizer *tokenizer, const char *pre,
                                                  struct tandem_error *error);
/** The name in tokenizer.ggml.pre of splits by these patterns, or NULL. Sets `io_is_all` to false
 * if the name's patterns differ in rare texts. */
const char *tnd_tokenizer_pre_name(const char *const *patterns, size_t n, bool whole_words,
                                   bool *io_is_all);
#define TND_MAX_PRE_PATTERNS   6
/** Key of a source's value that contains the tokenizer's file. */
#define TND_TOKENIZER_FILE_KEY "tokenizer.tandem.file"
/** The byte that a token like <0x0A> stands for, or -1. */
int tnd_token_byte(const struct tnd_token *token);
/** Copies bytes to the tokenizer's memory; NULL: out of memory. */
char *tnd_tokenizer_keep(tandem_tokenizer *tokenizer, const char *bytes, size_t n);

/** Encodes a text in which special tokens are recognised only where no byte is marked (`marks`:
 * {n}, 1: marked). BOS is prepended if the file wants it and the text does not start with it.
 * Errors: those of tandem_tokenizer_encode_with. */
enum tandem_status tnd_tokenizer_encode_marked(const tandem_tokenizer *tokenizer, const char *text,
                                               size_t n, const unsigned char *marks,
                                               int32_t *out_ids, size_t capacity, size_t *out_n,
                                               struct tandem_error *error);

#endif
