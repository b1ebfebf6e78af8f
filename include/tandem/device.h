/* SPDX-License-Identifier: MIT
 * room: backends
 *
 * The devices of this machine: what they are, and whether the library can use them. */
#ifndef TANDEM_DEVICE_H
#define TANDEM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"

TANDEM_BEGIN_C

/** Kind of a device, as reported by its driver. */
enum tandem_device_type {
    TANDEM_DEVICE_OTHER = 0,      /**< none of those below */
    TANDEM_DEVICE_CPU = 1,        /**< the host's own cores, by OpenCL */
    TANDEM_DEVICE_GPU = 2,        /**< integrated or with its own memory */
    TANDEM_DEVICE_ACCELERATOR = 3 /**< compute-only cards */
};

/** Facts about one device. Its index in the list is its index for selectors. Strings are truncated
 * to their arrays and always terminated. */
struct tandem_device_info {
    size_t size;       /**< sizeof(struct tandem_device_info) of the caller, in its first element */
    char platform[64]; /**< the driver's family: "Portable Computing Language", ... */
    char name[128];    /**< as reported by the driver */
    char vendor[64];   /**< who made the device */
    char driver[64];   /**< version of the driver */
    char version[64];  /**< "OpenCL 3.0 ..." of the device */
    uint32_t type;     /**< enum tandem_device_type */
    uint64_t memory_bytes;    /**< device memory, or the host memory that it may use */
    uint64_t max_alloc_bytes; /**< the largest single buffer */
    uint64_t local_bytes;     /**< memory that a work-group shares */
    uint32_t compute_units;   /**< cores of a CPU, multiprocessors of a GPU */
    uint32_t max_clock_mhz;   /**< as reported by the driver; 0: unknown */
    uint64_t max_work_group;  /**< work-items of a work-group */
    bool has_unified_memory;  /**< shares the host's memory */
    bool has_fp16;            /**< half arithmetic */
    bool has_fp64;            /**< double arithmetic */
    bool has_subgroups;       /**< work-items can exchange values without local memory */
    bool is_fit;              /**< the library can use it */
    bool is_default;          /**< opened by default: usable, and not a CPU */
    char reason[128];         /**< why it is unusable, or not opened by default; else "" */
    char backend[16];         /**< kind of backend that drives it: "opencl" */
};

/** Lists the devices of all backends of this build into `out` (`n` elements; `out[0].size` must be
 * set when n > 0; NULL with n = 0 counts). Returns how many there are, which may be more than `n`.
 * `error` gets why some kinds of backends have none (UNSUPPORTED_MACHINE, UNSUPPORTED_BUILD), even
 * if others have some. Errors: returns -1 for a wrong size (ABI) or negative n (ARGUMENT). Loads
 * and queries drivers: the first call may take long. Any thread. */
TANDEM_API int tandem_devices(struct tandem_device_info *out, int n, struct tandem_error *error);

/** "cpu", "gpu", "accelerator", "other". Static storage. Never fails. Any thread. */
TANDEM_API const char *tandem_device_type_name(enum tandem_device_type type);

TANDEM_END_C
#endif
