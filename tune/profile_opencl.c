/* SPDX-License-Identifier: MIT
 * The profiles of an OpenCL device: which of the two stages, weights to F32 and the product, run on
 * it, or both in one kernel that decodes in registers. CLBlast is a library that the backend uses
 * for the product; without it the backend has a kernel of its own. Workers sleep meanwhile: the
 * device may be the very CPU that they would spin on. A second device has the same profiles under
 * its own name. */
#include "tune/profiles.h"

#include <string.h>

static void place(struct tnd_table_stage *stage, const char *backend, enum tandem_backend_kind kind,
                  enum tandem_task task)
{
    strcpy(stage->backend, backend);
    stage->kind = (uint8_t)kind;
    stage->task = (uint8_t)task;
    stage->parallel = kind == TANDEM_KIND_CPU;
    stage->wait = kind != TANDEM_KIND_CPU;
}

/* Weights to F32 in INIT, which F32 weights do not need, and their product in COMPUTE. */
static bool two_stages(enum tandem_type type, const char *init, enum tandem_backend_kind init_kind,
                       const char *compute, enum tandem_backend_kind compute_kind,
                       struct tnd_table_stage out[TANDEM_STAGES])
{
    if (type == TANDEM_TYPE_I32) {
        return false;
    }
    if (type != TANDEM_TYPE_F32) {
        place(&out[TANDEM_STAGE_INIT], init, init_kind, TANDEM_TASK_DEQUANTIZE_W);
    }
    place(&out[TANDEM_STAGE_COMPUTE], compute, compute_kind, TANDEM_TASK_MUL_MAT_F32);
    return true;
}

static bool one_stage(enum tandem_type type, const char *backend,
                      struct tnd_table_stage out[TANDEM_STAGES])
{
    if (type == TANDEM_TYPE_I32) {
        return false;
    }
    place(&out[TANDEM_STAGE_COMPUTE], backend, TANDEM_KIND_OPENCL, TANDEM_TASK_NODE);
    return true;
}

/* The dequantising kernel stands under CLBlast's number where a stage beside it has a number of the
 * text format: version 1 never told the two apart. */
#define PROFILES_OF(device, suffix, where)                                                         \
    static bool device##_fused(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES])   \
    {                                                                                              \
        return one_stage(type, #device, out);                                                      \
    }                                                                                              \
    static bool device##_cpu_clblast(enum tandem_type type,                                        \
                                     struct tnd_table_stage out[TANDEM_STAGES])                    \
    {                                                                                              \
        return two_stages(type, "cpu", TANDEM_KIND_CPU, #device, TANDEM_KIND_CLBLAST, out);        \
    }                                                                                              \
    static bool device##_clblast(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES]) \
    {                                                                                              \
        return two_stages(type, #device, TANDEM_KIND_CLBLAST, #device, TANDEM_KIND_CLBLAST, out);  \
    }                                                                                              \
    static bool device##_openblas(enum tandem_type type,                                           \
                                  struct tnd_table_stage out[TANDEM_STAGES])                       \
    {                                                                                              \
        return two_stages(type, #device, TANDEM_KIND_CLBLAST, "openblas", TANDEM_KIND_OPENBLAS,    \
                          out);                                                                    \
    }                                                                                              \
    extern const struct tnd_profile tnd_profile_##device;                                          \
    const struct tnd_profile tnd_profile_##device = {                                              \
        "opencl" suffix, "weights decoded and multiplied by one kernel on " where,                 \
        device##_fused};                                                                           \
    extern const struct tnd_profile tnd_profile_##device##_cpu_clblast;                            \
    const struct tnd_profile tnd_profile_##device##_cpu_clblast = {                                \
        "cpu+clblast" suffix, "weights to F32 on the CPU, then the product on " where,             \
        device##_cpu_clblast};                                                                     \
    extern const struct tnd_profile tnd_profile_##device##_clblast;                                \
    const struct tnd_profile tnd_profile_##device##_clblast = {                                    \
        "opencl+clblast" suffix, "weights to F32, then their product, both on " where,             \
        device##_clblast};                                                                         \
    extern const struct tnd_profile tnd_profile_##device##_openblas;                               \
    const struct tnd_profile tnd_profile_##device##_openblas = {                                   \
        "opencl+openblas" suffix, "weights to F32 on " where ", then sgemm of OpenBLAS",           \
        device##_openblas};

PROFILES_OF(opencl, "", "the OpenCL device")
PROFILES_OF(opencl1, "@opencl1", "the second OpenCL device")
