/* SPDX-License-Identifier: MIT
 * The profiles that the CPU backend brings, and what is known of the times of their tasks. */
#ifndef TND_CPU_PROFILES_H
#define TND_CPU_PROFILES_H

#include "tandem/backend.h"

/** `profile` of the CPU's vtable. */
bool tnd_cpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out);

/* Tokens that float products take at once, from this many on: the lanes of a vector in AVX-512, of
 * the vectors of a tile in AVX2 and NEON. Fewer tokens are taken one by one. */
enum { TND_CPU_TOKEN_STEP = 16 };

/** TND_CPU_TOKEN_STEP for tasks whose products are float products, else 0: the time follows every
 *  token, or nothing is known. */
int tnd_cpu_token_step(enum tandem_task task);

#endif
