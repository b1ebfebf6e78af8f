/* SPDX-License-Identifier: MIT
 * AMX kernels on emulated tiles: slow, with the same results on every machine. */
#define TND_TILES_EMULATED
#include "backends/cpu/x86/amx_kernels.h"

void tnd_fill_tiles_emulated(struct tnd_cpu_kernels *out)
{
    fill_amx("amx-emulated", out);
}
