/* SPDX-License-Identifier: MIT
 * The kinds of this build that have a tuner: the one place that lists them. */
#include "backends/tuner.h"

#include <stddef.h>

#ifndef _WIN32 /* as in backend-list.h */
extern const struct tnd_tuner tnd_tuner_cuda;
#endif
#ifdef TND_HAVE_OPENCL
extern const struct tnd_tuner tnd_tuner_opencl;
#endif

const struct tnd_tuner *tnd_tuner_at(int i)
{
    static const struct tnd_tuner *const tuners[] = {
#ifdef TND_HAVE_OPENCL
        &tnd_tuner_opencl,
#endif
#ifndef _WIN32
        &tnd_tuner_cuda,
#endif
        NULL};
    return i >= 0 && i < (int)(sizeof(tuners) / sizeof(tuners[0])) ? tuners[i] : NULL;
}
