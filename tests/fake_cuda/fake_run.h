/* SPDX-License-Identifier: MIT
 * Running a kernel on the CPU: the items of a group take turns on stacks of their own. */
#ifndef TND_FAKE_RUN_H
#define TND_FAKE_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "tests/fake_cuda/fake_item.h"

struct tnd_fake_launch {
    const struct tnd_fake_kernel *kernel;
    struct tnd_fake_item **item_now; /* of the program */
    char *local, *local_end;         /* variables of the program in local memory */
    unsigned n_groups[3], local_size[3];
    size_t local_bytes; /* asked for by the launch */
    void **arguments;
    const char *program, *program_end; /* where the program lies in memory, */
    const char *values, *values_end;   /* and the arguments */
    uint32_t number;
};

/** Runs all groups, one at a time; launches of one program must not meet. NULL, or what was wrong:
 *  a barrier that some items of a group did not come to, writing beyond the local memory, or an
 *  access that fake_check.h forbids. */
const char *tnd_fake_run(const struct tnd_fake_launch *launch);

#endif
