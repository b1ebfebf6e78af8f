/* SPDX-License-Identifier: MIT
 * What is read in another memory is fetched at once: a device works in the order of submission, so
 * a download that is asked for later would wait for all the work that was given meanwhile. Nobody
 * waits for it before a reader elsewhere is handed out. Plans with a schedule only: their clock
 * does the same. */
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/unfold.h"

enum tandem_status tnd_unfold_fetch_early(struct tnd_unfolding *unfolding, int i)
{
    struct tnd_move move;
    const struct tandem_tensor *node = unfolding->graph->nodes[i];
    TND_ASSERT(unfolding->plan->items != NULL && unfolding->out->residency != NULL);
    if (!tnd_residency_fetch_result(unfolding->out->residency, node, &move)) {
        return TANDEM_OK;
    }
    if (unfolding->n_flights == TND_MAX_IN_FLIGHT) {
        tnd_unfold_wait_for_devices(unfolding, NULL);
    }
    unfolding->is_early = true;
    enum tandem_status status = tnd_unfold_add_move(unfolding, &move, i, TANDEM_STAGE_FINALIZE);
    unfolding->is_early = false;
    TND_TRY(status);
    return tnd_steps_reserve(unfolding->out, unfolding->out->n_steps + 2, unfolding->error);
}

bool tnd_unfold_reads_elsewhere(const struct tnd_unfolding *unfolding,
                                const struct tandem_tensor *node,
                                const struct tnd_unfolding_flight *flight)
{
    bool touches = node->root == flight->node->root;
    bool is_elsewhere = false;
    int at = tnd_graph_position(unfolding->graph, node->index);
    for (int s = 0; s < TANDEM_STAGES; s++) {
        unsigned slot = unfolding->plan->nodes[at].stage[s].backend;
        is_elsewhere = is_elsewhere || (slot != TANDEM_BACKEND_NONE && (int)slot != flight->slot);
    }
    for (int i = 0; i < node->n_src && is_elsewhere; i++) {
        touches = touches || (node->src[i] != NULL && node->src[i]->root == flight->node->root);
    }
    return touches && is_elsewhere;
}
