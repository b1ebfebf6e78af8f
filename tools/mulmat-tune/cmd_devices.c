/* SPDX-License-Identifier: MIT
 * mulmat-tune devices: the devices of this machine and their features. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tandem/device.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "base/emit.h"

static const char *yes(bool value)
{
    return value ? "yes" : "no";
}

static void add_text(struct tnd_text *out, const struct tandem_device_info *devices, int at)
{
    const struct tandem_device_info *device = &devices[at];
    tnd_text_printf(out, "%s%d: %s\n", at > 0 ? "\n" : "", at, device->name);
    tnd_text_printf(out, "    backend       %s\n", device->backend);
    tnd_text_printf(out, "    platform      %s, %s\n", device->platform, device->version);
    tnd_text_printf(out, "    type, vendor  %s, %s\n",
                    tandem_device_type_name((enum tandem_device_type)device->type), device->vendor);
    tnd_text_printf(out, "    driver        %s\n", device->driver);
    tnd_text_printf(out, "    memory        %llu MiB%s, a buffer up to %llu MiB\n",
                    (unsigned long long)(device->memory_bytes >> 20),
                    device->has_unified_memory ? ", shared with the host" : "",
                    (unsigned long long)(device->max_alloc_bytes >> 20));
    tnd_text_printf(out, "    local memory  %llu KiB, work-groups of up to %llu\n",
                    (unsigned long long)(device->local_bytes >> 10),
                    (unsigned long long)device->max_work_group);
    tnd_text_printf(out, "    compute units %u, up to %u MHz\n", device->compute_units,
                    device->max_clock_mhz);
    tnd_text_printf(out, "    fp16 %s, fp64 %s, subgroups %s\n", yes(device->has_fp16),
                    yes(device->has_fp64), yes(device->has_subgroups));
    if (!device->is_fit) {
        tnd_text_printf(out, "    not used: %s\n", device->reason);
    } else if (!device->is_default) {
        tnd_text_printf(out, "    used when asked for (--device %d): %s\n", at, device->reason);
    } else {
        tnd_text_add(out, "    used\n");
    }
}

static void add_string(struct tnd_text *out, const char *key, const char *value)
{
    tnd_text_printf(out, "\"%s\": ", key);
    tnd_emit_json_string(out, value);
    tnd_text_add(out, ", ");
}

static void add_json(struct tnd_text *out, const struct tandem_device_info *devices, int at)
{
    const struct tandem_device_info *device = &devices[at];
    tnd_text_printf(out, "%s\n    {\"index\": %d, ", at > 0 ? "," : "", at);
    add_string(out, "backend", device->backend);
    add_string(out, "name", device->name);
    add_string(out, "platform", device->platform);
    add_string(out, "vendor", device->vendor);
    add_string(out, "driver", device->driver);
    add_string(out, "version", device->version);
    add_string(out, "type", tandem_device_type_name((enum tandem_device_type)device->type));
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"memory_bytes", device->memory_bytes},   {"max_alloc_bytes", device->max_alloc_bytes},
        {"local_bytes", device->local_bytes},     {"compute_units", device->compute_units},
        {"max_clock_mhz", device->max_clock_mhz}, {"max_work_group", device->max_work_group},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        tnd_text_printf(out, "\"%s\": %llu, ", numbers[i].key,
                        (unsigned long long)numbers[i].value);
    }
    const struct {
        const char *key;
        bool value;
    } flags[] = {
        {"unified_memory", device->has_unified_memory},
        {"fp16", device->has_fp16},
        {"fp64", device->has_fp64},
        {"subgroups", device->has_subgroups},
        {"fit", device->is_fit},
        {"default", device->is_default},
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        tnd_text_printf(out, "\"%s\": %s, ", flags[i].key, flags[i].value ? "true" : "false");
    }
    tnd_text_add(out, "\"reason\": ");
    tnd_emit_json_string(out, device->reason);
    tnd_text_add_char(out, '}');
}

static int print(const struct tandem_device_info *devices, int n, const char *reason, bool json)
{
    struct tnd_text text = TND_TEXT_INIT;
    struct tandem_error error = {0};
    if (json) {
        tnd_text_add(&text, "{\n  \"reason\": ");
        tnd_emit_json_string(&text, n == 0 ? reason : "");
        tnd_text_add(&text, ",\n  \"devices\": [");
    } else if (n == 0) {
        tnd_text_printf(&text, "no device: %s\n", reason);
    }
    for (int i = 0; i < n; i++) {
        if (json) {
            add_json(&text, devices, i);
        } else {
            add_text(&text, devices, i);
        }
    }
    if (json) {
        tnd_text_add(&text, n > 0 ? "\n  ]\n}\n" : "]\n}\n");
    } else if (n > 0 && reason[0] != '\0') {
        tnd_text_printf(&text, "\nnot found: %s\n", reason);
    }
    enum tandem_status status = tnd_emit_end(&text, tnd_cmd_write, stdout, "devices", &error);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}

static int list(bool json)
{
    struct tandem_error error = {0};
    int n = tandem_devices(NULL, 0, &error);
    if (n < 0) {
        return tnd_cmd_failed(&error);
    }
    struct tandem_device_info *devices = tnd_calloc((size_t)n + 1, sizeof(devices[0]));
    if (devices == NULL) {
        tnd_error_set(&error, TANDEM_E_MEMORY, "devices", n, 0, "no memory for %d devices", n);
        return tnd_cmd_failed(&error);
    }
    devices[0].size = sizeof(devices[0]);
    int found = n > 0 ? tandem_devices(devices, n, &error) : 0;
    int result = found < 0 ? tnd_cmd_failed(&error)
                           : print(devices, found < n ? found : n, error.text, json);
    tnd_free(devices);
    return result;
}

int tnd_cmd_devices(int argc, char **argv)
{
    bool json = false;
    const struct args_option options[] = {
        {"json", ARGS_FLAG, &json, 0, 0, NULL, "one JSON object"},
    };
    const struct args_command command = {
        "devices",
        "",
        "Lists the OpenCL devices of this machine: the index for --device, memory, what it can do, "
        "and\nwhether it is used, only when asked for, or not at all, and why.",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        0};
    int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    return list(json);
}
