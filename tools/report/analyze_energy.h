/* SPDX-License-Identifier: MIT
 * The energy part of the analyze report: joules beside times, the choice by what is aimed at, and
 * the ways that no other beats in both. Prints nothing where the table has no joules. */
#ifndef TND_ANALYZE_ENERGY_H
#define TND_ANALYZE_ENERGY_H

#include "tools/report/analyze_data.h"

/** Fills a->joules from the times and stages that are there, when tnd_objective_set has found some
 *  in the table. */
void tnd_analysis_add_joules(struct tnd_analysis *a);
bool tnd_analysis_has_joules(const struct tnd_analysis *a, int point);
void tnd_analyze_energy_text(struct tnd_text *out, const struct tnd_analysis *a);
/** Members of a point, each behind a comma: "objective" and "choice" (unless that is time),
 *  "pareto". */
void tnd_analyze_energy_json(struct tnd_text *out, const struct tnd_analysis *a, int point);

#endif
