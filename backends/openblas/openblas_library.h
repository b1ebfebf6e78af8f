/* SPDX-License-Identifier: MIT
 * OpenBLAS: found at run time, loaded once, never unloaded, with ONE number of threads for the
 * whole process. Calls pass a gate, so that each runs with the number of threads that it has
 * requested. */
#ifndef TND_OPENBLAS_LIBRARY_H
#define TND_OPENBLAS_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tnd_status.h"

/* Own declarations of what is used of OpenBLAS's cblas.h (github.com/OpenMathLib/OpenBLAS,
 * BSD-3-Clause): the values of the enums CBLAS_ORDER and CBLAS_TRANSPOSE, and blasint = int of
 * an LP64 build. */
enum { TND_CBLAS_ROW_MAJOR = 101, TND_CBLAS_NO_TRANS = 111, TND_CBLAS_TRANS = 112 };

/* What openblas_get_parallel returns. */
enum tnd_openblas_flavour {
    TND_OPENBLAS_SEQUENTIAL = 0,
    TND_OPENBLAS_PTHREADS = 1,
    TND_OPENBLAS_OPENMP = 2
};

struct tnd_openblas_functions {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*set_num_threads)(int n_threads);
    int (*get_num_threads)(void);
    char *(*get_config)(void);
    int (*get_parallel)(void);   /* optional */
    char *(*get_corename)(void); /* optional */
    unsigned (*thread_timeout)(
        void); /* optional: what OPENBLAS_THREAD_TIMEOUT was at load, 0: unset */
};

struct tnd_openblas {
    struct tnd_openblas_functions functions;
    enum tnd_openblas_flavour flavour;
    int max_threads; /* of the library's build: threads of a call, and calls at once */
    bool may_spin;   /* idle threads of the library may poll for long (reason in `text`) */
    char text[192];  /* version, configuration, core, file */
};

struct tnd_openblas_load {
    const char *path;      /* this file only; NULL: the usual names */
    bool keep_environment; /* do not set OPENBLAS_THREAD_TIMEOUT while loading */
};

/** Loads the library (once in a process; later calls get the same one) and counts its users.
 *  Errors: UNSUPPORTED_MACHINE: not there, or 64-bit integers. */
enum tandem_status tnd_openblas_acquire(const struct tnd_openblas_load *load,
                                        const struct tnd_openblas **out_library,
                                        struct tandem_error *error);
/** The last user restores the number of threads that the first one found. */
void tnd_openblas_release(void);

/** Enters the gate for a call with `n_threads` threads (>= 1), and leaves it. One-thread calls run
 * concurrently, multi-threaded calls exclusively; in order of arrival. */
void tnd_openblas_enter(const struct tnd_openblas *library, int n_threads);
void tnd_openblas_leave(const struct tnd_openblas *library, int n_threads);

#endif
