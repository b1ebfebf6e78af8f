/* SPDX-License-Identifier: MIT
 * What a compiled program and the driver's stand-in agree on. C and C++. */
#ifndef TND_FAKE_ITEM_H
#define TND_FAKE_ITEM_H

#include <stddef.h>
#include <stdint.h>

enum { TND_FAKE_WARP = 32, TND_FAKE_GIVEN = 32 };

/** The work item that runs, and what it asks the driver for. A program has one pointer to one of
 *  these; the driver sets it before a launch and changes the numbers as items take turns. */
struct tnd_fake_item {
    unsigned place[3], local_size[3], group[3], n_groups[3];
    char *local_memory; /* that the launch asked for */
    void (*barrier)(void);
    /* Puts the `bytes` (at most TND_FAKE_GIVEN) of each item of the caller's warp to `all`, in the
     * items' order; all of them call. Their number. */
    unsigned (*warp_share)(const void *mine, size_t bytes, void *all);
    /* A program that is checked tells each access; `what`: bits of fake_check.h. `alignment`: what
     * the GPU needs. */
    void (*access)(const void *address, size_t bytes, size_t alignment, unsigned what);
};

/** A kernel of a program; `call` takes addresses of the arguments. A program exports an array of
 *  these, ended by a NULL name, as tnd_fake_kernels, the pointer as tnd_fake_item_now, begin and
 *  end of its variables in local memory as tnd_fake_local_ends. */
struct tnd_fake_kernel {
    const char *name;
    void (*call)(void **arguments);
    int n_arguments;
    const unsigned *argument_bytes; /* n_arguments sizes, 8 at most */
};

/** In front of what NVRTC's stand-in hands out as a cubin: a shared object follows. */
struct tnd_fake_image {
    char magic[16];
    uint64_t bytes; /* of the shared object */
    uint64_t hash;  /* of it, by tnd_hash_bytes(.., 0) */
};
#define TND_FAKE_MAGIC "tandem-fake-gpu"

#endif
