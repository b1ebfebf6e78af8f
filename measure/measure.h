/* SPDX-License-Identifier: MIT
 * Measures one plain matrix product on this machine: real executor, real threads, random
 * operands that rotate through more memory than the caches hold, warm-up, repeats until the
 * spread is small or the budget ends. */
#ifndef TND_MEASURE_H
#define TND_MEASURE_H

#include "base/clock.h"
#include "measure/energy.h"
#include "sched/exec.h"

struct tnd_measure;

struct tnd_measure_options {
    const struct tnd_registry *registry; /* borrowed */
    struct tnd_exec *exec;               /* borrowed */
    const struct tnd_clock *clock;       /* borrowed */
    size_t rotate_bytes; /* copies of the weights take this much; 0: twice the last-level cache */
    size_t limit_bytes;  /* never take more than this for operands; 0: a quarter of the RAM */
    uint64_t seed;
    struct tnd_energy *energy; /* borrowed, and used by one measurement at a time; NULL: none */
    /** As in a program: activations come from the host each time and nothing is waited for between
     *  steps. Else activations lie where they are wanted and each step of a device is timed alone:
     *  stages hold what computing takes. Products whose weights travel then stand TND_MEASURE_NODES
     *  in a row, and the total, the one time there is, is that of the row over their number. */
    bool is_whole;
};

/* Time of one stage, or of all of them. count 0: the stage does not exist. */
struct tnd_stage_time {
    double median_us;
    double spread_us; /* median absolute deviation */
    uint32_t count;
};

struct tnd_measure_result {
    struct tnd_stage_time stage[TANDEM_STAGES]; /* without what moves between host and device */
    struct tnd_stage_time moving;               /* that: all transfers of the node together */
    double watts;                /* that the machine drew during the trial; 0: unknown */
    struct tnd_stage_time total; /* from the first step's begin to the last one's end */
};

/** Median and deviation of `count` values; `scratch` has room for as many. */
struct tnd_stage_time tnd_stage_time_of(const double *us, uint32_t count, double *scratch);

struct tnd_measure_effort {
    double budget_s; /* stop repeating after this long; 0: 0.1 s */
    int min_repeats; /* 0: 3 */
    int max_repeats; /* 0: 200 */
    double
        spread_frac; /* stop when the total's spread / sqrt(count) is below this share; 0: 0.01 */
    double expected_us; /* of one product; 0: a guess. Short ones stand several in a graph */
    bool is_warm;       /* the choice has run on these operands: no warm-up */
};

/** Products that a graph holds when one of them takes this long. */
int tnd_measure_nodes(double expected_us);

/** Memory that a measuring of these weights takes: operands, and copies that backends may make. */
double tnd_measure_bytes(const struct tnd_measure_options *options, enum tandem_type type,
                         int64_t n, int64_t k, int64_t m_max);

/** Makes operands for weights of `type`, n x k, and up to m_max tokens. Errors: MEMORY, LIMIT,
 *  ARGUMENT. */
enum tandem_status tnd_measure_open(const struct tnd_measure_options *options,
                                    enum tandem_type type, int64_t n, int64_t k, int64_t m_max,
                                    struct tnd_measure **out_measure, struct tandem_error *error);
/** NULL allowed. */
void tnd_measure_close(struct tnd_measure *measure);

/** Has a backend that keeps copies of weights make them now, by the choice's threads, so that no
 *  measurement meets it. Does nothing the second time, and where the choice uses no copies. */
enum tandem_status tnd_measure_prepare(struct tnd_measure *measure,
                                       const struct tandem_plan_node *choice,
                                       struct tandem_error *error);

/** Measures m tokens (1 .. m_max) run as `choice` says, prepared for it if need be. `effort`
 *  may be NULL. */
enum tandem_status tnd_measure_run(struct tnd_measure *measure, int64_t m,
                                   const struct tandem_plan_node *choice,
                                   const struct tnd_measure_effort *effort,
                                   struct tnd_measure_result *out_result,
                                   struct tandem_error *error);

/** Result of the last run, m x n floats, for checking; and its operands. Lives until the next
 *  run. */
const float *tnd_measure_output(const struct tnd_measure *measure);
/** Overwrites the result of the last run, so that a backend that computes nothing does not pass for
 *  the one before it. */
void tnd_measure_spoil(struct tnd_measure *measure);
/** The same product through the double-precision reference into `out` (m x n floats). Slow. */
enum tandem_status tnd_measure_reference(struct tnd_measure *measure, int64_t m, float *out,
                                         struct tandem_error *error);

#endif
