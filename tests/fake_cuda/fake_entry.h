/* SPDX-License-Identifier: MIT
 * How an entry point of the stand-in for libcuda begins. */
#ifndef TND_FAKE_ENTRY_H
#define TND_FAKE_ENTRY_H

#include "tests/fake_cuda/fake_state.h"

#define EXPORT __attribute__((visibility("default")))
enum { TND_FAKE_MAX_DEVICES = 8 };

/** Counts a call; what it gives before it does anything. `is_free`: it works without cuInit. */
int tnd_fake_enter_call(const char *name, bool is_free);
/** How many devices there are. */
int tnd_fake_devices(void);

#define ENTER()                                                                                    \
    do {                                                                                           \
        const int entered = tnd_fake_enter_call(__func__, false);                                  \
        if (entered != CUDA_SUCCESS) {                                                             \
            return entered;                                                                        \
        }                                                                                          \
    } while (0)
#define CHECK(condition, code)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return code;                                                                           \
        }                                                                                          \
    } while (0)

#endif
