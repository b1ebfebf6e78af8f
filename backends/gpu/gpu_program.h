/* SPDX-License-Identifier: MIT
 * Programs of one device: one for each source and variant, built at first use, from the binary on
 * disk or from source. */
#ifndef TND_GPU_PROGRAM_H
#define TND_GPU_PROGRAM_H

#include "backends/gpu/gpu_launch.h"
#include "base/text.h"

/** `cache`: folder of binaries; NULL: $XDG_CACHE_HOME/tandem/DRIVER or ~/.cache/tandem/DRIVER, but
 * without binaries if the driver has a better cache of its own (PoCL); "off": none. Removes old
 * binaries in the folder. Errors: MEMORY, FORMAT (the library's own blob). */
enum tandem_status tnd_gpu_programs_open(struct tnd_gpu_device *device, const char *cache,
                                         struct tandem_error *error);
void tnd_gpu_programs_close(struct tnd_gpu_device *device);

/** Any thread; other threads wait for a build. */
enum tandem_status tnd_gpu_program_get(struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                       const struct tnd_gpu_variant *variant,
                                       struct tnd_gpu_program **out_program,
                                       struct tandem_error *error);

/** The common name of all sources that are not the library's own. */
#define TND_GPU_GENERATED "generated"
/** Builds a source that was generated at run time, or loads it from the cache; the caller releases
 * the program. Any thread. Errors: DEVICE with the compiler's first error message, MEMORY. */
enum tandem_status tnd_gpu_program_generated(struct tnd_gpu_device *device, uint64_t hash,
                                             const char *text, struct tnd_gpu_module **out_program,
                                             struct tandem_error *error);

/** Takes a kernel object for exclusive use by one launch, and returns it. `give` accepts NULL. */
enum tandem_status tnd_gpu_program_take(struct tnd_gpu_device *device,
                                        struct tnd_gpu_program *program, enum tnd_gpu_kernel kernel,
                                        struct tnd_gpu_function **out_handle,
                                        struct tandem_error *error);
void tnd_gpu_program_give(struct tnd_gpu_device *device, struct tnd_gpu_program *program,
                          enum tnd_gpu_kernel kernel, struct tnd_gpu_function *handle);
enum tnd_gpu_source tnd_gpu_program_source(const struct tnd_gpu_program *program);

/** All sources in one text, at the offsets of tnd_gpu_sources; free it with tnd_free. */
enum tandem_status tnd_gpu_texts(const char *driver, char **out_texts, struct tandem_error *error);

/** Compiler options for a variant on this device. */
void tnd_gpu_program_options(const struct tnd_gpu_device *device,
                             const struct tnd_gpu_variant *variant, struct tnd_text *out);

/** Adds programs_* and build_ns to the statistics. */
void tnd_gpu_programs_count(struct tnd_gpu_device *device, struct tnd_gpu_statistics *statistics);

/** Folder of the cache, also for other data of a device; NULL: off. Valid as long as the device. */
const char *tnd_gpu_programs_folder(const struct tnd_gpu_device *device);
/** Why the default folder is not used although it exists; "" if nothing is wrong. */
const char *tnd_gpu_programs_refused(const struct tnd_gpu_device *device);

#endif
