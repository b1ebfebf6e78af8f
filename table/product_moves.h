/* SPDX-License-Identifier: MIT
 * Which operands a product moves between host and devices, by the stages of its profile. Knows
 * nothing of what that costs: the text writer and tune/moves.c price it. */
#ifndef TND_PRODUCT_MOVES_H
#define TND_PRODUCT_MOVES_H

#include "table/tnd_table.h"

struct tnd_product_move {
    const char *backend; /* in the profile; NULL: nothing is moved */
    enum tnd_direction direction;
    int64_t bytes;
};

struct tnd_product_moves {
    const char *device; /* the device that reads X and leaves Y; NULL: host memory */
    struct tnd_product_move
        inside[2];             /* between the stages: weights in F32 from one to the other */
    struct tnd_product_move x; /* X from the host to the device */
    struct tnd_product_move y; /* Y from the device to the host */
};

/** The moves of one product; texts are those of `profile`. False when a device takes part of whose
 *  transfers the table says nothing; in tables of version 1 they are in the times of the stages. */
bool tnd_product_moves(const struct tandem_table *table, const struct tnd_table_profile *profile,
                       int64_t n, int64_t k, int64_t m, struct tnd_product_moves *out);

#endif
