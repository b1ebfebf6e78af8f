/* SPDX-License-Identifier: MIT
 * How a convolution of F32 with constant weights is computed: the methods that there are, what
 * their times depend on, and who chooses. Nets are lowered above this, times are known above that:
 * both speak of convolutions in these words. */
#ifndef TND_CONV_METHOD_H
#define TND_CONV_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/net-list.h"

/** X(NAME, "text", function): all keep channels last; graph/lower_conv.h tells `function`.
 *  COLUMNS: the values that each place sees as a row, then a matrix product, whose profile is
 *  chosen as that of all products; a window of one place needs no rows. WINOGRAD: F(2x2, 3x3), for
 *  windows of 3 by 3 with neither steps nor groups. */
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
/** TND_CONV_METHODS for a name that is none. */
enum tnd_conv_method tnd_conv_method_from_name(const char *name);

/** What the time of a convolution depends on: its key in tables. */
struct tnd_conv_shape {
    int n; /* dimensions of the window */
    int64_t images, channels, filters, groups;
    int64_t window[TANDEM_NET_MAX_WINDOW], stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW], padding[TANDEM_NET_MAX_WINDOW]; /* in front */
    int64_t result[TANDEM_NET_MAX_WINDOW]; /* places of an image */
    bool is_followed; /* by what is computed value by value: bias, activation, residual. Some
                         methods compute that while the values are in registers */
};

struct tnd_conv;
struct tandem_tensor;
/** The shape of a convolution as its kernels see it. */
struct tnd_conv_shape tnd_conv_shape_from(const struct tnd_conv *conv, bool is_followed);
/** The shape of the convolution that a node computes by direct sums; false: it is another node. */
bool tnd_conv_node_shape(const struct tandem_tensor *node, struct tnd_conv_shape *out);

/** Multiply-adds of direct sums over all images. */
double tnd_conv_multiply_adds(const struct tnd_conv_shape *shape);

/** What is asked of a chooser. */
struct tnd_conv_question {
    struct tnd_conv_shape shape;
    bool may[TND_CONV_METHODS]; /* the methods that there are for it; DIRECT always */
    bool for_device;
    char device[16];      /* then: whose times count; "": nobody says */
    double winograd_gain; /* how many times as many multiplications direct sums take; 0 where
                             transformed tiles would go through memory, or may[WINOGRAD] is false */
};

/** What is known of a method's time. */
struct tnd_conv_estimate {
    double us;       /* below 0: nothing is known */
    double error_us; /* error bar */
    int n_near;      /* measured convolutions that it comes from; 0: it was measured itself */
};

/** How one convolution is computed, and why. */
struct tnd_conv_choice {
    struct tnd_conv_question question;
    struct tnd_conv_estimate times[TND_CONV_METHODS];
    enum tnd_conv_method method, by_rule;
    bool is_measured;   /* times decided, else the rule */
    const char *reason; /* static */
};

/** Whether the columns of a convolution take at most 1 GiB. */
bool tnd_conv_columns_fit(const struct tnd_conv_shape *shape);
/** The choice where no times are known. All times of `out` are unknown. */
void tnd_conv_choose_by_rule(const struct tnd_conv_question *question, struct tnd_conv_choice *out);

/** Who chooses. Public as an opaque type, tandem/nets.h. Both functions may be called by any
 *  thread. */
struct tandem_chooser {
    /** Before a net is lowered: its convolutions, some maybe twice. It may measure. True: the net
     *  is for a device. */
    bool (*begin)(void *user, const struct tnd_conv_shape *shapes, int n);
    void (*choose)(void *user, const struct tnd_conv_question *question,
                   struct tnd_conv_choice *out);
    void *user;
};

#endif
