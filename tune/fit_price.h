/* SPDX-License-Identifier: MIT
 * Prices the groups of a model on each side by the table's times. Part of fit_model.c. */
#ifndef TND_FIT_PRICE_H
#define TND_FIT_PRICE_H

#include "tune/fit_model.h"

/** Fills us and error_us of all groups; `model->group_of` is set. Errors: NOT_FOUND (the table has
 * no times for the CPU, or for too many of the bytes that a token touches), MEMORY. */
enum tandem_status tnd_fit_price(const struct tnd_fit_weight *weights, int n_weights,
                                 const struct tnd_fit_options *options, struct tnd_fit_model *model,
                                 struct tandem_error *error);

#endif
