/* SPDX-License-Identifier: MIT
 * AMX kernels on CPUs with AMX. None of our machines could run them: tests run the same source on
 * emulated tiles, and compare both bit for bit on machines with AMX (such as Bochs:
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
    (void)out; /* no tiles in this compiler or on this system */
}
#else
typedef int tnd_no_tiles_amx;
#endif
