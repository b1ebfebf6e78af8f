/* SPDX-License-Identifier: MIT
 * A device of a driver: its facts, its context, and what belongs to it (programs, memory, states of
 * matrix products and of the other operations). */
#ifndef TND_GPU_DEVICE_H
#define TND_GPU_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/gpu/driver.h"
#include "tandem/device.h"

struct tnd_gpu_programs; /* gpu_program.c */
struct tnd_gpu_memory;   /* gpu_memory.c */
struct tnd_gpu_transfer; /* gpu_transfer.c */
struct tnd_gpu_times;    /* gpu_times.c */
struct tnd_gpu_matmul;   /* gpu_matmul.c */
struct tnd_gpu_ops;      /* gpu_ops.c */

/** Whether launches use graphs. */
enum tnd_gpu_graphs { TND_GPU_GRAPHS_MEASURED, TND_GPU_GRAPHS_ON, TND_GPU_GRAPHS_OFF };

struct tnd_gpu_device {
    const struct tnd_gpu_driver *driver;
    struct tnd_gpu_context *context;
    struct tnd_gpu_caps caps;
    struct tandem_device_info info;
    char name[128];             /* for messages: the device's name */
    char platform_version[128]; /* as in tnd_gpu_found, like the next two */
    char compiler[96];
    bool keeps_programs;
    char text[256];       /* one line: name, driver, memory */
    char identity[128];   /* "NAME (PLATFORM)" */
    char driver_text[64]; /* "VERSION" or "VERSION with CLBlast" */
    bool has_profiling;
    enum tnd_gpu_graphs graphs;
    bool uses_graphs; /* of launches */
    _Atomic int64_t n_launches;
    struct tnd_gpu_programs *programs;
    struct tnd_gpu_memory *memory;
    struct tnd_gpu_transfer *transfer;
    struct tnd_gpu_times *times;   /* NULL unless profile=on */
    struct tnd_gpu_matmul *matmul; /* from tnd_gpu_matmul_open; may be NULL */
    struct tnd_gpu_ops *ops;       /* from tnd_gpu_ops_open; may be NULL */
    /* tnd_gpu_matmul_submit and tnd_gpu_ops_submit hold it during the whole call, so that work of
     * several threads does not mix: they need no locks of their own. Taken before all other
     * locks. */
    pthread_mutex_t submit_lock;
};

/** Settings of the backend for opening a device. */
struct tnd_gpu_options {
    const char *device; /* selector: index, or part of the name; NULL: most suitable GPU */
    int skip;           /* number of devices that match the selector to skip */
    bool with_cpu;      /* without a selector, CPUs are allowed, too, after all others */
    struct tnd_gpu_libraries libraries;
    const char *cache;     /* folder of program binaries; "off"; NULL: the default */
    uint64_t budget_bytes; /* of resident weights; 0: 80 % of the device's memory */
    bool without_fp16;
    bool without_fp64;
    bool without_subgroups;
    bool without_unified;
    bool with_profiling;
    enum tnd_gpu_graphs graphs;
};

/** As tandem_devices, for one driver. */
int tnd_gpu_devices(const struct tnd_gpu_driver *driver, struct tandem_device_info *out, int n,
                    struct tandem_error *error);

/** Errors: UNSUPPORTED_MACHINE (no such device, or it is unfit: with the reason), DEVICE,
 * MEMORY. */
enum tandem_status tnd_gpu_device_open(const struct tnd_gpu_driver *driver,
                                       const struct tnd_gpu_options *options,
                                       struct tnd_gpu_device **out_device,
                                       struct tandem_error *error);
/** Waits for submitted commands and frees everything. NULL is allowed. */
void tnd_gpu_device_close(struct tnd_gpu_device *device);

/** Fails with MEMORY for `bytes` bytes of host memory. */
enum tandem_status tnd_gpu_no_memory(const struct tnd_gpu_device *device, size_t bytes,
                                     struct tandem_error *error);

/** Activity on a device so far. */
struct tnd_gpu_statistics {
    int64_t programs_compiled; /* from source */
    int64_t programs_loaded;   /* from the cache on disk */
    int64_t build_ns;          /* spent on both */
    int64_t launches;
    int64_t uploaded_bytes; /* including streamed weights */
    int64_t streamed_bytes;
    int64_t downloaded_bytes;
    int64_t resident_bytes;
    int64_t budget_bytes; /* limit for resident weights */
    int64_t mirror_bytes;
    int64_t resident_count;
    int64_t mirror_count;
    int64_t constant_bytes; /* of small constants, if each had a buffer of its own, */
    int64_t constant_count;
    int64_t shared_bytes; /* and of the buffers that they share */
    int64_t shared_count;
};
void tnd_gpu_statistics_get(struct tnd_gpu_device *device, struct tnd_gpu_statistics *out);

#endif
