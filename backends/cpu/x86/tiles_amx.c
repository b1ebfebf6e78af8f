/* SPDX-License-Identifier: MIT
 * Kernels of AMX on a CPU that has it. No machine that we had could run them: tests compare the
 * same source on emulated tiles, and both bit for bit where there are both (as in Bochs:
 * docs/reliability.md). */
#if defined(__AMX_INT8__) && defined(__linux__)
#include "backends/cpu/x86/amx_kernels.h"

void tnd_fill_tiles_amx(struct tnd_cpu_kernels *out)
{
    fill_amx("amx", out);
}
#elif defined(__x86_64__)
#include "backends/cpu/kernels/kernels.h"

void tnd_fill_tiles_amx(struct tnd_cpu_kernels *out)
{
    (void)out; /* this compiler, or this system, has no tiles */
}
#else
typedef int tnd_no_tiles_amx;
#endif
