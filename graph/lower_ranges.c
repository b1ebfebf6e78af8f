/* SPDX-License-Identifier: MIT
 * The general method for a node on several threads: the reference's kernel over ranges of one
 * dimension of the result. */
#include "graph/lower_internal.h"

void tnd_lower_ranges(struct tnd_work *job)
{
    int d = 0;
    if (tnd_lower_moves(job)) {
        return;
    }
    while (d < job->shape.n && job->shape.dims[d] == 1) {
        d++;
    }
    job->split = d < job->shape.n && tnd_work_moves_with(job, 0, d) != -2 ? d : -1;
    job->n_items = job->split >= 0 ? job->shape.dims[d] : 1;
    if (job->n_in > 0) {
        const struct tnd_dims *const in[] = {&job->in[0].view.shape,
                                             &job->in[job->n_in > 1 ? 1 : 0].view.shape};
        job->scratch = tnd_kernel_scratch(job->op, job->params, in);
    }
    job->kind = TND_WORK_RANGE;
    job->is_by_reference = true;
}
