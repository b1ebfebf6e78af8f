/* SPDX-License-Identifier: MIT
 * The OpenCL library that fails on purpose, from a test's side: loading it, planning failures, and
 * judging what is left. The control functions themselves: tests/shim/shim_control.h. */
#ifndef TND_TESTS_SUPPORT_SHIM_H
#define TND_TESTS_SUPPORT_SHIM_H

#include "tests/shim/shim_control.h"

/** The shim's functions; NULL after a tnd_skip when it is not built (no OpenCL headers) or no
 *  OpenCL device is there. Loaded once. */
const struct tnd_shim *tnd_test_shim(void);
/** Path of the shim, for the backend's setting library=. */
const char *tnd_test_shim_path(void);
/** For the setting clblast=: the shim too, or "off" where there is no CLBlast. */
const char *tnd_test_shim_clblast(void);

/** What lives now, and strays since the last begin: none (one assertion). `what` is printed. */
bool tnd_test_shim_clean(const char *what);

/** Which calls to let fail: 1, 2, ... until a run passes. All of the first `dense`, then every
 *  `stride`-th, at an offset that `seed` decides. With much effort (3) simply all, unless the run
 *  is long: then every `long_stride`-th. */
struct tnd_test_walk {
    int64_t dense;
    int64_t stride;
    uint64_t seed;
    int64_t long_stride; /* 0: the run is short */
};
int64_t tnd_test_walk_next(const struct tnd_test_walk *walk, int64_t n);

/** An error code for the `n`-th call: resources, memory, host memory, invalid value in turn. */
int32_t tnd_test_shim_code(int64_t n);

#endif
