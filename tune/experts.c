/* SPDX-License-Identifier: MIT
 * Finds the plain product that is equivalent to products of experts. */
#include "tune/experts.h"

#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"

double tnd_experts_active(int64_t experts, int64_t used, int64_t tokens)
{
    const double idle = experts > 0 ? 1.0 - (double)used / (double)experts : 0.0;
    return (double)experts * (1.0 - pow(idle > 0.0 ? idle : 0.0, (double)tokens));
}

double tnd_experts_active_used(struct tnd_expert_use *use, int64_t tokens)
{
    double active = 0;
    if (use->known_m == tokens && tokens > 0) {
        return use->known_active;
    }
    for (int64_t e = 0; e < use->n; e++) {
        double share = (double)use->shares[e];
        active += tokens == 1 ? share : 1.0 - pow(1.0 - share, (double)tokens);
    }
    use->known_m = tokens;
    use->known_active = active;
    return active;
}

void tnd_experts_problem(const tandem_tensor *node, struct tnd_expert_use *use,
                         struct tnd_problem *out)
{
    const tandem_tensor *w = node->src[0]; /* {K, N, experts} */
    const int64_t tokens = node->ne[2];
    const double pairs = (use != NULL ? use->sum : (double)node->ne[1]) * (double)tokens;
    const double active = use != NULL ? tnd_experts_active_used(use, tokens)
                                      : tnd_experts_active(w->ne[2], node->ne[1], tokens);
    TND_ASSERT(node->op == TANDEM_OP_MUL_MAT_ID);
    memset(out, 0, sizeof(*out));
    memcpy(out->op, "mul_mat", sizeof("mul_mat"));
    out->type = w->type;
    out->k = w->ne[0];
    out->n = (int64_t)((double)w->ne[1] * active + 0.5);
    out->m = active > 0.0 ? (int64_t)(pairs / active + 0.5) : 0;
    out->n = out->n > 0 ? out->n : 1;
    out->m = out->m > 0 ? out->m : 1;
}
