/* SPDX-License-Identifier: MIT
 * Choice of the matrix kernels: the plain ones first, then each instruction set overwrites what it
 * has (the list of kernel-list.h, from the plainest to the fastest). Knows no kernel by itself. */
#include <pthread.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/cpu.h"

void tnd_cpu_kernels_for(uint32_t features, struct tnd_cpu_kernels *out)
{
#define FILL(isa, needs)                                                                           \
    if ((features & (needs)) == (needs)) {                                                         \
        tnd_kernels_fill_##isa(out);                                                               \
    }
    TND_CPU_ISAS(FILL)
#undef FILL
}

static struct tnd_cpu_kernels machine_kernels;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void fill_machine_kernels(void)
{
    tnd_cpu_kernels_for(tnd_cpu_features(), &machine_kernels);
}

const struct tnd_cpu_kernels *tnd_cpu_kernels(void)
{
    pthread_once(&machine_once, fill_machine_kernels);
    return &machine_kernels;
}

bool tnd_quant_form(enum tandem_type type, int *out_form, int *out_offset)
{
    switch (type) {
#define FORM(NAME, form, offset, bits)                                                             \
    case TANDEM_TYPE_##NAME:                                                                       \
        *out_form = (form);                                                                        \
        *out_offset = (offset);                                                                    \
        return true;
        TND_QUANT_KERNELS(FORM)
#undef FORM
    default:
        return false;
    }
}
