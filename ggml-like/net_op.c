/* SPDX-License-Identifier: MIT
 * Operations of nets: their names and their reference kernels. */
#include <stdio.h>
#include <string.h>

#include "ggml-like/net_kernels.h"

const char *tnd_net_op_name(enum tnd_net_op op)
{
    static const char *const names[] = {
#define OP_NAME(name, text) text,
        TND_NET_OP_LIST(OP_NAME)
#undef OP_NAME
    };
    return names[op];
}

tnd_net_kernel_fn tnd_net_kernel(enum tnd_net_op op)
{
    static const tnd_net_kernel_fn kernels[TND_N_NET_OPS] = {
        [TND_NET_COPY] = tnd_kernel_copy,
        [TND_NET_CAST] = tnd_kernel_copy,
        [TND_NET_UNARY] = tnd_kernel_unary,
        [TND_NET_BINARY] = tnd_kernel_binary,
        [TND_NET_SELECT] = tnd_kernel_select,
        [TND_NET_REDUCE] = tnd_kernel_reduce,
        [TND_NET_ARG_REDUCE] = tnd_kernel_arg_reduce,
        [TND_NET_CONTRACT] = tnd_kernel_contract,
        [TND_NET_CONCAT] = tnd_kernel_concat,
        [TND_NET_PAD] = tnd_kernel_pad,
        [TND_NET_GATHER] = tnd_kernel_gather,
        [TND_NET_GATHER_ELEMENTS] = tnd_kernel_gather_elements,
        [TND_NET_SCATTER_ELEMENTS] = tnd_kernel_scatter_elements,
        [TND_NET_SCAN] = tnd_kernel_scan,
        [TND_NET_ARG_SORT] = tnd_kernel_arg_sort,
        [TND_NET_CONV] = tnd_kernel_conv,
        [TND_NET_POOL] = tnd_kernel_pool,
        [TND_NET_SOFTMAX] = tnd_kernel_softmax,
        [TND_NET_NORM] = tnd_kernel_norm,
        [TND_NET_ATTENTION] = tnd_kernel_attention,
        [TND_NET_RECURRENT] = tnd_kernel_recurrent,
    };
    return kernels[op];
}

size_t tnd_kernel_scratch(enum tnd_net_op op, const struct tnd_net_params *params,
                          const struct tnd_dims *const in[2])
{
    if (tnd_dims_values(in[0]) == 0 &&
        op != TND_NET_RECURRENT) { /* (its states exist even without steps) */
        return 0;
    }
    switch (op) {
    case TND_NET_ARG_SORT:
        return tnd_kernel_sort_scratch(in[0]->dims[params->axis]);
    case TND_NET_SOFTMAX:
    case TND_NET_NORM: /* a row */
        return (size_t)in[0]->dims[2] * sizeof(double);
    case TND_NET_ATTENTION: /* a row of scores */
        return ((size_t)in[1]->dims[1] + 1) * sizeof(double);
    case TND_NET_RECURRENT: /* states of all sequences, one more, and alignment */
        return (((size_t)in[0]->dims[1] + 1) * (size_t)in[1]->dims[2] + 1) * sizeof(double);
    default:
        return 0;
    }
}

void tnd_net_name_error(enum tnd_net_op op, const char *name, struct tandem_error *error)
{
    char text[sizeof(error->text)];
    if (error == NULL || error->text[0] == '\0') {
        return;
    }
    const bool has_name = name != NULL && name[0] != '\0';
    memcpy(text, error->text, sizeof(text));
    (void)snprintf(error->text, sizeof(error->text), "%s%s%.80s%s: %.*s", tnd_net_op_name(op),
                   has_name ? " '" : "", has_name ? name : "", has_name ? "'" : "",
                   (int)sizeof(text) - 128, text);
}
