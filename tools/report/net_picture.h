/* SPDX-License-Identifier: MIT
 * Pictures of nets: boxes for inputs, operations and outputs, lines for data flow; as text for
 * graphviz, or drawn by a simple layout of our own, layer by layer. Constants are not drawn: their
 * shapes, or single values, are shown in the boxes that read them. */
#ifndef TND_NET_PICTURE_H
#define TND_NET_PICTURE_H

#include "base/text.h"
#include "base/vector.h"
#include "graph/net.h"

/** Maximum number of boxes in a picture. */
#define TND_PICTURE_MAX 20000

enum tnd_picture_kind { TND_PICTURE_INPUT, TND_PICTURE_OPERATION, TND_PICTURE_OUTPUT };

struct tnd_picture_box {
    enum tnd_picture_kind kind;
    char lines[3][64]; /* "" for none */
    int layer;
    double x, width; /* in the simple layout; x is the middle */
};

struct tnd_picture_line {
    int from, to;
    bool is_view; /* part of the source's values, or in another order */
};

/** Copy of one net, which may change afterwards. All zero: empty. */
struct tnd_picture {
    char title[96];
    TND_VECTOR_OF(struct tnd_picture_box, boxes);
    TND_VECTOR_OF(struct tnd_picture_line, lines);
};

/** Makes a picture of a net. `names` (NULL: none) are those of its outputs. Errors: LIMIT (too many
 * boxes), MEMORY. */
enum tandem_status tnd_picture_take(const struct tnd_net *net, const char *title,
                                    const char *const *names, struct tnd_picture *out,
                                    struct tandem_error *error);
void tnd_picture_fini(struct tnd_picture *picture);

/** Pictures side by side, as input for `dot`. */
void tnd_picture_dot(const struct tnd_picture *pictures, int n, struct tnd_text *out);
/** As SVG in the simple layout: a box lies below all that it reads, near the middle of them. */
void tnd_picture_svg(struct tnd_picture *pictures, int n, struct tnd_text *out);

#endif
