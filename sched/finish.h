/* SPDX-License-Identifier: MIT
 * Work on weights that the first computation would otherwise do: backends of the host prepare them,
 * and all workers finish what preparing left undone. */
#ifndef TND_FINISH_H
#define TND_FINISH_H

#include "sched/plan.h"
#include "sched/pool.h"

struct tnd_finish_options {
    struct tnd_pool *pool;
    const struct tnd_registry *registry;
    struct tnd_mirrors *mirrors;
    bool experts; /* also weights of experts, of which one run reads only a few */
    bool (*progress)(void *user, uint64_t done_bytes, uint64_t all_bytes); /* or NULL */
    void *user;
};

/** For the weights of a plan whose slots are those of the registry. A weight for which there is no
 *  memory is left as it is. Errors: CANCELLED, THREAD. */
enum tandem_status tnd_finish_weights(const struct tnd_finish_options *options,
                                      const struct tandem_graph *graph,
                                      const struct tandem_plan *plan, struct tandem_error *error);

#endif
