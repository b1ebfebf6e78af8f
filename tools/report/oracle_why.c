/* SPDX-License-Identifier: MIT
 * Explains a regret: which of two candidates was predicted wrong, and what its prediction is based
 * on. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/report/oracle.h"

/* Smaller relative deviations are not reported. */
#define RIGHT 0.05

__attribute__((format(printf, 2, 3))) static void add(struct tnd_oracle_cell *cell,
                                                      const char *format, ...)
{
    size_t n = strlen(cell->why);
    va_list arguments;
    if (n > 0) {
        n += (size_t)snprintf(cell->why + n, sizeof(cell->why) - n, "; ");
    }
    va_start(arguments, format);
    if (n < sizeof(cell->why)) {
        vsnprintf(cell->why + n, sizeof(cell->why) - n, format, arguments);
    }
    va_end(arguments);
}

/* What the estimate is based on, weakest point first. */
static void print_ground(const struct tnd_estimate *estimate, char *out, size_t bytes)
{
    if (!estimate->measured_shape) {
        snprintf(out, bytes, "shape not measured");
    } else if (estimate->outside > 0) {
        snprintf(out, bytes, "M is %.1f times beyond the measured ones", exp2(estimate->outside));
    } else if (estimate->above_us > 0) {
        snprintf(out, bytes, "thread count not measured");
    } else if (estimate->stale) {
        snprintf(out, bytes, "stale cell");
    } else if (estimate->noisy) {
        snprintf(out, bytes, "noisy cell");
    } else {
        snprintf(out, bytes, "measured: a step between cells, or the machine has changed");
    }
}

/* Adds one candidate; returns whether its prediction was right. */
static bool add_candidate(struct tnd_oracle_cell *cell, const char *profile, int threads,
                          const struct tnd_estimate *estimate, double measured_us)
{
    char ground[80];
    if (estimate->us <= 0) {
        add(cell, "nothing is known of %s t%d", profile, threads);
        return false;
    }
    double error = estimate->us / measured_us - 1;
    if (fabs(error) <= RIGHT) {
        return true;
    }
    print_ground(estimate, ground, sizeof(ground));
    add(cell, "%s t%d was predicted %.0f %% too %s (%s)", profile, threads, 100 * fabs(error),
        error < 0 ? "fast" : "slow", ground);
    return false;
}

void tnd_oracle_explain(struct tnd_oracle_cell *cell)
{
    cell->why[0] = '\0';
    bool right = add_candidate(cell, cell->problem.profile, cell->problem.threads,
                               &cell->chosen_estimate, cell->chosen_us);
    right = add_candidate(cell, cell->best_profile, cell->best_threads, &cell->best_estimate,
                          cell->best_us) &&
            right;
    if (right) {
        add(cell,
            "both were predicted within 5 %%: caution about error bars, or the cost of moving, "
            "decided");
    }
    if (cell->noise > RIGHT) {
        add(cell, "the best way differed from itself by %.0f %%", 100 * cell->noise);
    }
}
