/* SPDX-License-Identifier: MIT
 * Was the machine the same from the begin to the end of a sweep? A piece of work that never changes
 * is timed before, between and after, and what its times say is put into words. */
#ifndef TND_MEASURE_REFERENCE_H
#define TND_MEASURE_REFERENCE_H

#include "base/clock.h"
#include "table/tnd_table.h"

/** Times the reference kernel, arithmetic of one thread that needs no memory, a hundred times:
 *  about ten milliseconds in all. */
void tnd_reference_time(const struct tnd_clock *clock, struct tnd_reference_time *out);
/** Takes a measurement between two others into `sweep`: the slowest counts. */
void tnd_sweep_state_between(struct tnd_sweep_state *sweep, const struct tnd_reference_time *time);

enum tnd_machine_mood {
    TND_MACHINE_STEADY,
    TND_MACHINE_BUSY,     /* some runs of the kernel were interrupted: others used the CPU */
    TND_MACHINE_THROTTLED /* even its fastest run became slower (or faster): the clock rate moved,
                             or others used the CPU all the time */
};

enum tnd_machine_mood tnd_sweep_mood(const struct tnd_sweep_state *sweep);
/** "the machine was throttled: reference kernel 100 -> 131 us; measure again". Empty when it was
 *  steady; always terminated. */
void tnd_sweep_mood_text(const struct tnd_sweep_state *sweep, char *out, size_t bytes);

#endif
