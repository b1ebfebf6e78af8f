/* SPDX-License-Identifier: MIT
 * Fused programs for AVX-512. */
#if defined(__AVX512F__)
#include "ggml-like/fuse_lanes.h"
#include "graph/strip_kernels.h"

const struct tnd_strip_kernel tnd_strip_avx512 = TND_STRIP_KERNEL;
#else
extern int tnd_strip_avx512_is_empty;
#endif
