/* SPDX-License-Identifier: MIT
 * Measuring the methods of convolutions: a net of one convolution for each method, computed on the
 * runtime's own threads. */
#ifndef TND_TUNE_CONVS_H
#define TND_TUNE_CONVS_H

#include "ggml-like/conv_method.h"
#include "runtime/tnd_runtime.h"
#include "table/tnd_table.h"

/** One convolution, ready by each method that it has. */
struct tnd_conv_trial;

/** Lowers the convolution by each method, with random weights; with a bias and a bound behind it
 *  where it is followed. `slot`: of a device with memory of its own, for the methods that it can
 *  compute alone; TND_CONV_ON_CPU: as the runtime plans it. The caller owns the trial. Errors:
 *  those of lowering, planning and of the device. */
enum { TND_CONV_ON_CPU = -1 };
enum tandem_status tnd_conv_trial_open(tandem_runtime *runtime, const struct tnd_conv_shape *shape,
                                       int slot, struct tnd_conv_trial **out,
                                       struct tandem_error *error);
/** NULL is allowed. */
void tnd_conv_trial_close(struct tnd_conv_trial *trial);
/** The net of such a convolution, its input with channels last, as `chooser` (NULL: the rule) wants
 *  it; the choice is written to `out`. Errors: those of lowering. */
enum tandem_status tnd_conv_ask(const struct tandem_chooser *chooser,
                                const struct tnd_conv_shape *shape, struct tnd_conv_choice *out,
                                struct tandem_error *error);
bool tnd_conv_trial_has(const struct tnd_conv_trial *trial, enum tnd_conv_method method);
/** Computes once by a method that there is; on a device transfers do not count. Errors: those of
 *  computing. */
enum tandem_status tnd_conv_trial_run(struct tnd_conv_trial *trial, enum tnd_conv_method method,
                                      double *out_us, struct tandem_error *error);

struct tnd_conv_tuning {
    const struct tnd_conv_shape *shapes; /* borrowed, no two alike */
    int n;
    int slot; /* as above */
    double budget_s;
    uint64_t begin_ns; /* of the budget, by the runtime's clock */
    /** Told before each turn of a convolution; true ends measuring with CANCELLED. May be NULL. */
    bool (*progress)(void *user, int turn, int n_turns, double elapsed_s);
    void *user;
};

/** Measures on the runtime's threads, or a device, methods in turns, and adds the times to `fresh`;
 *  those that there was no time for are left out. Errors: CANCELLED (what was measured is in
 *  `fresh`), MEMORY, those of computing. */
enum tandem_status tnd_tune_convs(tandem_runtime *runtime, const struct tnd_conv_tuning *tuning,
                                  tandem_table *fresh, struct tandem_error *error);

/** Devices with memory of their own that convolutions can be measured on: all, or that of the
 *  forced profile. Returns how many there are. */
int tnd_conv_devices(tandem_runtime *runtime, uint8_t out_slots[TND_MAX_SLOTS]);

/** Leaves out shapes that come twice and those with one method; returns how many are left. */
int tnd_conv_distinct(struct tnd_conv_shape *shapes, int n);

#endif
