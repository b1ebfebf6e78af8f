/* SPDX-License-Identifier: MIT
 * Small models made for tests, and their forward pass written once more as plain loops over
 * doubles: no graph, no cache, no kernel of the library. */
#ifndef TND_TESTS_SUITE_LLAMA_NAIVE_H
#define TND_TESTS_SUITE_LLAMA_NAIVE_H

#include "tests/suite_llama.h"

enum { NAIVE_VOCABULARY = 50, NAIVE_TOKENS = 40 };

/** What a model is. Zeros: llama without anything. */
struct naive_spec {
    const char *architecture; /* NULL: "llama" */
    int64_t head_size;        /* 0: 32 */
    int64_t context;          /* 0: 64 */
    int64_t window;
    uint8_t windowed; /* bit l: layer l has the window; 0: all have it */
    bool has_biases;  /* of q, k and v */
    bool has_all_biases;
    bool has_head_norms;
    const char *activation; /* as tandem.activation says it; NULL: silu */
    bool has_halves;        /* rope pairs, said by the source */
    int64_t n_rot;          /* values of a head that are rotated; 0: all */
    const char *scaling;    /* "linear", "ntk", "llama3", "yarn", "longrope" or NULL */
    double factor;          /* of the scaling */
    double original;        /* context, of llama3, yarn and longrope */
    double attn_factor;     /* 0: not said */
    bool has_betas;         /* yarn with 20 and 2 in place of 32 and 1 */
    bool has_rope_freqs;    /* llama3's divisors as a tensor, as GGUF files have them */
    double freq_base;       /* 0: 10000 */
    int experts, used;      /* 0: no mixture */
    int expert_hidden;      /* 0: as the feed-forward block; not said then */
    int shared_hidden;      /* of the expert that every token uses; 0: none */
    int8_t
        normed; /* weights of a token's experts add up to 1: 0 as the architecture, 1, or -1: not */
};

/** A source with seeded random weights. */
tandem_source *naive_source(const struct naive_spec *spec);
/** Logits after the last of n tokens, NAIVE_VOCABULARY of them. */
void naive_logits(const tandem_source *source, const struct naive_spec *spec, const int32_t *tokens,
                  int64_t n, double *out);
void naive_tokens(int32_t *tokens, int64_t n);
/** Tokens of the last naive_logits that used an expert of a layer. */
int64_t naive_expert_hits(int layer, int expert);

#endif
