/* SPDX-License-Identifier: MIT
 * Pass "fold": an operation whose operands are all constant is computed now.
 *
 * Equal: the reference kernel computes it, on the same values, as it would at each run. An
 * operation that fails (an index out of range) stays, and fails when the net runs. It stays as well
 * where the result is large and larger than its operands, or where computing it would take long. */
#include "graph/net_internal.h"
#include "ggml-like/net_kernels.h"
#include "graph/pass_internal.h"

#define MAX_BYTES (16 << 20)
#define MAX_WORK  ((int64_t)1 << 28) /* multiplications */

static int64_t bytes_of(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *v = &net->values[value];
    return tnd_dims_values(&v->shape) * (int64_t)tandem_dtype_bytes(v->type);
}

static bool pays(const struct tnd_net *net, const struct tnd_net_node *node, int64_t result,
                 int64_t values, const int *in)
{
    int64_t operands = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        operands += bytes_of(net, net->values[in[i]].base);
    }
    int64_t work = values;
    if (node->op == TND_NET_CONTRACT) {
        work = tnd_net_value(net, in[0])->shape.dims[2];
    } else if (node->op == TND_NET_CONV) {
        work = tnd_dims_values(&tnd_net_value(net, in[1])->shape);
    } else if (node->op == TND_NET_RECURRENT) {
        work = tnd_net_value(net, in[1])->shape.dims[1];
    } else {
        work = 1;
    }
    return (result <= MAX_BYTES || result <= operands) && (work == 0 || values <= MAX_WORK / work);
}

/* A constant of the new net that borrows its values from the old one. */
static int constant_of(struct tnd_net *to, const struct tnd_net_value *old)
{
    const int value = tnd_net_new_value(to, old->type, &old->shape);
    if (value != TANDEM_NET_NONE) {
        to->values[value].known = old->known;
    }
    return value;
}

int tnd_pass_fold(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    const struct tnd_net_value *old = &rewrite->from->values[node->output];
    if (old->known != NULL) {
        return constant_of(to, old);
    }
    if (!rewrite->is_needed[node->output]) {
        return TANDEM_NET_NONE; /* unused: replaced by another pass, such as float weights */
    }
    for (int i = 0; i < node->n_inputs; i++) {
        if (!tnd_match_constant(to, in[i])) {
            return TANDEM_NET_NONE;
        }
    }
    if (node->n_inputs == 0 ||
        tnd_net_is_late(node->op, old, to->values[in[0]].type) || /* computed by lower.c */
        !pays(to, node, bytes_of(rewrite->from, node->output), tnd_dims_values(&old->shape), in)) {
        return TANDEM_NET_NONE;
    }
    struct tnd_net_node now = *node;
    struct tnd_array *array = NULL;
    struct tandem_error ignored = {0};
    now.inputs = in;
    now.output = tnd_net_new_value(to, old->type, &old->shape);
    if (now.output == TANDEM_NET_NONE) {
        return TANDEM_NET_NONE;
    }
    const bool is_good = tnd_net_compute(to, &now, NULL, &array, &ignored) == TANDEM_OK;
    to->n_values--; /* the place that the result was described in */
    return is_good ? tnd_net_constant(to, array) : TANDEM_NET_NONE;
}
