/* SPDX-License-Identifier: MIT
 * Lists of ranges of host addresses. */
#include "backends/opencl/cl_regions.h"

#include <string.h>

#include "base/alloc.h"

int tnd_cl_regions_at(const struct tnd_cl_regions *regions, uintptr_t address)
{
    int low = 0;
    int high = regions->n;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct tnd_cl_region *row = &regions->rows[middle];
        if (row->begin + row->bytes <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct tnd_cl_region *tnd_cl_regions_find(const struct tnd_cl_regions *regions, uintptr_t address,
                                          size_t bytes)
{
    int i = tnd_cl_regions_at(regions, address);
    if (i == regions->n) {
        return NULL;
    }
    struct tnd_cl_region *row = &regions->rows[i];
    bool inside =
        row->begin <= address && bytes <= row->bytes && address - row->begin <= row->bytes - bytes;
    return inside ? row : NULL;
}

bool tnd_cl_regions_overlap(const struct tnd_cl_regions *regions, uintptr_t address, size_t bytes)
{
    int i = tnd_cl_regions_at(regions, address);
    return i < regions->n && regions->rows[i].begin < address + bytes;
}

bool tnd_cl_regions_insert(struct tnd_cl_regions *regions, const struct tnd_cl_region *row)
{
    if (regions->n == regions->capacity) {
        int capacity = regions->capacity * 2 + 16;
        struct tnd_cl_region *grown =
            tnd_realloc(regions->rows, (size_t)regions->capacity * sizeof(*grown),
                        (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        regions->rows = grown;
        regions->capacity = capacity;
    }
    int at = tnd_cl_regions_at(regions, row->begin);
    memmove(regions->rows + at + 1, regions->rows + at,
            (size_t)(regions->n - at) * sizeof(*regions->rows));
    regions->rows[at] = *row;
    regions->n++;
    regions->bytes += (int64_t)row->bytes;
    return true;
}

struct tnd_cl_region tnd_cl_regions_take(struct tnd_cl_regions *regions, int at)
{
    struct tnd_cl_region row = regions->rows[at];
    regions->n--;
    memmove(regions->rows + at, regions->rows + at + 1,
            (size_t)(regions->n - at) * sizeof(*regions->rows));
    regions->bytes -= row.buffer != NULL ? (int64_t)row.bytes : 0;
    for (int i = 0; i < row.n_forms; i++) {
        regions->bytes -= (int64_t)row.forms[i].bytes;
    }
    return row;
}

void tnd_cl_region_free(const struct tnd_cl_device *device, struct tnd_cl_region *row)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    if (row->is_host) {
        cl->Finish(device->queue);
    }
    for (int i = 0; i < row->n_forms; i++) {
        cl->ReleaseMemObject(row->forms[i].buffer);
    }
    if (row->buffer != NULL) {
        cl->ReleaseMemObject(row->buffer);
    }
    tnd_free(row->forms);
}
