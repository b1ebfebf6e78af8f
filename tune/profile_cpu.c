/* SPDX-License-Identifier: MIT
 * Profiles "cpu" and "cpu-packed": everything in the CPU backend. Quantised weights meet
 * activations that INIT quantises to 8 bits; float weights are multiplied as they are. They differ
 * in the weights: as they lie in the file, or a second copy in a layout for the kernels. */
#include "tune/profiles.h"

#include <string.h>

static void on_cpu(struct tnd_table_stage *stage, enum tandem_task task)
{
    strcpy(stage->backend, "cpu");
    stage->kind = TANDEM_KIND_CPU;
    stage->task = (uint8_t)task;
    stage->parallel = true;
}

static bool stages(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES])
{
    if (type == TANDEM_TYPE_I32) {
        return false;
    }
    if (tandem_type_is_quantized(type)) {
        on_cpu(&out[TANDEM_STAGE_INIT], TANDEM_TASK_QUANTIZE_X);
        on_cpu(&out[TANDEM_STAGE_COMPUTE], TANDEM_TASK_MUL_MAT_Q);
    } else {
        on_cpu(&out[TANDEM_STAGE_COMPUTE], TANDEM_TASK_NODE);
    }
    return true;
}

static bool stages_packed(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES])
{
    if (type == TANDEM_TYPE_I32) {
        return false;
    }
    if (tandem_type_is_quantized(type)) {
        on_cpu(&out[TANDEM_STAGE_INIT], TANDEM_TASK_QUANTIZE_X);
    }
    on_cpu(&out[TANDEM_STAGE_COMPUTE], TANDEM_TASK_MUL_MAT_PACKED);
    return true;
}

extern const struct tnd_profile tnd_profile_cpu;
const struct tnd_profile tnd_profile_cpu = {
    "cpu", "CPU kernels; activations are quantised when the weights are", stages};

extern const struct tnd_profile tnd_profile_cpu_packed;
const struct tnd_profile tnd_profile_cpu_packed = {
    "cpu-packed", "CPU kernels over a packed copy of the weights, which takes as much memory again",
    stages_packed};
