/* SPDX-License-Identifier: MIT
 * Offers to measure the machine for a model when there is no timing table. */
#ifndef TANDEM_LLAMA_OFFER_TUNE_H
#define TANDEM_LLAMA_OFFER_TUNE_H

#include "tandem/llama.h"

/** Whether a table may change the speed on this machine: the rule uses no devices, and all cores
 * for every prompt. On two equal cores without a device, models ran with a table at 0.97 to 1.03
 * times the rule's speed (docs/benchmarks.md). Any thread. Never fails. */
bool tnd_tune_pays(const tandem_runtime *runtime);

/** Arguments that measure the products of a model, without the program's name: "bench --model
 * 4096x4096,... --type q4_0 --budget 60". */
void tnd_tune_arguments(const tandem_model *model, char *out, size_t capacity);

/** Runs mulmat-tune for the model (the one beside this program, else from PATH). False after
 * printing an error. */
bool tnd_tune_run(const tandem_model *model);

#endif
