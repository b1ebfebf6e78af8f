/* SPDX-License-Identifier: MIT
 * One OpenCL device: what it is, its context and in-order queue, and what hangs on it (programs,
 * memory, the states of the matrix product and of the other operations). */
#ifndef TND_GPU_DEVICE_H
#define TND_GPU_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/opencl/cl_library.h"
#include "tandem/device.h"

struct tnd_gpu_programs; /* gpu_program.c */
struct tnd_gpu_memory;   /* gpu_memory.c */
struct tnd_gpu_transfer; /* gpu_transfer.c */
struct tnd_gpu_matmul;   /* gpu_matmul.c */
struct tnd_gpu_ops;      /* gpu_ops.c */

/** What variants of kernels are chosen by. fp16, fp64 and subgroups are false also when a setting
 *  of the backend has switched them off. */
struct tnd_gpu_caps {
    bool fp16;      /* half arithmetic (cl_khr_fp16); half storage is always there */
    bool fp64;      /* double arithmetic */
    bool subgroups; /* cl_khr_subgroups or cl_intel_subgroups */
    bool unified;   /* shares the host's memory */
    bool is_cpu;    /* CL_DEVICE_TYPE_CPU */
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_bytes;
    size_t max_group;    /* work-items of a group */
    size_t max_items[3]; /* of a group, for each dimension */
    int compute_units;
    int clock_mhz;
    bool khr_subgroups;   /* which kind of subgroups: either may be there */
    bool intel_subgroups; /* with block reads; in OpenCL C 1.2 too */
    int c_std;            /* that programs are built with: 12, 20 or 30 */
};

struct tnd_gpu_device {
    const struct tnd_cl_library *library;
    const struct tnd_clblast_functions *clblast; /* NULL: not there or switched off */
    char clblast_reason[192];                    /* why it is not there */
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;        /* in order; profiling when the setting profile=on */
    cl_command_queue stream_queue; /* in order; for weights in flight. NULL until the first one */
    struct tnd_gpu_caps caps;
    struct tandem_device_info info;
    char name[128];             /* for messages: the device's name */
    char platform_version[128]; /* of the driver's platform */
    char text[256];             /* one line: name, driver, memory */
    char identity[128];         /* "NAME (PLATFORM)" */
    char driver[64];            /* "VERSION" or "VERSION with CLBlast" */
    bool has_profiling;
    _Atomic int64_t n_launches;
    struct tnd_gpu_programs *programs;
    struct tnd_gpu_memory *memory;
    struct tnd_gpu_transfer *transfer;
    struct tnd_gpu_matmul *matmul; /* what tnd_gpu_matmul_open has made; may be NULL */
    struct tnd_gpu_ops *ops;       /* what tnd_gpu_ops_open has made; may be NULL */
    /* Held by tnd_gpu_matmul_submit and tnd_gpu_ops_submit for their whole call, so works of several
     * threads do not mix: these functions need no lock of their own. Ahead of all other locks. */
    pthread_mutex_t submit_lock;
};

/** How a device is opened: the settings of the backend. */
struct tnd_gpu_options {
    const char *device;    /* selector: index, part of the name; NULL: best fit GPU */
    int skip;              /* this many devices that fit the selector are passed over */
    bool with_cpu;         /* CPUs count as fit without a selector, behind all others */
    const char *library;   /* path of libOpenCL; NULL: the usual names */
    const char *clblast;   /* path; "off"; NULL: the usual names */
    const char *cache;     /* folder of program binaries; "off"; NULL: the usual place */
    uint64_t budget_bytes; /* of resident weights; 0: 80 % of the device's memory */
    bool without_fp16;
    bool without_fp64;
    bool without_subgroups;
    bool without_unified;
    bool with_profiling;
};

/** A device before it is opened. */
struct tnd_gpu_found {
    cl_platform_id platform;
    cl_device_id id;
    char platform_version[128];
    struct tnd_gpu_caps caps; /* nothing switched off */
    struct tandem_device_info info;
};

/** All devices of all platforms; `out_found` is freed with tnd_free. Errors: UNSUPPORTED_MACHINE
 *  (none, with the reason), MEMORY. A device that does not answer is listed as unfit. */
enum tandem_status tnd_gpu_find_devices(const struct tnd_cl_library *library,
                                        struct tnd_gpu_found **out_found, int *out_n,
                                        struct tandem_error *error);

/** As tandem_devices. */
int tnd_gpu_devices(struct tandem_device_info *out, int n, struct tandem_error *error);

/** Errors: UNSUPPORTED_MACHINE (no such device, or unfit: the reason), DEVICE, MEMORY. */
enum tandem_status tnd_gpu_device_open(const struct tnd_gpu_options *options,
                                       struct tnd_gpu_device **out_device,
                                       struct tandem_error *error);
/** Finishes what was submitted and frees everything. NULL is allowed. */
void tnd_gpu_device_close(struct tnd_gpu_device *device);

/** tnd_cl_code_check for a call on this device:
 *  `TND_TRY(tnd_gpu_check(dev, "clFinish", dev->library->cl.Finish(dev->queue), error));` */
enum tandem_status tnd_gpu_check(const struct tnd_gpu_device *device, const char *call, cl_int code,
                                 struct tandem_error *error);

/** What was done on a device so far. */
struct tnd_gpu_statistics {
    int64_t programs_compiled; /* from source */
    int64_t programs_loaded;   /* from the cache on disk */
    int64_t build_ns;          /* spent in both */
    int64_t launches;
    int64_t uploaded_bytes; /* those of streams too */
    int64_t streamed_bytes;
    int64_t downloaded_bytes;
    int64_t resident_bytes;
    int64_t budget_bytes; /* of them at most */
    int64_t mirror_bytes;
    int64_t resident_count;
    int64_t mirror_count;
};
void tnd_gpu_statistics_get(struct tnd_gpu_device *device, struct tnd_gpu_statistics *out);

#endif
