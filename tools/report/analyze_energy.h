/* SPDX-License-Identifier: MIT
 * Energy in the analyze report: joules beside times, the choice by the objective, and the profiles
 * that no other beats in both time and energy. Prints nothing if the table has no joules. */
#ifndef TND_ANALYZE_ENERGY_H
#define TND_ANALYZE_ENERGY_H

#include "tools/report/analyze_data.h"

/** Fills a->joules from times and stages, if tnd_objective_set found joules in the table. */
void tnd_analysis_add_joules(struct tnd_analysis *a);
bool tnd_analysis_has_joules(const struct tnd_analysis *a, int point);
void tnd_analyze_energy_text(struct tnd_text *out, const struct tnd_analysis *a);
/** Adds members of a point, each after a comma: "objective" and "choice" (unless the objective is
 * time), "pareto". */
void tnd_analyze_energy_json(struct tnd_text *out, const struct tnd_analysis *a, int point);

#endif
