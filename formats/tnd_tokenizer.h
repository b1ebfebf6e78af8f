/* SPDX-License-Identifier: MIT
 * Inside of a tokenizer: what a loader fills and encoding and decoding read. Internal twin of
 * tandem/tokenizer.h. Read-only once it is open, so that any thread may use it. Start with
 * tokenizer.c: a text is cut at added tokens, goes through steps, and each piece that is left
 * through a model. */
#ifndef TND_TOKENIZER_H
#define TND_TOKENIZER_H

#include "base/arena.h"
#include "base/file.h"
#include "formats/tokenizer_steps.h"
#include "tandem/tokenizer.h"

/* Numbers of sentencepiece_model.proto, which GGUF's tokenizer.ggml.token_type has taken over. */
enum tnd_token_type {
    TND_TOKEN_NORMAL = 1,
    TND_TOKEN_UNKNOWN = 2,
    TND_TOKEN_CONTROL = 3,
    TND_TOKEN_USER = 4, /* found in every text, whatever stands around it */
    TND_TOKEN_UNUSED = 5,
    TND_TOKEN_BYTE = 6
};

struct tnd_token {
    const char
        *text; /* borrowed from `file` or `memory`, not terminated; bytes as they are meant */
    uint32_t length;
    enum tnd_token_type type;
    double score; /* of merging two tokens into this one: higher goes first; or log probability */
};

/* How a piece of text becomes tokens. */
enum tnd_tokenizer_model {
    TND_MODEL_SCORES,   /* merges neighbours that make a token, by its score */
    TND_MODEL_RANKS,    /* merges neighbours in the order of a list */
    TND_MODEL_UNIGRAM,  /* the most probable sequence of tokens */
    TND_MODEL_WORDPIECE /* the longest tokens from the left, word by word */
};

/* Which blanks at the start of a decoded text are not the text's own. */
enum tnd_strip {
    TND_STRIP_NONE,
    TND_STRIP_ONE,        /* the first character, if it is a blank */
    TND_STRIP_EACH,       /* the first one of each token while the text is empty */
    TND_STRIP_FIRST_TOKEN /* all of the first token */
};

/* One pair of a merge list. */
struct tnd_merge {
    uint64_t pair; /* left id above right id; all ones: free */
    uint32_t rank;
    int32_t merged;
};

/* Tokens sorted by their texts, for finding those that begin at a place. */
struct tnd_prefix_item {
    const char *text;
    uint32_t length;
    int32_t id;
};
struct tnd_prefix_index {
    struct tnd_prefix_item *items; /* owned */
    size_t n;
    uint32_t first[257]; /* item from which texts begin with this byte */
};

/* An added token, where a tokenizer has more to say on it than its type. */
struct tnd_added {
    bool is_outside_model; /* not reached by merging */
    bool is_normalized;    /* looked for after the steps that normalize */
    bool takes_left;       /* with the white space before it */
    bool takes_right;
    const char *text; /* of a normalized one: what the steps make of it, in `memory`; or NULL */
    uint32_t length;
};

struct tandem_tokenizer {
    enum tnd_tokenizer_model model;
    struct tnd_token *tokens;
    int64_t n_tokens;
    int32_t bos; /* -1: none */
    int32_t eos;
    int32_t unknown;       /* for what has no token; -1: left out */
    int32_t byte_ids[256]; /* -1: none */
    bool adds_bos;         /* what the file says about new texts */
    bool adds_eos;
    bool is_byte_level;     /* the smallest symbols are bytes, not characters */
    bool has_byte_fallback; /* unknown characters become bytes */
    bool fuses_unknown;     /* neighbouring unknown characters give one token */
    bool whole_words;       /* a piece that is a token needs no merging (llama 3) */
    bool joins_texts;   /* RANKS: neighbours that make a token merge, best score first (tiktoken) */
    bool sums_in_float; /* UNIGRAM: scores are added as sentencepiece adds them */
    bool matches_inside; /* user-defined tokens are found by the model, not before the steps */

    bool escapes_blanks; /* U+2581 in tokens stands for a blank */
    enum tnd_strip strip;
    bool restarts_at_bos;     /* behind the beginning token a text begins */
    bool joins_with_blank;    /* decoded tokens stand apart */
    bool names_bytes;         /* any token like <0x0A> is decoded to that byte */
    const char *unknown_text; /* what <unk> is decoded to, in `memory`; NULL: to nothing */

    uint32_t max_length;   /* bytes of the longest token */
    bool cuts_at_blank[2]; /* of ' ' and U+2581: no token has it behind something else */
    uint32_t *slots;       /* hash table of ids + 1, open addressing; 0: free */
    size_t n_slots;        /* a power of two, more than n_tokens */
    struct tnd_merge *merges;
    size_t n_merge_slots; /* a power of two */

    const char *continuation; /* WORDPIECE: what tokens within a word begin with, in `memory` */
    size_t n_continuation;
    size_t max_word;  /* characters of a word; a longer one is unknown */
    int n_between;    /* end tokens between two texts; 0: pairs of texts are not known */
    bool tells_pairs; /* the second of two texts has another type */

    double unknown_score; /* UNIGRAM: of a character without token */
    double highest_score;
    struct tnd_prefix_index pieces;     /* UNIGRAM: all tokens that may be used */
    struct tnd_prefix_index users;      /* user-defined tokens */
    struct tnd_prefix_index specials;   /* user-defined and control tokens */
    struct tnd_prefix_index normalized; /* added tokens for the normalized text */
    struct tnd_added *added;            /* NULL or one a token */

    struct tnd_token_step *steps; /* in `memory`; their patterns are freed with the tokenizer */
    size_t n_steps;
    size_t n_normalizing; /* of them, the first, before normalized tokens are looked for */

    struct tnd_arena memory; /* texts and steps */
    struct tnd_file file;
    bool is_from_files; /* `file` is not all of it */
};

/* Ids that grow. `failed` sticks. */
struct tnd_ids {
    int32_t *items;
    size_t n;
    size_t capacity;
    bool failed;
    bool last_is_unknown;
};
void tnd_ids_add(struct tnd_ids *ids, int32_t id);

/** A tokenizer without tokens: nothing is known, nothing is added. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_new(const char *name, tandem_tokenizer **out_tokenizer,
                                     struct tandem_error *error);
/** Frees everything but `file`. */
void tnd_tokenizer_free(tandem_tokenizer *tokenizer);
/** Hands the tokenizer out, or frees it (it may be NULL) when `status` is an error. Gives `status`.
 */
enum tandem_status tnd_tokenizer_end(enum tandem_status status, tandem_tokenizer *tokenizer,
                                     tandem_tokenizer **out_tokenizer);
/** Reads a tokenizer file from memory, format told from its contents; llama2.c's borrows it.
 *  Errors: as tandem_tokenizer_open. */
enum tandem_status tnd_tokenizer_read(const void *bytes, size_t n, const char *name,
                                      int64_t vocabulary, tandem_tokenizer **out_tokenizer,
                                      struct tandem_error *error);
/** "no memory for ..." */
enum tandem_status tnd_tokenizer_no_memory(const char *name, size_t bytes,
                                           struct tandem_error *error);

/* ---- tokenizer_index.c ---- */

/** Builds the hash table over `tokens`; of equal texts the lowest id is found. Control, unknown and
 *  byte tokens are left out for the models that merge by the text. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_index(tandem_tokenizer *tokenizer, struct tandem_error *error);
/** Id of a token by its text, or -1. Any thread. */
int32_t tnd_tokenizer_find(const tandem_tokenizer *tokenizer, const char *text, size_t n);
/** Builds the prefix indices from the types of the tokens. Errors: MEMORY, FORMAT (a token of more
 *  than TND_MAX_TOKEN_BYTES). */
enum tandem_status tnd_tokenizer_index_prefixes(tandem_tokenizer *tokenizer, const char *name,
                                                struct tandem_error *error);
/* Twice the largest vocabulary of the field; a bound on what a hostile file makes us allocate. */
#define TND_MAX_TOKENS      ((int64_t)1 << 19)
/* Longer tokens would make looking for them slow, and no tokenizer has any. */
#define TND_MAX_TOKEN_BYTES 4096

/** Looks for tokens that begin at one place: `walk = tnd_prefix_begin(index)`, then steps. */
struct tnd_prefix_walk {
    const struct tnd_prefix_index *index;
    size_t low;
    size_t high;
    uint32_t depth;
};
struct tnd_prefix_walk tnd_prefix_begin(const struct tnd_prefix_index *index);
/** False when no token goes on with this byte. */
bool tnd_prefix_step(struct tnd_prefix_walk *walk, char byte);
/** Id of the token that has been walked as a whole, or -1. */
int32_t tnd_prefix_id(const struct tnd_prefix_walk *walk);
/** Longest token of the index that begins at `text`, and its length there; or -1. */
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
/** Memory for merging that is kept from piece to piece. Zeroed at the start. */
struct tnd_merger {
    struct tnd_symbol *symbols;
    size_t n;
    size_t capacity;
    struct tnd_merge_pair *heap; /* the best pair first */
    size_t n_heap;
    size_t heap_capacity;
    bool failed; /* no memory */
};
void tnd_merger_add(struct tnd_merger *merger, struct tnd_symbol symbol);
/** Merges the symbols that were added: of all neighbours that make a token the best pair, the
 *  leftmost among equals, again and again. O(n log n). False without memory. */
bool tnd_merger_run(struct tnd_merger *merger, const tandem_tokenizer *tokenizer, const char *text);
void tnd_merger_fini(struct tnd_merger *merger);

/** Bytes of the text that merge with nothing behind them: words are merged one by one where the
 *  tokens allow it, so that a long text takes no more memory than its longest word. */
size_t tnd_tokenizer_run(const tandem_tokenizer *tokenizer, const char *text, size_t n);

/* ---- models: append the ids of a piece; what fails sticks in `ids` and `merger` ---- */

void tnd_scores_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                       struct tnd_merger *merger, struct tnd_ids *ids);
void tnd_ranks_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                      struct tnd_merger *merger, struct tnd_ids *ids);
void tnd_unigram_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                        struct tnd_ids *ids);
/** Looks for the lowest and the highest score. */
void tnd_unigram_prepare(tandem_tokenizer *tokenizer);
void tnd_wordpiece_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                          struct tnd_ids *ids);
/** Appends what stands for a character without token: its bytes, or <unk>. */
void tnd_ids_add_unknown(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                         struct tnd_ids *ids);

/** What is looked for in a text and given back for a token: its text, or the normalized one. */
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
/** Adds the merge of rank `rank` by its two texts, as they stand in the file. False when they or
 *  what they make are no tokens. A second merge of the same pair is passed
 *  over. */
bool tnd_merges_add_texts(tandem_tokenizer *tokenizer, const char *left, size_t n_left,
                          const char *right, size_t n_right, uint32_t rank);
/** Writes the bytes that a text in the alphabet of byte-level tokenizers stands for to `out` (space
 *  for `n`), and returns their number; a text outside of it stands for itself. */
size_t tnd_byte_level_decode(const char *text, size_t n, char *out);
/** Adds the bytes in that alphabet. */
void tnd_byte_level_encode(const char *text, size_t n, struct tnd_text *out);
/** Fills byte_ids from the tokens of one byte. */
void tnd_byte_level_find_bytes(tandem_tokenizer *tokenizer);

/* ---- loaders ---- */

/** Reads llama2.c's tokenizer.bin from memory, which the tokenizer borrows. `vocabulary`: tokens
 *  expected; 0: as many as there are. Errors: FORMAT, TRUNCATED, MEMORY. */
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

/** Reads the tokenizer.model of tiktoken's kind (Llama 3) from memory; nothing is borrowed. Errors:
 *  FORMAT, UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_tiktoken_read(const void *bytes, size_t n, const char *name,
                                               tandem_tokenizer **out_tokenizer,
                                               struct tandem_error *error);
/** Reads a tekken.json of Mistral from memory; nothing is borrowed. Errors: FORMAT,
 *  UNSUPPORTED_BUILD (without PCRE2), LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_tekken_read(const void *bytes, size_t n, const char *name,
                                             tandem_tokenizer **out_tokenizer,
                                             struct tandem_error *error);
/** Whether a file is one: JSON that has a config with such keys. */
bool tnd_tokenizer_tekken_is(const void *bytes, size_t n);
/** Sets the roles of tokens as a tokenizer_config.json beside tokenizer.json, tokenizer.model or
 *  vocab.json says (tokenizer_roles.c). Errors: FILE, FORMAT, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_read_config(const char *path, tandem_tokenizer *tokenizer,
                                             struct tandem_error *error);
/** Decodes base64 (RFC 4648) up to what is none, at most `capacity` bytes (and two more, which may
 *  be written); returns the bytes read, 0 when it is broken. */
size_t tnd_take_base64(const uint8_t *bytes, size_t n, char *out, size_t capacity, size_t *out_n);
/** Whether a file begins like one. */
bool tnd_tokenizer_tiktoken_is(const uint8_t *bytes, size_t n);

/** Reads a vocab.txt of BERT from memory (tokenizer_wordpiece.c); nothing is borrowed. Errors:
 *  FORMAT, UNSUPPORTED_BUILD, LIMIT, MEMORY. */
enum tandem_status tnd_tokenizer_wordpiece_read(const void *bytes, size_t n, const char *name,
                                                tandem_tokenizer **out_tokenizer,
                                                struct tandem_error *error);
/** Whether a file's name is that of one: any text is a list of tokens. */
bool tnd_tokenizer_wordpiece_is(const char *name);
/** Makes the model WordPiece. Errors: LIMIT, MEMORY. */
enum tandem_status tnd_wordpiece_prepare(tandem_tokenizer *tokenizer, const char *continuation,
                                         size_t max_word, struct tandem_error *error);
/** What BERT's normalizer does to a text. */
struct tnd_bert_text {
    bool cleans, isolates_chinese, strips_accents, lowers;
};
/** Appends its steps; those of its pre-tokenizer. Errors: MEMORY, UNSUPPORTED_BUILD. */
enum tandem_status tnd_bert_add_normalizer(tandem_tokenizer *tokenizer, struct tnd_bert_text how,
                                           struct tandem_error *error);
enum tandem_status tnd_bert_add_pretokenizer(tandem_tokenizer *tokenizer,
                                             struct tandem_error *error);
/** Makes tokens that were read without steps a tokenizer of BERT; roles that are -1 go by their
 *  names. Whether case counts is told from the tokens. Errors: MEMORY, UNSUPPORTED_BUILD. */
enum tandem_status tnd_bert_finish(tandem_tokenizer *tokenizer, struct tandem_error *error);

/* ---- tokenizer_build.c: what loaders share ---- */

/** Reserves memory for `n` tokens and sets their number. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_reserve(tandem_tokenizer *tokenizer, int64_t n, const char *name,
                                         struct tandem_error *error);
/** Fills byte_ids from the tokens of type BYTE, and from all tokens like <0x0A> if `by_name`. */
void tnd_tokenizer_find_byte_tokens(tandem_tokenizer *tokenizer, bool by_name);
/** Appends a step, whose pattern changes its owner. Errors: MEMORY. */
enum tandem_status tnd_tokenizer_add_step(tandem_tokenizer *tokenizer, struct tnd_token_step step,
                                          struct tandem_error *error);
/** Appends a step that splits at a pattern's matches. Errors: MEMORY, FORMAT, UNSUPPORTED_BUILD. */
enum tandem_status tnd_tokenizer_add_split(tandem_tokenizer *tokenizer, const char *pattern,
                                           struct tandem_error *error);
/** Appends the splits that GGUF's tokenizer.ggml.pre names (tokenizer_pretokens.c), and sets
 *  `whole_words` and `adds_bos` as the name means them. Errors: MEMORY, UNSUPPORTED_BUILD (no such
 *  name). */
enum tandem_status tnd_tokenizer_add_pretokenizer(tandem_tokenizer *tokenizer, const char *pre,
                                                  struct tandem_error *error);
/** The name in tokenizer.ggml.pre of splits by these patterns, or NULL. `io_is_all` becomes false
 *  where the name means patterns that differ in rare texts. */
const char *tnd_tokenizer_pre_name(const char *const *patterns, size_t n, bool whole_words,
                                   bool *io_is_all);
#define TND_MAX_PRE_PATTERNS   6
/** Key of a value of a source that is the tokenizer's file. */
#define TND_TOKENIZER_FILE_KEY "tokenizer.tandem.file"
/** The byte that a token like <0x0A> stands for, or -1. */
int tnd_token_byte(const struct tnd_token *token);
/** A copy in the tokenizer's memory, NULL without memory. */
char *tnd_tokenizer_keep(tandem_tokenizer *tokenizer, const char *bytes, size_t n);

/** Encodes a text in which special tokens count only where no byte is marked (`marks`: {n}, 1:
 *  marked). The beginning token is put in front if the file wants it and the text does not begin
 *  with it. Errors: as tandem_tokenizer_encode_with. */
enum tandem_status tnd_tokenizer_encode_marked(const tandem_tokenizer *tokenizer, const char *text,
                                               size_t n, const unsigned char *marks,
                                               int32_t *out_ids, size_t capacity, size_t *out_n,
                                               struct tandem_error *error);

#endif
