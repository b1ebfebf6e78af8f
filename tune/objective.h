/* SPDX-License-Identifier: MIT
 * What plans aim at: time, energy, or both (their product). A table with joules predicts the energy
 * of a way as its time times the power that was measured nearest to it; ways are compared by a time
 * that is weighed by their power. */
#ifndef TND_OBJECTIVE_H
#define TND_OBJECTIVE_H

#include "table/tnd_table.h"

/** "time", "energy" or "edp". */
bool tnd_objective_parse(const char *name, enum tandem_objective *out);
/** Static. */
const char *tnd_objective_name(enum tandem_objective objective);

/** Plans by `table` aim at it from now on. Errors: TABLE when that is not time and the table holds
 *  no joules; then it aims at what it did. */
enum tandem_status tnd_objective_set(tandem_table *table, enum tandem_objective objective,
                                     struct tandem_error *error);

/** Power that the machine draws while a stage runs, by the nearest curve with joules (thread count
 *  first, then shape), between its M; 0 where there is none. */
double tnd_estimate_watts(const struct tandem_table *table, const struct tnd_table_stage *stage,
                          enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                          int64_t m, int threads);

/** Joules of a product that takes stage_us (TANDEM_STAGES entries, 0 where there is none) and
 *  `rest_us` beside them; 0 when nothing is known. */
double tnd_estimate_joules(const struct tandem_table *table,
                           const struct tnd_table_profile *profile, enum tandem_type type,
                           int64_t n, int64_t k, int64_t m, int threads, const double *stage_us,
                           double rest_us);

/** Factor on a time for comparing ways by what the table aims at: 1 for time. For energy the power
 *  over the table's mean power; for the product of energy and time its square root, since P t^2 is
 *  least where t sqrt(P) is. 1 where the joules are unknown. */
double tnd_objective_weight(const struct tandem_table *table, double joules, double us);

#endif
