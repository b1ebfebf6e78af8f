/* SPDX-License-Identifier: MIT
 * Was the machine the same from the start to the end of a sweep? A piece of work that never changes
 * is timed before, between and after, and what its times say is put into words. */
#ifndef TND_MEASURE_REFERENCE_H
#define TND_MEASURE_REFERENCE_H

#include "base/clock.h"
#include "table/tnd_table.h"

/** This many rounds of the reference kernel. Any thread. */
void tnd_reference_work(int rounds);
/** Times the reference kernel, arithmetic of one thread that needs no memory, a hundred times:
 *  about ten milliseconds in all. */
void tnd_reference_time(const struct tnd_clock *clock, struct tnd_reference_time *out);
/** Takes a measurement between two others into `sweep`: the slowest counts. */
void tnd_sweep_state_between(struct tnd_sweep_state *sweep, const struct tnd_reference_time *time);

/** What the reference kernel tells about the machine during a run: "the machine was throttled or
 *  busy: reference kernel 100 -> 131 us; measure again". False, and an empty text, when the machine
 *  was steady; always terminated. */
bool tnd_sweep_state_text(const struct tnd_sweep_state *sweep, char *out, size_t bytes);

#endif
