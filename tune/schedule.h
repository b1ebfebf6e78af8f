/* SPDX-License-Identifier: MIT
 * Schedules the nodes of a graph on lanes, as an abstract problem: the input is times, bytes and
 * dependencies; the output is an assignment, an order, and a predicted begin and end of everything.
 * Knows neither tensors nor tables. A side is where nodes run: 0 is the host, whose thread hands
 * out all work; the others are devices. Each side is a lane, and so is each direction of its
 * transfers.
 *
 * List scheduling after HEFT (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002): nodes by their rank
 * upward, each on the side where it ends first, also in gaps; transfers count as in StarPU's dmda
 * (Augonnet et al., CCPE 23(2), 2011). A virtual clock that hands out work as the executor does
 * runs the result and every placement on a single side, to compare them. */
#ifndef TND_SCHEDULE_H
#define TND_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"

enum {
    TND_SCHEDULE_SIDES = 16,
    TND_SCHEDULE_LINK_POINTS = 6,
    TND_SCHEDULE_CURVE_POINTS = 9,
    TND_SCHEDULE_SPLIT = 255 /* instead of a side: the node is split over several */
};

struct tnd_schedule_time {
    float us; /* negative: not possible */
    float error_us;
};

/** Times of moving bytes, linear between the points; n = 0: moving costs nothing. */
struct tnd_schedule_link {
    int n;
    double bytes[TND_SCHEDULE_LINK_POINTS]; /* rising */
    double us[TND_SCHEDULE_LINK_POINTS];
    double error_frac;
};

struct tnd_schedule_side {
    bool own_memory; /* else the side works in host memory */
    bool in_order;   /* one queue: transfers and work wait for whatever was submitted before */
    struct tnd_schedule_link upload, download;
};

struct tnd_schedule_edge {
    int32_t from;       /* an earlier node */
    int32_t is_ordered; /* 1: the two only share memory, no bytes move; else 0 */
};

/** How nodes of one kind can be split: by rows of W, which are rows of the result, or by columns of
 * W, whose results are added. */
struct tnd_schedule_split {
    bool is_sum; /* by columns: "rows" below are columns, and a side gets only its share of X */
    int64_t rows;
    int64_t step; /* shares of devices are multiples of it */
    double x_bytes;
    double bytes_per_row; /* result bytes to download; by columns: of the whole result */
    /* of storing it into the host's result; by columns: of adding the whole */
    double join_us_per_row;
    double copy_us_per_row; /* of packing a share of X on the host; 0: none */
    bool can[TND_SCHEDULE_SIDES];
    /* Time of a side's share, at equal distances from no rows to all. */
    float us[TND_SCHEDULE_SIDES][TND_SCHEDULE_CURVE_POINTS];
    float error_frac[TND_SCHEDULE_SIDES];
};

/** All arrays are borrowed. */
struct tnd_schedule_problem {
    int n_nodes; /* in an order that respects all edges */
    int n_sides;
    int n_splits;
    const struct tnd_schedule_side *sides;
    const struct tnd_schedule_time *times; /* n_sides per node */
    const double *bytes;                   /* of each node's result */
    const int32_t *first_edge;             /* n_nodes + 1 */
    const struct tnd_schedule_edge *edges; /* edges that a node waits for */
    const struct tnd_schedule_split *splits;
    const int16_t *split_of; /* split of each node, -1: none; NULL: no node has one */
    double wake_us;        /* extra time of a node on the host after the host waited for a device */
    bool only_singles;     /* times are unknown: no splits and no deliberate overlaps */
    const float *slowdown; /* [a * n_sides + b]: factor on times of a while b works; NULL: 1 */
};

enum tnd_schedule_kind {
    TND_SCHEDULE_RUN,
    TND_SCHEDULE_UPLOAD,
    TND_SCHEDULE_DOWNLOAD,
    TND_SCHEDULE_JOIN, /* joins the parts of a split node */
    TND_SCHEDULE_COPY  /* packs columns of X for a part */
};

struct tnd_schedule_span {
    int32_t node;
    int32_t reader; /* uploads: the node that needs the data; else `node` */
    uint8_t kind;   /* enum tnd_schedule_kind; transfers move the result of `node` */
    uint8_t side;   /* transfers and copies: the device's side */
    uint8_t lane;   /* tnd_schedule_lane */
    bool is_part;   /* part of a split node */
    bool is_critical;
    int32_t cause; /* span whose end this one waited for; -1: none */
    double begin_us, end_us;
};

struct tnd_schedule_part {
    int32_t node;
    uint8_t side;
    int64_t row_begin, row_end; /* in order of sides, from row 0 on; the host's may be empty */
    double us;                  /* alone, without transfers */
};

struct tnd_schedule {
    double makespan_us;
    double single_us;     /* best placement without splits and deliberate overlaps */
    double best_us;       /* best of all placements tried */
    double gain_error_us; /* error bar of single_us - best_us */
    bool is_taken;        /* the gain is large enough: this schedule splits or overlaps */
    int n_tried;          /* placements run by the virtual clock */
    int n_nodes, n_parts, n_spans;
    uint8_t *side;                   /* of each node, or TND_SCHEDULE_SPLIT */
    int32_t *order;                  /* order in which nodes are handed out; respects all edges */
    struct tnd_schedule_part *parts; /* by node and side, the host's included */
    struct tnd_schedule_span *spans; /* in the order of hand-out */
    void *memory;
};

/** Finds a schedule. Arrays of `out` are valid until tnd_schedule_fini. Deterministic. Errors:
 * MEMORY, OVERFLOW. */
enum tandem_status tnd_schedule_find(const struct tnd_schedule_problem *problem,
                                     struct tnd_schedule *out, struct tandem_error *error);
void tnd_schedule_fini(struct tnd_schedule *schedule);

/** Number of lanes: the sides, then upload and download of each device. */
static inline int tnd_schedule_lanes(int n_sides)
{
    return 3 * n_sides - 2;
}
/** Lane of a side's work, or of its transfers. */
static inline int tnd_schedule_lane(int n_sides, int side, enum tnd_schedule_kind kind)
{
    bool is_transfer = kind == TND_SCHEDULE_UPLOAD || kind == TND_SCHEDULE_DOWNLOAD;
    return is_transfer ? n_sides + 2 * (side - 1) + (kind == TND_SCHEDULE_DOWNLOAD) : side;
}
/** Time of moving this many bytes. */
double tnd_schedule_link_us(const struct tnd_schedule_link *link, double bytes);

#endif
