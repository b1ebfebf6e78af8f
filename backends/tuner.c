/* SPDX-License-Identifier: MIT
 * The kinds of this build that have a tuner: the one place that lists them. */
#include "backends/tuner.h"

#include <stddef.h>

extern const struct tnd_tuner tnd_tuner_cuda;
#ifdef TND_HAVE_OPENCL
extern const struct tnd_tuner tnd_tuner_opencl;
#endif

const struct tnd_tuner *tnd_tuner_at(int i)
{
    static const struct tnd_tuner *const tuners[] = {
#ifdef TND_HAVE_OPENCL
        &tnd_tuner_opencl,
#endif
        &tnd_tuner_cuda, NULL};
    return i >= 0 && i < (int)(sizeof(tuners) / sizeof(tuners[0])) ? tuners[i] : NULL;
}
