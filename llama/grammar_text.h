/* SPDX-License-Identifier: MIT
 * Cursor in a text, shared by the parsers of grammars and regular expressions. */
#ifndef TND_LLAMA_GRAMMAR_TEXT_H
#define TND_LLAMA_GRAMMAR_TEXT_H

#include "llama/grammar.h"

enum { TND_SPOT_MOST_RANGES = 256 /* per character class */ };

struct tnd_spot {
    struct tnd_tree *tree;
    const char *begin, *at, *end;
    bool in_json; /* of regular expressions: see tnd_regex_parse */
};

/** Reports a syntax error with its line and the text at the cursor. Returns 0, as a node. */
int32_t tnd_spot_fail(struct tnd_spot *t, const char *what);
int tnd_spot_line(const struct tnd_spot *t);
/** The next byte, not consumed; 0 at the end. */
char tnd_spot_peek(const struct tnd_spot *t);
/** Consumes a character; fails on invalid UTF-8. */
uint32_t tnd_spot_char(struct tnd_spot *t);
/** Consumes n hexadecimal digits; fails unless they are a code point. */
uint32_t tnd_spot_hex(struct tnd_spot *t, int n);
/** Encodes a code point as UTF-8; returns the number of bytes (at most 4). */
size_t tnd_spot_utf8(uint32_t c, char *out);
/** Consumes * + ? {m} {m,} {,n} {m,n}, if there is one; `max` -1: unbounded. False: there is none,
 * or an error was reported. */
bool tnd_spot_repeat(struct tnd_spot *t, int64_t *out_min, int64_t *out_max);

#endif
