/* SPDX-License-Identifier: MIT
 * Weights that a device had no room for. Plans leave them to others until something is given
 * up. */
#ifndef TND_REFUSED_H
#define TND_REFUSED_H

#include <stdbool.h>

#include "ggml-like/tnd_tensor.h"

struct tnd_refused;

/** Empty list, or NULL. */
struct tnd_refused *tnd_refused_new(void);
void tnd_refused_free(struct tnd_refused *refused);
/** False when it is known already, or memory is short (it will be refused once more). */
bool tnd_refused_add(struct tnd_refused *refused, int slot, const struct tandem_tensor *weight);
bool tnd_refused_has(struct tnd_refused *refused, int slot, const struct tandem_tensor *weight);
/** Cheap. */
bool tnd_refused_is_empty(const struct tnd_refused *refused);
/** There may be room again. */
void tnd_refused_clear(struct tnd_refused *refused);

#endif
