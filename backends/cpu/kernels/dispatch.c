/* SPDX-License-Identifier: MIT
 * Chooses the kernels: the scalar ones first, then each supported instruction set overwrites what
 * it implements (base/isa-list.h). Knows no individual kernel. */
#include <pthread.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/cpu.h"
#include "base/tnd_assert.h"

void tnd_cpu_kernels_for(uint32_t features, struct tnd_cpu_kernels *out)
{
    memset(out, 0, sizeof(*out));
    out->tuning = tnd_tuning_of(tnd_cpu_id());
#define FILL_FROM(file) tnd_fill_##file(out);
#define FILL(isa, needs, files)                                                                    \
    if ((features & (needs)) == (needs)) {                                                         \
        files                                                                                      \
    }
    TND_ISA_LIST(FILL, FILL_FROM)
#undef FILL
#undef FILL_FROM
}

static struct tnd_cpu_kernels machine_kernels;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void fill_machine_kernels(void)
{
    tnd_cpu_kernels_for(tnd_cpu_features(), &machine_kernels);
    if (tnd_cpu_emulates_tiles()) {
        tnd_fill_tiles_emulated(&machine_kernels);
    }
}

const struct tnd_cpu_kernels *tnd_cpu_kernels(void)
{
    pthread_once(&machine_once, fill_machine_kernels);
    return &machine_kernels;
}

const struct tnd_quant_code *tnd_quant_code(enum tandem_type type)
{
#define CODE(NAME, form, offset, bits, is_super)                                                   \
    [TANDEM_TYPE_##NAME] = {form, offset, bits, is_super},
    static const struct tnd_quant_code codes[TANDEM_TYPE_NUMBERS] = {TND_QUANT_KERNELS(CODE)};
#undef CODE
    TND_ASSERT((unsigned)type < TANDEM_TYPE_NUMBERS);
    return codes[type].bits > 0 ? &codes[type] : NULL;
}
