/* SPDX-License-Identifier: MIT
 * Which method computes a convolution: what the table knows of each, and the fastest one where that
 * is clear. Where a convolution was not measured, those near it tell: same window, steps, gaps,
 * groups and threads, at most TND_CONV_FARTHEST doublings of channels, filters and places away.
 * Where there are none, the rule decides. */
#ifndef TND_CONV_CHOICE_H
#define TND_CONV_CHOICE_H

#include "base/text.h"
#include "table/conv_problem.h"

/** What a table (NULL: none) knows of a method's time on a device, operands and result there. */
void tnd_conv_device_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                              enum tnd_conv_method method, const char *device,
                              struct tnd_conv_estimate *out);
/** Whether a net with these convolutions is clearly faster on a device: the table must know the
 *  best methods of most of their work, there and on this many threads, and the device take at most
 *  TND_CONV_DEVICE_GAIN of the CPU's time. */
bool tnd_conv_prefers_device(const struct tandem_table *table, int threads, const char *device,
                             const struct tnd_conv_shape *shapes, int n);
/** What a table (NULL: none) knows of a method's time on the CPU, on this many threads. */
void tnd_conv_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                       enum tnd_conv_method method, int threads, struct tnd_conv_estimate *out);
/** Chooses by a table, for a device by that device's times; `table` NULL, or no times: by rule. */
void tnd_conv_choose(const struct tandem_table *table, int threads,
                     const struct tnd_conv_question *question, struct tnd_conv_choice *out);

/** Why a choice is what it is: its method, the time of each method with its error bar, the reason.
 *  Two lines. */
void tnd_conv_explain(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out);
/** As tnd_conv_explain, for a device, for which the net would be lowered anew. */
void tnd_conv_explain_on(const struct tandem_table *table, const char *device,
                         const struct tnd_conv_question *question, struct tnd_text *out);
/** The question of a convolution that is computed on a device. */
struct tnd_conv_question tnd_conv_question_on(const struct tnd_conv_question *question,
                                              const char *device);
/** A choice as an object of JSON, on one line. */
void tnd_conv_explain_json(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out);

#endif
