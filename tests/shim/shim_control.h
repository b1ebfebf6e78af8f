/* SPDX-License-Identifier: MIT
 * How a test steers the OpenCL shim (libOpenCL-shim.so): which call fails and how, and what is
 * alive. The test finds these functions by dlsym in the very library which the backend loads; the
 * names are those of struct tnd_shim with the prefix tnd_shim_. */
#ifndef TND_TESTS_SHIM_CONTROL_H
#define TND_TESTS_SHIM_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** X(name, text): what is counted while it lives. */
#define TND_SHIM_KIND_LIST(X)                                                                      \
    X(CONTEXT, "context")                                                                          \
    X(QUEUE, "queue")                                                                              \
    X(PROGRAM, "program")                                                                          \
    X(KERNEL, "kernel")                                                                            \
    X(BUFFER, "buffer")                                                                            \
    X(EVENT, "event")                                                                              \
    X(MAPPING, "mapped range")

enum tnd_shim_kind {
#define TND_SHIM_KIND_ENUM(name, text) TND_SHIM_##name,
    TND_SHIM_KIND_LIST(TND_SHIM_KIND_ENUM)
#undef TND_SHIM_KIND_ENUM
        TND_SHIM_KIND_COUNT
};

/** What goes wrong. Calls are counted from 1, over OpenCL and CLBlast together. */
struct tnd_shim_plan {
    int64_t first;    /**< the call that fails; 0: none */
    int32_t code;     /**< what it returns, a negative cl_int */
    bool is_lost;     /**< the device is gone: every later call fails too */
    const char *name; /**< count calls of this function alone; NULL: all. Borrowed. */
};

struct tnd_shim_report {
    int64_t n_calls;  /**< since tnd_shim_begin */
    int64_t n_failed; /**< of them by the plan */
    char failed[48];  /**< name of the first that failed; empty when none */
    int64_t n_live[TND_SHIM_KIND_COUNT];
    int64_t n_stray;       /**< releases of what is not alive, buffers released while mapped */
    int64_t n_extra_held;  /**< references to contexts which someone else kept (CLBlast's cache) */
    int64_t n_builds;      /**< programs built from source */
    char leaks[400];       /**< what lives: kind, call that made it, its number */
};

/** The exported functions; fill by dlsym with the names of the members behind "tnd_shim_". */
struct tnd_shim {
    /** Forgets the counts (not what lives) and begins a plan; NULL: nothing fails. */
    void (*begin)(const struct tnd_shim_plan *plan);
    void (*report)(struct tnd_shim_report *out_report);
    /** Forgets what lives, after a test that has failed, so that the next one can be judged. */
    void (*forget)(void);
};

#endif
