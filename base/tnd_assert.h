/* SPDX-License-Identifier: MIT
 * TND_ASSERT states what must hold inside the library: indices, bounds, states, ranges of rows. It
 * is for programming mistakes, never for mistakes in a file, of a device or of a caller of the
 * public interface: those get a status. */
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
