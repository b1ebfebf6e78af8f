/* SPDX-License-Identifier: MIT
 * Which commands of streams stand in an order: each stream, each event and the host know up to
 * which position of every stream all is over (vector clocks). Two that touch the same bytes, one of
 * them by writing, and of which neither is known to be over when the other begins, miss a wait,
 * whether they met this time or not. Looked at while TANDEM_FAKE_CUDA_CHECK is 1. */
#ifndef TND_FAKE_ORDER_H
#define TND_FAKE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TND_FAKE_MAX_STREAMS = 32 };
struct tnd_fake_clock {
    uint64_t seen[TND_FAKE_MAX_STREAMS]; /* positions; all streams count together */
};

/** A command that runs. */
struct tnd_fake_command {
    bool is_checked;
    uint32_t number; /* from 1 on */
    struct tnd_fake_clock before;
};

/** Commands that touched a byte last. */
struct tnd_fake_order {
    uint32_t kernel_wrote, kernel_read, copy_wrote, copy_read;
};

void tnd_fake_join(struct tnd_fake_clock *to, const struct tnd_fake_clock *from);
/** A number for what stands at a position of a stream. */
uint32_t tnd_fake_command_number(int stream, uint64_t position);
/** NULL, or which wait is missing between what touched the bytes and a command that does now. */
const char *tnd_fake_follow(struct tnd_fake_order *orders, size_t n, bool is_write, bool is_copy,
                            const struct tnd_fake_command *command);

#endif
