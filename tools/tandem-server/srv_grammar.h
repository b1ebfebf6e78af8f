/* SPDX-License-Identifier: MIT
 * JSON, a byte at a time (RFC 8259): whether a text can still become a valid object. Serves as a
 * mask of tokens, so that a model can write nothing else. */
#ifndef TANDEM_SERVER_SRV_GRAMMAR_H
#define TANDEM_SERVER_SRV_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SRV_GRAMMAR_DEPTH = 64, /* objects and arrays within each other */
    SRV_GRAMMAR_BLANKS = 32 /* in a row outside of strings: a model may not go on for ever */
};

/** Where a text stands; copied by assignment. All zeros: at its begin. */
struct srv_grammar {
    uint8_t state;     /* enum of srv_grammar.c */
    uint8_t depth;     /* open objects and arrays */
    uint8_t left;      /* bytes that a character, an escape or a word still needs */
    uint8_t low, high; /* range of the next byte of a character */
    uint8_t word;      /* which of true, false, null; or half of a pair of surrogates is there */
    uint8_t blanks;
    bool is_name;      /* the string in hand is the name of a member */
    uint64_t is_array; /* bit i: what is open at depth i */
};

/** Whether the bytes may follow; moves `grammar` on if so, and leaves it otherwise. */
bool tnd_srv_grammar_accepts(struct srv_grammar *grammar, const char *bytes, size_t n);
/** Whether the object is complete. */
bool tnd_srv_grammar_is_complete(const struct srv_grammar *grammar);

#endif
