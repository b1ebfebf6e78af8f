/* SPDX-License-Identifier: MIT
 * Runs llama-bench of llama.cpp on a few points and stores its results. */
#ifndef MULMAT_TUNE_MEASURE_LLAMA_H
#define MULMAT_TUNE_MEASURE_LLAMA_H

#include "tools/report/advise.h"

struct measure_llama {
    const char *program; /* path of llama-bench */
    const struct tnd_advise_request *request;
    double budget_s;
    int64_t when; /* stored in the records */
};

/** Measures the request's model: thread counts, batch sizes, without repacking, and, if the advice
 * so far uses a device, with and without it. Adds the records to `fresh` and prints each step to
 * stderr. After a failure, `fresh` has what was measured before. Errors: FILE (the program cannot
 * be run, or failed), FORMAT (its output), NOT_FOUND (no result within the budget), those of
 * tnd_record_add. */
enum tandem_status measure_llama(const struct measure_llama *measure, tandem_table *fresh,
                                 struct tandem_error *error);

#endif
