/* SPDX-License-Identifier: MIT
 * How a test steers the stand-in for libcuda: which call fails and how, and what is alive. The test
 * finds these functions by dlsym in the very library which the driver loads; names are those of the
 * members with the prefix tnd_fake_. Variables of the environment, read by cuInit, do the same from
 * outside: TANDEM_FAKE_CUDA_FAIL="NUMBER:CODE", "NAME:NUMBER:CODE", with ":lost" behind when every
 * later call fails too; TANDEM_FAKE_CUDA_MEMORY=BYTES. Others count whenever they are set:
 * TANDEM_FAKE_CUDA_DEVICES=N, and what the driver says of its devices, true or not:
 * TANDEM_FAKE_CUDA_NAME, _SAID_MEMORY=BYTES, _ATTRIBUTE=NUMBER=VALUE. */
#ifndef TND_FAKE_CONTROL_H
#define TND_FAKE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

enum tnd_fake_kind {
    TND_FAKE_MEMORY,
    TND_FAKE_PINNED,
    TND_FAKE_STREAM,
    TND_FAKE_EVENT,
    TND_FAKE_MODULE,
    TND_FAKE_CONTEXT,
    TND_FAKE_GRAPH,
    TND_FAKE_GRAPH_EXEC,
    TND_FAKE_BLAS,
    TND_FAKE_KIND_COUNT
};

/** What goes wrong. Calls are counted from 1. */
enum { TND_FAKE_FORGET = -1 }; /* a cuStreamWaitEvent that says it was good and does nothing */
struct tnd_fake_plan {
    int64_t first; /**< the call that fails; 0: none */
    int32_t code;  /**< what it returns, a CUresult (of cuBLAS a status) or TND_FAKE_FORGET */
    bool is_lost;  /**< the device is gone: every later call fails too */
    char name[40]; /**< count calls of this function alone; "": all */
};

struct tnd_fake_report {
    int64_t n_calls;    /**< since tnd_fake_begin */
    int64_t n_failed;   /**< of them by the plan */
    int64_t n_launches; /**< without those of graphs */
    int64_t n_graphs;   /**< launched */
    int64_t n_live[TND_FAKE_KIND_COUNT];
    int64_t n_wrong; /**< rules of the driver's interface that were broken */
    char wrong[200]; /**< the first of them */
};

struct tnd_fake {
    /** Forgets the counts (not what lives) and begins a plan; NULL: nothing fails. A lost device is
     *  there again. */
    void (*begin)(const struct tnd_fake_plan *plan);
    void (*report)(struct tnd_fake_report *out_report);
    /** Bytes of device memory from now on. */
    void (*set_memory)(uint64_t bytes);
};

#endif
