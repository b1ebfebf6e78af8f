/* SPDX-License-Identifier: MIT
 * Experts of a layer by how often they are used: the most used ones first, in a few groups, so that
 * a device may keep some of them. Part of fit_model.c. */
#ifndef TND_FIT_EXPERTS_H
#define TND_FIT_EXPERTS_H

#include "tune/fit_model.h"

/** Whether the use of experts, if any is told, is made of shares of 1. */
bool tnd_fit_use_is_sane(const struct tnd_fit_options *options);

/** Makes several groups of the experts of each layer whose use is known. Before prices. Errors:
 *  LIMIT (groups), MEMORY. */
enum tandem_status tnd_fit_split_experts(const struct tnd_fit_weight *weights, int n_weights,
                                         const struct tnd_fit_options *options,
                                         struct tnd_fit_model *model, struct tandem_error *error);

/** Experts of a layer that are expected to be in use for this many tokens. */
double tnd_fit_active_experts(const struct tnd_fit_options *options, int32_t layer, int64_t tokens);

/** Shares out the price of a layer's experts, which its first group has, among their groups. */
void tnd_fit_share_experts(const struct tnd_fit_options *options, struct tnd_fit_model *model);

#endif
