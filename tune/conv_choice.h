/* SPDX-License-Identifier: MIT
 * Chooses the method of a convolution: the fastest one by the table where its lead is clear. A
 * convolution that was not measured is estimated from measured ones with the same window, steps,
 * gaps, groups and threads, at most TND_CONV_FARTHEST doublings of channels, filters and positions
 * away. Without any, the rule decides. */
#ifndef TND_CONV_CHOICE_H
#define TND_CONV_CHOICE_H

#include "base/text.h"
#include "table/conv_problem.h"

/** Estimates a method's time on a device, operands and result in its memory. `table` NULL: unknown.
 */
void tnd_conv_device_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                              enum tnd_conv_method method, const char *device,
                              struct tnd_conv_estimate *out);
/** Whether a net with these convolutions is clearly faster on a device: the table must have times
 * of the best methods for most of their work, on the device and on this many CPU threads, and the
 * device must take at most TND_CONV_DEVICE_GAIN of the CPU's time. */
bool tnd_conv_prefers_device(const struct tandem_table *table, int threads, const char *device,
                             const struct tnd_conv_shape *shapes, int n);
/** Estimates a method's time on this many threads of the CPU. `table` NULL: unknown. */
void tnd_conv_estimate(const struct tandem_table *table, const struct tnd_conv_shape *shape,
                       enum tnd_conv_method method, int threads, struct tnd_conv_estimate *out);
/** Chooses a method by the table, with a device's times if the question names one; by the rule if
 * `table` is NULL or has no times. */
void tnd_conv_choose(const struct tandem_table *table, int threads,
                     const struct tnd_conv_question *question, struct tnd_conv_choice *out);

/** Appends the reasons of a choice in two lines: its method, each method's time with its error bar,
 * and why it was chosen. */
void tnd_conv_explain(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out);
/** Like tnd_conv_explain, for a device that the net would be lowered for again. */
void tnd_conv_explain_on(const struct tandem_table *table, const char *device,
                         const struct tnd_conv_question *question, struct tnd_text *out);
/** The same question for a device instead of the CPU. */
struct tnd_conv_question tnd_conv_question_on(const struct tnd_conv_question *question,
                                              const char *device);
/** Appends a choice as a JSON object on one line. */
void tnd_conv_explain_json(const struct tnd_conv_choice *choice, int threads, struct tnd_text *out);

#endif
