/* SPDX-License-Identifier: MIT
 * Shared by the files that lower convolutions of F32 with channels last: the window over places,
 * and the methods in which one may be computed. */
#ifndef TND_LOWER_CONV_H
#define TND_LOWER_CONV_H

#include "graph/conv_tile.h"
#include "graph/lower_internal.h"

enum { TND_CONV_MAX_TAPS = 512 };

struct tnd_conv {
    int n; /* dimensions of the window; extents of the input and of the result */
    int64_t in[TANDEM_NET_MAX_WINDOW], out[TANDEM_NET_MAX_WINDOW];
    int64_t taps[TANDEM_NET_MAX_WINDOW], stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW], begin[TANDEM_NET_MAX_WINDOW];
    int64_t all_channels, all_filters;
    int64_t channels, filters; /* of a group */
    int64_t run;               /* values that a tap reads */
    int64_t n_taps, n_pixels;
    bool is_point;       /* a window of one place without steps and padding */
    const float *packed; /* panels of filters, each group's by themselves (conv_tile.h) */
    const float *zeros;
    int weights;                         /* the value of the net */
    const int64_t *offsets;              /* by tap: values behind the first one of the window */
    const struct tnd_epilogue *epilogue; /* NULL: none */
};

/** One filter a channel. */
static inline bool tnd_conv_is_depthwise(const struct tnd_conv *conv)
{
    return conv->channels == 1 && conv->filters == 1;
}

/** A matrix product of places and filters. */
static inline bool tnd_conv_is_product(const struct tnd_conv *conv)
{
    return conv->is_point && conv->channels == conv->all_channels;
}

/* conv_rows.c */
/** Pointers of `n` places of the result from `pixel` on, by tap and place: to values from `channel`
 *  on, or to zeros where the window lies in the padding. */
void tnd_conv_rows(const struct tnd_conv *conv, const float *x, int64_t pixel, int n,
                   int64_t channel, const float **rows);
/** How many places or tiles are computed together, of `n` in all: as many as the kernel can, in
 *  about equal parts. */
int64_t tnd_conv_tile_pixels(const struct tnd_conv_kernel *kernel, int64_t n);

/** Panels of `n` filters. */
static inline int64_t tnd_conv_panels(int64_t n)
{
    return (n + TND_CONV_PANEL - 1) / TND_CONV_PANEL;
}

/* lower_device.c: sources for devices. Of sums: what tensor 1 of the node holds are the packed
 * weights. */
void tnd_conv_print_sums(struct tnd_lowering *l, const struct tnd_conv *conv, bool by_channel,
                         tandem_tensor *node);
void tnd_conv_print_columns(struct tnd_lowering *l, const struct tnd_conv *conv,
                            tandem_tensor *node);
/** Sets `offsets`, for the window as it is now. */
enum tandem_status tnd_conv_find_offsets(struct tnd_lowering *l, struct tnd_conv *conv);

/* lower_direct.c. It may pad `x`, and make taps side by side one. */
enum tandem_status tnd_lower_conv_direct(struct tnd_lowering *l, struct tnd_conv *conv,
                                         const struct tnd_net_node *node, tandem_tensor *x,
                                         tandem_tensor **out);
/* lower_im2col.c */
enum tandem_status tnd_lower_conv_columns(struct tnd_lowering *l, struct tnd_conv *conv,
                                          tandem_tensor *x, tandem_tensor **out);
/* lower_winograd.c */
bool tnd_conv_may_winograd(const struct tnd_conv *conv);
/** How many times as many multiplications direct sums take, tiles that are not full included; 0
 *  where transformed tiles would go through memory, or the method is none. */
double tnd_conv_winograd_gain(const struct tnd_conv *conv);
enum tandem_status tnd_lower_conv_winograd(struct tnd_lowering *l, const struct tnd_conv *conv,
                                           tandem_tensor *x, tandem_tensor **out);

#endif
