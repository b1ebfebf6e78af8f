/* SPDX-License-Identifier: MIT
 * One cell of bench-kernels: a product in every existing layout (AMX tiles multiply packed
 * weights), the peak of the arithmetic, and plain reading of the same weights. They take turns, so
 * that disturbances affect all of them equally; shares compare times of the same turn. */
#ifndef TND_KERNEL_CELL_H
#define TND_KERNEL_CELL_H

#include "backends/cpu/kernels/kernels.h"
#include "bench/team.h"

enum tnd_layout {
    TND_LAYOUT_ROWS,
    TND_LAYOUT_PACKED,
    TND_LAYOUT_BF16, /* the packed copy times rounded activations */
    TND_LAYOUT_TILES,
    TND_LAYOUTS
};

struct tnd_cell_time {
    double median_us, best_us;
    double spread; /* (90th - 10th percentile) / median */
    double tail;   /* share of the time in which a thread was idle at the end: 90th percentile */
    double compute_share, read_share; /* of the peak and of reading, median over the turns */
    int samples;                      /* 0: this layout does not exist */
};

struct tnd_kernel_cell {
    enum tandem_type type;
    int64_t n, k, m;
    struct tnd_cell_time layout[TND_LAYOUTS];
    size_t bytes[TND_LAYOUTS]; /* of the weights */
    double peak_gops; /* of the arithmetic of rows: int8 dots or fp32 FMA; median of the turns */
    double read_gbps; /* of the weights alone, by the same threads; 0: M is above 16 */
    int read_streams; /* fastest number of streams per thread */
};

/** Measures for about `budget_s` seconds. False if memory is out or a product failed. */
bool tnd_kernel_cell_measure(tnd_team *team, int threads, const struct tnd_cpu_kernels *kernels,
                             double budget_s, struct tnd_kernel_cell *cell);

#endif
