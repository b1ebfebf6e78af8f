/* SPDX-License-Identifier: MIT
 * State of one run of the bench, shared by bench.c (the run), bench_groups.c (operands, costs) and
 * bench_cells.c (results into the table). Nobody else includes it. */
#ifndef TND_BENCH_SWEEP_H
#define TND_BENCH_SWEEP_H

#include "tune/adapt.h"
#include "tune/bench.h"

/* The weights of one (type, N, K), with operands while it is open. */
struct tnd_bench_group {
    enum tandem_type type;
    struct tnd_shape shape;
    double calls;
    struct tnd_measure *measure; /* NULL: not open */
    double bytes;                /* that it takes when it is open */
    double weight_bytes;         /* all copies */
    uint64_t last_used;
    bool is_packed;
    uint64_t warm; /* bit a line of the group: it has run on these operands */
};

/* A profile on a thread count for one group; numbered as in tnd_adapt. */
struct tnd_bench_line {
    int group;
    int first; /* line of the group */
    int threads;
    bool uses_device;
    struct tandem_plan_node choice;
    struct tnd_table_profile described;
};

struct tnd_sweep {
    const struct tnd_bench_options *options;
    struct tandem_table *table;
    struct tandem_error *error;
    struct tnd_adapt *adapt;
    int64_t when; /* seconds since 1970, the same for all cells of a sweep */
    uint64_t begin_ns;
    double budget_s; /* INFINITY: none */
    double visit_s;  /* a visit repeats short products this long */
    int64_t most_m;
    int n_groups, n_lines;
    struct tnd_bench_group *groups;
    struct tnd_bench_line *lines;
    uint64_t n_visits;
    double open_bytes, limit_bytes;      /* of operands */
    double open_s_per_byte;              /* what making operands takes */
    double pack_s_per_byte;              /* what copies of weights take */
    double round_trip_us[TND_MAX_SLOTS]; /* of devices with memory of their own */
};

double tnd_sweep_elapsed_s(const struct tnd_sweep *sweep);

/* ---- bench_groups.c ---- */

/** Predicted seconds of a visit; for tnd_adapt. */
double tnd_sweep_cost_s(void *user, int line, int64_t m, double expected_us);
/** Opens the operands of a line's group, closing others for which there is no memory, and has the
 *  copies made that its profile computes with. */
enum tandem_status tnd_sweep_open(struct tnd_sweep *sweep, int line, struct tandem_error *error);
void tnd_sweep_close_all(struct tnd_sweep *sweep);
/** Whether a visit to this cell needs no warming up. */
bool tnd_sweep_is_warm(const struct tnd_sweep *sweep, int line, double expected_us);

/* ---- bench_cells.c ---- */

/** Puts what a visit measured into the table. Errors: MEMORY. */
enum tandem_status tnd_sweep_keep(struct tnd_sweep *sweep, int line, int64_t m,
                                  const struct tnd_measure_result *result);

#endif
