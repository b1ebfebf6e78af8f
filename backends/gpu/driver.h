/* SPDX-License-Identifier: MIT
 * What the GPU backend needs of a driver (OpenCL, CUDA): devices and their facts, memory, three
 * queues, programs, launches, events. A driver knows nothing of tensors, operations or profiles;
 * the backend calls no library by itself. Adding a driver is a folder beside backends/opencl.
 *
 * All functions may be called by any thread unless told otherwise. Those that fail return
 * DEVICE_MEMORY, DEVICE_LOST or DEVICE and a text with the driver, the device, the call and the
 * name of its code, and leave out-parameters untouched. `..._free` functions accept NULL. */
#ifndef TND_GPU_DRIVER_H
#define TND_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "tandem/device.h"

struct tnd_gpu_driver;

/* Handles of a driver, which alone knows what they are. */
struct tnd_gpu_buffer;   /* device memory; as an argument of a kernel: the handle itself */
struct tnd_gpu_event;    /* a point in a queue, or a launch */
struct tnd_gpu_module;   /* a built program */
struct tnd_gpu_function; /* a kernel of a module, with arguments; used by one thread at a time */

/** What variants of kernels are chosen by. fp16, fp64 and subgroups (mma goes with them) are false
 *  also when a setting of the backend has switched them off. */
struct tnd_gpu_caps {
    bool fp16;      /* half arithmetic; half storage is always there */
    bool fp64;      /* double arithmetic */
    bool subgroups; /* of any kind: the driver's dialect has their operations */
    bool mma;       /* subgroups of 32 with tensor cores: the driver's dialect has mma_bf16 */
    bool unified;   /* shares the host's memory */
    bool is_cpu;
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_bytes;
    size_t max_group;    /* work-items of a group */
    size_t max_items[3]; /* of a group, for each dimension */
    int compute_units;
    int clock_mhz;
    bool khr_subgroups;   /* which kind of subgroups: either may be there */
    bool intel_subgroups; /* with block reads */
};

/** A device before it is opened. Nothing in `caps` is switched off. */
struct tnd_gpu_found {
    uintptr_t ids[2];           /* the driver's own */
    char platform_version[128]; /* library and compiler: a part of the key of kept programs */
    char options[96];           /* of the compiler, ahead of those that name a variant */
    bool keeps_programs;        /* the driver has a cache of its own, which is the better one */
    struct tnd_gpu_caps caps;
    struct tandem_device_info info;
};

/** Which libraries a driver loads, and how it opens. */
struct tnd_gpu_libraries {
    const char *driver; /* file; NULL: the usual names */
    const char *blas;   /* file; NULL: the usual names; "off" */
};

/** What products in half precision are made of. */
enum tnd_gpu_sums {
    TND_GPU_SUMS_HALF,       /* operands, sums and results are halves; the device needs fp16 */
    TND_GPU_SUMS_F32,        /* operands are halves, sums and results F32 */
    TND_GPU_SUMS_F32_OF_F32, /* all is F32, but operands lose the bits that halves do not have */
};

/** An open device. Drivers embed it as their first member. Fixed after open. */
struct tnd_gpu_context {
    const struct tnd_gpu_driver *driver;
    char name[128];          /* of the device, for messages */
    bool has_fixed_programs; /* `compile` has those that are used before anybody tunes, no others */
    bool has_blas;           /* products by a library work, in F32 */
    bool has_blas_half;      /* and in half precision, see tnd_gpu_blas */
    bool has_blas_parameters; /* override_parameters works */
    enum tnd_gpu_sums blas_sums;
    int blas_version;      /* 12040 is 12.4; 0: unknown */
    char blas_reason[192]; /* why there are none */
};

/** Each runs what is submitted to it in order; they run beside each other. The first command of
 *  STREAM is a write, that of BACK a read, each by one thread at a time. */
enum tnd_gpu_queue {
    TND_GPU_QUEUE_WORK,   /* launches, and copies that belong between them */
    TND_GPU_QUEUE_STREAM, /* weights in flight */
    TND_GPU_QUEUE_BACK,   /* results to the host */
    TND_GPU_QUEUE_COUNT
};

/** Text of a program. */
struct tnd_gpu_text {
    const char *name;    /* for messages */
    const char *dialect; /* what comes before the text: TND_GPU_SOURCE_DIALECT_x. May be NULL */
    const char *text;
    const char *options; /* -DNAME=VALUE and the driver's own, with blanks between */
};

/** Y {n, m} = X {k, m} * W {k, n}, columns begin..end-1 of Y only; dense, none empty. Offsets in
 *  bytes. */
struct tnd_gpu_blas {
    struct tnd_gpu_buffer *w, *x, *y;
    uint64_t w_at, x_at, y_at;
    size_t n, m, k;
    size_t begin, end;
    bool is_half; /* in half precision, see `blas_sums`; else all F32 */
};

struct tnd_gpu_driver {
    const char *name; /* "opencl": kind of the backend, folder of kept programs, in messages */
    const char *blas_setting; /* "clblast": setting that names the library of products */
    const char *blas_name;    /* "CLBlast" */

    int launches_per_flush; /* launches that stay behind without a flush; 0: none does */
    int dialect;            /* enum tnd_gpu_source: text that stands in front of every program */

    /* ---- devices ---- */

    /** All devices, `*out_found` freed with tnd_free; at least one. One that does not answer is
     *  listed as unfit, with the reason. Errors: UNSUPPORTED_MACHINE (no library, no device: what
     *  is missing), MEMORY. */
    enum tandem_status (*find)(const struct tnd_gpu_libraries *libraries,
                               struct tnd_gpu_found **out_found, int *out_n,
                               struct tandem_error *error);
    /** Opens a device of find with its work queue. `with_times`: event_ns works for launches. */
    enum tandem_status (*open)(const struct tnd_gpu_libraries *libraries,
                               const struct tnd_gpu_found *found, bool with_times,
                               struct tnd_gpu_context **out_context, struct tandem_error *error);
    /** Waits for what was submitted and closes. All handles were freed before. */
    void (*close)(struct tnd_gpu_context *context);

    /* ---- memory ---- */

    /** `bytes` > 0. Freed memory stays until the commands that use it are over. */
    enum tandem_status (*buffer_new)(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_buffer,
                                     struct tandem_error *error);
    void (*buffer_free)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *buffer);
    /** Whole pages of the host as a buffer that kernels read; freed by buffer_unshare, when nothing
     *  uses it any more. NULL where the driver cannot; one that never can has neither. */
    struct tnd_gpu_buffer *(*buffer_share)(struct tnd_gpu_context *context, const void *pages,
                                           size_t bytes);
    void (*buffer_unshare)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *buffer);
    /** Memory of the host that the device reads fast. `*out_pinned` is given to pinned_free. */
    enum tandem_status (*pinned_new)(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_pinned, void **out_host,
                                     struct tandem_error *error);
    void (*pinned_free)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *pinned, void *host);

    /* ---- copies ---- */

    /** Host to device behind `after` (NULL: nothing) and what stands in the queue. Without
     *  `out_event` the call waits until `from` may be changed; else `from` must stay until the
     *  event, which the caller frees, is over. */
    enum tandem_status (*write)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                struct tnd_gpu_event *after, struct tnd_gpu_buffer *to, size_t at,
                                const void *from, size_t bytes, struct tnd_gpu_event **out_event,
                                struct tandem_error *error);
    /** Device to host behind `after` (NULL: nothing) and what stands in the queue. `out_event`
     *  NULL: waits. Beside other work only where `to` is pinned. */
    enum tandem_status (*read)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                               struct tnd_gpu_event *after, struct tnd_gpu_buffer *from, size_t at,
                               void *to, size_t bytes, struct tnd_gpu_event **out_event,
                               struct tandem_error *error);
    /** Device to device in the work queue, by the device. */
    enum tandem_status (*copy)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *from,
                               size_t from_at, struct tnd_gpu_buffer *to, size_t to_at,
                               size_t bytes, struct tandem_error *error);

    /* ---- queues and events ---- */

    /** Makes sure that what was submitted will run without anybody waiting. */
    enum tandem_status (*flush)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                struct tandem_error *error);
    /** Waits for all that was submitted. */
    enum tandem_status (*finish)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                 struct tandem_error *error);
    /** An event for all that stands in the queue. */
    enum tandem_status (*mark)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                               struct tnd_gpu_event **out_event, struct tandem_error *error);
    /** What is submitted to the queue from now on waits for the event. */
    enum tandem_status (*await)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                struct tnd_gpu_event *event, struct tandem_error *error);
    enum tandem_status (*event_wait)(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                     struct tandem_error *error);
    /** OK unless the command ended badly, and whether it is over; does not wait. */
    enum tandem_status (*event_check)(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                      bool *out_is_over, struct tandem_error *error);
    /** Nanoseconds from one mark of the work queue to another, or (`begin` NULL) that a launch has
     *  taken; waits for its end. Opened with_times only. */
    enum tandem_status (*event_ns)(struct tnd_gpu_context *context, struct tnd_gpu_event *begin,
                                   struct tnd_gpu_event *end, int64_t *out_ns,
                                   struct tandem_error *error);
    void (*event_free)(struct tnd_gpu_context *context, struct tnd_gpu_event *event);

    /* ---- programs ---- */

    /** Compiles. Errors: DEVICE with the compiler's first complaint. */
    enum tandem_status (*compile)(struct tnd_gpu_context *context, const struct tnd_gpu_text *text,
                                  struct tnd_gpu_module **out_module, struct tandem_error *error);
    /** A module of bytes that module_binary gave, under the same options; NULL when the driver
     *  refuses them. */
    struct tnd_gpu_module *(*load)(struct tnd_gpu_context *context, const void *bytes, size_t n,
                                   const char *options);
    /** The module's binary, freed with tnd_free; NULL: there is none. */
    void *(*module_binary)(struct tnd_gpu_context *context, struct tnd_gpu_module *module,
                           size_t *out_n);
    void (*module_free)(struct tnd_gpu_context *context, struct tnd_gpu_module *module);

    /** A kernel by its name in the text. Modules outlive their functions. */
    enum tandem_status (*function_new)(struct tnd_gpu_context *context,
                                       struct tnd_gpu_module *module, const char *name,
                                       struct tnd_gpu_function **out_function,
                                       struct tandem_error *error);
    void (*function_free)(struct tnd_gpu_context *context, struct tnd_gpu_function *function);
    /** Sets argument `index`: the value's bytes, or `bytes` bytes of local memory when `value` is
     *  NULL. Buffers are given as a struct tnd_gpu_buffer * of 8 bytes. */
    enum tandem_status (*argument)(struct tnd_gpu_context *context,
                                   struct tnd_gpu_function *function, const char *name, int index,
                                   size_t bytes, const void *value, struct tandem_error *error);
    /** Puts a kernel (`name`, static, for messages) into the work queue with 1 to 3 dimensions;
     *  `global` counts work-items, a multiple of `local`. `out_event` NULL: nobody asks. */
    enum tandem_status (*launch)(struct tnd_gpu_context *context, struct tnd_gpu_function *function,
                                 const char *name, int n_dims, const size_t *global,
                                 const size_t *local, struct tnd_gpu_event **out_event,
                                 struct tandem_error *error);

    /** Switches graphs of launches on or off, and forgets those there are; off after open. Where
     *  they are on, launches may wait in the driver for more of them until anything else comes
     *  into the work queue or waits for it, and the failure of one is told by whichever call comes
     *  next, and by all later ones. Returns whether they are on now. NULL: there are none. */
    bool (*use_graphs)(struct tnd_gpu_context *context, bool on);

    /* ---- products by a library; where has_blas ---- */

    /** Puts the product into the work queue. One thread at a time. */
    enum tandem_status (*product)(struct tnd_gpu_context *context,
                                  const struct tnd_gpu_blas *product, struct tandem_error *error);
    /** Other parameters for F32 products from now on; where has_blas_parameters. */
    enum tandem_status (*override_parameters)(struct tnd_gpu_context *context, size_t n,
                                              const char **names, const size_t *values,
                                              struct tandem_error *error);
};

/* What is told of a device that has these capabilities. */
static inline void tnd_gpu_fill_info(const struct tnd_gpu_caps *caps,
                                     struct tandem_device_info *info)
{
    info->memory_bytes = caps->global_bytes;
    info->max_alloc_bytes = caps->max_alloc_bytes;
    info->local_bytes = caps->local_bytes;
    info->compute_units = (uint32_t)caps->compute_units;
    info->max_clock_mhz = (uint32_t)caps->clock_mhz;
    info->max_work_group = caps->max_group;
    info->has_unified_memory = caps->unified;
    info->has_fp16 = caps->fp16;
    info->has_fp64 = caps->fp64;
    info->has_subgroups = caps->subgroups;
}

/* What a compiler says of a text: the first line of its log that speaks of an error, or the first
 * one. */
static inline void tnd_gpu_first_complaint(const char *log, char *out, size_t bytes)
{
    const char *at = strstr(log, "error");
    while (at != NULL && at > log && at[-1] != '\n') {
        at--;
    }
    at = at != NULL ? at : log;
    at += strspn(at, " \t\r\n");
    snprintf(out, bytes, "%.*s", (int)strcspn(at, "\r\n"), at);
}

#endif
