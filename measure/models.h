/* SPDX-License-Identifier: MIT
 * Shapes of weight matrices worth measuring: those of known model sizes, or a list "NxK,NxK". */
#ifndef TND_MODELS_H
#define TND_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"
#include "tandem/tensor.h"

enum { TND_MAX_SHAPES = 64 };

struct tnd_shape {
    int64_t n, k;
};

/* How a model uses a shape. */
struct tnd_shape_use {
    double calls;  /* products of this shape in one graph; 0: unknown, counts as 1 */
    bool is_typed; /* only weights of `type`; else of every requested type */
    enum tandem_type type;
};

struct tnd_shapes {
    char model[32]; /* "7B", or "custom" for a list */
    int count;
    struct tnd_shape shape[TND_MAX_SHAPES];
    struct tnd_shape_use use[TND_MAX_SHAPES];
};

/** "65B" for "64B", as the published mulmat-tune calls it; other names unchanged. */
const char *tnd_model_name(const char *name);
/** `text` is a model name (any case) or a list. Errors: NOT_FOUND with the names that exist,
 *  FORMAT, LIMIT. */
enum tandem_status tnd_shapes_parse(const char *text, struct tnd_shapes *out,
                                    struct tandem_error *error);
/** Adds `calls` products with n x k weights of `type`. Errors: LIMIT. */
enum tandem_status tnd_shapes_count(struct tnd_shapes *shapes, enum tandem_type type, int64_t n,
                                    int64_t k, double calls, struct tandem_error *error);

#endif
