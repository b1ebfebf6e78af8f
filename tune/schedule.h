/* SPDX-License-Identifier: MIT
 * Placing the nodes of a graph on lanes, as an abstract problem: times, bytes and dependencies go
 * in, an assignment, an order and a predicted begin and end for everything come out. Knows neither
 * tensors nor tables. A side is where nodes run: 0 is the host, whose thread hands out all work;
 * the others are devices. Each side is a lane, and so is each direction of its transfers.
 *
 * List scheduling after HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002): nodes by their rank
 * upward, each where it ends first, gaps included; transfers count as in StarPU's dmda (Augonnet et
 * al., CCPE 23(2), 2011). What comes out is run by a virtual clock that hands out work as the
 * executor does, and compared with every placement on one side by the same clock. */
#ifndef TND_SCHEDULE_H
#define TND_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"

enum {
    TND_SCHEDULE_SIDES = 16,
    TND_SCHEDULE_LINK_POINTS = 6,
    TND_SCHEDULE_CURVE_POINTS = 9,
    TND_SCHEDULE_SPLIT = 255 /* in place of a side: rows of the node on several */
};

struct tnd_schedule_time {
    float us; /* negative: it cannot run there */
    float error_us;
};

/** Times of moving bytes, a line between two points; n = 0: moving costs nothing. */
struct tnd_schedule_link {
    int n;
    double bytes[TND_SCHEDULE_LINK_POINTS]; /* rising */
    double us[TND_SCHEDULE_LINK_POINTS];
    double error_frac;
};

struct tnd_schedule_side {
    bool own_memory; /* else it works in host memory */
    bool in_order;   /* one queue: its transfers wait for works submitted before, and the reverse */
    struct tnd_schedule_link upload, download;
};

struct tnd_schedule_edge {
    int32_t from;       /* an earlier node */
    int32_t is_ordered; /* 1: the two share memory only, no bytes move; else 0 */
};

/** How nodes of one kind can be split: by rows of W, which are those of the result, or by columns,
 *  whose results are added. */
struct tnd_schedule_split {
    bool is_sum; /* "rows" below are columns; of X a side gets its share alone */
    int64_t rows;
    int64_t step; /* shares are multiples of it, but for the host's */
    double x_bytes;
    double bytes_per_row;   /* of a part, to be brought to the host; sums: of all of it */
    double join_us_per_row; /* of putting it into the result there; sums: of all of it */
    double copy_us_per_row; /* of putting its share of X together there; 0: none */
    bool can[TND_SCHEDULE_SIDES];
    /* Times of a side's share over the rows, at equal distances from none to all. */
    float us[TND_SCHEDULE_SIDES][TND_SCHEDULE_CURVE_POINTS];
    float error_frac[TND_SCHEDULE_SIDES];
};

/** All arrays are borrowed. */
struct tnd_schedule_problem {
    int n_nodes; /* in an order that respects all edges */
    int n_sides;
    int n_splits;
    const struct tnd_schedule_side *sides;
    const struct tnd_schedule_time *times; /* n_sides a node */
    const double *bytes;                   /* of each node's result */
    const int32_t *first_edge;             /* n_nodes + 1 */
    const struct tnd_schedule_edge *edges; /* that a node waits for */
    const struct tnd_schedule_split *splits;
    const int16_t *split_of; /* of each node, -1: none; NULL: of no node */
    double wake_us;          /* of a host's node after the host waited for a device */
    bool only_singles;       /* times are unknown: nothing is split or overlapped on purpose */
    const float *slowdown;   /* [a * n_sides + b]: times as long on a while b works; NULL: 1 */
};

enum tnd_schedule_kind {
    TND_SCHEDULE_RUN,
    TND_SCHEDULE_UPLOAD,
    TND_SCHEDULE_DOWNLOAD,
    TND_SCHEDULE_JOIN, /* parts of a split node are put together */
    TND_SCHEDULE_COPY  /* of columns of X, for a part */
};

struct tnd_schedule_span {
    int32_t node;
    int32_t reader; /* of an upload: the node that needs it; else `node` */
    uint8_t kind;   /* enum tnd_schedule_kind; transfers: of the result of `node` */
    uint8_t side;   /* transfers and copies: of the device */
    uint8_t lane;   /* tnd_schedule_lane */
    bool is_part;   /* of a split node */
    bool is_critical;
    int32_t cause; /* span whose end let this one begin; -1 */
    double begin_us, end_us;
};

struct tnd_schedule_part {
    int32_t node;
    uint8_t side;
    int64_t row_begin, row_end; /* by side, from row 0 on; the host may have none */
    double us;                  /* alone, without moving anything */
};

struct tnd_schedule {
    double makespan_us;
    double single_us;     /* of the best placement that neither splits nor overlaps on purpose */
    double best_us;       /* of the best of all that were tried */
    double gain_error_us; /* error bar of single_us - best_us */
    bool is_taken;        /* that gain was large enough: the schedule is the best of all */
    int n_tried;          /* placements that were run by the virtual clock */
    int n_nodes, n_parts, n_spans;
    uint8_t *side;                   /* of each node, or TND_SCHEDULE_SPLIT */
    int32_t *order;                  /* in which nodes are handed out; respects all edges */
    struct tnd_schedule_part *parts; /* by node and side, the host's included */
    struct tnd_schedule_span *spans; /* in the order in which they were handed out */
    void *memory;
};

/** Finds the best schedule. Arrays of `out` live until tnd_schedule_fini. The same problem gives
 *  the same schedule. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_schedule_find(const struct tnd_schedule_problem *problem,
                                     struct tnd_schedule *out, struct tandem_error *error);
void tnd_schedule_fini(struct tnd_schedule *schedule);

/** Lanes of the problem: its sides, then upload and download of each device. */
static inline int tnd_schedule_lanes(int n_sides)
{
    return 3 * n_sides - 2;
}
/** Lane of a side, or of a transfer of it. */
static inline int tnd_schedule_lane(int n_sides, int side, enum tnd_schedule_kind kind)
{
    bool is_transfer = kind == TND_SCHEDULE_UPLOAD || kind == TND_SCHEDULE_DOWNLOAD;
    return is_transfer ? n_sides + 2 * (side - 1) + (kind == TND_SCHEDULE_DOWNLOAD) : side;
}
/** Time of moving this many bytes. */
double tnd_schedule_link_us(const struct tnd_schedule_link *link, double bytes);

#endif
