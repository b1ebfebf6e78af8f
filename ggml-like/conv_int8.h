/* SPDX-License-Identifier: MIT
 * Convolutions and products of 8-bit integers: exact sums in 32 bits of (x - zero_x)(w - zero_w),
 * and what is made of them. Nets lower to this operation (graph/lower_int8.c).
 *
 * x has its channels last: {images, places.., channels}, int8_t or uint8_t without gaps. A place of
 * the result sees the values under its window tap by tap, the channels of its group side by side:
 * these are the K values of a sum. Padding counts as zero_x. A product of rows is a window of no
 * dimensions over `images` rows. The result has its filters last.
 *
 * Weights lie as vector units read them, whatever the instruction set: panels of 16 filters of one
 * group; a panel has for each 4 values of K the 4 bytes of each filter. K is filled up with zeros
 * to a multiple of 64, a group to a multiple of 16 filters. Of windows with one filter a channel
 * (depthwise) they are floats instead: for each block of 16 channels and tap, one a channel; where
 * all are of 8 bits, panels of bytes stand behind them, K filled up to a multiple of 4. */
#ifndef TND_CONV_INT8_H
#define TND_CONV_INT8_H

#include "ggml-like/array.h"
#include "ggml-like/tnd_tensor.h"

enum {
    TND_INT8_WINDOW = 3, /* dimensions of a window, at most */
    TND_INT8_PANEL = 16, /* filters of a panel */
    TND_INT8_STEP = 64,  /* K is a multiple of it in panels */
    TND_INT8_TAPS = 256  /* of depthwise windows: floats hold 255 * 255 * 256 exactly */
};

/** What becomes of a sum. */
enum tnd_int8_result {
    TND_INT8_I32, /* sum + bias */
    TND_INT8_F32, /* (sum + bias) * scale + offset, between low and high */
    TND_INT8_S8,  /* the same to the nearest integer, ties to even, plus zero_y: bounds keep it in
                     int8_t */
    TND_INT8_U8   /* in uint8_t */
};

/** What finishing the sums of a filter needs; filters that only fill up a panel have zeros. */
struct tnd_int8_filter {
    int32_t zero_w; /* of the weights as they are packed */
    int32_t sum_w;  /* of all weights, as they are packed */
    int32_t bias;
    float scale, offset;
};

struct tnd_conv_int8 {
    int n; /* dimensions of the window */
    int64_t images, channels, filters, groups;
    int64_t in[TND_INT8_WINDOW], out[TND_INT8_WINDOW], taps[TND_INT8_WINDOW];
    int64_t stride[TND_INT8_WINDOW], dilation[TND_INT8_WINDOW];
    int64_t begin[TND_INT8_WINDOW]; /* padding in front */
    bool x_is_signed;
    bool has_zero_w; /* of some filter */
    bool has_bytes;  /* of a depthwise window: behind the floats */
    int32_t zero_x;  /* where it is known */
    enum tnd_int8_result result;
    int32_t zero_y;
    float low, high; /* bounds of (sum + bias) * scale + offset; infinite: there are none */
};

/** One filter a channel. */
static inline bool tnd_int8_is_depthwise(const struct tnd_conv_int8 *conv)
{
    return conv->groups == conv->channels && conv->filters == conv->channels && conv->groups > 1;
}
/** Places of the result, of all images. */
int64_t tnd_int8_places(const struct tnd_conv_int8 *conv);
/** Values of a sum. */
int64_t tnd_int8_k(const struct tnd_conv_int8 *conv);
/** Filters of all panels. */
int64_t tnd_int8_padded_filters(const struct tnd_conv_int8 *conv);
/** Bytes of the packed weights. */
int64_t tnd_int8_weight_bytes(const struct tnd_conv_int8 *conv);

/** Packs weights {filters, K}, of bytes or int32, zero points taken off; K goes channel by channel
 *  of a group, and in it tap by tap. `out` has tnd_int8_weight_bytes bytes, all 0; zero_w and sum_w
 *  are written to `filters`, has_zero_w and has_bytes to `conv`.
 *  False: there is no memory, or the weights of some filter are further apart than 8 bits tell
 *  apart, or of a depthwise window above 255 or in more than TND_INT8_TAPS taps. */
bool tnd_int8_pack(struct tnd_conv_int8 *conv, const struct tnd_view *w, void *out,
                   struct tnd_int8_filter *filters);

/** The operation. `conv` is copied. x, w and filters (struct tnd_int8_filter, padded) are tensors
 *  over bytes, of any type, without gaps; zero_x (NULL: conv->zero_x) over one value of x's type.
 *  The result is over bytes, too: as many F32 as hold it. Errors: SHAPE, MEMORY. */
tandem_tensor *tnd_build_conv_int8(tandem_context *context, const struct tnd_conv_int8 *conv,
                                   tandem_tensor *x, tandem_tensor *w, tandem_tensor *filters,
                                   tandem_tensor *zero_x);

/** Writes value `at` of a node, made of its sum: the reference. */
void tnd_int8_write(struct tandem_tensor *node, int64_t at, int64_t sum,
                    const struct tnd_int8_filter *filter);

/** Zero point of x of a node's convolution, as if x were uint8_t (plus 128 where it is int8_t). */
int32_t tnd_int8_zero_x(const struct tandem_tensor *node);

/** Where place `at` of the result sees tap `tap` (one index a dimension): the number of the place
 *  of x; -1: in the padding. */
int64_t tnd_int8_place(const struct tnd_conv_int8 *conv, int64_t at, const int64_t *tap);

#endif
