/* SPDX-License-Identifier: MIT
 * TND_ASSERT states what must hold inside the library: indices, bounds, states, ranges of rows. It
 * is for mistakes of a programmer, never for what a file, a device or a caller of the public
 * interface did wrong: those get a status. */
#ifndef TND_ASSERT_H
#define TND_ASSERT_H

/* On in every build of `make check` and `make check-fast` (ASSERT=1); off in release builds, where
 * the condition is compiled but not evaluated. */
#ifdef TND_ASSERTIONS
#include <assert.h>
#define TND_ASSERT(condition) assert(condition)
#else
#define TND_ASSERT(condition) ((void)sizeof(!(condition)))
#endif

#endif
