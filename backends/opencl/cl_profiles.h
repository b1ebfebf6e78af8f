/* SPDX-License-Identifier: MIT
 * Profiles and settings of OpenCL devices, in builds with and without OpenCL's headers. */
#ifndef TND_CL_PROFILES_H
#define TND_CL_PROFILES_H

#include "tandem/backend.h"

/** `profile` and `setting` of the vtable. */
bool tnd_cl_profile(int i, enum tandem_type type, struct tandem_backend_profile *out);
bool tnd_cl_setting(int i, struct tandem_backend_setting *out);

#endif
