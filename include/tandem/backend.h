/* SPDX-License-Identifier: MIT
 * room: backends
 *
 * The interface that a backend implements, in the tree or outside it. The library calls it only
 * through the wrappers of backends/vtable.c. A backend never knows which profile a task belongs to:
 * it computes one task of one node over a range of rows. */
#ifndef TANDEM_BACKEND_H
#define TANDEM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/device.h"
#include "tandem/ops.h"
#include "tandem/task-list.h"

TANDEM_BEGIN_C

/** A unit of work that a backend may offer; see task-list.h. Names are pinned, numbers are not. */
enum tandem_task {
#define TANDEM_TASK_ENUM(name, text, columns, what) TANDEM_TASK_##name,
    TANDEM_TASK_LIST(TANDEM_TASK_ENUM)
#undef TANDEM_TASK_ENUM
        TANDEM_TASK_COUNT
};

/** "quantize_x" and the like. Static storage. Never fails. Any thread. */
TANDEM_API const char *tandem_task_name(enum tandem_task task);

/** Backend numbers of the text table format, version 1, and of the JSON files. */
enum tandem_backend_kind {
    TANDEM_KIND_NONE = 0,       /**< no backend */
    TANDEM_KIND_CPU = 1,        /**< the library's own kernels */
    TANDEM_KIND_CUDA = 2,       /**< reserved */
    TANDEM_KIND_ACCELERATE = 3, /**< in tables of other programs only */
    TANDEM_KIND_OPENBLAS = 4,   /**< sgemm of OpenBLAS */
    TANDEM_KIND_CLBLAST = 5,    /**< in tables of other programs only */
    TANDEM_KIND_OPENCL = 6,     /**< devices by OpenCL */
    TANDEM_KIND_SIM = 7,        /**< simulated devices, for tests */
    TANDEM_KIND_HOST = 8,       /**< a plugin that computes in host memory */
    TANDEM_KIND_DEVICE = 9      /**< a plugin with memory of its own */
};

/** What the executor lends to a backend while it runs on a worker thread. All pointers are borrowed
 *  for the call. */
struct tandem_worker {
    int index;                  /**< 0 .. count-1 among the workers of this stage */
    int count;                  /**< workers that run this stage together */
    int own_threads;            /**< threads that the backend may start itself (>= 1) */
    void *scratch;              /**< this worker's own memory, 64-byte aligned */
    size_t scratch_bytes;       /**< of `scratch`: at least what the backend asked for */
    struct tandem_error *error; /**< this worker's error slot; may be NULL */
    /** Takes the next chunk of 0..n_items-1, of about `chunk` items at most, fewer towards the end;
     * false when none is left (or the graph was cancelled). A worker's chunks are consecutive,
     * until it takes over chunks of other workers. All workers of a stage pass the same n_items and
     * chunk; at most 65535 such loops per work, with a barrier between two. */
    bool (*next)(struct tandem_worker *worker, int64_t n_items, int64_t chunk, int64_t *out_begin,
                 int64_t *out_end);
    /** Waits until all workers of the stage have called it. All of them must call it equally
     * often. */
    void (*barrier)(struct tandem_worker *worker);
    int node; /**< NUMA node that the worker runs on, counted from 0; 0 on machines with one */
    /** Whether the graph was cancelled or has failed: for long parts of a work without a `next`.
     * Workers that wait for each other may get different answers. NULL: unknown. */
    bool (*stopped)(struct tandem_worker *worker);
};

/** Bytes on a device with memory of its own: a handle of `map` or `prepare` and an offset. */
struct tandem_place {
    void *handle; /**< NULL: nothing is there that the work needs */
    size_t offset;
};

/** Where a device with memory of its own finds the data of a work. */
struct tandem_places {
    struct tandem_place result;
    struct tandem_place src[TANDEM_MAX_SRC];
    struct tandem_place workspace;
};

/** One piece of work: a task of a node over rows. For matrix products rows are rows of W (columns
 *  of the result, 0..N-1); for everything else the range is the whole node and is ignored. */
struct tandem_work {
    const tandem_tensor *node; /**< with operands and result */
    uint32_t task;             /**< enum tandem_task */
    int64_t row_begin;         /**< first row */
    int64_t row_end;           /**< after the last row */
    void *workspace;        /**< shared by all stages of the node on this path, 64-byte aligned */
    size_t workspace_bytes; /**< of `workspace` */
    /** A chain of nodes to run as one work, in this order: each reads the result of the one before,
     * the last one is `node`; see `fuses`. 0: `node` alone. */
    const tandem_tensor *const *nodes;
    int n_nodes;     /**< of `nodes`, at most TANDEM_FUSED_NODES */
    uint32_t unread; /**< bit i: only nodes[i + 1] reads the result of nodes[i]; it need not be
                      * written, and its memory may hold something else */
    const struct tandem_places *places; /**< of devices with memory of their own; else NULL */
    void *prepared; /**< for backends in host memory: what `prepare` made of the first operand, for
                     * tasks that read it; else NULL */
};

/** Maximum number of nodes of one work. */
#define TANDEM_FUSED_NODES 8

/** Where a backend finds the operands of its works and leaves their results. */
enum tandem_backend_memory {
    TANDEM_MEMORY_HOST = 0, /**< in host memory; the backend itself moves what it needs elsewhere */
    TANDEM_MEMORY_OWN = 1   /**< in memory of its own: `upload` fills it, `download` reads it */
};

/** Open backend; implementations embed it as their first member. */
typedef struct tandem_backend {
    const struct tandem_backend_api *api; /**< static: lives as long as the backend */
} tandem_backend;

/** Options passed to a backend when it is opened. Strings are borrowed for the call. */
struct tandem_backend_options {
    size_t size;          /**< sizeof(struct tandem_backend_options) */
    int n_threads_max;    /**< maximum number of workers that run at once */
    const char *settings; /**< "key=value,..." of this backend, or NULL; borrowed for the call */
    int (*log)(void *user, int level, const char *text); /**< NULL: silent */
    void *log_user;                                      /**< passed to `log` */
    bool is_asked_for; /**< the program named the backend; it is not just probed */
    int device;        /**< index of the device to open, less than the count of `devices` */
    const char *name;  /**< of this device: "opencl", "opencl1"; lives as long as the backend */
};

/** One fact of a backend's identity: what its measured times depend on (device, driver, version of
 *  a library). */
struct tandem_backend_fact {
    const char *key;   /**< lower case, [a-z0-9_], at most 23 bytes; unique within the backend */
    const char *value; /**< UTF-8, at most 127 bytes */
};

/** A key that the backend's settings may have. Static strings. */
struct tandem_backend_setting {
    const char *key;
    const char *value; /**< what may follow '=': "FILE", "off" */
    const char *what;  /**< one line of help */
};

/** Which backend runs a stage of a profile. */
enum tandem_profile_place {
    TANDEM_ON_SELF = 0,   /**< the device that provides the profile */
    TANDEM_ON_CPU = 1,    /**< the CPU backend */
    TANDEM_ON_LIBRARY = 2 /**< the first backend of another kind that computes in host memory and
                           * provides a profile of its own with this task */
};

/** One stage of a profile: its backend, task and threads. */
struct tandem_profile_stage {
    uint32_t task;     /**< enum tandem_task; TANDEM_TASK_NONE: no such stage */
    uint32_t place;    /**< enum tandem_profile_place */
    bool parallel;     /**< on all threads of the node, in chunks; else on one thread */
    bool wait;         /**< idle workers sleep meanwhile; else they spin for a while before */
    bool own_threads;  /**< not parallel, but the backend uses threads of its own */
    uint8_t text_kind; /**< number of the stage in text tables of version 1 (enum
                        * tandem_backend_kind); 0: the kind of its backend */
};

/** A profile: one method of computing Y = X * W^T for weights of one type. Static strings. */
struct tandem_backend_profile {
    /** At most 31 bytes, unique; '*' stands for the name of the backend that TANDEM_ON_LIBRARY
     * finds. A second device has the same profiles with "@name" appended to the name
     * ("@opencl1"). */
    const char *name;
    const char *what;                     /**< one line for people */
    struct tandem_profile_stage init;     /**< before COMPUTE, separated by a barrier; optional */
    struct tandem_profile_stage compute;  /**< TANDEM_TASK_NONE: not for this type of weights */
    struct tandem_profile_stage finalize; /**< after COMPUTE, separated by a barrier; optional */
};

/** A backend's functions. `abi` and `size` come first; members are only ever added at the end.
 * Functions marked optional may be NULL; members beyond `size` bytes, of a backend that was
 * compiled against an older header, count as NULL. The library makes a copy and sets `api` of the
 * open backend to it. */
struct tandem_backend_api {
    uint32_t abi;     /**< TANDEM_ABI */
    uint32_t size;    /**< sizeof(struct tandem_backend_api) when compiled */
    const char *name; /**< of the kind: 1 to 13 characters, none of ":;,=+@*" or blank */
    uint32_t kind;    /**< enum tandem_backend_kind */

    /** Opens the backend; fails if this machine cannot run it (UNSUPPORTED_MACHINE with a
     * reason). */
    enum tandem_status (*open)(const struct tandem_backend_options *options,
                               tandem_backend **out_backend, struct tandem_error *error);
    /** Frees everything; work in flight is completed or dropped before. */
    void (*close)(tandem_backend *backend);
    /** One line: version, instruction set, driver. Lives as long as the backend. Optional. */
    const char *(*describe)(tandem_backend *backend);

    /** OK when `task` can be run for `node`; else UNSUPPORTED_BACKEND with the reason. Pure. */
    enum tandem_status (*supports)(tandem_backend *backend, const tandem_tensor *node,
                                   uint32_t task, struct tandem_error *error);
    /** Bytes of workspace that the stages of the node share if this task is one of them. Pure;
     * optional (0). */
    size_t (*workspace)(tandem_backend *backend, const tandem_tensor *node, uint32_t task);
    /** Bytes of scratch that each worker needs. Pure; optional (0). */
    size_t (*scratch)(tandem_backend *backend, const tandem_tensor *node, uint32_t task);

    /** Runs the task; called by `worker->count` workers at once, each with its own worker. NULL for
     *  asynchronous devices. Any thread. */
    enum tandem_status (*run)(tandem_backend *backend, const struct tandem_work *work,
                              struct tandem_worker *worker);

    /** Starts the task on an asynchronous device and returns at once. Optional. Any thread. A
     * backend with memory of its own executes in the order of submission, reads and writes only
     * mirrors, and its tickets need not be synced one by one: see sync. */
    enum tandem_status (*submit)(tandem_backend *backend, const struct tandem_work *work,
                                 uint64_t *out_ticket, struct tandem_error *error);
    /** Waits for a ticket and makes its results visible in host memory. Each ticket is synced once.
     * With memory of its own: waits until the ticket and everything before it has completed and
     * returns the first failure among them; results are in host memory only after a download. */
    enum tandem_status (*sync)(tandem_backend *backend, uint64_t ticket,
                               struct tandem_error *error);

    /** Prepares a constant weight (packs, uploads). `*out_handle` identifies what it made, NULL for
     * nothing; it is kept until `forget`, and works on the weight pass it to the backend. Called
     * once for each tensor. Optional. Any thread. Errors: DEVICE_MEMORY when the device's budget is
     * used up (the work must then run elsewhere), DEVICE. */
    enum tandem_status (*prepare)(tandem_backend *backend, const tandem_tensor *weight,
                                  void **out_handle, struct tandem_error *error);
    /** Frees what `prepare` made; no work uses it any more. Optional. Any thread. */
    void (*forget)(tandem_backend *backend, void *handle);

    /** enum tandem_backend_memory. OWN needs submit, sync, map, unmap, upload and download. */
    uint32_t memory;
    /** Allocates `bytes` > 0 bytes of the device's memory; their contents are undefined. Any
     * thread. Errors: MEMORY, DEVICE_MEMORY, DEVICE. */
    enum tandem_status (*map)(tandem_backend *backend, size_t bytes, void **out_handle,
                              struct tandem_error *error);
    /** Frees them, once all works submitted before have completed. Any thread. */
    void (*unmap)(tandem_backend *backend, void *handle);
    /** Copies host to device, after the works submitted before and before later ones. The host
     * memory may be changed as soon as it returns. Any thread. */
    enum tandem_status (*upload)(tandem_backend *backend, struct tandem_place to, const void *from,
                                 size_t bytes, struct tandem_error *error);
    /** Starts copying device to host, after the works submitted before; complete when its ticket is
     * synced. */
    enum tandem_status (*download)(tandem_backend *backend, struct tandem_place from, void *to,
                                   size_t bytes, uint64_t *out_ticket, struct tandem_error *error);

    /** Bytes of prepared weights, in addition to the program's own. Optional (0). Any thread. */
    size_t (*prepared_bytes)(tandem_backend *backend);

    /** Whether the INIT task leaves the same bytes in the workspace for both nodes, if nothing in
     * between changes their operands: it then runs once for both. Pure; optional (false). */
    bool (*is_same_work)(tandem_backend *backend, const tandem_tensor *a, const tandem_tensor *b,
                         uint32_t task);

    /** Whether TANDEM_TASK_NODE of the last node can run the chain as one work, row by row: results
     * of unread nodes go to the rows of the last result; operands are disjoint from all results or
     * in the same rows. The bits equal those of running node by node. Pure; optional (false). */
    bool (*fuses)(tandem_backend *backend, const tandem_tensor *const *nodes, int n_nodes);

    /** The i-th fact of this device's identity, from 0 on; false beyond the last. Strings live as
     * long as the backend. A table stores the facts; when one changes, times measured on this
     * backend are no longer used. Pure; optional (no facts). */
    bool (*identity)(tandem_backend *backend, int i, struct tandem_backend_fact *out);

    /* The functions below are about the kind, not about an open backend. Any thread. */

    /** Lists the devices of this machine, as tandem_devices does; index i is opened with `device` =
     * i. May load drivers. Optional: then there is one device without further information. */
    int (*devices)(struct tandem_device_info *out, int n, struct tandem_error *error);
    /** The i-th profile that each device provides, for weights of `type`; false beyond the last.
     * Number and names do not depend on the type. Pure; optional (none: the backend is then used by
     * plans made by hand and for operations other than matrix products). */
    bool (*profile)(int i, enum tandem_type type, struct tandem_backend_profile *out);
    /** The i-th key that `settings` may have; false beyond the last. Pure; optional (all settings
     * of the program are passed on). */
    bool (*setting)(int i, struct tandem_backend_setting *out);

    /** Copies host to device concurrently with works submitted before: it waits only for those of
     * them that use the handle, and only later works and transfers that use the handle wait for it.
     * A sync need not wait for it. The host memory may be changed as soon as it returns. Optional
     * (`upload` is used). Any thread. */
    enum tandem_status (*stream)(tandem_backend *backend, struct tandem_place to, const void *from,
                                 size_t bytes, struct tandem_error *error);

    /** Maximum bytes of prepared weights; beyond them `prepare` fails with DEVICE_MEMORY. Optional
     * (0: unknown until it fails). Pure. Any thread. */
    uint64_t (*weight_budget)(tandem_backend *backend);

    /** Does at once, for rows row .. row + n_rows - 1 of a weight (those of all its matrices), what
     * works would do when they first use what `prepare` made of it. Workers of NUMA node `node`
     * call it for their own rows, several at once. Optional. Any thread. */
    void (*finish)(tandem_backend *backend, void *handle, int64_t row, int64_t n_rows, int node);
    /** Stores finished weights for later processes if the settings ask for it. Optional. Any
     * thread. Errors: FILE, MEMORY; computing continues without it. */
    enum tandem_status (*keep)(tandem_backend *backend, struct tandem_error *error);

    /** Whether a ticket and everything before it has completed, so that its sync returns at once.
     * False: only sync can tell about this ticket (0, which is none: about any). Never waits.
     * Optional (false): then a stalled device is waited for. Any thread. */
    bool (*poll)(tandem_backend *backend, uint64_t ticket, bool *out_is_over);

    /** Writes a line for people, at most `capacity` bytes with the zero byte: what the device has
     * done so far and holds in memory. Returns the length of the whole line. Optional (no line).
     * Any thread. */
    size_t (*report)(tandem_backend *backend, char *out, size_t capacity);

    /** Nanoseconds that the device spent on one of the last works, whose ticket has completed;
     * false: not measured. Optional (false). Any thread. */
    bool (*took)(tandem_backend *backend, uint64_t ticket, int64_t *out_ns);
};

/** Name of the function that returns the backend of a plugin (a shared library); it has the type
 * below. The functions must stay valid as long as any runtime uses the backend: the library that
 * loads the plugin never unloads it. */
#define TANDEM_PLUGIN_SYMBOL "tandem_backend_plugin"
typedef const struct tandem_backend_api *(*tandem_backend_plugin_function)(void);

TANDEM_END_C
#endif
