/* SPDX-License-Identifier: MIT
 * Summary of a plan. */
#ifndef TANDEM_LLAMA_PLAN_SUMMARY_H
#define TANDEM_LLAMA_PLAN_SUMMARY_H

#include "tandem/llama.h"

struct tnd_plan_facts {
    char profiles[160];         /* "cpu 155, cpu+openblas 44" */
    int n_products, n_by_table; /* matrix products, and those with times in the table */
    double took_us;             /* time of planning */
};

/** Summarises how matrix products of m more tokens are planned. Errors: as tandem_session_plan. */
enum tandem_status tnd_plan_summary(tandem_session *session, int64_t m, struct tnd_plan_facts *out,
                                    struct tandem_error *error);

#endif
