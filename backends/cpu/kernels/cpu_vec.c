/* SPDX-License-Identifier: MIT
 * Choice of the row kernels. Knows no kernel by itself. */
#include <pthread.h>

#include "backends/cpu/kernels/vec.h"
#include "base/cpu.h"

void tnd_vec_for(uint32_t features, struct tnd_vec *out)
{
    tnd_vec_fill_scalar(out);
#if defined(__x86_64__)
    if ((features & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        tnd_vec_fill_avx2(out);
    }
    if ((features & TND_CPU_SET_AVX512) == TND_CPU_SET_AVX512) {
        tnd_vec_fill_avx512(out);
    }
#elif defined(__aarch64__)
    if ((features & (uint32_t)TND_CPU_NEON) != 0) {
        tnd_vec_fill_neon(out);
    }
#else
    (void)features;
#endif
}

static struct tnd_vec machine_vec;
static pthread_once_t machine_vec_once = PTHREAD_ONCE_INIT;

static void fill_machine_vec(void)
{
    tnd_vec_for(tnd_cpu_features(), &machine_vec);
}

const struct tnd_vec *tnd_vec(void)
{
    pthread_once(&machine_vec_once, fill_machine_vec);
    return &machine_vec;
}
