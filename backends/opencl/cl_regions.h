/* SPDX-License-Identifier: MIT
 * Ranges of host addresses that a device has, in sorted lists. No locks: cl_memory.c and
 * cl_weights.c hold that of their lists. */
#ifndef TND_CL_REGIONS_H
#define TND_CL_REGIONS_H

#include "backends/opencl/cl_device.h"

/* Another layout of a weight. */
struct tnd_cl_form {
    int form;
    uintptr_t begin; /* of the tensor: a region may hold several */
    size_t bytes;
    cl_mem buffer;
};

/* A range of host addresses that the device has. */
struct tnd_cl_region {
    uintptr_t begin;
    size_t bytes;
    cl_mem buffer;   /* NULL: a weight of which only a form is kept */
    size_t offset;   /* of `begin` in the buffer */
    bool is_host;    /* the buffer is the host's memory */
    bool is_wanted;  /* as it is on the host, whatever forms it has */
    uint64_t serial; /* of a weight's context */
    struct tnd_cl_form *forms;
    int n_forms;
};

/* Sorted by begin, without overlaps. */
struct tnd_cl_regions {
    struct tnd_cl_region *rows;
    int n;
    int capacity;
    int64_t bytes; /* on the device, forms included */
};

/** Index of the first region that ends behind `address`. */
int tnd_cl_regions_at(const struct tnd_cl_regions *regions, uintptr_t address);
/** The region that has all of these bytes, or NULL. */
struct tnd_cl_region *tnd_cl_regions_find(const struct tnd_cl_regions *regions, uintptr_t address,
                                          size_t bytes);
/** Whether a region has any of these bytes. */
bool tnd_cl_regions_overlap(const struct tnd_cl_regions *regions, uintptr_t address, size_t bytes);
/** False without memory: the region is still the caller's. */
bool tnd_cl_regions_insert(struct tnd_cl_regions *regions, const struct tnd_cl_region *row);
/** Takes a region out of its list; it is the caller's now. */
struct tnd_cl_region tnd_cl_regions_take(struct tnd_cl_regions *regions, int at);
/** Gives back what a region holds on the device. Not under a list's lock: may wait for the
 *  device. */
void tnd_cl_region_free(const struct tnd_cl_device *device, struct tnd_cl_region *row);

#endif
