/* SPDX-License-Identifier: MIT
 * Names of device types: in every build, with OpenCL or without. */
#include "tandem/device.h"

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
