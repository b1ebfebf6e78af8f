/* SPDX-License-Identifier: MIT
 * Which method computes a convolution: what the table knows of each, and the fastest one where that
 * is clear. Where a convolution was not measured, those near it tell: same window, steps, gaps,
 * groups and threads, at most TND_CONV_FARTHEST doublings of channels, filters and places away.
 * Where there are none, the rule decides. */
#ifndef TND_CONV_CHOICE_H
#define TND_CONV_CHOICE_H

#include "base/text.h"
#include "table/conv_problem.h"

/** What a table (NULL: none) knows of a method's time on the CPU, on so many threads. */
void tnd_conv_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                       enum tnd_conv_method method, int threads, struct tnd_conv_estimate *out);
/** Chooses by a table; `table` NULL, or a question for a device: by rule. */
void tnd_conv_choose(const struct tandem_table *table, int threads,
                     const struct tnd_conv_question *question, struct tnd_conv_choice *out);

/** Why a choice is what it is: its method, the time of each method with its error bar, the reason.
 *  Two lines. */
void tnd_conv_explain(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out);
/** The same as an object of JSON, on one line. */
void tnd_conv_explain_json(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out);

#endif
