/* SPDX-License-Identifier: MIT
 * Pass "dead": an operation that no output depends on goes.
 *
 * Equal: a run skips such operations too; nothing that stays reads their results. Inputs stay, so
 * that callers give the same ones. */
#include "graph/pass_internal.h"

int tnd_pass_dead(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    (void)in;
    return rewrite->is_needed[node->output] ? TANDEM_NET_NONE : TND_REWRITE_DROP;
}
