/* SPDX-License-Identifier: MIT
 * The objective of plans: time, energy, or their product. A table with joules predicts a
 * candidate's energy as its time times the nearest measured power; candidates are compared by times
 * weighted by power. */
#ifndef TND_OBJECTIVE_H
#define TND_OBJECTIVE_H

#include "table/tnd_table.h"

/** "time", "energy" or "edp". */
bool tnd_objective_parse(const char *name, enum tandem_objective *out);
/** Static. */
const char *tnd_objective_name(enum tandem_objective objective);

/** Sets the objective of plans by `table`. Errors: TABLE if it is not time and the table has no
 * joules; the objective is then unchanged. */
enum tandem_status tnd_objective_set(tandem_table *table, enum tandem_objective objective,
                                     struct tandem_error *error);

/** Power of the machine during a stage, by the nearest curve with joules (thread count first, then
 * shape), interpolated between its M; 0 if there is none. */
double tnd_estimate_watts(const struct tandem_table *table, const struct tnd_table_stage *stage,
                          enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                          int64_t m, int threads);

/** Energy of a product that takes stage_us (TANDEM_STAGES entries, 0 for stages that do not exist)
 * and `rest_us` outside of them; 0 if unknown. */
double tnd_estimate_joules(const struct tandem_table *table,
                           const struct tnd_table_profile *profile, enum tandem_type type,
                           int64_t n, int64_t k, int64_t m, int threads, const double *stage_us,
                           double rest_us);

/** Factor on a time for comparing candidates by the table's objective: 1 for time. For energy, the
 * power over the table's mean power; for the product of energy and time, the square root of that,
 * since P t^2 is least where t sqrt(P) is. 1 if the joules are unknown. */
double tnd_objective_weight(const struct tandem_table *table, double joules, double us);

#endif
