/* SPDX-License-Identifier: MIT
 * Models of tests/architectures-golden-list.h and tests/encoders-golden-list.h as files. */
#ifndef TND_TESTS_SUPPORT_GOLDEN_H
#define TND_TESTS_SUPPORT_GOLDEN_H

/** Writes config.json and model.safetensors to the folder of temporary files, without tensor
 *  `left_out` (-1: all), and with one more where `more` says it. Returns the number of tensors. */
int tnd_golden_write(const char *config, const char *tensors, int left_out, const char *more);

#endif
