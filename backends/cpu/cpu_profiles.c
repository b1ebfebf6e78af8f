/* SPDX-License-Identifier: MIT
 * Profiles "cpu" and "cpu-packed": everything in the CPU backend. Quantised weights meet
 * activations that INIT quantises to 8 bits; float weights are multiplied as they are. The profiles
 * differ in the weights: as they lie in the file, or a second copy in a layout for the kernels. */
#include "backends/cpu/cpu_profiles.h"

bool tnd_cpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    bool is_packed = i == 1;
    bool is_quantized = tandem_type_is_quantized(type);
    if (i < 0 || i > 1) {
        return false;
    }
    *out = (struct tandem_backend_profile){
        .name = is_packed ? "cpu-packed" : "cpu",
        .what = is_packed ? "CPU kernels over a packed copy of the weights, which takes as much "
                            "memory again"
                          : "CPU kernels; activations are quantised when the weights are",
    };
    if (type == TANDEM_TYPE_I32) {
        return true;
    }
    if (is_quantized) {
        out->init = (struct tandem_profile_stage){.task = TANDEM_TASK_QUANTIZE_X, .parallel = true};
    }
    out->compute = (struct tandem_profile_stage){
        .task = is_packed      ? TANDEM_TASK_MUL_MAT_PACKED
                : is_quantized ? TANDEM_TASK_MUL_MAT_Q
                               : TANDEM_TASK_NODE,
        .parallel = true,
    };
    return true;
}

int tnd_cpu_token_step(enum tandem_task task)
{
    return task == TANDEM_TASK_NODE || task == TANDEM_TASK_MUL_MAT_F32 ? TND_CPU_TOKEN_STEP : 0;
}
