/* SPDX-License-Identifier: MIT
 * Instantiates a function for each number of tokens in a tile of packed float weights, so that all
 * sums stay in registers. */
#ifndef TND_PACKED_TOKENS_H
#define TND_PACKED_TOKENS_H

#include "backends/cpu/kernels/packed_float.h"

/* Calls function(tile, n, ...) with the tile's number of tokens as a constant `n`. */
#if defined(TND_IS_CHECKED) /* one function for any number of tokens; see TND_UNROLL */
#define TND_BY_TOKENS(function, tile, ...) function(tile, (tile)->n_tokens, __VA_ARGS__);
#else
#define TND_TOKENS_CASE(function, tile, n, ...)                                                    \
    case n:                                                                                        \
        function(tile, n, __VA_ARGS__);                                                            \
        break;
#define TND_BY_TOKENS(function, tile, ...)                                                         \
    switch ((tile)->n_tokens) {                                                                    \
        TND_TOKENS_CASE(function, tile, 1, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 2, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 3, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 4, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 5, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 6, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 7, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 8, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 9, __VA_ARGS__)                                            \
        TND_TOKENS_CASE(function, tile, 10, __VA_ARGS__)                                           \
        TND_TOKENS_CASE(function, tile, 11, __VA_ARGS__)                                           \
    default:                                                                                       \
        function(tile, TND_PACKED_F_TOKENS, __VA_ARGS__);                                          \
        break;                                                                                     \
    }
#endif

#endif
