/* SPDX-License-Identifier: MIT
 * Measuring the methods of convolutions: a net of one convolution for each method, computed on the
 * runtime's own threads. */
#ifndef TND_TUNE_CONVS_H
#define TND_TUNE_CONVS_H

#include "ggml-like/conv_method.h"
#include "runtime/tnd_runtime.h"
#include "table/tnd_table.h"

/** One convolution, lowered by each of its methods. */
struct tnd_conv_trial;

/** Lowers the convolution by each method, with random weights, and with a bias and a ReLU if it
 * `is_followed`. `slot`: a device with its own memory, for the methods that it can compute alone;
 * TND_CONV_ON_CPU: planned by the runtime. The caller owns the trial. Errors: those of lowering,
 * planning and of the device. */
enum { TND_CONV_ON_CPU = -1 };
enum tandem_status tnd_conv_trial_open(tandem_runtime *runtime, const struct tnd_conv_shape *shape,
                                       int slot, struct tnd_conv_trial **out,
                                       struct tandem_error *error);
/** NULL is allowed. */
void tnd_conv_trial_close(struct tnd_conv_trial *trial);
/** Lowers a net of this convolution, its input with channels last, with `chooser` (NULL: the rule),
 * and writes the choice to `out`. Errors: those of lowering. */
enum tandem_status tnd_conv_ask(const struct tandem_chooser *chooser,
                                const struct tnd_conv_shape *shape, struct tnd_conv_choice *out,
                                struct tandem_error *error);
bool tnd_conv_trial_has(const struct tnd_conv_trial *trial, enum tnd_conv_method method);
/** Computes once by an available method; on a device transfers do not count. Errors: those of
 * computing. */
enum tandem_status tnd_conv_trial_run(struct tnd_conv_trial *trial, enum tnd_conv_method method,
                                      double *out_us, struct tandem_error *error);

struct tnd_conv_tuning {
    const struct tnd_conv_shape *shapes; /* borrowed, distinct */
    int n;
    int slot; /* as in tnd_conv_trial_open */
    double budget_s;
    uint64_t begin_ns; /* start of the budget, by the runtime's clock */
    /** Called before each turn of a convolution; true ends measuring with CANCELLED. May be NULL.
     */
    bool (*progress)(void *user, int turn, int n_turns, double elapsed_s);
    void *user;
};

/** Measures methods in turns, on the runtime's threads or a device, and adds the times to `fresh`;
 * leaves out those beyond the budget. Errors: CANCELLED (times so far are in `fresh`), MEMORY,
 * those of computing. */
enum tandem_status tnd_tune_convs(tandem_runtime *runtime, const struct tnd_conv_tuning *tuning,
                                  tandem_table *fresh, struct tandem_error *error);

/** Devices with their own memory on which convolutions can be measured: all, or that of the forced
 * profile. Returns their number. */
int tnd_conv_devices(tandem_runtime *runtime, uint8_t out_slots[TND_MAX_SLOTS]);

/** Removes duplicate shapes and those with one method; returns the number left. */
int tnd_conv_distinct(struct tnd_conv_shape *shapes, int n);

#endif
