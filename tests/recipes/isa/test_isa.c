/* SPDX-License-Identifier: MIT
 * The instruction set that isa.patch adds: its kernels overwrite the scalar ones, better sets
 * overwrite it, and its bits are those of the scalar kernels. */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/cpu.h"

enum { N = 37 };

int main(void)
{
#if defined(__x86_64__)
    struct tnd_cpu_kernels plain;
    struct tnd_cpu_kernels best;
    float a[N];
    float b[N];
    float y[N];
    tnd_cpu_kernels_for(0, &plain);
    tnd_cpu_kernels_for(tnd_cpu_features(), &best);
    if (strcmp(plain.vec.isa, "sse2") != 0) {
        return 1;
    }
    if ((tnd_cpu_features() & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2 &&
        best.vec.binary[TANDEM_OP_ADD] == plain.vec.binary[TANDEM_OP_ADD]) {
        return 1;
    }
    for (int i = 0; i < N; i++) {
        a[i] = (float)i / 3.0f;
        b[i] = 1.0f / (float)(i + 1);
    }
    plain.vec.binary[TANDEM_OP_ADD](a, b, y, N);
    for (int i = 0; i < N; i++) {
        if (y[i] != a[i] + b[i]) {
            return 1;
        }
    }
#endif
    return 0;
}
