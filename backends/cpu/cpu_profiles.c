/* SPDX-License-Identifier: MIT
 * Profiles "cpu" and "cpu-packed", where the CPU backend runs all stages, and "cpu-bf16" and
 * "cpu-amx" if there are kernels for AVX-512 BF16 and AMX. With quantised weights, INIT quantises
 * the activations to 8 bits; float weights are multiplied as they are, with AMX in parts. "cpu"
 * reads the weights as they lie in the file, the others a second copy in a layout for the
 * kernels. */
#include "backends/cpu/cpu_profiles.h"

#include <string.h>

#include "backends/cpu/kernels/kernels.h"

/* Tasks of products with quantised weights, and with float weights. */
static const struct {
    const char *name, *what;
    enum tandem_task init, compute, init_floats, compute_floats;
} profiles[] = {
    {"cpu", "CPU kernels; activations are quantised when the weights are", TANDEM_TASK_QUANTIZE_X,
     TANDEM_TASK_MUL_MAT_Q, TANDEM_TASK_NONE, TANDEM_TASK_NODE},
    {"cpu-packed",
     "CPU kernels over a packed copy of the weights, which takes as much memory again",
     TANDEM_TASK_QUANTIZE_X, TANDEM_TASK_MUL_MAT_PACKED, TANDEM_TASK_NONE,
     TANDEM_TASK_MUL_MAT_PACKED},
    /* last, because not every CPU has them */
    {"cpu-bf16", "BF16 weights, packed, times activations that are rounded to BF16",
     TANDEM_TASK_NONE, TANDEM_TASK_NONE, TANDEM_TASK_NONE, TANDEM_TASK_MUL_MAT_BF16},
    {"cpu-amx", "matrix tiles of the CPU (AMX) over the packed copy", TANDEM_TASK_TILE_X,
     TANDEM_TASK_MUL_MAT_TILES, TANDEM_TASK_TILE_X, TANDEM_TASK_MUL_MAT_TILES},
};
enum { N_PROFILES = sizeof(profiles) / sizeof(profiles[0]), AMX = N_PROFILES - 1, BF16 = AMX - 1 };

static bool is_here(int profile)
{
    const struct tnd_cpu_kernels *kernels = tnd_cpu_kernels();
    return profile == AMX    ? kernels->amx.name != NULL
           : profile == BF16 ? kernels->packed_bf16.multiply != NULL
                             : true;
}

/* The i-th profile that this CPU supports; N_PROFILES beyond the last. */
static int profile_at(int i)
{
    int profile = 0;
    for (; profile < N_PROFILES && (i > 0 || !is_here(profile)); profile++) {
        i -= is_here(profile) ? 1 : 0;
    }
    return profile;
}

bool tnd_cpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    const int at = i < 0 ? N_PROFILES : profile_at(i);
    if (at >= N_PROFILES) {
        return false;
    }
    const bool is_emulated = at == AMX && strcmp(tnd_cpu_kernels()->amx.name, "amx") != 0;
    const bool is_quantized = tandem_type_is_quantized(type);
    *out = (struct tandem_backend_profile){
        .name = profiles[at].name,
        .what = is_emulated ? "matrix tiles (AMX), emulated for tests: slow" : profiles[at].what,
    };
    if (type == TANDEM_TYPE_I32 || (at == BF16 && type != TANDEM_TYPE_BF16)) {
        return true;
    }
    enum tandem_task init = is_quantized ? profiles[at].init : profiles[at].init_floats;
    if (init != TANDEM_TASK_NONE) {
        out->init = (struct tandem_profile_stage){.task = init, .parallel = true};
    }
    out->compute = (struct tandem_profile_stage){
        .task = is_quantized ? profiles[at].compute : profiles[at].compute_floats,
        .parallel = true,
    };
    return true;
}

int tnd_cpu_token_step(enum tandem_task task)
{
    return task == TANDEM_TASK_NODE || task == TANDEM_TASK_MUL_MAT_F32 ? TND_CPU_TOKEN_STEP : 0;
}
