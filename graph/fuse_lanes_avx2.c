/* SPDX-License-Identifier: MIT
 * Fused programs for AVX2. */
#if defined(__AVX2__)
#include "ggml-like/fuse_lanes.h"
#include "graph/strip_kernels.h"

const struct tnd_strip_kernel tnd_strip_avx2 = TND_STRIP_KERNEL;
#else
extern int tnd_strip_avx2_is_empty;
#endif
