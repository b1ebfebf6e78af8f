/* SPDX-License-Identifier: MIT
 * Energy used by the machine, from its own counters: those of processor packages and their memory
 * (Linux powercap), of NVIDIA GPUs (NVML, loaded when present), or the power drawn from a battery.
 * The whole machine is counted, not only this process. */
#ifndef TND_MEASURE_ENERGY_H
#define TND_MEASURE_ENERGY_H

#include "base/tnd_status.h"

struct tnd_energy;

struct tnd_energy_options {
    const char *powercap;     /* folder; NULL: /sys/class/powercap */
    const char *power_supply; /* folder; NULL: /sys/class/power_supply */
    const char *nvml;         /* library; NULL: libnvidia-ml.so.1; "": none */
};

/** Opens the available counters; a battery only if there are no packages and GPUs. `options` may be
 *  NULL. Errors: MEMORY, UNSUPPORTED_MACHINE with the reason: there are no counters, or this user
 *  may not read them. */
enum tandem_status tnd_energy_open(const struct tnd_energy_options *options,
                                   struct tnd_energy **out_energy, struct tandem_error *error);
/** NULL is allowed. */
void tnd_energy_close(struct tnd_energy *energy);

/** "package-0, dram, NVML GPU 0". Lives as long as the meter. */
const char *tnd_energy_sources(const struct tnd_energy *energy);
/** Shortest duration in seconds for which the counters' resolution is good enough. */
double tnd_energy_least_s(const struct tnd_energy *energy);

/** Joules since the last call, or since the meter was opened; `now_ns` is a time of any monotonic
 *  clock. NaN when a counter could not be read or jumped. */
double tnd_energy_lap(struct tnd_energy *energy, uint64_t now_ns);

#endif
