/* SPDX-License-Identifier: MIT
 * The devices of the stand-in for libcuda: a small GPU of compute capability 8.6, as often as
 * TANDEM_FAKE_CUDA_DEVICES says. What is told of them can be a lie, see fake_control.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_entry.h"

static int said_devices(void)
{
    const char *count = getenv("TANDEM_FAKE_CUDA_DEVICES");
    return count != NULL ? atoi(count) : 1;
}

int tnd_fake_devices(void)
{
    const int n = said_devices();
    return n < 0 ? 0 : n > TND_FAKE_MAX_DEVICES ? TND_FAKE_MAX_DEVICES : n;
}

EXPORT int cuDeviceGetCount(int *out)
{
    ENTER();
    *out = said_devices();
    return CUDA_SUCCESS;
}

EXPORT int cuDeviceGet(int *out, int ordinal)
{
    ENTER();
    CHECK(ordinal >= 0 && ordinal < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    *out = ordinal;
    return CUDA_SUCCESS;
}

EXPORT int cuDeviceGetName(char *out, int bytes, int device)
{
    ENTER();
    CHECK(device >= 0 && device < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    CHECK(bytes > 0, CUDA_ERROR_INVALID_VALUE);
    const char *name = getenv("TANDEM_FAKE_CUDA_NAME");
    if (name != NULL) { /* a long one is left without its end */
        const size_t n = strlen(name) + 1;
        memcpy(out, name, n < (size_t)bytes ? n : (size_t)bytes);
    } else {
        snprintf(out, (size_t)bytes, "Tandem Stand-in GPU %d", device);
    }
    return CUDA_SUCCESS;
}

static int uuid(unsigned char *out, int device)
{
    CHECK(device >= 0 && device < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    memcpy(out, "tandem-stand-in", 15);
    out[15] = (unsigned char)device;
    return CUDA_SUCCESS;
}

EXPORT int cuDeviceGetUuid(unsigned char *out, int device)
{
    ENTER();
    return uuid(out, device);
}

EXPORT int cuDeviceGetUuid_v2(unsigned char *out, int device)
{
    ENTER();
    return uuid(out, device);
}

EXPORT int cuDeviceGetPCIBusId(char *out, int bytes, int device)
{
    ENTER();
    CHECK(bytes >= 13, CUDA_ERROR_INVALID_VALUE);
    snprintf(out, (size_t)bytes, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t *out, int device)
{
    uint64_t free_bytes = 0, total = 0;
    ENTER();
    CHECK(device >= 0 && device < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    tnd_fake_memory_info(&free_bytes, &total);
    const char *said = getenv("TANDEM_FAKE_CUDA_SAID_MEMORY");
    *out = said != NULL ? (size_t)strtoull(said, NULL, 10) : (size_t)total;
    return CUDA_SUCCESS;
}

/* "NUMBER=VALUE" of TANDEM_FAKE_CUDA_ATTRIBUTE. */
static bool is_said(int attribute, int *out)
{
    const char *said = getenv("TANDEM_FAKE_CUDA_ATTRIBUTE");
    char *end = NULL;
    if (said == NULL || strtol(said, &end, 10) != attribute || *end != '=') {
        return false;
    }
    *out = (int)strtol(end + 1, NULL, 10);
    return true;
}

/* By the numbers of CUdevice_attribute. */
EXPORT int cuDeviceGetAttribute(int *out, int attribute, int device)
{
    static const struct {
        int attribute, value;
    } values[] = {
        {1, 1024},                                        /* threads of a block */
        {2, 1024},                                        /* x, y, z of a block */
        {3, 1024},      {4, 64},         {5, 2147483647}, /* x, y, z of a grid */
        {6, 65535},     {7, 65535},      {8, 48 << 10},   /* shared memory of a block */
        {9, 64 << 10},                                    /* constant memory */
        {10, 32},                                         /* warp */
        {12, 65536},                                      /* registers of a block */
        {13, 1000000},                                    /* kHz */
        {16, 2},                                          /* multiprocessors */
        {17, 0},                                          /* time limit of kernels */
        {18, 0},                                          /* integrated */
        {19, 1},                                          /* can map host memory */
        {20, 0},                                          /* compute mode */
        {31, 1},                                          /* concurrent kernels */
        {32, 0},                                          /* ECC */
        {33, 1},                                          /* bus */
        {34, 0},        {36, 1000000},                    /* kHz of the memory */
        {37, 128},                                        /* bits of its bus */
        {38, 1 << 20},                                    /* L2 */
        {39, 2048},                                       /* threads of a multiprocessor */
        {40, 2},                                          /* copy engines */
        {41, 1},                                          /* unified addressing */
        {50, 0},                                          /* PCI domain */
        {75, 8},                                          /* compute capability 8.6 */
        {76, 6},        {81, 100 << 10},                  /* shared memory of a multiprocessor */
        {82, 65536},                                      /* its registers */
        {83, 0},                                          /* managed memory */
        {97, 99 << 10}, /* shared memory of a block, if asked for */
        {115, 0},       /* memory pools */
    };
    ENTER();
    CHECK(device >= 0 && device < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    if (is_said(attribute, out)) {
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i].attribute == attribute) {
            *out = values[i].value;
            return CUDA_SUCCESS;
        }
    }
    *out = 0;
    return CUDA_SUCCESS;
}
