/* SPDX-License-Identifier: MIT
 * Interface of drivers (OpenCL, CUDA) to the GPU backend: devices and their facts, memory, three
 * queues, programs, launches, events. A driver knows nothing of tensors, operations or profiles;
 * the backend calls no library itself. A new driver is a folder beside backends/opencl.
 *
 * Any thread may call any function unless stated otherwise. Functions that fail return
 * DEVICE_MEMORY, DEVICE_LOST or DEVICE and a message with the driver, the device, the call and the
 * name of its code; they leave out-parameters untouched. `..._free` functions accept NULL. */
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

/* Handles; only the driver knows their contents. */
struct tnd_gpu_buffer;   /* device memory; kernel arguments are such handles */
struct tnd_gpu_event;    /* a point in a queue, or a launch */
struct tnd_gpu_module;   /* a built program */
struct tnd_gpu_function; /* a kernel of a module, with arguments; used by one thread at a time */

/** Capabilities by which variants of kernels are chosen. fp16, fp64 and subgroups (and with them
 * mma) are also false if a setting of the backend has switched them off. */
struct tnd_gpu_caps {
    bool fp16;      /* half arithmetic; half storage always exists */
    bool fp64;      /* double arithmetic */
    bool subgroups; /* of either kind: the driver's dialect has their operations */
    bool mma;       /* subgroups of 32 with tensor cores: the driver's dialect has mma_bf16 */
    bool unified;   /* shares the host's memory */
    bool is_cpu;
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_bytes;
    size_t max_group;    /* work-items per group */
    size_t max_items[3]; /* per group, for each dimension */
    int compute_units;
    int clock_mhz;
    bool khr_subgroups;   /* kinds of subgroups; a device may have both */
    bool intel_subgroups; /* with block reads */
};

/** A device before it is opened; nothing in `caps` is switched off yet. */
struct tnd_gpu_found {
    uintptr_t ids[2];           /* for the driver */
    char platform_version[128]; /* library and compiler: part of the key of cached programs */
    char options[96];           /* for the compiler, before those of a variant */
    bool keeps_programs;        /* the driver's own cache of programs is used instead of ours */
    struct tnd_gpu_caps caps;
    struct tandem_device_info info;
};

/** Libraries that a driver loads, and how it opens them. */
struct tnd_gpu_libraries {
    const char *driver; /* file; NULL: the usual names */
    const char *blas;   /* file; NULL: the usual names; "off" */
};

/** Precision of products in half precision. */
enum tnd_gpu_sums {
    TND_GPU_SUMS_HALF,       /* operands, sums and results are halves; the device needs fp16 */
    TND_GPU_SUMS_F32,        /* operands are halves, sums and results F32 */
    TND_GPU_SUMS_F32_OF_F32, /* all is F32, but operands are rounded to the precision of halves */
};

/** An open device. Drivers embed it as their first member. Constant after open. */
struct tnd_gpu_context {
    const struct tnd_gpu_driver *driver;
    char name[128];           /* of the device, for messages */
    bool has_fixed_programs;  /* `compile` only has programs that are used without tuning */
    bool has_blas;            /* the library of products works, in F32 */
    bool has_blas_half;       /* and in half precision, see tnd_gpu_blas */
    bool has_blas_parameters; /* override_parameters works */
    enum tnd_gpu_sums blas_sums;
    int blas_version;      /* 12040 is 12.4; 0: unknown */
    char blas_reason[192]; /* why there are no products by a library */
};

/** Queues. Each runs its commands in order; different queues run concurrently. Commands begin with
 * a write in STREAM, with a read in BACK; each of these two is used by one thread at a time. */
enum tnd_gpu_queue {
    TND_GPU_QUEUE_WORK,   /* launches, and copies between them */
    TND_GPU_QUEUE_STREAM, /* weights in flight */
    TND_GPU_QUEUE_BACK,   /* results to the host */
    TND_GPU_QUEUE_COUNT
};

/** Source text of a program. */
struct tnd_gpu_text {
    const char *name;    /* for messages */
    const char *dialect; /* text before the source: TND_GPU_SOURCE_DIALECT_x. May be NULL */
    const char *text;
    const char *options; /* -DNAME=VALUE and the driver's own, separated by blanks */
};

/** Y {n, m} = X {k, m} * W {k, n}, columns begin..end-1 of Y only; dense, none empty. Offsets in
 *  bytes. */
struct tnd_gpu_blas {
    struct tnd_gpu_buffer *w, *x, *y;
    uint64_t w_at, x_at, y_at;
    size_t n, m, k;
    size_t begin, end;
    bool is_half; /* in half precision, see `blas_sums`; else in F32 */
};

struct tnd_gpu_driver {
    const char *name; /* "opencl": kind of the backend; folder of cached programs; in messages */
    const char *blas_setting; /* "clblast": setting that selects the library of products */
    const char *blas_name;    /* "CLBlast" */

    int launches_per_flush; /* launches that may stay unsent without a flush; 0: none */
    int dialect;            /* enum tnd_gpu_source: text before every program */

    /* ---- devices ---- */

    /** Lists all devices, at least one; free `*out_found` with tnd_free. A device that does not
     * answer is listed as unfit, with the reason. Errors: UNSUPPORTED_MACHINE (no library, no
     * device: what is missing), MEMORY. */
    enum tandem_status (*find)(const struct tnd_gpu_libraries *libraries,
                               struct tnd_gpu_found **out_found, int *out_n,
                               struct tandem_error *error);
    /** Opens a device that `find` has listed, with its work queue. `with_times`: event_ns works
     * for launches. */
    enum tandem_status (*open)(const struct tnd_gpu_libraries *libraries,
                               const struct tnd_gpu_found *found, bool with_times,
                               struct tnd_gpu_context **out_context, struct tandem_error *error);
    /** Waits for submitted commands and closes the device. All handles must have been freed. */
    void (*close)(struct tnd_gpu_context *context);

    /* ---- memory ---- */

    /** `bytes` > 0. Freed memory stays valid for commands that use it. */
    enum tandem_status (*buffer_new)(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_buffer,
                                     struct tandem_error *error);
    void (*buffer_free)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *buffer);
    /** Whole pages of host memory as a buffer that kernels can read; free it with buffer_unshare
     * when nothing uses it any more. Returns NULL if the driver cannot share them; drivers that
     * never can have neither function. */
    struct tnd_gpu_buffer *(*buffer_share)(struct tnd_gpu_context *context, const void *pages,
                                           size_t bytes);
    void (*buffer_unshare)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *buffer);
    /** Pinned host memory: the device reads it fast. Free `*out_pinned` with pinned_free. */
    enum tandem_status (*pinned_new)(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_pinned, void **out_host,
                                     struct tandem_error *error);
    void (*pinned_free)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *pinned, void *host);

    /* ---- copies ---- */

    /** Copies host to device, after `after` (NULL: nothing) and earlier commands of the queue.
     * Without `out_event` the call waits until `from` can be changed; else `from` must stay
     * unchanged until the event is over, which the caller frees. */
    enum tandem_status (*write)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                struct tnd_gpu_event *after, struct tnd_gpu_buffer *to, size_t at,
                                const void *from, size_t bytes, struct tnd_gpu_event **out_event,
                                struct tandem_error *error);
    /** Copies device to host, after `after` (NULL: nothing) and earlier commands of the queue.
     * `out_event` NULL: waits. Concurrent with other work only if `to` is pinned. */
    enum tandem_status (*read)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                               struct tnd_gpu_event *after, struct tnd_gpu_buffer *from, size_t at,
                               void *to, size_t bytes, struct tnd_gpu_event **out_event,
                               struct tandem_error *error);
    /** Copies device to device, in the work queue. */
    enum tandem_status (*copy)(struct tnd_gpu_context *context, struct tnd_gpu_buffer *from,
                               size_t from_at, struct tnd_gpu_buffer *to, size_t to_at,
                               size_t bytes, struct tandem_error *error);

    /* ---- queues and events ---- */

    /** Makes sure that submitted commands will run even if nothing waits for them. */
    enum tandem_status (*flush)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                struct tandem_error *error);
    /** Waits for all submitted commands. */
    enum tandem_status (*finish)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                 struct tandem_error *error);
    /** Creates an event for all commands submitted to the queue so far. */
    enum tandem_status (*mark)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                               struct tnd_gpu_event **out_event, struct tandem_error *error);
    /** Makes commands submitted from now on wait for the event. */
    enum tandem_status (*await)(struct tnd_gpu_context *context, enum tnd_gpu_queue queue,
                                struct tnd_gpu_event *event, struct tandem_error *error);
    enum tandem_status (*event_wait)(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                     struct tandem_error *error);
    /** Whether the event is over, without waiting; a failure of its command is returned as an
     * error. */
    enum tandem_status (*event_check)(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                      bool *out_is_over, struct tandem_error *error);
    /** Nanoseconds between two marks in the work queue, or (`begin` NULL) taken by a launch; waits
     * for its end. Only if opened with_times. */
    enum tandem_status (*event_ns)(struct tnd_gpu_context *context, struct tnd_gpu_event *begin,
                                   struct tnd_gpu_event *end, int64_t *out_ns,
                                   struct tandem_error *error);
    void (*event_free)(struct tnd_gpu_context *context, struct tnd_gpu_event *event);

    /* ---- programs ---- */

    /** Compiles a program. Errors: DEVICE with the compiler's first error message. */
    enum tandem_status (*compile)(struct tnd_gpu_context *context, const struct tnd_gpu_text *text,
                                  struct tnd_gpu_module **out_module, struct tandem_error *error);
    /** Loads a module from the bytes of module_binary, with the same options; NULL if the driver
     * refuses them. */
    struct tnd_gpu_module *(*load)(struct tnd_gpu_context *context, const void *bytes, size_t n,
                                   const char *options);
    /** The module's binary; free it with tnd_free. NULL: none. */
    void *(*module_binary)(struct tnd_gpu_context *context, struct tnd_gpu_module *module,
                           size_t *out_n);
    void (*module_free)(struct tnd_gpu_context *context, struct tnd_gpu_module *module);

    /** A kernel by its name in the text. A module must outlive its functions. */
    enum tandem_status (*function_new)(struct tnd_gpu_context *context,
                                       struct tnd_gpu_module *module, const char *name,
                                       struct tnd_gpu_function **out_function,
                                       struct tandem_error *error);
    void (*function_free)(struct tnd_gpu_context *context, struct tnd_gpu_function *function);
    /** Sets argument `index` to `bytes` bytes of `value`, or to local memory of that size if
     * `value` is NULL. A buffer is passed as a struct tnd_gpu_buffer * of 8 bytes. */
    enum tandem_status (*argument)(struct tnd_gpu_context *context,
                                   struct tnd_gpu_function *function, const char *name, int index,
                                   size_t bytes, const void *value, struct tandem_error *error);
    /** Adds a kernel (`name`, static, for messages) with 1 to 3 dimensions to the work queue;
     * `global` counts work-items, a multiple of `local`. `out_event` NULL: no event. */
    enum tandem_status (*launch)(struct tnd_gpu_context *context, struct tnd_gpu_function *function,
                                 const char *name, int n_dims, const size_t *global,
                                 const size_t *local, struct tnd_gpu_event **out_event,
                                 struct tandem_error *error);

    /** Switches graphs of launches on or off, and drops existing ones; initially off. With graphs,
     * the driver may hold back launches until anything else is added to the work queue or waits for
     * it; the failure of such a launch is reported by the next call and by all later ones. Returns
     * whether graphs are on now. NULL: no graphs. */
    bool (*use_graphs)(struct tnd_gpu_context *context, bool on);

    /* ---- products by a library, if has_blas ---- */

    /** Adds the product to the work queue. One thread at a time. */
    enum tandem_status (*product)(struct tnd_gpu_context *context,
                                  const struct tnd_gpu_blas *product, struct tandem_error *error);
    /** Sets other parameters for F32 products from now on; if has_blas_parameters. */
    enum tandem_status (*override_parameters)(struct tnd_gpu_context *context, size_t n,
                                              const char **names, const size_t *values,
                                              struct tandem_error *error);
};

/* Fills in the public information about a device from its capabilities. */
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

/* Extracts a compiler's error message: the first line of its log with "error", or else the first
 * line. */
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
