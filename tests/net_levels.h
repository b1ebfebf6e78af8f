/* SPDX-License-Identifier: MIT
 * Kernels of nets of every instruction set that this machine has, and the reference. */
#ifndef TND_TEST_NET_LEVELS_H
#define TND_TEST_NET_LEVELS_H

#include <string.h>

#include "backends/cpu/net/cpu_net.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "ggml-like/eval_ref.h"

/** Kernel table `i`, the fastest first; NULL: no more. Sets that bring no kernels of nets have no
 *  table of their own. */
static inline const struct tnd_cpu_kernels *tnd_test_kernels(int i)
{
    static struct tnd_cpu_kernels found[16];
    static int n;
    if (n == 0) {
#define TND_TEST_NO_FILE(file)
#define TND_TEST_LEVEL(isa, needs, files)                                                          \
    tnd_cpu_kernels_for(tnd_cpu_mask(tnd_cpu_features_all(), #isa), &found[n]);                    \
    n += n == 0 || found[n].strip != found[n - 1].strip;
        TND_ISA_LIST(TND_TEST_LEVEL, TND_TEST_NO_FILE)
#undef TND_TEST_NO_FILE
#undef TND_TEST_LEVEL
    }
    return i < n ? &found[n - 1 - i] : NULL;
}

/** Its kernels of programs. */
static inline const struct tnd_strip_kernel *tnd_test_strip(int i)
{
    const struct tnd_cpu_kernels *kernels = tnd_test_kernels(i);
    return kernels != NULL ? kernels->strip : NULL;
}

/** Those of any CPU. */
static inline const struct tnd_strip_kernel *tnd_test_scalar_strip(void)
{
    const struct tnd_strip_kernel *scalar = NULL;
    for (int i = 0; tnd_test_strip(i) != NULL; i++) {
        scalar = tnd_test_strip(i);
    }
    return scalar;
}

/** Computes a graph of a net by the reference alone, whose memory is full of NaN before. */
static inline enum tandem_status tnd_test_reference(struct tandem_graph *graph,
                                                    struct tandem_error *error)
{
    const size_t bytes = graph->planned_bytes + TND_ALIGNMENT;
    void *buffer = tnd_alloc(bytes);
    if (buffer == NULL) {
        return TANDEM_E_MEMORY;
    }
    memset(buffer, 0xff, bytes);
    tnd_graph_bind(graph, buffer);
    const enum tandem_status status = tnd_eval_ref_graph(graph, error);
    tnd_free(buffer);
    return status;
}

#endif
