/* SPDX-License-Identifier: MIT
 * Rows of a driver's tables of profiles and settings. */
#include "backends/gpu/gpu_profiles.h"

bool tnd_gpu_profile(const struct tandem_backend_profile *rows, size_t n, int i,
                     enum tandem_type type, struct tandem_backend_profile *out)
{
    if (i < 0 || (size_t)i >= n) {
        return false;
    }
    *out = rows[i];
    if (type == TANDEM_TYPE_I32) {
        out->compute = (struct tandem_profile_stage){.task = TANDEM_TASK_NONE};
    }
    if (type == TANDEM_TYPE_F32) { /* needs no INIT */
        out->init = (struct tandem_profile_stage){.task = TANDEM_TASK_NONE};
    }
    return true;
}

bool tnd_gpu_setting(const struct tandem_backend_setting *rows, size_t n, int i,
                     struct tandem_backend_setting *out)
{
    bool exists = i >= 0 && (size_t)i < n;
    *out = exists ? rows[i] : *out;
    return exists;
}
