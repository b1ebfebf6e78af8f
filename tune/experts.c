/* SPDX-License-Identifier: MIT
 * The plain product that stands for products of experts. */
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

void tnd_experts_problem(const tandem_tensor *node, struct tnd_problem *out)
{
    const tandem_tensor *w = node->src[0]; /* {K, N, experts} */
    const int64_t pairs = node->ne[1] * node->ne[2];
    const double active = tnd_experts_active(w->ne[2], node->ne[1], node->ne[2]);
    TND_ASSERT(node->op == TANDEM_OP_MUL_MAT_ID);
    memset(out, 0, sizeof(*out));
    memcpy(out->op, "mul_mat", sizeof("mul_mat"));
    out->type = w->type;
    out->k = w->ne[0];
    out->n = (int64_t)((double)w->ne[1] * active + 0.5);
    out->m = active > 0.0 ? (int64_t)((double)pairs / active + 0.5) : 0;
    out->n = out->n > 0 ? out->n : 1;
    out->m = out->m > 0 ? out->m : 1;
}
