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
    size_t rotate_bytes; /* total size of the copies of the weights; 0: twice the last-level
                          * cache */
    size_t limit_bytes;  /* maximum size of all operands; 0: a quarter of the RAM */
    uint64_t seed;
    struct tnd_energy *energy; /* borrowed, used by one measurement at a time; NULL: none */
    /** Measure as a program runs: activations come from the host each time and nothing is waited
     *  for between steps. Else activations already are on the side that needs them and each step of
     *  a device is timed separately: stages contain only computing. With weights in flight,
     *  TND_MEASURE_NODES products then run in a row, and only the total is measured: that of the
     *  row over their number. */
    bool is_whole;
};

/* Time of one stage, or of all of them together. count 0: the stage does not exist. */
struct tnd_stage_time {
    double median_us;
    double spread_us; /* median absolute deviation */
    uint32_t count;
};

struct tnd_measure_result {
    struct tnd_stage_time stage[TANDEM_STAGES]; /* without transfers between host and device */
    struct tnd_stage_time moving;               /* all transfers of the node together */
    double watts;                /* average power of the machine during the trial; 0: unknown */
    struct tnd_stage_time total; /* from the begin of the first step to the end of the last one */
};

/** Median and deviation of `count` values; `scratch` must hold as many. */
struct tnd_stage_time tnd_stage_time_of(const double *us, uint32_t count, double *scratch);

struct tnd_measure_effort {
    double budget_s;    /* stop repeating after this long; 0: 0.1 s */
    int min_repeats;    /* 0: 3 */
    int max_repeats;    /* 0: 200 */
    double spread_frac; /* stop when the total's spread / sqrt(count) is below this fraction; 0:
                      * 0.01 */
    double expected_us; /* of one product; 0: a guess. Several short ones are put into one graph */
    bool is_warm;       /* the choice has run on these operands already: no warm-up */
};

/** Number of products in a graph when one of them takes this long. */
int tnd_measure_nodes(double expected_us);

/** Memory needed to measure these weights: operands, and copies that backends may make. */
double tnd_measure_bytes(const struct tnd_measure_options *options, enum tandem_type type,
                         int64_t n, int64_t k, int64_t m_max);

/** Makes operands for weights of `type`, n x k, and up to m_max tokens. Errors: MEMORY, LIMIT,
 *  ARGUMENT. */
enum tandem_status tnd_measure_open(const struct tnd_measure_options *options,
                                    enum tandem_type type, int64_t n, int64_t k, int64_t m_max,
                                    struct tnd_measure **out_measure, struct tandem_error *error);
/** NULL allowed. */
void tnd_measure_close(struct tnd_measure *measure);

/** Makes a backend that keeps copies of weights make them now, on the threads of the choice, so
 *  that they do not disturb a measurement. Does nothing when called again, and when the choice uses
 *  no copies. */
enum tandem_status tnd_measure_prepare(struct tnd_measure *measure,
                                       const struct tandem_plan_node *choice,
                                       struct tandem_error *error);

/** Measures m tokens (1 .. m_max) run by `choice`, after tnd_measure_prepare if that is needed.
 *  `effort` may be NULL. */
enum tandem_status tnd_measure_run(struct tnd_measure *measure, int64_t m,
                                   const struct tandem_plan_node *choice,
                                   const struct tnd_measure_effort *effort,
                                   struct tnd_measure_result *out_result,
                                   struct tandem_error *error);

/** Result of the last run, m x n floats, for checking; and its operands. Valid until the next
 *  run. */
const float *tnd_measure_output(const struct tnd_measure *measure);
/** Overwrites the result of the last run, so that a backend that computes nothing cannot pass with
 *  the result of the previous one. */
void tnd_measure_spoil(struct tnd_measure *measure);
/** Computes the same product with the double-precision reference into `out` (m x n floats).
 * Slow. */
enum tandem_status tnd_measure_reference(struct tnd_measure *measure, int64_t m, float *out,
                                         struct tandem_error *error);

#endif
