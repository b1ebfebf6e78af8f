/* SPDX-License-Identifier: MIT
 * What the operations of nets share (family `work` of tandem/op-list.h): a net lowers to them, so
 * that schedulers know what its nodes cost, may change their order, and leave small ones to one
 * thread. */
#ifndef TND_WORK_H
#define TND_WORK_H

#include "ggml-like/tnd_tensor.h"

/** How a device may compute a node: OpenCL C with a kernel `entry` whose arguments are
 *  (global uchar *y, ulong y_at) and such a pair for each operand: where a tensor is, and its first
 *  byte. One work item a number below n_items; those behind do nothing. */
struct tnd_work_source {
    const char *entry;
    const char *text; /* terminated */
    uint64_t hash;    /* of the text */
    int64_t n_items;
    bool has_double;
};

/** Values of a fused program that take as long as one of a reference kernel: 7 ns by 0.4 ns. */
#define TND_WORK_REFERENCE 16.0
/** Multiply-adds that take as long as one value: a ratio of the rule's bounds (tune/policy.h). */
#define TND_WORK_SUMS      8.0

struct tnd_work {
    double amount;   /* multiply-adds, or values: what the cost of the operation counts */
    int64_t n_items; /* parts that threads compute by themselves */
    /* Computes items `begin` to `end - 1`. Any thread, several at once. */
    enum tandem_status (*run)(const struct tnd_work *work, const struct tandem_tensor *node,
                              int64_t begin, int64_t end);
    const struct tnd_work_source *source; /* NULL: the CPU alone can do it */
    double reference_values;              /* that a reference kernel handles, one by one; else 0 */
    const char *what;                     /* then: operation, type and name in the net */
};

/** The operation `op` of the family: `n_values` of F32 hold its result. `work` lives as long as the
 *  node, and nobody changes it once a graph computes. Errors: those of tandem_custom. */
tandem_tensor *tnd_build_work(tandem_context *context, enum tandem_op op, int64_t n_values,
                              tandem_tensor *const *src, int n_src, struct tnd_work *work);

/** The work of a node of the family; NULL: it is of another one. */
static inline const struct tnd_work *tnd_work_of(const struct tandem_tensor *node)
{
    return tnd_op_traits(node->op)->family == TND_OP_work ? node->params.work : NULL;
}

#endif
