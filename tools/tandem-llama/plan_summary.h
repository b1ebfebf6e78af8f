/* SPDX-License-Identifier: MIT
 * A plan in a few words. */
#ifndef TANDEM_LLAMA_PLAN_SUMMARY_H
#define TANDEM_LLAMA_PLAN_SUMMARY_H

#include "tandem/llama.h"

/** How many matrix products take each profile: "cpu 155, cpu+openblas 44". */
void tnd_plan_summary(const tandem_graph *graph, const tandem_plan *plan, char *out,
                      size_t capacity);
/** The same for m more tokens of a session. */
enum tandem_status tnd_plan_summary_of(tandem_session *session, int64_t m, char *out,
                                       size_t capacity, struct tandem_error *error);

#endif
