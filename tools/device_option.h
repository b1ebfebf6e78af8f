/* SPDX-License-Identifier: MIT
 * The option --device of all tools: from the command line to the options of a runtime. */
#ifndef TND_DEVICE_OPTION_H
#define TND_DEVICE_OPTION_H

#include "backends/kinds.h"
#include "tandem/runtime.h"

#define TND_DEVICE_OPTION_HELP "device: index or part of its name, several as A,B; none"

/** Memory that the runtime options point into, and what the check needs. */
struct tnd_device_option {
    char settings[2048];
    char backends[256];
    char needed[TND_MAX_DEVICES][TND_BACKEND_NAME]; /* devices that must be open */
    int n_needed;
};

/** Sets backends and appends to the settings in `options`; where both set a key, the device's value
 * wins. `device`: "1", "geforce", "0,1" for several devices, in the order of tandem_devices,
 * "none", or NULL: all GPUs. A CPU is used as a device when `device` names it, or when `profile`
 * (may be NULL) needs a device. Errors: ARGUMENT, MEMORY. */
enum tandem_status tnd_device_option_apply(const char *device, const char *profile,
                                           struct tnd_device_option *memory,
                                           struct tandem_runtime_options *options,
                                           struct tandem_error *error);

/** Removes each "--plugin FILE" and "--plugin=FILE" from the arguments; the runtimes of all
 * commands load these plugins (plugins of struct tandem_runtime_options). Returns the new count. */
int tnd_plugin_option_take(int argc, char **argv);
#define TND_PLUGIN_OPTION_HELP                                                                     \
    "--plugin FILE.so[:key=value,..] loads a backend from a shared library"

/** NOT_FOUND, with the reason, when a requested device is not open. */
enum tandem_status tnd_device_option_check(const struct tnd_device_option *option,
                                           const tandem_runtime *runtime,
                                           struct tandem_error *error);

/** Whether a profile, by its name, runs on a device that this option selects. */
bool tnd_device_option_has_profile(const char *profile);

#endif
