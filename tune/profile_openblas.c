/* SPDX-License-Identifier: MIT
 * The OpenBLAS profiles: INIT turns weights that are not F32 into F32 on all CPU threads, COMPUTE
 * is sgemm. They differ in who brings the threads of sgemm: nobody (one thread, the others sleep),
 * OpenBLAS's own pool, or our pool over column panels. */
#include "tune/profiles.h"

#include <string.h>

static bool dequantize_then_sgemm(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES],
                                  bool parallel, bool own_threads)
{
    if (type == TANDEM_TYPE_I32) {
        return false;
    }
    if (type != TANDEM_TYPE_F32) {
        struct tnd_table_stage *init = &out[TANDEM_STAGE_INIT];
        strcpy(init->backend, "cpu");
        init->kind = TANDEM_KIND_CPU;
        init->task = TANDEM_TASK_DEQUANTIZE_W;
        init->parallel = true;
    }
    struct tnd_table_stage *compute = &out[TANDEM_STAGE_COMPUTE];
    strcpy(compute->backend, "openblas");
    compute->kind = TANDEM_KIND_OPENBLAS;
    compute->task = TANDEM_TASK_MUL_MAT_F32;
    compute->parallel = parallel;
    compute->own_threads = own_threads;
    compute->wait = !parallel; /* our workers have nothing to do while OpenBLAS works */
    return true;
}

static bool stages_single(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES])
{
    return dequantize_then_sgemm(type, out, false, false);
}

static bool stages_own_threads(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES])
{
    return dequantize_then_sgemm(type, out, false, true);
}

static bool stages_panels(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES])
{
    return dequantize_then_sgemm(type, out, true, false);
}

extern const struct tnd_profile tnd_profile_cpu_openblas;
const struct tnd_profile tnd_profile_cpu_openblas = {
    "cpu+openblas", "weights to F32 on the CPU, then sgemm of OpenBLAS on one thread",
    stages_single};

extern const struct tnd_profile tnd_profile_cpu_openblas_threads;
const struct tnd_profile tnd_profile_cpu_openblas_threads = {
    "cpu+openblas-threads", "weights to F32 on the CPU, then sgemm on OpenBLAS's own threads",
    stages_own_threads};

extern const struct tnd_profile tnd_profile_cpu_openblas_panels;
const struct tnd_profile tnd_profile_cpu_openblas_panels = {
    "cpu+openblas-panels",
    "weights to F32 on the CPU, then sgemm over column panels on our threads", stages_panels};
