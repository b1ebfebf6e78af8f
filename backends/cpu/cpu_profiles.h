/* SPDX-License-Identifier: MIT
 * The profiles that the CPU backend brings. */
#ifndef TND_CPU_PROFILES_H
#define TND_CPU_PROFILES_H

#include "tandem/backend.h"

/** `profile` of the CPU's vtable. */
bool tnd_cpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out);

#endif
