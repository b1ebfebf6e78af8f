/* SPDX-License-Identifier: MIT
 * What the OpenCL backend says of itself without a device: its profiles and settings. */
#ifndef TND_GPU_PROFILES_H
#define TND_GPU_PROFILES_H

#include "tandem/backend.h"

/** `profile` and `setting` of the vtable, in builds with and without OpenCL's headers. */
bool tnd_gpu_profile(int i, enum tandem_type type, struct tandem_backend_profile *out);
bool tnd_gpu_setting(int i, struct tandem_backend_setting *out);

#endif
