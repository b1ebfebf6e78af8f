/* SPDX-License-Identifier: MIT
 * Was the machine in the same state from the start to the end of a sweep? A fixed piece of work is
 * timed before, during and after it, and changes are reported as text. */
#ifndef TND_MEASURE_REFERENCE_H
#define TND_MEASURE_REFERENCE_H

#include "base/clock.h"
#include "table/tnd_table.h"

/** Runs this many rounds of the reference kernel. Any thread. */
void tnd_reference_work(int rounds);
/** Times the reference kernel, arithmetic of one thread that needs no memory, a hundred times:
 *  about ten milliseconds in all. */
void tnd_reference_time(const struct tnd_clock *clock, struct tnd_reference_time *out);
/** Records a measurement during a sweep: the slowest counts. */
void tnd_sweep_state_between(struct tnd_sweep_state *sweep, const struct tnd_reference_time *time);

/** What the times of the reference kernel say about the machine during a run: "the machine was
 *  throttled or busy: reference kernel 100 -> 131 us; measure again". False, and an empty text,
 *  when the machine was steady; always terminated. */
bool tnd_sweep_state_text(const struct tnd_sweep_state *sweep, char *out, size_t bytes);

#endif
