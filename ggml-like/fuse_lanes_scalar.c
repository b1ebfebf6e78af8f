/* SPDX-License-Identifier: MIT
 * Fused programs for any CPU (NEON and SSE2 are part of every 64-bit ARM and x86). */
#include "ggml-like/fuse_lanes.h"

const struct tnd_strip_kernel tnd_strip_scalar = TND_STRIP_KERNEL;
