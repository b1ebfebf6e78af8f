/* SPDX-License-Identifier: MIT
 * Models of tests/architectures-golden-list.h and tests/encoders-golden-list.h as files. */
#ifndef TND_TESTS_SUPPORT_GOLDEN_H
#define TND_TESTS_SUPPORT_GOLDEN_H

#include <stdint.h>

enum { TND_GOLDEN_TOKENS = 12, TND_GOLDEN_VOCABULARY = 40 };

/** A model of tests/architectures-golden-list.h. Static. */
struct tnd_golden_model {
    const char *name, *config, *tensors;
};
extern const struct tnd_golden_model tnd_golden_models[];
extern const int tnd_n_golden_models;
/** The text that all of them read. */
extern const int32_t tnd_golden_tokens[TND_GOLDEN_TOKENS];

/** Writes config.json and model.safetensors to the folder of temporary files, without tensor
 *  `left_out` (-1: all), and with one more where `more` says it. Returns the number of tensors. */
int tnd_golden_write(const char *config, const char *tensors, int left_out, const char *more);

#endif
