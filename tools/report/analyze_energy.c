/* SPDX-License-Identifier: MIT
 * Joules in the analyze report. */
#include "tools/report/analyze_energy.h"

#include <inttypes.h>
#include <string.h>

#include "base/emit.h"
#include "tune/objective.h"

static double us_of(const struct tnd_analysis *a, int profile, int point)
{
    return a->times[profile * a->n_points + point];
}

static double joules_of(const struct tnd_analysis *a, int profile, int point)
{
    return a->joules[profile * a->n_points + point];
}

void tnd_analysis_add_joules(struct tnd_analysis *a)
{
    for (int p = 0; p < a->n_profiles && a->table->mean_watts > 0; p++) {
        for (int i = 0; i < a->n_points; i++) {
            int at = p * a->n_points + i;
            double rest_us = a->times[at];
            for (int s = 0; s < TANDEM_STAGES; s++) {
                rest_us -= a->stages[at][s];
            }
            a->joules[at] =
                tnd_estimate_joules(a->table, a->profiles[p], a->type, a->n, a->k, a->m[i],
                                    a->threads, a->stages[at], rest_us > 0 ? rest_us : 0);
        }
    }
}

bool tnd_analysis_has_joules(const struct tnd_analysis *a, int point)
{
    for (int p = 0; p < a->n_profiles; p++) {
        if (joules_of(a, p, point) > 0) {
            return true;
        }
    }
    return false;
}

/* The objective: energy, or energy times time. Without another objective times are compared, but
 * the least energy is still reported. */
static double score_of(const struct tnd_analysis *a, int profile, int point)
{
    double joules = joules_of(a, profile, point);
    return a->table->objective == TANDEM_OBJECTIVE_EDP ? joules * us_of(a, profile, point) : joules;
}

/* The profile with the least score among those with joules; -1: none. */
static int best_at(const struct tnd_analysis *a, int point)
{
    int best = -1;
    for (int p = 0; p < a->n_profiles; p++) {
        if (joules_of(a, p, point) > 0 &&
            (best < 0 || score_of(a, p, point) < score_of(a, best, point))) {
            best = p;
        }
    }
    return best;
}

/* Whether no other profile is at least as good in time and energy, and better in one of them. */
static bool is_pareto(const struct tnd_analysis *a, int profile, int point)
{
    double us = us_of(a, profile, point);
    double joules = joules_of(a, profile, point);
    for (int p = 0; p < a->n_profiles; p++) {
        double other_us = us_of(a, p, point);
        double other = joules_of(a, p, point);
        if (other > 0 && other_us <= us && other <= joules && (other_us < us || other < joules)) {
            return false;
        }
    }
    return joules > 0;
}

/* ---- text ---- */

static int width_of(const struct tnd_analysis *a, int profile)
{
    int width = (int)strlen(a->profiles[profile]->name);
    return width < 12 ? 12 : width;
}

static void add_pareto(struct tnd_text *out, const struct tnd_analysis *a)
{
    bool any = false;
    for (int i = 0; i < a->n_points; i++) {
        int n = 0;
        for (int p = 0; p < a->n_profiles; p++) {
            n += is_pareto(a, p, i) ? 1 : 0;
        }
        const char *before = "";
        for (int p = 0; n > 1 && p < a->n_profiles; p++) {
            if (!is_pareto(a, p, i)) {
                continue;
            }
            if (before[0] == '\0') {
                tnd_text_printf(out, "  Time against energy at M = %" PRId64 ": ", a->m[i]);
            }
            tnd_text_printf(out, "%s%s %.1f us %.3f mJ", before, a->profiles[p]->name,
                            us_of(a, p, i), 1e3 * joules_of(a, p, i));
            before = ", ";
        }
        tnd_text_add(out, n > 1 ? ".\n" : "");
        any = any || n > 1;
    }
    if (!any) {
        tnd_text_add(out, "  The fastest way takes the least energy at every M.\n");
    }
}

void tnd_analyze_energy_text(struct tnd_text *out, const struct tnd_analysis *a)
{
    bool any = false;
    for (int i = 0; i < a->n_points && !any; i++) {
        any = tnd_analysis_has_joules(a, i);
    }
    if (!any) {
        return;
    }
    tnd_text_printf(out, "  Energy of the machine in millijoules; * marks the least %s.\n",
                    a->table->objective == TANDEM_OBJECTIVE_EDP ? "energy times time" : "energy");
    for (int i = 0; i < a->n_points; i++) {
        int best = best_at(a, i);
        tnd_text_printf(out, "%8" PRId64, a->m[i]);
        for (int p = 0; p < a->n_profiles; p++) {
            tnd_text_add(out, "  ");
            if (joules_of(a, p, i) > 0) {
                tnd_emit_number(out, width_of(a, p), 3, 1e3 * joules_of(a, p, i));
            } else {
                tnd_text_printf(out, "%*s", width_of(a, p), "-");
            }
            tnd_text_add_char(out, p == best ? '*' : ' ');
        }
        tnd_text_add_char(out, '\n');
    }
    add_pareto(out, a);
}

/* ---- JSON ---- */

void tnd_analyze_energy_json(struct tnd_text *out, const struct tnd_analysis *a, int point)
{
    if (!tnd_analysis_has_joules(a, point)) {
        return;
    }
    if (a->table->objective != TANDEM_OBJECTIVE_TIME) {
        tnd_text_printf(out, ", \"objective\": \"%s\", \"choice\": ",
                        tnd_objective_name((enum tandem_objective)a->table->objective));
        tnd_emit_json_string(out, a->profiles[best_at(a, point)]->name);
    }
    const char *before = ", \"pareto\": [";
    for (int p = 0; p < a->n_profiles; p++) {
        if (is_pareto(a, p, point)) {
            tnd_text_add(out, before);
            tnd_emit_json_string(out, a->profiles[p]->name);
            before = ", ";
        }
    }
    tnd_text_add_char(out, ']');
}
