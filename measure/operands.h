/* SPDX-License-Identifier: MIT
 * Operands of a measured product: copies of random weights and random activations. Made quickly:
 * speed does not depend on the values as long as they are finite and normal. */
#ifndef TND_OPERANDS_H
#define TND_OPERANDS_H

#include "base/tnd_status.h"
#include "tandem/tensor.h"

struct tnd_operands {
    enum tandem_type type;
    int64_t n, k, m_max;
    int n_copies;       /* of the weights, identical */
    size_t copy_stride; /* bytes between two copies */
    char *weights;      /* n_copies times {k, n} */
    size_t weight_bytes;
    float *x; /* {k, m_max} */
};

struct tnd_operands_limits {
    size_t rotate_bytes; /* copies are made up to this total size, */
    size_t limit_bytes;  /* but all operands together never exceed this */
    int max_copies;
};

/** Errors: ARGUMENT (shape does not fit the type), OVERFLOW, LIMIT (one copy is too much),
 *  MEMORY. */
enum tandem_status tnd_operands_init(enum tandem_type type, int64_t n, int64_t k, int64_t m_max,
                                     uint64_t seed, const struct tnd_operands_limits *limits,
                                     struct tnd_operands *out, struct tandem_error *error);
void tnd_operands_fini(struct tnd_operands *operands);

/** Copy `i` modulo n_copies of the weights. */
void *tnd_operands_weights(const struct tnd_operands *operands, uint64_t i);

#endif
