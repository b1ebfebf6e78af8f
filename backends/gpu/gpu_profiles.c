/* SPDX-License-Identifier: MIT
 * The profiles of an OpenCL device: which of the two stages, weights to F32 and the product, run on
 * it, or both in one kernel that decodes in registers. CLBlast is a library that the backend uses
 * for the product; without it the backend has a kernel of its own. FINALIZE fetches the result from
 * the device. Workers sleep meanwhile: the device may be the very CPU that they would spin on. */
#include "backends/gpu/gpu_profiles.h"

/* The dequantising kernel stands under CLBlast's number where a stage beside it has a number of the
 * text format: version 1 never told the two apart. */
#define ON_DEVICE(what)                                                                            \
    {                                                                                              \
        .task = TANDEM_TASK_##what, .wait = true, .text_kind = TANDEM_KIND_CLBLAST                 \
    }
#define ON_CPU(what)                                                                               \
    {                                                                                              \
        .task = TANDEM_TASK_##what, .place = TANDEM_ON_CPU, .parallel = true                       \
    }

static const struct tandem_backend_profile profiles[] = {
    {.name = "opencl",
     .what = "weights decoded and multiplied by one kernel on the OpenCL device",
     .compute = {.task = TANDEM_TASK_NODE, .wait = true},
     .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},
    {.name = "cpu+clblast",
     .what = "weights to F32 on the CPU, then the product on the OpenCL device",
     .init = ON_CPU(DEQUANTIZE_W),
     .compute = ON_DEVICE(MUL_MAT_F32),
     .finalize = ON_DEVICE(FINALIZE)},
    {.name = "opencl+clblast",
     .what = "weights to F32, then their product, both on the OpenCL device",
     .init = ON_DEVICE(DEQUANTIZE_W),
     .compute = ON_DEVICE(MUL_MAT_F32),
     .finalize = ON_DEVICE(FINALIZE)},
    {.name = "opencl+*",
     .what = "weights to F32 on the OpenCL device, then sgemm of a library on the CPU",
     .init = ON_DEVICE(DEQUANTIZE_W),
     .compute = {.task = TANDEM_TASK_MUL_MAT_F32, .place = TANDEM_ON_LIBRARY, .wait = true}},
    {.name = "opencl+stream",
     .what = "as opencl, for weights without room on the device: they travel for each use",
     .compute = {.task = TANDEM_TASK_NODE_STREAMED, .wait = true},
     .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},
};

bool tnd_gpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    if (i < 0 || (size_t)i >= sizeof(profiles) / sizeof(profiles[0])) {
        return false;
    }
    *out = profiles[i];
    if (type == TANDEM_TYPE_I32) {
        out->compute = (struct tandem_profile_stage){.task = TANDEM_TASK_NONE};
    }
    if (type == TANDEM_TYPE_F32) { /* needs no INIT */
        out->init = (struct tandem_profile_stage){.task = TANDEM_TASK_NONE};
    }
    return true;
}

bool tnd_gpu_setting(int i, struct tandem_backend_setting *out)
{
    static const struct tandem_backend_setting settings[] = {
        {"device", "INDEX, part of a name, or none", "the device, as mulmat-tune devices lists it"},
        {"library", "FILE", "libOpenCL to load"},
        {"clblast", "FILE or off", "the CLBlast library to load"},
        {"cache", "FOLDER or off", "where compiled programs are kept"},
        {"budget", "MiB", "memory for weights on the device"},
        {"profile", "on", "the driver measures its own times"},
        {"fp16", "off", "no arithmetic in half precision"},
        {"fp64", "off", "no arithmetic in double precision"},
        {"subgroups", "off", "no kernels with sub-groups"},
        {"unified", "off", "memory counts as apart from the host's"},
    };
    bool exists = i >= 0 && (size_t)i < sizeof(settings) / sizeof(settings[0]);
    *out = exists ? settings[i] : *out;
    return exists;
}
