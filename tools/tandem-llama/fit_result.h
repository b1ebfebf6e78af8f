/* SPDX-License-Identifier: MIT
 * Results of `fit`, for printing. */
#ifndef TANDEM_LLAMA_FIT_RESULT_H
#define TANDEM_LLAMA_FIT_RESULT_H

#include "base/text.h"
#include "tools/report/fit_weights.h"

enum { FIT_MORE = 8 };

/* Placement of all weights by one rule. */
struct fit_placement {
    bool fits; /* if not, only `bytes` is set */
    uint8_t *sides;
    int64_t bytes; /* on devices */
    double us[TND_FIT_PHASES];
    double error_us[TND_FIT_PHASES];
};

/* Rules: everything in host memory, everything that can be on the device, whole layers, by fit. */
enum fit_rule { FIT_HOST, FIT_DEVICE, FIT_LAYERS, FIT_CHOSEN, FIT_PLACEMENTS };

struct fit_result {
    const char *model, *table, *objective;
    const struct tnd_fit_weights *weights;
    const struct tnd_fit_options *options;
    const struct tnd_fit_model *priced;
    struct fit_placement placements[FIT_PLACEMENTS];
    int n_whole_layers; /* by FIT_LAYERS, on devices */
    int n_more;
    struct {
        int64_t memory; /* of the first device */
        double us[TND_FIT_PHASES];
    } more[FIT_MORE];
};

/** Tokens of a phase: those of the prompt, or 1. */
double tnd_fit_tokens(const struct tnd_fit_model *model, enum tnd_fit_phase phase);

void tnd_fit_print_text(const struct fit_result *result, struct tnd_text *out);
void tnd_fit_print_json(const struct fit_result *result, struct tnd_text *out);

#endif
