/* SPDX-License-Identifier: MIT
 * Convolutions and products of 8-bit integers: exact 32-bit sums of (x - zero_x)(w - zero_w), and
 * how the sums become results. Nets lower to this operation (graph/lower_int8.c).
 *
 * x has its channels last: {images, positions.., channels}, int8_t or uint8_t without gaps. An
 * output position sees the values under its window tap by tap, the channels of its group side by
 * side: these are the K values of a sum. Padding counts as zero_x. A product of rows is a window of
 * no dimensions over `images` rows. The result has its filters last.
 *
 * Weights are packed the same for all instruction sets: panels of 16 filters of one group; for each
 * 4 values of K, a panel has the 4 bytes of each filter. K is padded with zeros to a multiple of
 * 64, a group to a multiple of 16 filters. Depthwise weights (one filter per channel) are floats
 * instead: for each block of 16 channels and tap, one per channel; if all of them fit into 8 bits,
 * panels of bytes follow, with K padded to a multiple of 4. */
#ifndef TND_CONV_INT8_H
#define TND_CONV_INT8_H

#include "ggml-like/array.h"
#include "ggml-like/tnd_tensor.h"

enum {
    TND_INT8_WINDOW = 3, /* most dimensions of a window */
    TND_INT8_PANEL = 16, /* filters per panel */
    TND_INT8_STEP = 64,  /* K is padded to a multiple of it */
    TND_INT8_TAPS = 256  /* most taps of depthwise windows: floats hold 255 * 255 * 256 exactly */
};

/** What a sum becomes. */
enum tnd_int8_result {
    TND_INT8_I32, /* sum + bias */
    TND_INT8_F32, /* (sum + bias) * scale + offset, between low and high */
    TND_INT8_S8,  /* the same rounded to nearest even, plus zero_y; low and high keep it in
                   * int8_t */
    TND_INT8_U8   /* and in uint8_t */
};

/** What finishing a filter's sums needs; padding filters have zeros. */
struct tnd_int8_filter {
    int32_t zero_w; /* zero point of the weights as packed */
    int32_t sum_w;  /* sum of all weights as packed */
    int32_t bias;
    float scale, offset;
};

struct tnd_conv_int8 {
    int n; /* dimensions of the window */
    int64_t images, channels, filters, groups;
    int64_t in[TND_INT8_WINDOW], out[TND_INT8_WINDOW], taps[TND_INT8_WINDOW];
    int64_t stride[TND_INT8_WINDOW], dilation[TND_INT8_WINDOW];
    int64_t begin[TND_INT8_WINDOW]; /* padding before the first position */
    bool x_is_signed;
    bool has_zero_w; /* some filter's zero_w is not 0 */
    bool has_bytes;  /* depthwise: bytes follow the floats */
    int32_t zero_x;  /* if it is known */
    enum tnd_int8_result result;
    int32_t zero_y;
    float low, high; /* bounds of (sum + bias) * scale + offset; infinite: none */
};

/** Depthwise: one filter per channel. */
static inline bool tnd_int8_is_depthwise(const struct tnd_conv_int8 *conv)
{
    return conv->groups == conv->channels && conv->filters == conv->channels && conv->groups > 1;
}
/** Number of output positions, over all images. */
int64_t tnd_int8_places(const struct tnd_conv_int8 *conv);
/** Values per sum. */
int64_t tnd_int8_k(const struct tnd_conv_int8 *conv);
/** Filters of all panels, with padding. */
int64_t tnd_int8_padded_filters(const struct tnd_conv_int8 *conv);
/** Bytes of packed weights. */
int64_t tnd_int8_weight_bytes(const struct tnd_conv_int8 *conv);

/** Packs weights {filters, K} of bytes or int32, zero points subtracted; K runs by channel of the
 * group, then by tap. `out` has tnd_int8_weight_bytes bytes, all 0; zero_w and sum_w are written to
 * `filters`, has_zero_w and has_bytes to `conv`. False if memory is short, if a filter's weights
 * span more than 8 bits, or for a depthwise window with weights above 255 or more than
 * TND_INT8_TAPS taps. */
bool tnd_int8_pack(struct tnd_conv_int8 *conv, const struct tnd_view *w, void *out,
                   struct tnd_int8_filter *filters);

/** The operation. `conv` is copied. x, w and filters (struct tnd_int8_filter, padded) are tensors
 * of bytes in any type, without gaps; zero_x (NULL: conv->zero_x) holds one value of x's type. The
 * result holds bytes, too: as many F32 as they need. Errors: SHAPE, MEMORY. */
tandem_tensor *tnd_build_conv_int8(tandem_context *context, const struct tnd_conv_int8 *conv,
                                   tandem_tensor *x, tandem_tensor *w, tandem_tensor *filters,
                                   tandem_tensor *zero_x);

/** Reference: computes value `at` of a node from its sum and stores it. */
void tnd_int8_write(struct tandem_tensor *node, int64_t at, int64_t sum,
                    const struct tnd_int8_filter *filter);

/** The zero point of a node's x as if x were uint8_t (plus 128 if x is int8_t). */
int32_t tnd_int8_zero_x(const struct tandem_tensor *node);

/** Index of the position of x that output position `at` sees under tap `tap` (one index per
 * dimension); -1: in the padding. */
int64_t tnd_int8_place(const struct tnd_conv_int8 *conv, int64_t at, const int64_t *tap);

#endif
