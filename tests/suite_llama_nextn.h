/* SPDX-License-Identifier: MIT
 * Small models with a layer that predicts ahead. */
#ifndef TND_TESTS_SUITE_LLAMA_NEXTN_H
#define TND_TESTS_SUITE_LLAMA_NEXTN_H

#include "tandem/formats.h"

struct nextn_spec {
    int64_t vocabulary, context;
    bool is_idle;         /* the model's own layer adds nothing */
    bool agrees;          /* no layer adds anything: the one ahead says what the model will say */
    bool is_alone;        /* the layer that predicts ahead as a model, without its own parts */
    int64_t n_ahead;      /* nextn_predict_layers; 0: 1 */
    const char *left_out; /* a tensor */
};

/** A glm4moe with numbers that its names give. */
tandem_source *nextn_source(const struct nextn_spec *spec);

#endif
