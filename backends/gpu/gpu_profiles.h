/* SPDX-License-Identifier: MIT
 * Profiles and settings of a GPU backend, known without a device. Profiles differ in which of the
 * two stages, weights to F32 and the product, run on the device, or both in one kernel that decodes
 * in registers. F32 products use the driver's library of products, or our own kernel without one.
 * FINALIZE downloads the result. Workers sleep meanwhile: the device may be the CPU that they would
 * spin on. */
#ifndef TND_GPU_PROFILES_H
#define TND_GPU_PROFILES_H

#include "tandem/backend.h"

/* `kind`: the number of the stage in the text format. */
#define TND_GPU_ON_DEVICE(what, kind)                                                              \
    {                                                                                              \
        .task = TANDEM_TASK_##what, .wait = true, .text_kind = (kind)                              \
    }
#define TND_GPU_ON_CPU(what)                                                                       \
    {                                                                                              \
        .task = TANDEM_TASK_##what, .place = TANDEM_ON_CPU, .parallel = true                       \
    }

/** Rows for an array of struct tandem_backend_profile: "opencl", "clblast", "OpenCL", the
 * number. */
#define TND_GPU_PROFILES(driver, library, title, kind)                                             \
    {.name = driver,                                                                               \
     .what = "weights decoded and multiplied by one kernel on the " title " device",               \
     .compute = {.task = TANDEM_TASK_NODE, .wait = true},                                          \
     .finalize = {.task = TANDEM_TASK_FINALIZE, .wait = true}},                                    \
        {.name = "cpu+" library,                                                                   \
         .what = "weights to F32 on the CPU, then the product on the " title " device",            \
         .init = TND_GPU_ON_CPU(DEQUANTIZE_W),                                                     \
         .compute = TND_GPU_ON_DEVICE(MUL_MAT_F32, kind),                                          \
         .finalize = TND_GPU_ON_DEVICE(FINALIZE, kind)},                                           \
        {.name = driver "+" library,                                                               \
         .what = "weights to F32, then their product, both on the " title " device",               \
         .init = TND_GPU_ON_DEVICE(DEQUANTIZE_W, kind),                                            \
         .compute = TND_GPU_ON_DEVICE(MUL_MAT_F32, kind),                                          \
         .finalize = TND_GPU_ON_DEVICE(FINALIZE, kind)},                                           \
        {.name = driver "+*",                                                                      \
         .what = "weights to F32 on the " title " device, then sgemm of a library on the CPU",     \
         .init = TND_GPU_ON_DEVICE(DEQUANTIZE_W, kind),                                            \
         .compute = {.task = TANDEM_TASK_MUL_MAT_F32, .place = TANDEM_ON_LIBRARY, .wait = true}},  \
    {                                                                                              \
        .name = driver "+stream",                                                                  \
        .what = "as " driver ", for weights without room on the device: they travel for each use", \
        .compute = {.task = TANDEM_TASK_NODE_STREAMED, .wait = true}, .finalize = {                \
            .task = TANDEM_TASK_FINALIZE,                                                          \
            .wait = true                                                                           \
        }                                                                                          \
    }

/** Rows for an array of struct tandem_backend_setting: "libOpenCL", "clblast", "CLBlast". */
#define TND_GPU_SETTINGS(file, library, title)                                                     \
    {"device", "INDEX, part of a name, or none", "the device, as mulmat-tune devices lists it"},   \
        {"library", "FILE", file " to load"},                                                      \
        {library, "FILE or off", "the " title " library to load"},                                 \
        {"cache", "FOLDER or off", "where compiled programs are kept"},                            \
        {"budget", "MiB", "memory for weights on the device"},                                     \
        {"profile", "on", "the driver measures its own times"},                                    \
        {"fp16", "off", "no arithmetic in half precision"},                                        \
        {"fp64", "off", "no arithmetic in double precision"},                                      \
        {"subgroups", "off", "no kernels with sub-groups"},                                        \
        {"graphs", "on or off", "launches in graphs (else where tune-device found them faster)"},  \
    {                                                                                              \
        "unified", "off", "memory counts as apart from the host's"                                 \
    }

/** Implement `profile` and `setting` of a vtable from n rows. */
bool tnd_gpu_profile(const struct tandem_backend_profile *rows, size_t n, int i,
                     enum tandem_type type, struct tandem_backend_profile *out);
bool tnd_gpu_setting(const struct tandem_backend_setting *rows, size_t n, int i,
                     struct tandem_backend_setting *out);

#endif
