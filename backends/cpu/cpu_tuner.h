/* SPDX-License-Identifier: MIT
 * The CPU backend's numbers of products, for its tuner alone. */
#ifndef TND_CPU_TUNER_H
#define TND_CPU_TUNER_H

#include "backends/cpu/kernels/tuning.h"
#include "backends/tuner.h"
#include "base/tnd_status.h"

/** The kernel numbers that an open CPU backend uses. */
struct tnd_tuning *tnd_cpu_tuning(tandem_backend *cpu);

#endif
