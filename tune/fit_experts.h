/* SPDX-License-Identifier: MIT
 * Groups the experts of a layer by how often they are used, so that a device can keep the most used
 * ones. Part of fit_model.c. */
#ifndef TND_FIT_EXPERTS_H
#define TND_FIT_EXPERTS_H

#include "tune/fit_model.h"

/** Whether the use of experts, if given, consists of fractions of 1. */
bool tnd_fit_use_is_sane(const struct tnd_fit_options *options);

/** Splits the experts of each layer with known use into several groups. Call it before pricing.
 * Errors: LIMIT (groups), MEMORY. */
enum tandem_status tnd_fit_split_experts(const struct tnd_fit_weight *weights, int n_weights,
                                         const struct tnd_fit_options *options,
                                         struct tnd_fit_model *model, struct tandem_error *error);

/** Expected number of active experts of a layer for this many tokens. */
double tnd_fit_active_experts(const struct tnd_fit_options *options, int32_t layer, int64_t tokens);

/** Distributes the price of a layer's experts, which its first group has, over all their groups. */
void tnd_fit_share_experts(const struct tnd_fit_options *options, struct tnd_fit_model *model);

#endif
