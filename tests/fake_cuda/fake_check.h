/* SPDX-License-Identifier: MIT
 * What each access of a kernel is held against: whether the place is the kernel's, is aligned, was
 * written, and whether another work item could have touched it at the same time. */
#ifndef TND_FAKE_CHECK_H
#define TND_FAKE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fake_cuda/fake_order.h"

/** Who touched a byte last in a launch. */
struct tnd_fake_touch {
    uint32_t launch;                  /* none yet when another one */
    uint32_t writer, reader;          /* 1 + number of the group * 1024 + item; 0: none */
    uint16_t write_epoch, read_epoch; /* barriers before it */
    bool is_atomic, are_many;         /* the write; readers that differ */
};

/** A range of memory with what is known of each byte. */
struct tnd_fake_range {
    const char *begin, *end;
    struct tnd_fake_touch *touches;
    unsigned char *written;        /* not 0: has a value; NULL: all have */
    struct tnd_fake_order *orders; /* NULL: no other stream can touch it */
};

/** One who reads or writes. */
struct tnd_fake_toucher {
    uint32_t launch, group, item;
    uint16_t epoch;
};
enum { TND_FAKE_WRITE = 1, TND_FAKE_ATOMIC = 2 };

/** NULL, or what is wrong with touching `bytes` bytes, which lie in the range. */
const char *tnd_fake_touch(const struct tnd_fake_range *range, const char *at, size_t bytes,
                           unsigned what, const struct tnd_fake_toucher *who);

#endif
