/* SPDX-License-Identifier: MIT
 * What the host will need soon is fetched before a device gets more work: a device works in the
 * order of submission, so a download that is asked for later would wait for all of that work, and
 * the CPU with it. Plans with a schedule only: they have the CPU go on beside devices. */
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/unfold.h"

enum { REACH = 8 /* nodes that are looked at; nearly all that a device runs beside come sooner */ };

static bool runs_on_host(const struct tnd_unfolding *unfolding, int i)
{
    uint32_t slots = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        slots |= UINT32_C(1) << unfolding->plan->nodes[i].stage[s].backend % 32;
    }
    return (slots & unfolding->out->device_slots) == 0;
}

/* Whether all that the node reads was computed before node `first`. */
static bool is_ready(const struct tandem_graph *graph, const struct tandem_tensor *node, int first)
{
    for (int i = 0; i < node->n_src; i++) {
        const struct tandem_tensor *root = node->src[i]->root;
        if (tnd_graph_computes(graph, root) && tnd_graph_position(graph, root->index) >= first) {
            return false;
        }
    }
    return true;
}

enum tandem_status tnd_unfold_fetch_ahead(struct tnd_unfolding *unfolding, int i)
{
    const struct tandem_graph *graph = unfolding->graph;
    struct tnd_move moves[TND_MAX_MOVES];
    TND_ASSERT(unfolding->plan->items != NULL && unfolding->out->residency != NULL);
    for (int next = i + 1; next < graph->n_nodes && next <= i + REACH; next++) {
        const struct tandem_tensor *node = graph->nodes[next];
        if (!runs_on_host(unfolding, next) || !is_ready(graph, node, i)) {
            continue;
        }
        int n = tnd_residency_fetch(unfolding->out->residency, node, moves);
        for (int m = 0; m < n; m++) {
            TND_TRY(tnd_unfold_add_move(unfolding, &moves[m], next, TANDEM_STAGE_INIT));
        }
    }
    return tnd_steps_reserve(unfolding->out, unfolding->out->n_steps + 2, unfolding->error);
}
