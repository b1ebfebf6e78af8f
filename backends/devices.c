/* SPDX-License-Identifier: MIT
 * The devices of this machine, for all kinds of backends in this build, and names of their types.
 * Knows no particular backend. */
#include "tandem/device.h"

#include <stdio.h>
#include <string.h>

#include "backends/kinds.h"
#include "base/tnd_status.h"

const char *tandem_device_type_name(enum tandem_device_type type)
{
    switch (type) {
    case TANDEM_DEVICE_CPU:
        return "cpu";
    case TANDEM_DEVICE_GPU:
        return "gpu";
    case TANDEM_DEVICE_ACCELERATOR:
        return "accelerator";
    default:
        return "other";
    }
}

int tandem_devices(struct tandem_device_info *out, int n, struct tandem_error *error)
{
    if (n < 0 || (n > 0 && out == NULL)) {
        tnd_error_set(error, TANDEM_E_ARGUMENT, "devices", n, 0,
                      "devices: room for %d elements, expected 0 or more and a list", n);
        return -1;
    }
    if (n > 0 && out[0].size != sizeof(*out)) {
        tnd_error_set(error, TANDEM_E_ABI, "devices", (int64_t)out[0].size, sizeof(*out),
                      "devices: size is %zu, expected %zu", out[0].size, sizeof(*out));
        return -1;
    }
    int n_devices = 0;
    enum tandem_status status = TANDEM_OK;  /* error of the first kind without devices */
    char missing[sizeof(error->text)] = ""; /* why kinds have none, all reasons together */
    for (int k = 0; tnd_kind_at(k) != NULL; k++) {
        const struct tandem_backend_api *kind = tnd_kind_at(k);
        if (kind->devices == NULL) {
            continue;
        }
        int left = n > n_devices ? n - n_devices : 0;
        struct tandem_error told = {0};
        int found = kind->devices(left > 0 ? out + n_devices : NULL, left, &told);
        if (found <= 0 && told.text[0] != '\0') {
            size_t at = strlen(missing);
            status = at == 0 ? told.status : status;
            snprintf(missing + at, sizeof(missing) - at, "%s%s", at > 0 ? "; " : "", told.text);
        }
        for (int i = 0; i < found && i < left; i++) {
            struct tandem_device_info *info = &out[n_devices + i];
            snprintf(info->backend, sizeof(info->backend), "%s", kind->name);
        }
        n_devices += found > 0 ? found : 0;
    }
    if (missing[0] != '\0') {
        tnd_error_set(error, status, "devices", n_devices, 0, "%s", missing);
    }
    return n_devices;
}
