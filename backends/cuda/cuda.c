/* SPDX-License-Identifier: MIT
 * The CUDA backend: a GPU backend with the driver of this folder. */
#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_backend.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_profiles.h"

extern const struct tandem_backend_api tnd_backend_cuda;
extern const struct tnd_tuner tnd_tuner_cuda;

static enum tandem_status cuda_open(const struct tandem_backend_options *options,
                                    tandem_backend **out_backend, struct tandem_error *error)
{
    return tnd_gpu_backend_open(&tnd_cuda_driver, &tnd_backend_cuda, options, out_backend, error);
}

static int cuda_devices(struct tandem_device_info *out, int n, struct tandem_error *error)
{
    return tnd_gpu_devices(&tnd_cuda_driver, out, n, error);
}

static bool cuda_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    static const struct tandem_backend_profile rows[] = {
        TND_GPU_PROFILES("cuda", "cublas", "CUDA", TANDEM_KIND_CUDA)};
    return tnd_gpu_profile(rows, sizeof(rows) / sizeof(rows[0]), i, type, out);
}

static bool cuda_setting(int i, struct tandem_backend_setting *out)
{
    static const struct tandem_backend_setting rows[] = {
        TND_GPU_SETTINGS("libcuda", "cublas", "cuBLAS")};
    return tnd_gpu_setting(rows, sizeof(rows) / sizeof(rows[0]), i, out);
}

const struct tandem_backend_api tnd_backend_cuda = {
    TND_GPU_BACKEND_MEMBERS, .name = "cuda",          .kind = TANDEM_KIND_CUDA, .open = cuda_open,
    .devices = cuda_devices, .profile = cuda_profile, .setting = cuda_setting,
};

const struct tnd_tuner tnd_tuner_cuda = {.api = &tnd_backend_cuda,
                                         .present = tnd_gpu_backend_present,
                                         .use = tnd_gpu_backend_use,
                                         .tune = tnd_gpu_backend_tune,
                                         .launches = tnd_gpu_backend_launches};
