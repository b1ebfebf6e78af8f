/* SPDX-License-Identifier: MIT
 * Times of operations. */
#include "tools/op_times.h"

#include <inttypes.h>
#include <math.h>

void tnd_op_times_add(void *user, const tandem_tensor *node, enum tandem_stage stage, double us)
{
    struct tnd_op_times *times = user;
    const enum tandem_op op = tandem_tensor_op(node);
    if (op < TANDEM_OP_COUNT) {
        times->ops[op].us += us;
        times->ops[op].n += stage == TANDEM_STAGE_COMPUTE;
    }
}

static void predict(struct tnd_op_times *times, const tandem_tensor *node, double us, bool is_new)
{
    const enum tandem_op op = tandem_tensor_op(node);
    if (op < TANDEM_OP_COUNT && us > 0 && isfinite(us)) {
        times->ops[op].predicted_us += us;
        times->ops[op].n_predicted += is_new;
    }
}

/* Plans for several devices predict spans, transfers included; others one time per stage. */
void tnd_op_times_predict(void *user, const tandem_graph *graph, tandem_plan *plan)
{
    const int n_spans = tandem_plan_span_count(plan);
    for (int i = 0; i < n_spans; i++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, i);
        predict(user, tandem_graph_node(graph, span->node),
                (double)span->end_us - (double)span->begin_us,
                span->part < 0 && span->lane == TANDEM_LANE_COMPUTE &&
                    span->stage == TANDEM_STAGE_COMPUTE);
    }
    for (int i = 0; n_spans == 0 && i < tandem_plan_node_count(plan); i++) {
        double us = 0;
        for (int s = 0; s < TANDEM_STAGES; s++) {
            us += (double)tandem_plan_node(plan, i)->predicted_us[s];
        }
        predict(user, tandem_graph_node(graph, i), us, true);
    }
}

void tnd_op_times_print(const struct tnd_op_times *times, FILE *out)
{
    for (int op = 0; op < TANDEM_OP_COUNT; op++) {
        const struct tnd_op_time_sum *sum = &times->ops[op];
        if (!(sum->us > 0)) {
            continue;
        }
        fprintf(out, "time of %s: %.3f ms in %" PRId64 " nodes", tandem_op_name((enum tandem_op)op),
                sum->us / 1e3, sum->n);
        if (sum->n_predicted > 0) {
            fprintf(out, ", predicted %.3f ms in %" PRId64 "\n", sum->predicted_us / 1e3,
                    sum->n_predicted);
        } else {
            fprintf(out, ", not predicted\n");
        }
    }
}
