/* SPDX-License-Identifier: MIT
 * The profiles of the CPU backend, and how the times of their tasks depend on M. */
#ifndef TND_CPU_PROFILES_H
#define TND_CPU_PROFILES_H

#include "tandem/backend.h"

/** `profile` of the CPU's vtable. */
bool tnd_cpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out);

/* Tokens that float products process together, from this many on: the lanes of a vector in AVX-512,
 * of the vectors of a tile in AVX2 and NEON. Fewer tokens are processed one by one. */
enum { TND_CPU_TOKEN_STEP = 16 };

/** TND_CPU_TOKEN_STEP for tasks with float products; else 0: the time grows with every token, or
 * its shape is unknown. */
int tnd_cpu_token_step(enum tandem_task task);

#endif
