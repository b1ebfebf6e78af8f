/* SPDX-License-Identifier: MIT
 * Profiles and settings of OpenCL devices. The dequantising kernel stands under CLBlast's number
 * where a stage beside it has a number of the text format: version 1 never told the two apart. */
#include "backends/opencl/cl_profiles.h"

#include "backends/gpu/gpu_profiles.h"

bool tnd_cl_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    static const struct tandem_backend_profile rows[] = {
        TND_GPU_PROFILES("opencl", "clblast", "OpenCL", TANDEM_KIND_CLBLAST)};
    return tnd_gpu_profile(rows, sizeof(rows) / sizeof(rows[0]), i, type, out);
}

bool tnd_cl_setting(int i, struct tandem_backend_setting *out)
{
    static const struct tandem_backend_setting rows[] = {
        TND_GPU_SETTINGS("libOpenCL", "clblast", "CLBlast")};
    return tnd_gpu_setting(rows, sizeof(rows) / sizeof(rows[0]), i, out);
}
