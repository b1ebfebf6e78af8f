/* SPDX-License-Identifier: MIT
 * Prints the schedule of a plan: parts of nodes, predicted times by lane, the critical path, and
 * why it was chosen or not. */
#include "runtime/print_schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "sched/plan.h"

enum { HOW_NEAR_NS = 5 }; /* precision of floats for a long graph */

/* "opencl", "opencl upload". */
static void name_lane(const struct tnd_registry *registry, const struct tandem_plan_span *span,
                      char *out, size_t n)
{
    const char *backend = tnd_registry_name(registry, span->backend);
    snprintf(out, n, "%s%s%s", backend != NULL ? backend : "(no such backend)",
             span->lane == TANDEM_LANE_COMPUTE ? "" : " ",
             span->lane == TANDEM_LANE_COMPUTE ? ""
                                               : tandem_lane_name((enum tandem_lane)span->lane));
}

static void add_parts(const struct tnd_registry *registry, const struct tandem_plan *plan,
                      struct tnd_text *out)
{
    for (int i = 0; i < tandem_plan_part_count(plan); i++) {
        const struct tandem_plan_part *part = tandem_plan_part(plan, i);
        const struct tandem_plan_node *choice = &part->choice;
        const char *backend =
            tnd_registry_name(registry, choice->stage[TANDEM_STAGE_COMPUTE].backend);
        double us = 0;
        for (int s = 0; s < TANDEM_STAGES; s++) {
            us += (double)choice->predicted_us[s];
        }
        tnd_text_printf(out,
                        "part of node %d: %s %lld to %lld of W on %s (%s), predicted %.1f us\n",
                        (int)part->node, tandem_split_name((enum tandem_split)part->split),
                        (long long)part->begin, (long long)part->end - 1,
                        backend != NULL ? backend : "(no such backend)", choice->profile, us);
    }
}

struct lane_sum {
    char name[48];
    double busy_us, critical_us;
};

static struct lane_sum *lane_of(struct lane_sum *lanes, int *io_n, const char *name)
{
    int i = 0;
    while (i < *io_n && strcmp(lanes[i].name, name) != 0) {
        i++;
    }
    if (i == *io_n) {
        snprintf(lanes[i].name, sizeof(lanes[i].name), "%s", name);
        lanes[i].busy_us = lanes[i].critical_us = 0;
        (*io_n)++;
    }
    return &lanes[i];
}

/* The span that the next one waited for: the last one to end by then; -1: none. */
static int cause_of(const struct tandem_plan *plan, double begin_us)
{
    int cause = -1;
    double last_us = 0;
    for (int i = 0; i < tandem_plan_span_count(plan); i++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, i);
        double end_us = (double)span->end_us;
        if (end_us <= begin_us + HOW_NEAR_NS * 1e-3 && (double)span->begin_us < begin_us &&
            end_us > last_us) {
            cause = i;
            last_us = end_us;
        }
    }
    return cause;
}

static void add_lanes(const struct tnd_registry *registry, const struct tandem_plan *plan,
                      struct tnd_text *out)
{
    struct lane_sum lanes[TANDEM_LANES * TND_MAX_SLOTS];
    int n_lanes = 0;
    int at = -1;
    double end_us = 0;
    char name[48];
    for (int i = 0; i < tandem_plan_span_count(plan); i++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, i);
        name_lane(registry, span, name, sizeof(name));
        lane_of(lanes, &n_lanes, name)->busy_us += (double)span->end_us - (double)span->begin_us;
        at = (double)span->end_us > end_us ? i : at;
        end_us = (double)span->end_us > end_us ? (double)span->end_us : end_us;
    }
    for (; at >= 0; at = cause_of(plan, (double)tandem_plan_span(plan, at)->begin_us)) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, at);
        name_lane(registry, span, name, sizeof(name));
        lane_of(lanes, &n_lanes, name)->critical_us +=
            (double)span->end_us - (double)span->begin_us;
    }
    for (int i = 0; i < n_lanes; i++) {
        tnd_text_printf(out,
                        "lane %-20s predicted busy %.1f of %.1f us, on the critical path %.1f us\n",
                        lanes[i].name, lanes[i].busy_us, end_us, lanes[i].critical_us);
    }
}

static void add_reason(const struct tandem_plan *plan, struct tnd_text *out)
{
    const struct tnd_plan_schedule *schedule = plan->schedule;
    double gain_us = (double)schedule->single_us - (double)schedule->best_us;
    double error_us = (double)schedule->gain_error_us;
    if (!(schedule->single_us > 0)) {
        return;
    }
    if (!(gain_us > 0)) {
        tnd_text_printf(out,
                        "nothing at once: no split and no overlap is predicted to be faster "
                        "than %.1f us\n",
                        (double)schedule->single_us);
    } else if (tnd_plan_is_scheduled(plan)) {
        tnd_text_printf(out,
                        "at once: predicted %.1f us, %.1f us without splits and overlap (gain "
                        "%.1f us, its error bar %.1f us)\n",
                        (double)schedule->makespan_us, (double)schedule->single_us, gain_us,
                        error_us);
    } else {
        tnd_text_printf(out,
                        "nothing at once: predicted %.1f us, the best schedule %.1f us; the gain "
                        "of %.1f us is not clear enough (error bar %.1f us)\n",
                        (double)schedule->single_us, (double)schedule->best_us, gain_us, error_us);
    }
}

void tnd_print_schedule(const struct tnd_registry *registry, const struct tandem_plan *plan,
                        struct tnd_text *out)
{
    if (plan->schedule != NULL) {
        add_parts(registry, plan, out);
        add_lanes(registry, plan, out);
        add_reason(plan, out);
    }
}
