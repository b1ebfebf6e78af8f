/* SPDX-License-Identifier: MIT
 * Policy: every tuned number of tune/, measure/, the tuning calls of runtime/ and tools/report/.
 * Each says what it decides, its unit, why it has this value, and which test fails when it is wrong
 * (sensitivity: no test, but a row of docs/planning.md says what half and double of it change;
 * none: no test depends on the value; mulmat-tune test --oracle measures the regret of all of them
 * together). "measured:" names the figures that a value comes from; without it the reason is an
 * argument. Limits of memory and of formats are defined where they are used, TND_NOISY_FRAC in
 * table/tnd_table.h, and the numbers that make a time certain in table/judge.h, since table/ marks
 * samples by them. */
#ifndef TND_POLICY_H
#define TND_POLICY_H

#include "table/judge.h"

/* ---- Comparing candidates ---- */

/* Part of its error bar that is added to a candidate's time before times are compared. With all
 * of it, slow profiles that are known well win against faster ones that are known less. Unit:
 * share. Why: measured: least mean regret over 886 problems measured with every profile and
 * tables of 15, 60 and 120 s (Zen 5); 0.1 to 0.5 were nearly as good. Test:
 * a_quarter_of_the_error_and_the_spread_of_noise_count. */
#define TND_CAUTION          0.25
/* Part of the earlier choice's time by which a challenger must be faster, in addition to
 * TND_CLEAR_SIGMAS. Unit: share. Why: smaller gains do not repay a changed plan. Test:
 * a_clear_lead_is_three_sigmas_and_a_tenth. */
#define TND_CLEAR_LEAD       0.1
/* Smallest part of an operation that backends hand to one worker. Unit: values. Why: the part
 * size of backends/cpu. Test: none. */
#define TND_SHARE_VALUES     2048
/* Lines of a node's operands that move between cores when it is split, each at the price of a
 * hand-off. Unit: cache lines. Why: measured: nodes of tiny models (stories15M) are then left to
 * one thread, which is faster (Zen 5, 2 threads). Test: sharing_costs_eight_hand_offs. */
#define TND_SHARED_LINES     8
/* Weights that fit into the last-level cache divided by this stay in it from one graph to the
 * next. Unit: ratio. Why: activations and other programs need the rest. Test: none. */
#define TND_WARM_CACHE_PARTS 2

/* ---- Schedules ---- */

/* A schedule that splits or overlaps must be faster than the best placement without by this many of
 * its error bars. Unit: ratio. Why: of normally distributed errors 1 in 40 is larger. Test:
 * a_gain_within_twice_its_error_is_not_taken. */
#define TND_SCHEDULE_GAIN         2.0
/* The search for a better placement ends when it could gain less than this. Unit: share. Why: half
 * of the tenth by which the best placement may be missed. Test:
 * schedules_of_small_graphs_are_near_the_best_one. */
#define TND_SCHEDULE_NEAR         0.05
/* Steps (nodes handed out) of the search for each microsecond that a better placement could gain.
 * Unit: 1/us. Why: measured: a step takes 0.03 us (Zen 4), so that the time is repaid within 16
 * uses of the plan. Test: sensitivity. */
#define TND_SCHEDULE_STEPS        500.0
/* A move shifts a node in the order by at most this. Unit: positions. Why: measured: without a
 * limit six sequences on three devices take 6 % longer, since fewer moves are tried. Test:
 * sequences_in_flight_keep_every_device_with_layers_busy. */
#define TND_SCHEDULE_REACH        16
/* A move may make a placement slower than the best one by this. Unit: share. Why: without it the
 * search ends in local minima, with more it strays. Test:
 * two_equal_lanes_reach_nine_tenths_of_the_ideal. */
#define TND_SCHEDULE_SLACK        0.01
/* Cost of a virtual run with slow-downs. Unit: steps a node. Why: measured. Test: sensitivity. */
#define TND_SCHEDULE_RUN_STEPS    6
/* The search ends after this many steps without a gain. Unit: steps. Why: half of it misses more,
 * twice of it takes longer than it gains. Test: sensitivity. */
#define TND_SCHEDULE_IDLE_STEPS   30000
/* The same if the search has gained nothing so far and has not restarted. Unit: steps. Why: passes
 * of a model, with hundreds of nodes, gain nothing. Test: sensitivity. */
#define TND_SCHEDULE_HOPE_STEPS   3000
/* The search restarts after this many steps without a gain since its last start, for each pair of
 * nodes. Unit: steps. Why: fewer do not reach the local minima of large graphs, more leave those of
 * small ones too late. Test: sensitivity. */
#define TND_SCHEDULE_VALLEY_STEPS 12
/* A share of a product's rows is a multiple of this. Unit: rows. Why: strips of packed weights have
 * 16 or 32. Test: none. */
#define TND_SCHEDULE_ROWS         32
/* Added to the error bar of a share, whose time is interpolated from the times of all and of half
 * of the rows. Unit: share. Why: steps of kernels. Test: rows_are_split_over_three_devices. */
#define TND_SCHEDULE_SHARE_ERROR  0.05
/* Error of an operation that the table does not know on any side. Unit: us. Why: a kernel's launch.
 * Test: weights_without_a_role_count_as_transfers. */
#define TND_SCHEDULE_UNKNOWN_US   5.0
/* Rate at which one thread copies parts into the result. Unit: bytes/us. Why: copies in a cache
 * reach 10 GB/s and more on every machine that was measured. Test: none. */
#define TND_SCHEDULE_JOIN_BYTES   8000.0
/* Most threads that copy columns of X for the parts of a product, each at the rate above. Unit:
 * threads. Why: more share the same memory. Test: a_product_of_few_rows_is_split_by_columns. */
#define TND_SCHEDULE_COPY_THREADS 4

/* ---- Rule without a table ---- */

/* Time of the work below which the next three numbers keep a node on one thread; also the time on
 * the CPU of operations that were measured only on a device. Unit: us. Why: ten hand-offs of 1 us
 * each. Test: operations_count_on_a_device_as_measured_there. */
#define TND_RULE_US            10.0
/* A node with fewer multiply-adds for each microsecond of a hand-off runs on one thread. Unit:
 * multiply-adds. Why: work of one core in TND_RULE_US (make bench prints hand-offs). Test: none. */
#define TND_RULE_MULTIPLY_ADDS 200000
/* The same for operations that move values. Unit: values. Why: as above. Test:
 * dear_hand_offs_make_the_rule_share_less. */
#define TND_RULE_VALUES        24576
/* The same for operations that compute exponentials. Unit: values. Why: as above. Test: none. */
#define TND_RULE_EXPONENTIALS  8192
/* Graphs whose products have more on average keep all threads beside other programs. Unit:
 * multiply-adds. Why: measured beside 1, 2, 4 and 8 busy programs on 2 cores (Zen 5;
 * docs/planning.md): from twice as many on all threads take 0.6 to 1.1 of the time of one, 2 to 3.5
 * times of it for a token. Test: long_products_keep_all_threads. */
#define TND_RULE_LONG          1e8

/* ---- Error bars of estimates, as shares of the time ---- */

/* Error of a straight line between two samples; least error of a convolution's time. Unit: share.
 * Why: an argument; `mulmat-tune test` prints the misses of points that a table leaves out. Test:
 * error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_LINE     0.02
/* Error as a part of the difference to the lines through the neighbouring samples on both sides: a
 * library may change its kernel anywhere between two samples. Unit: share. Why: the step lies on
 * either side of M with the same chance. Test:
 * error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_BEND     0.50
/* Error of a time extrapolated by the steps of a kernel. Unit: share. Why: measured: float products
 * of 1 to 40 tokens, estimated from 1, 8 and 32, miss by 3.8 % (F16) and 5.7 % (F32) in the median,
 * by 11 and 23 % in the 95th percentile (Zen 4). Test: stairs_of_kernels_are_followed. */
#define TND_ERROR_STAIR    0.08
/* Error for each doubling of M beyond the largest measured one, and from one convolution to
 * another; error of a thread count that was not measured. Unit: share. Why: measured by mulmat-tune
 * test --extrapolation: with TND_ERROR_BELOW and the residual of the line nine of ten left-out
 * times lie within the error bar (Zen 4, Zen 5); methods of convolutions change by 1 to 10 % for a
 * doubling. Test: error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_BEYOND   0.10
/* Error for each doubling of M below the smallest measured one. Unit: share. Why: as above; kernels
 * for few tokens differ more. Test: error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_BELOW    0.16
/* Part of both error bars, without the noise of samples (TND_CLEAR_SIGMAS), by which a candidate
 * must be faster than packed weights to be chosen, or a thread count faster than the rule's. Unit:
 * ratio. Why: of 478 problems by a thin table (60 s, Zen 4) all 7 with more than 10 % of regret
 * were rows that seemed as fast. Test: a_way_serves_only_with_a_lead_over_packed_weights,
 * of_tied_thread_counts_that_of_the_rule_serves. */
#define TND_RULE_BARS      0.5
/* The same as a part of their time; also the least lead of a schedule that splits or overlaps over
 * the best placement without. Unit: ratio. Why: less is not worth another plan; TND_MOMENT_ERROR
 * covers how the memory of a shared machine changes from minute to minute. Test: the same. */
#define TND_RULE_LEAD      0.02
/* Farther than this outside of the measured M the rule decides instead of the table. Unit:
 * doublings. Why: lines miss by a third there, so that choices are wrong. Test:
 * beyond_four_times_the_measured_range_the_rule_serves. */
#define TND_BEYOND_LOG2    2.0
/* Error of times scaled from another shape. Unit: share. Why: as for TND_ERROR_LINE. Test:
 * error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_SHAPE    0.15
/* Farther than this from its own samples a curve borrows the shape of another thread count's
 * curve. Unit: doublings of M. Why: kernels step at the same M on any thread count. Test:
 * a_thin_curve_follows_the_one_of_another_thread_count. */
#define TND_GUIDE_GAP_LOG2 0.6
/* It does so only if the other curve has a sample within this part of that distance. Unit: ratio.
 * Why: a curve at the same distance adds no information. Test: none. */
#define TND_GUIDE_NEARER   0.5
/* Times of shapes with more or less work by this factor are not used. Unit: ratio. Why: their data
 * are in caches of other levels. Test: unmeasured_shapes_scale_by_work_from_the_nearest. */
#define TND_SHAPE_RATIO    8.0
/* Nearest smaller, and nearest larger, shapes that are tried for a stage. Unit: shapes. Why: bounds
 * planning. Test: none. */
#define TND_SHAPES_TRIED   8
/* Serial share of a stage's time on one thread, at least. Unit: share. Why: hand-offs and the last
 * part of work that not all threads share. Test: more_threads_than_measured_give_a_range. */
#define TND_SERIAL_LEAST   0.01
/* Uncertainty of the serial share after measuring two threads; n threads leave 1 over n - 1 of it;
 * and the serial share itself when one count was measured. Unit: share. Why: efficiencies of two
 * threads differ by a tenth between runs; two threads predicted from one so miss by 9.8 % (Zen 4)
 * and 11.7 % (Zen 5) in the median. Test: more_threads_than_measured_give_a_range. */
#define TND_SERIAL_PRIOR   0.12

/* ---- The observer: predictions compared with runs ---- */

/* Alternating uses of two plans after which a look ends; a plan that clearly loses is dropped
 * sooner. Unit: uses. Why: medians of four distinguish 5 % on a machine in use. Test:
 * a_device_that_lies_is_dropped_within_eight_uses. */
#define TND_OBSERVER_USES       8
/* Least noise of a computation's time, and least lead of a plan that replaces another. Unit: share.
 * Why: times differ by a few percent on a quiet machine. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_NOISE      0.02
/* Least error of a single time; half of it for two. Unit: share. Why: other programs cost a factor
 * of two. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_ONE        0.3
/* Two times in a row, or a first use, this many times as long as expected count as a change at
 * once; a computation on a device is abandoned after this time. Unit: ratio. Why: other programs
 * cost a factor of two. Test: a_device_that_becomes_slow_is_left_and_found_again. */
#define TND_OBSERVER_STALL      3.0
/* Additional time before the serving plan's computation on a device is abandoned. Unit: ns. Why: a
 * user waits a second at most. Test: a_device_that_becomes_slow_is_left_and_found_again. */
#define TND_OBSERVER_STALL_NS   0.7e9
/* Part of the computing time for looks at plans that do not serve. Unit: share. Why: less than the
 * observer can distinguish. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_SHARE      0.015
/* Uses between two looks, unless the serving plan becomes slow. Unit: uses. Why: plans move
 * weights. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_REST       50
/* Most time that is saved up for a look, and the uses within which a first use (weights packed,
 * moved) must pay off. Unit: uses. Why: allows a look at a plan 50 times slower. Test:
 * a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_HOARD      100.0
/* Time granted at once for first looks. Unit: uses. Why: finds a device whose times in the table
 * are ten times too long. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_GRANT_USES 12.0
/* Most time so granted to all graphs of a runtime; each graph gets half of the rest. Unit: ns. Why:
 * users do not notice a second. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_GRANT_NS   1e9
/* Older times are discarded. Unit: ns. Why: a day: updates, other programs. Test:
 * verdicts_are_looked_at_again_after_a_day. */
#define TND_OBSERVER_OLD_NS     UINT64_C(86400000000000)
/* One run of this many is compared with its prediction. Unit: runs. Why: the others cost nothing.
 * Test: none. */
#define TND_DRIFT_EVERY         3
/* Part of the computing time for comparing: probes, clock readings, judging, new tables. Unit:
 * share. Why: users do not notice it. Test: watching_costs_its_share_and_no_more. */
#define TND_DRIFT_COST          0.005
/* Part of a stage's time that a worker may be off its CPU, or late, without invalidating the time,
 * when comparing and when measuring. Unit: share. Why: as for TND_DRIFT_SHARE; interrupts take 1 or
 * 2 us of a millisecond. Test: no_cell_is_blamed_on_a_machine_that_others_use. */
#define TND_QUIET_LOST          0.10
/* A shorter absence is not an interruption but part of synchronising threads. Unit: us. Why: a
 * hand-off. Test: none. */
#define TND_QUIET_LOST_US       2.0
/* Comparisons in a row that must find a cell wrong, each with new times. Unit: runs. Why: one burst
 * of another program does not last through them all. Test:
 * a_wrong_cell_is_found_within_eighteen_quiet_graphs. */
#define TND_DRIFT_STRIKES       3
/* A reinstated cell needs twice as many the next time, up to this many doublings. Unit: doublings.
 * Why: ends an oscillation between two choices. Test: none. */
#define TND_DRIFT_DOUBLINGS     5
/* A cell found wrong gets another trial after this. Unit: compared runs. Why: three minutes of a
 * model that takes 30 ms for a token; ten slow tokens of six thousand. Test:
 * a_cell_that_was_blamed_wrongly_is_given_back_after_a_trial. */
#define TND_DRIFT_TRIAL_RUNS    2000
/* An undecided trial ends after this. Unit: compared runs. Why: no plan uses the cell any more.
 * Test: none. */
#define TND_DRIFT_TRIAL_GRAPHS  100
/* Factor on TND_DRIFT_TRIAL_RUNS after each trial that found the cell wrong again. Unit: ratio.
 * Why: the cost of trials goes to zero. Test: a_cell_that_is_wrong_stays_so_through_its_trials. */
#define TND_DRIFT_TRIAL_GROWS   4
/* Length of the probe. Unit: rounds of the reference kernel. Why: 10 us. Test: none. */
#define TND_PROBE_ROUNDS        6000
/* Length of the probe's product. Unit: passes over 2048 products. Why: 5 to 20 us. Test: none. */
#define TND_PROBE_PASSES        32
/* Growth of the probe's best time at each probe. Unit: share. Why: a clock rate that is never
 * reached again is forgotten after a few hundred. Test: none. */
#define TND_PROBE_FORGETS       0.0005
/* Length of a running median. Unit: runs. Why: four outliers do not move it. Test: none. */
#define TND_DRIFT_RING          9
/* Least runs before a cell is judged. Unit: runs. Why: with TND_DRIFT_STRIKES a case rests on six.
 * Test: a_cell_ten_times_too_fast_is_found_and_given_up_for_good. */
#define TND_DRIFT_RUNS          4
/* Cells needed to estimate the machine's own speed, and least runs of each. Unit: cells. Why: a
 * median needs three. Test: a_machine_that_is_slow_as_a_whole_is_not_blamed_on_cells. */
#define TND_DRIFT_CELLS         3
/* A cell that was not used for longer does not count for the machine's present speed. Unit: runs.
 * Why: clock rates change within seconds. Test: none. */
#define TND_DRIFT_RECENT        8
/* Smallest deviation that is reported. Unit: share. Why: smaller ones seldom change a choice.
 * Test: a_cell_ten_times_too_fast_is_found_and_given_up_for_good. */
#define TND_DRIFT_SHARE         0.25
/* The same while the machine's own speed is unknown. Unit: share. Why: another program on the
 * same cores costs a factor of two. Test: none. */
#define TND_DRIFT_SHARE_ALONE   1.0
/* Last M of the curve that replaces the estimates of a shape that was not measured. Unit: tokens.
 * Why: the longest prompts that models are given. Test: none. */
#define TND_DRIFT_M             4096

/* ---- Budgets of a bench run ---- */

/* Effort `measure`: a time this certain is not measured again. Unit: share. Why: below half of
 * TND_NOISY_FRAC. Test: none. */
#define TND_BENCH_MEASURE_TOLERANCE  0.035
/* Trials of one cell without a budget. Unit: trials. Why: disturbances only slow down, so the
 * fastest of several counts. Test: none. */
#define TND_BENCH_TRIALS             3
/* A trial repeats short products this long at most, and a transfer of one size or the hand-offs
 * of one thread count. Unit: s. Why: hundreds of samples of 100 us. Test: none. */
#define TND_BENCH_TRIAL_S            0.04
/* The same for effort `estimate`. Unit: share. Why: only anchors are measured. Test: none. */
#define TND_BENCH_ESTIMATE_TOLERANCE 0.10
/* The same with a budget, which is used while anything is less certain. Unit: share. Why: two runs
 * differ by more. Test: none. */
#define TND_BENCH_BUDGET_TOLERANCE   0.002
/* Least time of a trial, and of a run of a peak. Unit: s. Why: several repeats of a product of 200
 * us. Test: none. */
#define TND_BENCH_SHORTEST_TRIAL_S   0.002
/* Part of the budget for the first grid, reserved even if a driver's compiling of kernels has used
 * up the budget. Unit: share. Why: the rest goes where interpolation errs. Test: tests/gpu_day.sh.
 */
#define TND_BENCH_GRID_SHARE         (1.0 / 3)
/* Most of the budget for one cell. Unit: share. Why: at least six cells are compared with each
 * other. Test: none. */
#define TND_BENCH_LONGEST_TRIAL      0.15
/* Part of the budget for everything that is measured before the first cell; the rest of that is
 * skipped. Unit: share. Why: beside eight busy programs it took all of 5 s, and no cell was
 * measured. Test: none. */
#define TND_BENCH_PREPARE_SHARE      0.5
/* Part of the budget, or of TND_BENCH_DEFAULT_S, for waiting until other programs are quiet. Unit:
 * share. Why: most of it is for measuring. Test: none. */
#define TND_BENCH_QUIET_SHARE        0.2
/* Duration of one look at the load of other programs. Unit: s. Why: the system counts in 0.01 s.
 * Test: none. */
#define TND_BENCH_LOOK_S             0.25
/* Most load of other programs on a quiet machine. Unit: CPUs. Why: a desktop at rest takes 0.05 to
 * 0.2. Test: others_that_leave_cpus_free_do_not_disturb. */
#define TND_QUIET_CPUS               0.25
/* Interval at which a run saves its results and runs the reference kernel (10 ms). Unit: s. Why: a
 * crash loses no more; a laptop throttles within a minute. Test: none. */
#define TND_BENCH_SAVE_S             5.0
/* Most time for measuring the peaks of the CPU. Unit: s. Why: five units on two or three thread
 * counts, a dozen runs each. Test: none. */
#define TND_BENCH_PEAKS_S            1.0
/* Part of the budget for peaks, and for slow-downs of backends beside each other; half of it for
 * operations other than matrix products; twice for hand-offs, and for checking results; four times
 * for transfers. Unit: share. Why: a few numbers each. Test: none. */
#define TND_BENCH_FEW_SHARE          0.05
/* Largest transfer that is measured when time is short. Unit: bytes. Why: gives the latency, and
 * nearly the bandwidth. Test: none. */
#define TND_QUICK_TRANSFER_BYTES     (4 << 20)
/* Least time of a trial whose energy is measured by counters of processors. Unit: s. Why: they step
 * each millisecond, so that a step is 5 %. Test: none. */
#define TND_ENERGY_PACKAGE_S         0.02
/* The same with counters of GPUs. Unit: s. Why: they step each 20 to 100 ms. Test: none. */
#define TND_ENERGY_GPU_S             0.2
/* The same with a battery alone. Unit: s. Why: it reports its power about once a second; a longer
 * trial would make a bench take hours. Test: none. */
#define TND_ENERGY_BATTERY_S         0.5
/* Distance of a doubling of the threads in the search for the nearest cell with joules. Unit:
 * doublings of N or K. Why: another core draws more power, another shape hardly. Test:
 * power_comes_from_the_nearest_cell_that_has_some. */
#define TND_ENERGY_THREADS_LOG2      16.0
/* A counter that shows more is wrong. Unit: W. Why: eight GPUs of 1 kW and their host, five times.
 * Test: counters_that_jump_are_not_believed. */
#define TND_ENERGY_MOST_W            50000.0
/* Budget of `mulmat-tune` and `bench` without --budget, --effort and lists of M. Unit: s. Why: the
 * first grid of a 7B takes half of it (Zen 4). Test: none. */
#define TND_BENCH_DEFAULT_S          60.0
/* A run continues an earlier one whose results are at most this old. Unit: s. Why: an interrupted
 * run is started again within the hour. Test: a_run_that_was_ended_goes_on. */
#define TND_BENCH_RESUME_S           3600
/* Budget of effort `estimate` and of tandem_tune_graph when none is given. Unit: s. Why: what a
 * user waits for. Test: none. */
#define TND_BENCH_ESTIMATE_S         5.0
/* Time of making or packing weights, before it was measured. Unit: s a byte. Why: a first guess;
 * the rate is learned. Test: none. */
#define TND_BENCH_OPENING            4e-9
/* A longer product needs no warm-up of its own after another cell of its line has run. Unit: us.
 * Why: caches and clock rates settle within it. Test: none. */
#define TND_BENCH_LONG_US            20000
/* Weight of the newest trial in the mean overrun of trials. Unit: share. Why: the last ten trials
 * count. Test: none. */
#define TND_BENCH_OVERRUN_SHARE      0.1
/* Most that a single trial's overrun counts. Unit: ratio. Why: one interruption does not end a run
 * early. Test: none. */
#define TND_BENCH_OVERRUN            4.0
/* Reading the weights takes as long as computing this many tokens. Unit: tokens. Why: only
 * orders the first trials. Test: none. */
#define TND_WEIGHT_READ_TOKENS       10.0
/* Turning the weights into floats takes as long as computing this many tokens. Unit: tokens.
 * Why: only orders the first trials. Test: none. */
#define TND_DEQUANTIZE_TOKENS        30.0
/* With a smaller budget only times are measured. Unit: s. Why: checks would take a tenth of it.
 * Test: a_sweep_too_short_to_check_measures_times_alone. */
#define TND_BENCH_CHECKS_S           1.0

/* ---- What to measure next ---- */

/* Factor on an expected time, so that a trial ends within the budget. Unit: ratio. Why: an overrun
 * costs the next trial. Test: a_budget_is_used_but_never_overdrawn. */
#define TND_EXPECT_SAFELY        1.2
/* The same if the time is estimated from a similar line. Unit: ratio. Why: as above, between
 * profiles. Test: none. */
#define TND_EXPECT_SIMILAR       1.5
/* Relevance of a profile that loses clearly. Unit: share. Why: its times still show in reports.
 * Test: none. */
#define TND_RELEVANCE_LEAST      0.02
/* Outliers and noisy points above this relevance are measured again, since the profile may win
 * there. Unit: share. Why: reached at 1.8 times the fastest time. Test:
 * a_point_above_the_line_around_it_is_measured_anew_before_finer_ones. */
#define TND_REMEASURE_RELEVANCE  0.30
/* Most trials of a point whose samples do not agree. Unit: trials. Why: noise that lasts is the
 * machine's, not the sample's. Test: none. */
#define TND_TRIALS_NOISY         5
/* Exponent x of the assumption that graphs of M tokens are computed M^-x as often as those of 1: 0:
 * as often, 1: as many tokens in total. Unit: exponent. Why: between a chat and a batch. Test:
 * none. */
#define TND_RARER_WITH_M         0.75
/* Weight of a gap in which another candidate begins to win. Unit: ratio. Why: a wrong crossover is
 * a wrong choice. Test: M_are_added_where_the_curve_bends_or_another_way_wins. */
#define TND_CROSSOVER_WEIGHT     3.0
/* Uncertainty of a line that is known on other thread counts. Unit: share. Why: 1 / threads errs
 * by up to a third. Test: none. */
#define TND_UNCERTAIN_THREADS    0.30
/* Speed where nothing is known at all. Unit: multiply-adds/s. Why: a scalar kernel on a slow
 * core. Test: a_budget_is_used_but_never_overdrawn. */
#define TND_SLOWEST_MADDS        2e9
/* Uncertainty for each doubling of M between two points; twice as much beyond them. Unit: share.
 * Why: a prior; the first miss replaces it. Test: gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_GAP        0.04
/* The same away from a single point. Unit: share. Why: the fixed cost is unknown. Test:
 * gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_BEYOND_ONE 0.25
/* Uncertainty as a part of the difference to the lines through the neighbouring points. Unit:
 * share. Why: half of TND_ERROR_BEND: the next point decides. Test:
 * gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_BEND       0.25
/* Part of a miss in the middle of a gap that remains as uncertainty of each half. Unit: share. Why:
 * a parabola would leave a quarter, a step all of it in one half. Test:
 * gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_SEEN       0.40
/* Part of TND_UNCERTAIN_GAP that remains after the middle was predicted correctly. Unit: share.
 * Why: one right prediction does not make a curve straight. Test:
 * gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_LEFT       0.75
/* Two M this close need no point between them. Unit: ratio. Why: 8 and 10 tokens. Test:
 * points_lie_where_kernels_step. */
#define TND_CLOSE_RATIO          1.25
/* From here on points lie in the middle of a kernel's step of 8 tokens. Unit: tokens. Why: tiles
 * of 8, 12 and 16 tokens. Test: points_lie_where_kernels_step. */
#define TND_MANY_TOKENS          24.0
/* A point may lie this much above the points around it without being an outlier. Unit: share.
 * Why: a tile of 8 tokens more at 48 tokens. Test: gaps_and_ends_of_a_line_are_uncertain. */
#define TND_CREDIBLE_STEP        0.15

/* ---- One measurement ---- */

/* Most products of a measured graph. Unit: products. Why: hides the hand-off at the start. Test:
 * short_products_share_a_graph. */
#define TND_MEASURE_NODES        8
/* A measured graph holds as many products as fit into this. Unit: us. Why: long ones can be
 * measured alone. Test: short_products_share_a_graph. */
#define TND_MEASURE_GRAPH_US     5e3
/* Most copies of the weights. Unit: copies. Why: small weights would need thousands. Test: none. */
#define TND_MEASURE_COPIES       256
/* Least samples of a measurement, unless its budget ends before, and of the oracle's second
 * comparison. Unit: samples. Why: fewer may agree by chance, these in 1 of 64 cases; the median
 * tolerates three outliers. Test: none. */
#define TND_MEASURE_REPEATS      7
/* Samples that may be left out because another program ran meanwhile, and as many more as were
 * kept. Unit: samples. Why: a burst of a few milliseconds. Test:
 * samples_beside_another_program_are_left_out. */
#define TND_MEASURE_LEFT_OUT     3
/* Budget of a measurement if none is given; of effort `patient`; most for one time of a pair;
 * budget of a product that the oracle compares in several rounds. Unit: s. Why: longer than a slice
 * of the operating system. Test: none. */
#define TND_MEASURE_BUDGET_S     0.1
/* A measurement ends when its median is this certain; smaller misses are no evidence about a curve.
 * Unit: share. Why: a tenth of TND_CLEAR_LEAD. Test: none. */
#define TND_MEASURE_SPREAD       0.01
/* Smallest transfer that is measured. Unit: bytes. Why: smaller ones take the same time. Test:
 * none. */
#define TND_TRANSFER_LEAST_BYTES 4096
/* Size of the download that waits for the upload before it to end. Unit: bytes. Why: one cache
 * line. Test: none. */
#define TND_TRANSFER_PROBE_BYTES 64
/* Most samples of a transfer or a hand-off. Unit: samples. Why: steady within 1 %. Test: none. */
#define TND_MOVE_REPEATS         60
/* Hand-offs in one sample. Unit: hand-offs. Why: the clock's own cost is 1 % of that. Test: none.
 */
#define TND_HANDOFF_ROUNDS       16
/* Interleaved pages are chosen if they are read faster than first-touch pages by this. Unit:
 * factor. Why: equal memory measured 5 % apart (two simulated nodes of a virtual Zen 4). Test:
 * without_a_setting_the_policy_is_what_the_table_has_measured. */
#define TND_NUMA_GAIN            1.10
/* Runs of a peak, of which the best counts. Unit: runs. Why: more find nothing better. Test: none.
 */
#define TND_PEAK_RUNS            24
/* Least memory that a peak reads; most weights that pairs of backends read in turn, and largest
 * transfer. Unit: bytes. Why: larger than caches of desktops; rates are constant beyond. Test:
 * none. */
#define TND_LARGE_BYTES          (64 << 20)
/* Least memory that a peak reads, in caches. Unit: last-level caches. Why: data that an earlier
 * pass left in the cache count for little. Test: none. */
#define TND_PEAK_CACHES          8
/* Memory of a peak for each second of the budget. Unit: bytes. Why: half of the budget goes into
 * first touch at 1 GB/s. Test: none. */
#define TND_PEAK_BYTES_A_SECOND  0.5e9
/* Memory that each thread reads repeatedly for a peak of caches. Unit: bytes. Why: fits into every
 * second-level cache. Test: none. */
#define TND_PEAK_CACHE_BYTES     (256 << 10)
/* Alignment of a peak's memory. Unit: bytes. Why: pages of 2 MiB, where the system gives them.
 * Test: none. */
#define TND_PEAK_PAGE            (2u << 20)
/* Most runs of an operation's graph on one thread count. Unit: runs. Why: 128 samples. Test: none.
 */
#define TND_OPS_RUNS             16
/* Least runs of it, however short the budget. Unit: runs. Why: 16 samples. Test: none. */
#define TND_OPS_LEAST_RUNS       2
/* With a smaller budget no operation is measured. Unit: s. Why: it would cover only a part of them.
 * Test: none. */
#define TND_OPS_LEAST_S          0.2
/* Time for the operations on each thread count without a budget; a device gets twice as much. Unit:
 * s. Why: about 10 ms a cell. Test: none. */
#define TND_OPS_S                0.5
/* Additional time for a device that compiles kernels at their first run, unless a budget is given.
 * Unit: s. Why: PoCL takes 0.1 s a kernel and size. Test: none. */
#define TND_OPS_COMPILE_S        5.0
/* After a longer cell a device measures no larger one of the operation. Unit: multiples of a cell's
 * share of the budget. Why: PoCL needs 0.4 s for a row that a GPU has done in 2 ms. Test: none. */
#define TND_OPS_LONG             2.0
/* Rounds in which backends are timed beside each other. Unit: rounds. Why: the faster one of two
 * counts. Test: none. */
#define TND_PAIR_ROUNDS          2
/* Runs of the reference kernel. Unit: runs. Why: about 10 ms. Test: none. */
#define TND_REFERENCE_RUNS       101
/* Length of a run; a round is a multiplication and an addition, four cycles. Unit: rounds. Why:
 * about 100 us at 2.4 GHz. Test: none. */
#define TND_REFERENCE_ROUNDS     60000
/* Change of the reference kernel's fastest run above which a machine is unsteady. Unit: share. Why:
 * steps of clock rates are larger. Test:
 * a_machine_is_unsteady_from_a_tenth_and_busy_from_a_quarter. */
#define TND_STEADY               0.10
/* Excess of its mean over its fastest run above which a machine is busy. Unit: share. Why: another
 * program on the core takes more. Test: a_machine_is_unsteady_from_a_tenth_and_busy_from_a_quarter.
 */
#define TND_QUIET                0.25
/* Largest error of a result with F32 weights. Unit: NMSE. Why: sums of 768 products in floats.
 * Test: bounds_of_errors_follow_the_weights. */
#define TND_CHECK_NMSE_F32       1e-10
/* With F16 weights. Unit: NMSE. Why: activations rounded to 11 bits. Test:
 * bounds_of_errors_follow_the_weights. */
#define TND_CHECK_NMSE_F16       1e-6
/* With BF16 weights. Unit: NMSE. Why: activations rounded to 8 bits lose up to 2^-8 of themselves,
 * so 2^-16 of their squares where all of a token are alike. Test:
 * bounds_of_errors_follow_the_weights. */
#define TND_CHECK_NMSE_BF16      2e-5
/* With quantised weights. Unit: NMSE. Why: activations in blocks of 8 bits; the bound of ggml's
 * test-backend-ops. Test: bounds_of_errors_follow_the_weights. */
#define TND_CHECK_NMSE           5e-4

/* ---- Measuring from within a program ---- */

/* Budget of TANDEM_TUNE=on-first-use. Unit: s. Why: what a user waits for once. Test: none. */
#define TND_TUNE_FIRST_USE_S 3.0
/* Part of the budget reserved for writing the table. Unit: share. Why: writing takes milliseconds.
 * Test: none. */
#define TND_TUNE_SAVING      0.03

/* ---- Methods of convolutions ---- */

/* Greatest distance of a measured convolution that another one is estimated from: the root of the
 * sum of squares of the doublings of channels, filters and positions. Unit: doublings. Why: with
 * four times as many positions, or twice of all three, data are in other caches. Test:
 * convolutions_far_away_tell_nothing. */
#define TND_CONV_FARTHEST 2.0
/* Nearer convolutions count about equally. Unit: doublings. Why: kernels' tiles make a time of a
 * multiply-add differ by as much between neighbours. Test: none. */
#define TND_CONV_NEAR     0.25
/* A time of fewer samples has at least the error of a doubling. Unit: samples. Why: a spread of two
 * says nothing. Test: a_lead_within_the_errors_leaves_the_rule. */
#define TND_CONV_FEW      3

/* Most of the CPU's time that the convolutions of a net may take on a device, for the net to be
 * lowered for it. Unit: share. Why: what the device cannot compute then runs on the CPU without its
 * own methods, and values are transferred; neither is known before the net is lowered. Test:
 * a_net_is_for_a_device_that_is_clearly_faster. */
#define TND_CONV_DEVICE_GAIN  0.5
/* Least part of the multiply-adds of a net whose times must be known for that. Unit: share. Why:
 * convolutions of one method, such as depthwise ones, are not measured. Test: as above. */
#define TND_CONV_DEVICE_KNOWN 0.75

/* ---- Reports ---- */

/* Rounds of the first comparison, of all candidates. Unit: rounds. Why: a median needs three. Test:
 * none. */
#define TND_ORACLE_FIRST_ROUNDS 3
/* Part of a cell's time for the first comparison. Unit: share. Why: it runs all candidates. Test:
 * none. */
#define TND_ORACLE_FIRST_SHARE  0.6
/* A candidate this many times as slow as the fastest after one round runs no more. Unit: ratio.
 * Why: noise explains less. Test: none. */
#define TND_ORACLE_HOPELESS     1.5
/* Products of more tokens first time all candidates once on an eighth of the tokens, or on this
 * many if that is more. Unit: tokens. Why: kernels have reached their rate. Test: none. */
#define TND_ORACLE_PROBE_M      256
/* A candidate this many times as slow as the fastest one on those tokens is dropped. Unit: ratio.
 * Why: turning weights into floats is a third of a product of 256 tokens at most. Test: none. */
#define TND_ORACLE_PROBE_OUT    2.0
/* A larger regret is measured again at another time, whose result counts, and explained by name.
 * Unit: ratio. Why: users notice it. Test: a_regret_is_explained_by_what_was_predicted_wrong. */
#define TND_ORACLE_EXPLAIN      0.10

/* ---- Placing weights (tune/fit_model.h) ---- */

/* Device memory left to the driver, its programs and the screen. Unit: bytes. Why: drivers of cards
 * of 8 GB show that much in use before the first buffer, and some memory is lost between buffers.
 * Test: the_reserve_and_the_cache_are_taken_off_first. */
#define TND_FIT_RESERVE_BYTES (INT64_C(512) << 20)
/* The text that the objective "mixed" assumes: tokens read, tokens written. Unit: tokens. Why: most
 * published figures use these. Test: none. */
#define TND_FIT_PROMPT_TOKENS 512
#define TND_FIT_ANSWER_TOKENS 128
/* Error bar of a weight without a time of its own, priced by its bytes at the rate of the largest
 * one that has a time, and of an operation on a device where it was not measured, which counts as
 * on the CPU. Unit: share of the time. Why: kernels of other types and of small matrices are up to
 * twice as slow. Test: weights_without_a_time_are_priced_by_their_bytes. */
#define TND_FIT_GUESS_ERROR   1.0
/* Groups that the experts of a layer are placed in, by use. Unit: groups. Why: with 48 layers
 * `fit`, which decides several times, takes 0.4 s (Zen 4); with twice as many a decision takes four
 * times as long. Test:
 * the_most_used_experts_of_a_layer_go_to_the_device_first. */
#define TND_FIT_SLICES        8
/* Factor on the use of an expert that a device already keeps. Unit: ratio. Why: 32 uses, a period's
 * share of one of 128 experts, scatter by 18 %. Test:
 * an_expert_that_is_hot_stays_until_another_one_is_clearly_used_more. */
#define TND_FIT_HOT_STAYS     1.2
/* Nothing is predicted if a larger part of the bytes that a token touches is priced by
 * TND_FIT_GUESS_ERROR. Unit: share. Why: as in simulate. Test:
 * weights_without_a_time_are_priced_by_their_bytes. */
#define TND_FIT_MOST_GUESSED  0.1

/* ---- Ranks (tune/cluster.h) ---- */

/* Sums of more than two ranks go in segments from this many bytes on. Unit: bytes. Why: as
 * SEGMENTS_FROM_BYTES of cluster/communicator.c. Test: sums_follow_from_the_slowest_link. */
#define TND_CLUSTER_SEGMENTS_BYTES (16 * 1024)
/* Rate at which one thread adds vectors of ranks. Unit: bytes read/us. Why: a quarter of what one
 * core of a laptop reads, since the vectors lie apart. Test: none. */
#define TND_CLUSTER_ADD_RATE       4000.0
/* Error bar of messages. Unit: share of their time. Why: other programs use the link too. Test:
 * none. */
#define TND_CLUSTER_LINK_ERROR     0.25
/* Up to this many ranks every subset is priced; with more, the rank that gains most is added, one
 * after the other. Unit: ranks. Why: 63 choices take some 50 ms. Test:
 * a_plan_is_near_the_best_of_all_plans. */
#define TND_CLUSTER_TRY_ALL        6

#endif
