/* SPDX-License-Identifier: MIT
 * Cells of a table left out and predicted from the rest: how right the model of times is outside of
 * what was measured, and how right its error bars are. */
#ifndef TND_LEFT_OUT_H
#define TND_LEFT_OUT_H

#include "table/problem.h"
#include "table/tnd_table.h"

enum tnd_left_out_side {
    TND_LEFT_OUT_ABOVE,   /* the largest M */
    TND_LEFT_OUT_BELOW,   /* the smallest M */
    TND_LEFT_OUT_THREADS, /* the largest thread count */
    TND_LEFT_OUT_SIDES
};

/* Distances are counted in doublings: 1 (twice as far as what is left), 2, 3 and more. */
enum { TND_LEFT_OUT_DISTANCES = 3 };

/* All stages of a profile at one cell. */
struct tnd_left_out_cell {
    struct tnd_problem problem;
    bool warm;
    enum tnd_left_out_side side;
    int distance; /* 1 .. TND_LEFT_OUT_DISTANCES */
    double measured_us, predicted_us, error_us;
};

struct tnd_left_out {
    TND_VECTOR_OF(struct tnd_left_out_cell, cells);
};

/* What a choice of cells tells. */
struct tnd_calibration {
    int n;
    double median, p95, worst; /* |predicted / measured - 1| */
    double within;             /* share of the cells that lie within their error bars */
    int worst_at;              /* index of the worst cell */
};

/** For each profile, type, shape and thread count of products: leaves out the M above a half and
 *  above a quarter of the largest, those below two and four times the smallest, and the largest
 *  thread count, each time for all curves of the stage, and predicts the outermost cell, or those
 *  of the thread count, from what is left (two M at least). Adds to `out`, which the caller frees
 *  with tnd_left_out_fini whatever the result. Errors: MEMORY. */
enum tandem_status tnd_left_out_add(const struct tandem_table *table, struct tnd_left_out *out);
void tnd_left_out_fini(struct tnd_left_out *list);

/** Calibration of the cells of `sides` (bit a side) at `distances` (bit 0: distance 1). Errors:
 *  MEMORY. */
enum tandem_status tnd_left_out_calibration(const struct tnd_left_out *list, uint32_t sides,
                                            uint32_t distances, struct tnd_calibration *out);

#endif
