/* SPDX-License-Identifier: MIT
 * Windows of convolutions, channels last: pointers to the rows of channels that output positions
 * read. */
#include "backends/cpu/net/cpu_net.h"

/* Start of an output position's window; returns the image. */
static int64_t place_of(const struct tnd_conv *conv, int64_t pixel, int64_t *start)
{
    for (int i = conv->n - 1; i >= 0; i--) {
        start[i] = pixel % conv->out[i] * conv->stride[i] - conv->begin[i];
        pixel /= conv->out[i];
    }
    return pixel;
}

/* How many of `n` positions in one line, starting at this one, read no padding. */
static int count_whole(const struct tnd_conv *conv, const int64_t *start, int n)
{
    const int last = conv->n - 1;
    for (int i = 0; i < conv->n; i++) {
        if (start[i] < 0 || start[i] + (conv->taps[i] - 1) * conv->dilation[i] >= conv->in[i]) {
            return 0;
        }
    }
    const int64_t room =
        conv->in[last] - 1 - start[last] - (conv->taps[last] - 1) * conv->dilation[last];
    const int64_t column = (start[last] + conv->begin[last]) / conv->stride[last];
    int64_t whole = room / conv->stride[last] + 1;
    whole = whole < conv->out[last] - column ? whole : conv->out[last] - column;
    return whole < n ? (int)whole : n;
}

/* Pointers for such positions; `step`: between taps. */
static void find_whole(const struct tnd_conv *conv, const float *x, int64_t image,
                       const int64_t *start, int n, const float **rows, int64_t step)
{
    const int64_t next = conv->stride[conv->n - 1] * conv->all_channels;
    for (int i = 0; i < conv->n; i++) {
        image = image * conv->in[i] + start[i];
    }
    for (int64_t t = 0; t < conv->n_taps; t++) {
        const float *at = x + image * conv->all_channels + conv->offsets[t];
        for (int m = 0; m < n; m++, at += next) {
            rows[t * step + m] = at;
        }
    }
}

/* Pointers for one position at the edge. */
static void find_rows(const struct tnd_conv *conv, const float *x, int64_t image,
                      const int64_t *start, const float **rows, int64_t step)
{
    int64_t tap[TANDEM_NET_MAX_WINDOW] = {0};
    for (int64_t t = 0; t < conv->n_taps; t++) {
        int64_t at = image;
        bool is_inside = true;
        for (int i = 0; i < conv->n; i++) {
            const int64_t place = start[i] + tap[i] * conv->dilation[i];
            is_inside = is_inside && place >= 0 && place < conv->in[i];
            at = at * conv->in[i] + place;
        }
        rows[t * step] = is_inside ? x + at * conv->all_channels : conv->zeros;
        for (int i = conv->n - 1; i >= 0 && ++tap[i] == conv->taps[i]; i--) {
            tap[i] = 0;
        }
    }
}

void tnd_conv_rows(const struct tnd_conv *conv, const float *x, int64_t pixel, int n,
                   int64_t channel, const float **rows)
{
    int64_t start[TANDEM_NET_MAX_WINDOW];
    if (conv->is_point) {
        for (int m = 0; m < n; m++) {
            rows[m] = x + (pixel + m) * conv->all_channels + channel;
        }
        return;
    }
    int64_t image = place_of(conv, pixel, start);
    for (int m = 0; m < n;) {
        int whole = count_whole(conv, start, n - m);
        if (whole > 0) {
            find_whole(conv, x + channel, image, start, whole, rows + m, n);
        } else {
            find_rows(conv, x + channel, image, start, rows + m, n);
            whole = 1;
        }
        m += whole;
        int i = conv->n - 1;
        start[i] += whole * conv->stride[i];
        while (i >= 0 && start[i] == conv->out[i] * conv->stride[i] - conv->begin[i]) {
            start[i] = -conv->begin[i];
            if (--i >= 0) {
                start[i] += conv->stride[i];
            } else {
                image++;
            }
        }
    }
}

void tnd_conv_columns(const struct tnd_conv *conv, const float *x, int64_t pixel,
                      const float **columns)
{
    const int last = conv->n - 1;
    const int64_t extent = conv->in[last];
    int64_t start[TANDEM_NET_MAX_WINDOW];
    int64_t tap[TANDEM_NET_MAX_WINDOW] = {0};
    const int64_t image = place_of(conv, pixel, start);
    const int64_t n_columns = (TND_CONV_LINE_PLACES - 1) * conv->stride[last] + conv->taps[last];
    const int64_t n_lines = conv->n_taps / conv->taps[last];
    const int64_t front = start[last] < 0 ? tnd_min(-start[last], n_columns) : 0;
    const int64_t inside = tnd_min(n_columns, extent - start[last]);
    const int64_t behind = inside > front ? inside : front;
    for (int64_t line = 0; line < n_lines; line++, columns += n_columns) {
        int64_t at = image;
        bool is_inside = true;
        for (int i = 0; i < last; i++) {
            const int64_t place = start[i] + tap[i] * conv->dilation[i];
            is_inside = is_inside && place >= 0 && place < conv->in[i];
            at = at * conv->in[i] + place;
        }
        const int64_t end = is_inside ? behind : front;
        const float *column = x + (at * extent + start[last] + front) * conv->all_channels;
        int64_t c = 0;
        for (; c < front; c++) {
            columns[c] = conv->zeros;
        }
        for (; c < end; c++, column += conv->all_channels) {
            columns[c] = column;
        }
        for (; c < n_columns; c++) {
            columns[c] = conv->zeros;
        }
        for (int i = last - 1; i >= 0 && ++tap[i] == conv->taps[i]; i--) {
            tap[i] = 0;
        }
    }
}

int64_t tnd_conv_tile_pixels(const struct tnd_conv_kernel *kernel, int64_t n)
{
    const int64_t parts = (n + kernel->pixels - 1) / kernel->pixels;
    return (n + parts - 1) / parts;
}
