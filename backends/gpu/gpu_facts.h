/* SPDX-License-Identifier: MIT
 * Devices as a driver lists them, with validated facts. */
#ifndef TND_GPU_FACTS_H
#define TND_GPU_FACTS_H

#include "backends/gpu/driver.h"

enum { TND_GPU_MAX_DEVICES = 512 }; /* of one driver: 16 platforms of 32 */

/** As `find` of the driver. Afterwards all texts are terminated and one line of UTF-8, numbers are
 * in ranges where nothing computed from them overflows, and a device with impossible numbers is
 * unfit, with the number as its reason. Errors: those of `find`, DEVICE (a list of an impossible
 * length). */
enum tandem_status tnd_gpu_find_devices(const struct tnd_gpu_driver *driver,
                                        const struct tnd_gpu_libraries *libraries,
                                        struct tnd_gpu_found **out_found, int *out_n,
                                        struct tandem_error *error);

#endif
