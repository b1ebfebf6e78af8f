/* SPDX-License-Identifier: MIT
 * What the parsers of grammars and regular expressions share: a place in a text. */
#ifndef TND_LLAMA_GRAMMAR_TEXT_H
#define TND_LLAMA_GRAMMAR_TEXT_H

#include "llama/grammar.h"

enum { TND_SPOT_MOST_RANGES = 256 /* of a class */ };

struct tnd_spot {
    struct tnd_tree *tree;
    const char *begin, *at, *end;
    bool in_json; /* of regular expressions: see tnd_regex_parse */
};

/** Notes a fault with its line and what stands there. Returns 0, as a node. */
int32_t tnd_spot_fail(struct tnd_spot *t, const char *what);
int tnd_spot_line(const struct tnd_spot *t);
/** The next byte, not taken; 0 at the end. */
char tnd_spot_peek(const struct tnd_spot *t);
/** Takes a character; fails where the text is no UTF-8. */
uint32_t tnd_spot_char(struct tnd_spot *t);
/** Takes n hexadecimal digits; fails unless they are a code point. */
uint32_t tnd_spot_hex(struct tnd_spot *t, int n);
/** Writes the UTF-8 of a code point; returns how many bytes (at most 4). */
size_t tnd_spot_utf8(uint32_t c, char *out);
/** Takes * + ? {m} {m,} {,n} {m,n} if it stands here; `max` -1: without end. False: it does not, or
 *  a fault was noted. */
bool tnd_spot_repeat(struct tnd_spot *t, int64_t *out_min, int64_t *out_max);

#endif
