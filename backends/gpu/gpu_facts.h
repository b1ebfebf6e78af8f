/* SPDX-License-Identifier: MIT
 * Devices as a driver lists them, with facts that can be relied on. */
#ifndef TND_GPU_FACTS_H
#define TND_GPU_FACTS_H

#include "backends/gpu/driver.h"

enum { TND_GPU_MAX_DEVICES = 512 }; /* of one driver: 16 platforms of 32 */

/** As `find` of the driver. Afterwards all texts end and are one line of UTF-8, numbers lie where
 *  nothing that is computed from them overflows, and a device whose numbers cannot be true is not
 *  fit: its reason says which. Errors: those of `find`, DEVICE (a list of an impossible length). */
enum tandem_status tnd_gpu_find_devices(const struct tnd_gpu_driver *driver,
                                        const struct tnd_gpu_libraries *libraries,
                                        struct tnd_gpu_found **out_found, int *out_n,
                                        struct tandem_error *error);

#endif
