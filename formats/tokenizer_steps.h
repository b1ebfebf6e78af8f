/* SPDX-License-Identifier: MIT
 * What happens to a text before it meets the model of a tokenizer: steps that rewrite it or split
 * it into pieces. A normalizer and a pre-tokenizer are lists of such steps. */
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

/* Punctuation: ASCII, and general categories P* of Unicode 8 (Rust's crate unicode_categories), so
 * without what is newer, and with two characters that are symbols today. */
#define TND_NEW_PUNCTUATION                                                                        \
    "\\x{61d}\\x{9fd}\\x{a76}\\x{c77}\\x{c84}\\x{1b7d}-\\x{1b7e}\\x{2e43}-\\x{2e5d}"               \
    "\\x{10ead}\\x{10f55}-\\x{10f89}\\x{1144b}-\\x{1145d}\\x{11660}-\\x{1166c}"                    \
    "\\x{116b9}\\x{1183b}\\x{11944}-\\x{11946}\\x{119e2}\\x{11a3f}-\\x{11a46}"                     \
    "\\x{11a9a}-\\x{11aa2}\\x{11c41}-\\x{11c45}\\x{11c70}-\\x{11c71}"                              \
    "\\x{11ef7}-\\x{11ef8}\\x{11fff}\\x{12ff1}-\\x{12ff2}\\x{16e97}-\\x{16e9a}"                    \
    "\\x{16fe2}\\x{1e95e}-\\x{1e95f}"
#define TND_PUNCTUATION "[!-/:-@\\[-`{-~\\x{166d}\\x{111c9}]|(?![" TND_NEW_PUNCTUATION "])\\p{P}"

/* U+2581, which sentencepiece writes for a blank. */
#define TND_BLANK_MARK   "\xe2\x96\x81"
#define TND_BLANK_MARK_N 3

enum tnd_token_step_kind {
    TND_TOKEN_STEP_PREPEND,  /* `to` before a piece that is not empty */
    TND_TOKEN_STEP_REPLACE,  /* `from` or matches of `pattern` by `to` */
    TND_TOKEN_STEP_SPLIT,    /* at `from` or matches of `pattern` */
    TND_TOKEN_STEP_FORM,     /* Unicode normalization */
    TND_TOKEN_STEP_LOWER,    /* lower case */
    TND_TOKEN_STEP_STRIP,    /* white space at the ends */
    TND_TOKEN_STEP_CHARSMAP, /* sentencepiece's normalizer */
    TND_TOKEN_STEP_CLEAN,    /* BERT: control characters and blanks; Chinese ones apart */
    TND_TOKEN_STEP_MARKS,    /* marks that take no room, which accents are, go */
    TND_TOKEN_STEP_TO_BYTES, /* each byte becomes a character (tnd_byte_level_encode) */
    TND_TOKEN_STEP_OF_BYTES  /* and back */
};

/* What becomes of the separator; names of Hugging Face's tokenizers. */
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
    bool inverts;      /* SPLIT: what does not match is the separator */
    bool only_first;   /* PREPEND: to the first piece of a text */
    bool unless_there; /* PREPEND: unless the piece begins with it, or with a blank */
    bool left, right;  /* STRIP; CLEAN: control characters go, Chinese ones stand apart */
    enum tnd_unicode_form form;
    const struct tnd_charsmap *charsmap;
};

struct tnd_piece {
    size_t start;
    size_t end;
};

/** What matching patterns has cost and may cost, for all pieces of a text. Zeroed at the start. */
struct tnd_pattern_work {
    uint64_t done;
    uint64_t n_bytes; /* of text; the more, the more work is allowed */
};

/** A text and its pieces. Zeroed at the start. */
struct tnd_pieces {
    struct tnd_text text;
    struct tnd_text other; /* the text after the step that runs */
    struct tnd_piece *items;
    size_t n;
    size_t capacity;
    struct tnd_piece *other_items;
    size_t other_capacity;
    size_t limit; /* bytes that the text may grow to */
    struct tnd_pattern_work work;
    bool is_first; /* nothing of the text stands before it */
    bool failed;   /* no memory */
};

void tnd_pieces_fini(struct tnd_pieces *pieces);
/** Begins anew with one piece. */
void tnd_pieces_set(struct tnd_pieces *pieces, const char *text, size_t n);
/** Errors: MEMORY, LIMIT (a pattern that takes too long, a text that grows without bounds). */
enum tandem_status tnd_steps_run(const struct tnd_token_step *steps, size_t n,
                                 struct tnd_pieces *pieces, struct tandem_error *error);

/* ---- tokenizer_pattern.c: regular expressions by PCRE2 ---- */

/** Adds a pattern in PCRE2's syntax to `out` (tokenizer_syntax.c). Errors: UNSUPPORTED_BUILD. */
enum tandem_status tnd_pattern_translate(const char *pattern, struct tnd_text *out,
                                         struct tandem_error *error);
/** `pattern` ends with a zero byte. Errors: FORMAT, MEMORY, UNSUPPORTED_BUILD (no PCRE2). */
enum tandem_status tnd_pattern_new(const char *pattern, struct tnd_pattern **out_pattern,
                                   struct tandem_error *error);
void tnd_pattern_free(struct tnd_pattern *pattern);
/** The pattern as it was given. */
const char *tnd_pattern_text(const struct tnd_pattern *pattern);

/** Looks for matches in one text of valid UTF-8. */
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
/** The next match that is not empty. Errors: LIMIT. */
enum tandem_status tnd_pattern_search_next(struct tnd_pattern_search *search, bool *out_found,
                                           struct tnd_piece *out_match, struct tandem_error *error);
void tnd_pattern_search_end(struct tnd_pattern_search *search);

/* ---- tokenizer_charsmap.c: sentencepiece's normalizer ---- */

struct tnd_prefix_index;
/** What NormalizerSpec says. */
struct tnd_charsmap {
    const uint8_t *trie; /* double array of little-endian 32-bit units */
    size_t n_units;
    const char *texts; /* each ends with a zero byte; the last one too */
    size_t n_texts;
    bool adds_prefix;
    bool removes_blanks; /* at the ends, and all but one in between */
    bool escapes_blanks;
    bool is_suffix;   /* the blank that is added goes to the end */
    bool by_grapheme; /* rules are for whole graphemes, or characters, as the tokenizers library
                         has them; nothing else is done */
    const struct tnd_prefix_index *users; /* tokens that are left as they are */
};
/** Takes precompiled_charsmap apart, which is borrowed. 0 bytes: no rules. Errors: FORMAT. */
enum tandem_status tnd_charsmap_read(const uint8_t *bytes, size_t n, const char *name,
                                     struct tnd_charsmap *out, struct tandem_error *error);
void tnd_charsmap_apply(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                        struct tnd_text *out);

#endif
