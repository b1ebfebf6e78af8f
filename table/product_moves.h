/* SPDX-License-Identifier: MIT
 * Which operands a product moves between host and devices, by the stages of its profile. The text
 * writer and tune/moves.c price the transfers. */
#ifndef TND_PRODUCT_MOVES_H
#define TND_PRODUCT_MOVES_H

#include "table/tnd_table.h"

struct tnd_product_move {
    const char *backend; /* name in the profile; NULL: nothing is moved */
    enum tnd_direction direction;
    int64_t bytes;
};

struct tnd_product_moves {
    const char *device;                /* the device that reads X and writes Y; NULL: host memory */
    struct tnd_product_move inside[2]; /* weights in F32 from one stage to the next */
    struct tnd_product_move x;         /* X from the host to the device */
    struct tnd_product_move y;         /* Y from the device to the host */
};

/** The transfers of one product; its strings belong to `profile`. False when a device takes part
 * whose transfers the table does not have. In tables of version 1 they are part of the stages'
 * times. */
bool tnd_product_moves(const struct tandem_table *table, const struct tnd_table_profile *profile,
                       int64_t n, int64_t k, int64_t m, struct tnd_product_moves *out);

#endif
