/* SPDX-License-Identifier: MIT
 * How a convolution of F32 with constant weights is computed: the methods, what their times depend
 * on, and the interface of choosers. Shared by the lowering of nets above and the tables of
 * times. */
#ifndef TND_CONV_METHOD_H
#define TND_CONV_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/net-list.h"

/** X(NAME, "text", function): all methods keep channels last; `function` is explained in
 * graph/lower_conv.h. COLUMNS: copies the inputs of each output position to a row (im2col), then a
 * matrix product, whose profile is chosen as for all products; a 1x1 window needs no such rows.
 * WINOGRAD: F(2x2, 3x3), for 3x3 windows without strides and groups. */
#define TND_CONV_METHOD_LIST(X)                                                                    \
    X(DIRECT, "direct", direct)                                                                    \
    X(COLUMNS, "im2col", columns)                                                                  \
    X(WINOGRAD, "winograd", winograd)

enum tnd_conv_method {
#define TND_CONV_METHOD_ENUM(name, text, function) TND_CONV_##name,
    TND_CONV_METHOD_LIST(TND_CONV_METHOD_ENUM)
#undef TND_CONV_METHOD_ENUM
        TND_CONV_METHODS
};

/** "direct". Static. */
const char *tnd_conv_method_name(enum tnd_conv_method method);
/** Finds a method by name; TND_CONV_METHODS if there is none. */
enum tnd_conv_method tnd_conv_method_from_name(const char *name);

/** What the time of a convolution depends on: its key in tables. */
struct tnd_conv_shape {
    int n; /* dimensions of the window */
    int64_t images, channels, filters, groups;
    int64_t window[TANDEM_NET_MAX_WINDOW], stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW], padding[TANDEM_NET_MAX_WINDOW]; /* before */
    int64_t result[TANDEM_NET_MAX_WINDOW]; /* output positions of an image */
    bool is_followed; /* by elementwise operations: bias, activation, residual. Some methods
                       * compute them while the values are in registers */
};

struct tnd_conv;
struct tandem_tensor;
/** A convolution's shape, from the description that kernels use. */
struct tnd_conv_shape tnd_conv_shape_from(const struct tnd_conv *conv, bool is_followed);
/** The shape of a convolution node computed by direct sums; false: it is another node. */
bool tnd_conv_node_shape(const struct tandem_tensor *node, struct tnd_conv_shape *out);

/** Multiply-adds of direct sums over all images. */
double tnd_conv_multiply_adds(const struct tnd_conv_shape *shape);

/** A convolution and its possible methods, for a chooser. */
struct tnd_conv_question {
    struct tnd_conv_shape shape;
    bool may[TND_CONV_METHODS]; /* the methods that can compute it; DIRECT always */
    bool for_device;
    char device[16];      /* device whose times count; "": none in particular */
    double winograd_gain; /* ratio of multiplications, direct to Winograd; 0 if transformed tiles
                           * would go through memory, or may[WINOGRAD] is false */
};

/** A method's estimated time. */
struct tnd_conv_estimate {
    double us;       /* below 0: unknown */
    double error_us; /* error bar */
    int n_near;      /* measured convolutions it is interpolated from; 0: measured itself */
};

/** How one convolution is computed, and why. */
struct tnd_conv_choice {
    struct tnd_conv_question question;
    struct tnd_conv_estimate times[TND_CONV_METHODS];
    enum tnd_conv_method method, by_rule;
    bool is_measured;   /* by times; false: by the rule */
    const char *reason; /* static */
};

/** Whether the columns of a convolution take at most 1 GiB. */
bool tnd_conv_columns_fit(const struct tnd_conv_shape *shape);
/** Chooses without times; all times in `out` are unknown. */
void tnd_conv_choose_by_rule(const struct tnd_conv_question *question, struct tnd_conv_choice *out);

/** A chooser. The public header has it as an opaque type, tandem/nets.h. Any thread may call both
 * functions. */
struct tandem_chooser {
    /** Called before a net is lowered, with its convolutions, possibly with duplicates. It may
     * measure. True: the net is for a device. */
    bool (*begin)(void *user, const struct tnd_conv_shape *shapes, int n);
    void (*choose)(void *user, const struct tnd_conv_question *question,
                   struct tnd_conv_choice *out);
    void *user;
};

#endif
