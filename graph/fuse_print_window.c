/* SPDX-License-Identifier: MIT
 * Prints windows: the sums of a convolution or pool over the taps of a window, and the rows of a
 * convolution as a matrix product. */
#include <inttypes.h>

#include "graph/fuse_print.h"

struct writer {
    const struct tnd_printed_window *window;
    struct tnd_text *out;
    const char *space, *indent; /* "global ", or nothing */
};

/* Prints which position of the result a value belongs to, counted over all images, and its first
 * channel. `i0`, `i1`: its row and column. */
static void print_number(const struct writer *w)
{
    const struct tnd_printed_window *window = w->window;
    const int64_t channels = window->channels;
    tnd_text_printf(w->out, "%si64 place = ", w->indent);
    switch (window->kind) {
    case TND_WINDOW_PRODUCTS:
        tnd_text_printf(w->out, "i0;\n%sconst i64 first = i1 / %" PRId64 " * %" PRId64 ";\n",
                        w->indent, window->filters, channels);
        break;
    case TND_WINDOW_COLUMNS:
        tnd_text_printf(w->out,
                        "i0 %% %" PRId64 ";\n%sconst i64 first = i0 / %" PRId64 " * %" PRId64
                        " + i1 %% %" PRId64 ";\n",
                        window->n_places, w->indent, window->n_places, channels, channels);
        break;
    default:
        if (window->is_plain) {
            tnd_text_printf(w->out,
                            "i0 / %" PRId64 " * %" PRId64 " + i1;\n%sconst i64 first = i0 %% "
                            "%" PRId64 ";\n",
                            channels, window->n_places, w->indent, channels);
        } else {
            tnd_text_printf(w->out, "i0;\n%sconst i64 first = i1;\n", w->indent);
        }
        break;
    }
}

/* Prints the start of the window in the input, `s0` etc., and `from`: the first channel there. */
static void print_start(const struct writer *w)
{
    const struct tnd_printed_window *window = w->window;
    for (int d = window->n - 1; d >= 0; d--) {
        tnd_text_printf(w->out,
                        "%sconst i64 s%d = place %% %" PRId64 " * %" PRId64 " - %" PRId64 ";\n"
                        "%splace /= %" PRId64 ";\n",
                        w->indent, d, window->out[d], window->stride[d], window->begin[d],
                        w->indent, window->out[d]);
    }
    tnd_text_printf(w->out,
                    "%s%sconst float *const from = px + %" PRId64 " + place * %" PRId64
                    " + first * %" PRId64 ";\n",
                    w->indent, w->space, window->offset, window->image_stride,
                    window->channel_stride);
}

/* Filters are stored in blocks; those of a group are consecutive. For each tap and channel of a
 * block, its filters are contiguous. */
static void print_weights(const struct writer *w)
{
    const struct tnd_printed_window *window = w->window;
    const int64_t width = window->width;
    const int64_t group = window->packed_filters;
    const int64_t block = window->n_taps * window->run * width;
    tnd_text_printf(
        w->out,
        "%s%sconst float *const weights = pw + (i1 / %" PRId64 " * %" PRId64 " + i1 %% %" PRId64
        " / %" PRId64 ") * %" PRId64 " + i1 %% %" PRId64 " %% %" PRId64 ";\n",
        w->indent, w->space, group, (group + width - 1) / width, group, width, block, group, width);
}

/* Prints loops over the taps of the window that are not in the padding. */
static void print_taps(const struct writer *w)
{
    const struct tnd_printed_window *window = w->window;
    const bool is_one = window->kind == TND_WINDOW_COLUMNS;
    if (is_one) {
        tnd_text_printf(w->out, "%si64 tap = i1 / %" PRId64 ";\n", w->indent, window->channels);
        for (int d = window->n - 1; d >= 0; d--) {
            tnd_text_printf(w->out,
                            "%sconst i64 t%d = tap %% %" PRId64 ";\n%stap /= %" PRId64 ";\n",
                            w->indent, d, window->taps[d], w->indent, window->taps[d]);
        }
    }
    for (int d = 0; d < window->n; d++) {
        tnd_text_add(w->out, w->indent);
        if (!is_one) {
            tnd_text_printf(w->out, "for (i64 t%d = 0; t%d < %" PRId64 "; t%d++) ", d, d,
                            window->taps[d], d);
        }
        tnd_text_printf(w->out,
                        "{ const i64 at%d = s%d + t%d * %" PRId64 ";\n"
                        "%sif (at%d >= 0 && at%d < %" PRId64 ") {\n",
                        d, d, d, window->dilation[d], w->indent, d, d, window->in[d]);
    }
    tnd_text_printf(w->out, "%s%sconst float *const here = from", w->indent, w->space);
    for (int d = 0; d < window->n; d++) {
        tnd_text_printf(w->out, " + at%d * %" PRId64, d, window->strides[d]);
    }
    tnd_text_add(w->out, ";\n");
}

static void print_products(const struct writer *w)
{
    const struct tnd_printed_window *window = w->window;
    tnd_text_printf(w->out, "%s%sconst float *const w = weights + ", w->indent, w->space);
    tnd_text_add_repeat(w->out, '(', (size_t)window->n - 1);
    tnd_text_add(w->out, "t0");
    for (int d = 1; d < window->n; d++) {
        tnd_text_printf(w->out, " * %" PRId64 " + t%d)", window->taps[d], d);
    }
    tnd_text_printf(w->out,
                    " * %" PRId64 ";\n%sfor (i64 c = 0; c < %" PRId64 "; c++) {\n"
                    "%s    sum += here[c * %" PRId64 "] * w[c * %" PRId64 "];\n%s}\n",
                    window->run * window->width, w->indent, window->run, w->indent,
                    window->channel_stride, window->width, w->indent);
}

void tnd_fuse_print_window(const struct tnd_printed_window *window, enum tnd_dialect dialect,
                           const char *indent, struct tnd_text *out)
{
    const struct writer w = {.window = window,
                             .out = out,
                             .space = dialect == TND_DIALECT_OPENCL ? "global " : "",
                             .indent = indent};
    print_number(&w);
    print_start(&w);
    tnd_text_printf(out, "%sfloat sum = %s;\n", indent,
                    window->kind == TND_WINDOW_LARGEST ? "-(1.0f / 0.0f)" : "0.0f");
    if (window->kind == TND_WINDOW_SUM) {
        tnd_text_printf(out, "%sfloat lost = 0.0f;\n", indent);
    } else if (window->kind == TND_WINDOW_PRODUCTS) {
        print_weights(&w);
    }
    print_taps(&w);
    if (window->kind == TND_WINDOW_PRODUCTS) {
        print_products(&w);
    } else if (window->kind == TND_WINDOW_COLUMNS) {
        tnd_text_printf(out, "%ssum = here[0];\n", indent);
    } else {
        const bool sums = window->kind == TND_WINDOW_SUM;
        tnd_text_printf(out, "%sconst float x = here[0];\n%s%s\n", indent, indent,
                        tnd_fuse_print_combine(sums ? TANDEM_REDUCE_SUM : TANDEM_REDUCE_MAX));
    }
    tnd_text_add(out, indent);
    tnd_text_add_repeat(out, '}', 2 * (size_t)window->n);
    tnd_text_add(out, "\n");
}
