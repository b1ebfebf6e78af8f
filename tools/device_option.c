/* SPDX-License-Identifier: MIT
 * The option --device. */
#include "tools/device_option.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PROFILES = 64 };

static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));
static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *format, ...)
{
    va_list arguments;
    memset(error, 0, sizeof(*error));
    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return status;
}

static const char *plugin; /* of the command line */

int tnd_plugin_option_take(int argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < argc; i++) {
        bool is_plugin = i > 0 && strcmp(argv[i], "--plugin") == 0 && i + 1 < argc;
        if (is_plugin) {
            plugin = argv[++i];
        } else {
            argv[n++] = argv[i];
        }
    }
    argv[n] = NULL;
    return n;
}

/* Devices that a profile needs: 0, 1, or 2 for one of the second device. */
static int wanted_by_profile(const char *profile)
{
    bool any = profile != NULL &&
               (strstr(profile, "opencl") != NULL || strstr(profile, "clblast") != NULL);
    return !any ? 0 : strstr(profile, "@opencl1") != NULL ? 2 : 1;
}

static int wanted_by_device(const char *device)
{
    return device == NULL || strcmp(device, "none") == 0 ? 0 : strchr(device, ',') != NULL ? 2 : 1;
}

enum tandem_status tnd_device_option_apply(const char *device, const char *profile,
                                           struct tnd_device_option *memory,
                                           struct tandem_runtime_options *options,
                                           struct tandem_error *error)
{
    int by_profile = wanted_by_profile(profile);
    options->plugins = plugin;
    if (device == NULL) {
        /* A backend that is named may take a CPU. */
        options->backends = by_profile == 2   ? "openblas,opencl,opencl1"
                            : by_profile == 1 ? "openblas,opencl"
                                              : options->backends;
        return TANDEM_OK;
    }
    size_t first = strcspn(device, ",");
    const char *second = device[first] == ',' ? device + first + 1 : NULL;
    bool valid = first > 0 && strpbrk(device, ";:=") == NULL && strlen(device) < 256 &&
                 (second == NULL || (second[0] != '\0' && strchr(second, ',') == NULL));
    if (!valid) {
        return fail(error, TANDEM_E_ARGUMENT,
                    "--device '%.100s': expected an index or part of a name, or two of them with a "
                    "comma between; mulmat-tune devices lists them",
                    device);
    }
    bool none = strcmp(device, "none") == 0;
    snprintf(memory->settings, sizeof(memory->settings), "opencl:device=%.*s%s%s", (int)first,
             device, none || second == NULL ? ";opencl1:device=none" : ";opencl1:device=",
             second != NULL ? second : "");
    options->settings = memory->settings;
    return TANDEM_OK;
}

static bool is_open(const tandem_runtime *runtime, const char *backend)
{
    for (int slot = 1; slot < tandem_runtime_backend_count(runtime); slot++) {
        if (strcmp(tandem_runtime_backend_name(runtime, slot), backend) == 0) {
            return true;
        }
    }
    return false;
}

enum tandem_status tnd_device_option_check(const char *device, const char *profile,
                                           const tandem_runtime *runtime,
                                           struct tandem_error *error)
{
    static const char *const needs[2][2] = {{"opencl", "opencl"}, {"opencl1", "opencl@opencl1"}};
    int wanted = wanted_by_device(device);
    wanted = wanted > wanted_by_profile(profile) ? wanted : wanted_by_profile(profile);
    for (int i = 0; i < wanted; i++) {
        struct tandem_profile_info profiles[MAX_PROFILES];
        int n = tandem_runtime_profiles(runtime, profiles, MAX_PROFILES);
        const char *reason = "";
        if (is_open(runtime, needs[i][0])) {
            continue;
        }
        for (int p = 0; p < n && p < MAX_PROFILES; p++) {
            if (strcmp(profiles[p].name, needs[i][1]) == 0) {
                reason = profiles[p].reason;
            }
        }
        return fail(error, TANDEM_E_NOT_FOUND, "no device for %s: %s", needs[i][0], reason);
    }
    return TANDEM_OK;
}
