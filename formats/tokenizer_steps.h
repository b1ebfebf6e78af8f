/* SPDX-License-Identifier: MIT
 * Steps that rewrite a text or split it into pieces before a tokenizer's model encodes it. A
 * normalizer and a pre-tokenizer are lists of such steps. */
#ifndef TND_TOKENIZER_STEPS_H
#define TND_TOKENIZER_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/tnd_status.h"
#include "formats/unicode.h"

struct tnd_pattern;
struct tnd_charsmap;

/* Punctuation: ASCII, and general categories P* of Unicode 8 (Rust's crate unicode_categories):
 * without newer characters, and with two that later became symbols. */
#define TND_NEW_PUNCTUATION                                                                        \
    "\\x{61d}\\x{9fd}\\x{a76}\\x{c77}\\x{c84}\\x{1b7d}-\\x{1b7e}\\x{2e43}-\\x{2e5d}"               \
    "\\x{10ead}\\x{10f55}-\\x{10f89}\\x{1144b}-\\x{1145d}\\x{11660}-\\x{1166c}"                    \
    "\\x{116b9}\\x{1183b}\\x{11944}-\\x{11946}\\x{119e2}\\x{11a3f}-\\x{11a46}"                     \
    "\\x{11a9a}-\\x{11aa2}\\x{11c41}-\\x{11c45}\\x{11c70}-\\x{11c71}"                              \
    "\\x{11ef7}-\\x{11ef8}\\x{11fff}\\x{12ff1}-\\x{12ff2}\\x{16e97}-\\x{16e9a}"                    \
    "\\x{16fe2}\\x{1e95e}-\\x{1e95f}"
#define TND_PUNCTUATION "[!-/:-@\\[-`{-~\\x{166d}\\x{111c9}]|(?![" TND_NEW_PUNCTUATION "])\\p{P}"

/* U+2581, which sentencepiece uses for a blank. */
#define TND_BLANK_MARK   "\xe2\x96\x81"
#define TND_BLANK_MARK_N 3

enum tnd_token_step_kind {
    TND_TOKEN_STEP_PREPEND,  /* prepends `to` to a non-empty piece */
    TND_TOKEN_STEP_REPLACE,  /* replaces `from` or matches of `pattern` by `to` */
    TND_TOKEN_STEP_SPLIT,    /* splits at `from` or matches of `pattern` */
    TND_TOKEN_STEP_FORM,     /* Unicode normalization */
    TND_TOKEN_STEP_LOWER,    /* lower case */
    TND_TOKEN_STEP_STRIP,    /* removes white space at the ends */
    TND_TOKEN_STEP_CHARSMAP, /* sentencepiece's normalizer */
    TND_TOKEN_STEP_CLEAN,    /* BERT: control characters, blanks, Chinese characters */
    TND_TOKEN_STEP_MARKS,    /* removes nonspacing marks, such as accents */
    TND_TOKEN_STEP_TO_BYTES, /* each byte becomes a character (tnd_byte_level_encode) */
    TND_TOKEN_STEP_OF_BYTES  /* and back */
};

/* What happens to the separator; names of Hugging Face's tokenizers. */
enum tnd_split {
    TND_SPLIT_ISOLATED,
    TND_SPLIT_REMOVED,
    TND_SPLIT_PREVIOUS,
    TND_SPLIT_NEXT,
    TND_SPLIT_CONTIGUOUS
};

struct tnd_token_step {
    enum tnd_token_step_kind kind;
    const char *from; /* in the tokenizer's memory */
    size_t n_from;
    const char *to;
    size_t n_to;
    struct tnd_pattern *pattern; /* NULL: `from` */
    enum tnd_split split;
    bool inverts;      /* SPLIT: the text between matches is the separator */
    bool only_first;   /* PREPEND: only to a text's first piece */
    bool unless_there; /* PREPEND: unless the piece starts with it or a blank */
    bool left, right;  /* STRIP: which ends; CLEAN: drops, isolates (tnd_unicode_clean) */
    enum tnd_unicode_form form;
    const struct tnd_charsmap *charsmap;
};

struct tnd_piece {
    size_t start;
    size_t end;
};

/** Work spent on matching patterns, and its bound, over all pieces of a text. Initialise with
 * zeros. */
struct tnd_pattern_work {
    uint64_t done;
    uint64_t n_bytes; /* bytes of text; the bound grows with them */
};

/** A text and its pieces. Initialise with zeros. */
struct tnd_pieces {
    struct tnd_text text;
    struct tnd_text other; /* output of the current step */
    struct tnd_piece *items;
    size_t n;
    size_t capacity;
    struct tnd_piece *other_items;
    size_t other_capacity;
    size_t limit; /* maximum bytes of the text */
    struct tnd_pattern_work work;
    bool is_first; /* the text starts here */
    bool failed;   /* no memory */
};

void tnd_pieces_fini(struct tnd_pieces *pieces);
/** Resets to a text of one piece. */
void tnd_pieces_set(struct tnd_pieces *pieces, const char *text, size_t n);
/** Runs the steps. Errors: MEMORY, LIMIT (a pattern takes too long, or the text grows too much). */
enum tandem_status tnd_steps_run(const struct tnd_token_step *steps, size_t n,
                                 struct tnd_pieces *pieces, struct tandem_error *error);

/* ---- tokenizer_pattern.c: regular expressions by PCRE2 ---- */

/** Translates a pattern to PCRE2's syntax and appends it to `out` (tokenizer_syntax.c). Errors:
 * UNSUPPORTED_BUILD. */
enum tandem_status tnd_pattern_translate(const char *pattern, struct tnd_text *out,
                                         struct tandem_error *error);
/** Compiles a terminated pattern. Errors: FORMAT, MEMORY, UNSUPPORTED_BUILD (no PCRE2). */
enum tandem_status tnd_pattern_new(const char *pattern, struct tnd_pattern **out_pattern,
                                   struct tandem_error *error);
void tnd_pattern_free(struct tnd_pattern *pattern);
/** The pattern as given to tnd_pattern_new. */
const char *tnd_pattern_text(const struct tnd_pattern *pattern);

/** A search for matches in a text of valid UTF-8. */
struct tnd_pattern_search {
    const struct tnd_pattern *pattern;
    const char *text;
    size_t n;
    size_t at;
    struct tnd_pattern_work *work; /* borrowed */
    void *match;                   /* private */
};
enum tandem_status tnd_pattern_search_begin(struct tnd_pattern_search *search,
                                            const struct tnd_pattern *pattern,
                                            struct tnd_pattern_work *work,
                                            struct tandem_error *error);
/** Finds the next non-empty match. Errors: LIMIT. */
enum tandem_status tnd_pattern_search_next(struct tnd_pattern_search *search, bool *out_found,
                                           struct tnd_piece *out_match, struct tandem_error *error);
void tnd_pattern_search_end(struct tnd_pattern_search *search);

/* ---- tokenizer_charsmap.c: sentencepiece's normalizer ---- */

struct tnd_prefix_index;
/** A parsed NormalizerSpec. */
struct tnd_charsmap {
    const uint8_t *trie; /* double array of little-endian 32-bit units */
    size_t n_units;
    const char *texts; /* replacements, each terminated, also the last */
    size_t n_texts;
    bool adds_prefix;
    bool removes_blanks; /* removes blanks at the ends, and all but one in between */
    bool escapes_blanks;
    bool is_suffix;   /* adds the dummy blank at the end */
    bool by_grapheme; /* rules are for whole graphemes, or characters, as the tokenizers library
                         has them; nothing else is done */
    const struct tnd_prefix_index *users; /* tokens that are kept unchanged */
};
/** Parses a precompiled_charsmap, which is borrowed. 0 bytes: no rules. Errors: FORMAT. */
enum tandem_status tnd_charsmap_read(const uint8_t *bytes, size_t n, const char *name,
                                     struct tnd_charsmap *out, struct tandem_error *error);
void tnd_charsmap_apply(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                        struct tnd_text *out);

#endif
