/* SPDX-License-Identifier: MIT
 * Leaves cells of a table out and predicts them from the rest: tests how accurate the model of
 * times is outside of what was measured, and how accurate its error bars are. */
#ifndef TND_LEFT_OUT_H
#define TND_LEFT_OUT_H

#include "table/problem.h"
#include "table/tnd_table.h"

enum tnd_left_out_side {
    TND_LEFT_OUT_ABOVE,   /* above: the largest M */
    TND_LEFT_OUT_BELOW,   /* below: the smallest M */
    TND_LEFT_OUT_THREADS, /* the largest thread count */
    TND_LEFT_OUT_SIDES
};

/* Distances are counted in doublings: 1 (twice as far as the remaining cells), 2, 3 and more. */
enum { TND_LEFT_OUT_DISTANCES = 3 };

/* Times of all stages of a profile at one cell. */
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

/* Statistics over some cells. */
struct tnd_calibration {
    int n;
    double median, p95, worst; /* |predicted / measured - 1| */
    double within;             /* share of the cells within their error bars */
    int worst_at;              /* index of the worst cell */
};

/** For each profile, type, shape and thread count of products: leaves out the M above half and
 * above a quarter of the largest, those below two and four times the smallest, and the largest
 * thread count, each time for all curves of the stage, and predicts the outermost cell, or those of
 * the thread count, from the remaining ones (at least two M). Appends to `out`, which the caller
 * frees with tnd_left_out_fini in any case. Errors: MEMORY. */
enum tandem_status tnd_left_out_add(const struct tandem_table *table, struct tnd_left_out *out);
void tnd_left_out_fini(struct tnd_left_out *list);

/** Statistics over the cells of `sides` (one bit per side) at `distances` (bit 0: distance 1).
 * Errors: MEMORY. */
enum tandem_status tnd_left_out_calibration(const struct tnd_left_out *list, uint32_t sides,
                                            uint32_t distances, struct tnd_calibration *out);

#endif
