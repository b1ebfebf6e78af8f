/* SPDX-License-Identifier: MIT
 * A plan in a few words. */
#ifndef TANDEM_LLAMA_PLAN_SUMMARY_H
#define TANDEM_LLAMA_PLAN_SUMMARY_H

#include "tandem/llama.h"

/** How many matrix products of m more tokens take each profile, "cpu 155, cpu+openblas 44", and how
 *  long planning took. Errors: as tandem_session_plan. */
enum tandem_status tnd_plan_summary(tandem_session *session, int64_t m, char *out, size_t capacity,
                                    double *out_took_us, struct tandem_error *error);

#endif
