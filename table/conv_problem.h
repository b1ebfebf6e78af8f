/* SPDX-License-Identifier: MIT
 * Convolutions as keys of the table, and their spelling in benches, explanations and reports:
 *     conv:f32:w3x3:c64:f128:r28x28[:s2x2][:d1x1][:p1x1][:g1][:i1][:e][:t2][:winograd]
 * window, channels, filters, extents of the result, strides, dilations, padding at the beginning,
 * groups, images; e: element-wise operations follow; threads; method. The slowest dimension comes
 * first; a part that is left out is 1 (padding: 0). */
#ifndef TND_CONV_PROBLEM_H
#define TND_CONV_PROBLEM_H

#include "ggml-like/conv_method.h"
#include "table/tnd_table.h"

enum { TND_CONV_PROBLEM_MAX = 320 };

/** Makes the key of a record; its times are 0. */
void tnd_conv_key(const struct tnd_conv_shape *shape, enum tnd_conv_method method, int threads,
                  struct tnd_conv_time *out);
/** The shape of a record's convolution; false if one of the record's texts is not a list of
 * extents. */
bool tnd_conv_shape_of(const struct tnd_conv_time *record, struct tnd_conv_shape *out);

/** Writes the problem string. `threads` 0, `method` TND_CONV_METHODS: left out. Truncated when `n`
 * is too small (TND_CONV_PROBLEM_MAX never is). */
void tnd_conv_problem_print(const struct tnd_conv_shape *shape, int threads,
                            enum tnd_conv_method method, char *out, size_t n);
/** Whether a text begins like the problem string of a convolution. */
bool tnd_conv_problem_is(const char *text);
/** Parses a problem string; *out_threads is 0 if it has no thread count. A method is ignored.
 * Errors: FORMAT with the part that is wrong. */
enum tandem_status tnd_conv_problem_parse(const char *text, struct tnd_conv_shape *out,
                                          int *out_threads, struct tandem_error *error);

#endif
