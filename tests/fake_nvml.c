/* SPDX-License-Identifier: MIT
 * A stand-in for NVIDIA's libnvidia-ml.so: three GPUs, of which one has no counter. The millijoules
 * are the number in the file that FAKE_NVML_MJ names; without it each takes 10 W. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *out_count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out_device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out_mj);

static char devices[3];

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *out_count)
{
    *out_count = 3;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out_device)
{
    *out_device = &devices[index];
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out_mj)
{
    const char *path = getenv("FAKE_NVML_MJ");
    if (path == NULL && device != &devices[1]) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        *out_mj = 10 * ((unsigned long long)now.tv_sec * 1000 +
                        (unsigned long long)now.tv_nsec / 1000000);
        return 0;
    }
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    char text[32] = "";
    if (file == NULL || device == &devices[1] || fgets(text, sizeof(text), file) == NULL) {
        if (file != NULL) {
            fclose(file);
        }
        return 3; /* NVML_ERROR_NOT_SUPPORTED */
    }
    fclose(file);
    *out_mj = strtoull(text, NULL, 10);
    return 0;
}
