/* SPDX-License-Identifier: MIT
 * Access to the CPU backend's kernel numbers, for its tuner only. */
#ifndef TND_CPU_TUNER_H
#define TND_CPU_TUNER_H

#include "backends/cpu/kernels/tuning.h"
#include "backends/tuner.h"
#include "base/tnd_status.h"

/** The kernel numbers that an open CPU backend uses. */
struct tnd_tuning *tnd_cpu_tuning(tandem_backend *cpu);

#endif
