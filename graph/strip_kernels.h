/* SPDX-License-Identifier: MIT
 * Kernels of programs by instruction set. */
#ifndef TND_STRIP_KERNELS_H
#define TND_STRIP_KERNELS_H

#include "ggml-like/fuse_code.h"

extern const struct tnd_strip_kernel tnd_strip_avx2;
extern const struct tnd_strip_kernel tnd_strip_avx512;

/** The kernels that this machine runs, the fastest first; NULL: no more. */
const struct tnd_strip_kernel *tnd_strip_kernel(int i);

#endif
