/* SPDX-License-Identifier: MIT
 * Policy: every tuned number of tune/, measure/, the tuning calls of runtime/ and tools/report/.
 * Each says what it decides, its unit, why it has this value, and which test fails when it is wrong
 * (sensitivity: no test, but a row of docs/planning.md says what half and double of it change;
 * none: nothing tells it from other values; mulmat-tune test --oracle measures what choices lose by
 * all of them together). "measured:" names the figures that a value comes from; without it the
 * reason is an argument. Limits of memory and of formats stand where they are used; TND_NOISY_FRAC
 * stands in table/tnd_table.h and what makes a time certain in table/judge.h, since table/ marks
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
/* By how much of its time, beside TND_CLEAR_SIGMAS, a challenger must be faster than the choice
 * made before. Unit: share. Why: smaller gains do not repay a changed plan.
 * Test: a_clear_lead_is_three_sigmas_and_a_tenth. */
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

/* Of its error bar, by which a schedule that splits or overlaps must be faster than the best
 * placement without. Unit: ratio. Why: of normally distributed errors 1 in 40 is larger. Test:
 * a_gain_within_twice_its_error_is_not_taken. */
#define TND_SCHEDULE_GAIN         2.0
/* Nothing is looked for that would gain less. Unit: share. Why: half of the tenth by which the best
 * placement may be missed. Test: schedules_of_small_graphs_are_near_the_best_one. */
#define TND_SCHEDULE_NEAR         0.05
/* Steps (nodes handed out) that looking for a better placement may take for each microsecond that
 * it could gain. Unit: 1/us. Why: measured: a step takes 0.03 us (Zen 4), so that the time is
 * repaid within 16 uses of the plan. Test: sensitivity. */
#define TND_SCHEDULE_STEPS        500.0
/* A move takes a node so far at most. Unit: places. Why: measured: without a limit six sequences on
 * three devices take 6 % longer, since fewer moves are tried. Test:
 * sequences_in_flight_keep_every_device_with_layers_busy. */
#define TND_SCHEDULE_REACH        16
/* A move may make a placement slower than the best one by this. Unit: share. Why: none ends in
 * valleys, more strays. Test: two_equal_lanes_reach_nine_tenths_of_the_ideal. */
#define TND_SCHEDULE_SLACK        0.01
/* What a run with slow-downs costs. Unit: steps a node. Why: measured. Test: sensitivity. */
#define TND_SCHEDULE_RUN_STEPS    6
/* Moves end after this many steps without a gain. Unit: steps. Why: half of it misses more, twice
 * of it takes longer than it gains. Test: sensitivity. */
#define TND_SCHEDULE_IDLE_STEPS   30000
/* The same where nothing was gained so far and moves have not begun anew. Unit: steps. Why: passes
 * of a model, with hundreds of nodes, gain nothing. Test: sensitivity. */
#define TND_SCHEDULE_HOPE_STEPS   3000
/* They begin anew after this many steps without a gain since they began, for each pair of nodes.
 * Unit: steps. Why: fewer do not reach the ends of valleys of large graphs, more leave those of
 * small ones too late. Test: sensitivity. */
#define TND_SCHEDULE_VALLEY_STEPS 12
/* A share of a product's rows is a multiple of this. Unit: rows. Why: strips of packed weights have
 * 16 or 32. Test: none. */
#define TND_SCHEDULE_ROWS         32
/* Added to the error bar of a share, whose time is told by the times of all and of half of the
 * rows. Unit: share. Why: steps of kernels. Test: rows_are_split_over_three_devices. */
#define TND_SCHEDULE_SHARE_ERROR  0.05
/* Error of an operation that the table does not know on any side. Unit: us. Why: a kernel's launch.
 * Test: weights_without_a_role_count_as_transfers. */
#define TND_SCHEDULE_UNKNOWN_US   5.0
/* By which one thread puts parts into the result. Unit: bytes/us. Why: copies in a cache reach
 * 10 GB/s and more on every machine that was measured. Test: none. */
#define TND_SCHEDULE_JOIN_BYTES   8000.0
/* And by which each of this many threads at most copies columns of X for the parts of a product.
 * Unit: threads. Why: more share the same memory. Test:
 * a_product_of_few_rows_is_split_by_columns. */
#define TND_SCHEDULE_COPY_THREADS 4

/* ---- Rule without a table ---- */

/* What the work of the next three takes on one thread; operations that were measured on
 * a device alone count so on the CPU. Unit: us. Why: ten hand-offs of 1 us each. Test:
 * operations_count_on_a_device_as_measured_there. */
#define TND_RULE_US            10.0
/* A node with fewer for each microsecond of a hand-off runs on one thread. Unit: multiply-adds.
 * Why: work of one core in TND_RULE_US (make bench prints hand-offs). Test: none. */
#define TND_RULE_MULTIPLY_ADDS 200000
/* The same for operations that move values. Unit: values. Why: as above. Test:
 * dear_hand_offs_make_the_rule_share_less. */
#define TND_RULE_VALUES        24576
/* The same for operations that compute exponentials. Unit: values. Why: as above. Test: none. */
#define TND_RULE_EXPONENTIALS  8192
/* Products with more on average keep all threads beside other programs. Unit: multiply-adds. Why:
 * measured beside 1, 2, 4 and 8 busy programs on 2 cores (Zen 5; docs/planning.md): from twice as
 * many on all threads take 0.6 to 1.1 of the time of one, 2 to 3.5 times of it for a token. Test:
 * long_products_keep_all_threads. */
#define TND_RULE_LONG          1e8

/* ---- Error bars of estimates, as shares of the time ---- */

/* A straight line between two samples; least error of a convolution's time. Unit: share. Why: an
 * argument; `mulmat-tune test` prints the misses of points that a table leaves out. Test:
 * error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_LINE     0.02
/* Of the difference to the lines through the samples before and behind: a library may change its
 * kernel anywhere between two samples. Unit: share. Why: the step lies on either side of M with
 * the same chance. Test: error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_BEND     0.50
/* A time told by the step of a kernel. Unit: share. Why: measured: float products of 1 to 40 tokens
 * told from 1, 8 and 32 miss by 3.8 % (F16) and 5.7 % (F32) in the median, by 11 and 23 % in the
 * 95th percentile (Zen 4). Test: stairs_of_kernels_are_followed. */
#define TND_ERROR_STAIR    0.08
/* For each doubling of M beyond the largest measured one, and from one convolution to another; a
 * thread count that was not measured. Unit: share. Why: measured by mulmat-tune test
 * --extrapolation: with TND_ERROR_BELOW and the residual of the line nine left-out times of ten lie
 * within (Zen 4, Zen 5); methods of convolutions change by 1 to 10 % for a doubling. Test:
 * error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_BEYOND   0.10
/* For each doubling of M below the smallest. Unit: share. Why: as above; kernels for few tokens
 * differ more. Test: error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_BELOW    0.16
/* Of what both error bars hold beside the noise of samples (TND_CLEAR_SIGMAS), by which a way must
 * lead packed weights, or a thread count the rule's, to serve. Unit: ratio. Why:
 * of 478 problems by a thin table (60 s, Zen 4) all 7 with more than 10 % of regret were rows that
 * seemed as fast. Test: a_way_serves_only_with_a_lead_over_packed_weights,
 * of_tied_thread_counts_that_of_the_rule_serves. */
#define TND_RULE_BARS      0.5
/* And of their time; and a schedule that splits or overlaps the best placement without. Unit:
 * ratio. Why: less is not worth another plan; what memory of a shared machine changes from
 * minute to minute is in TND_MOMENT_ERROR. Test: the same. */
#define TND_RULE_LEAD      0.02
/* Farther outside of the measured M the table does not decide. Unit: doublings. Why: lines miss by
 * a third there and choices with them. Test:
 * beyond_four_times_the_measured_range_the_rule_serves. */
#define TND_BEYOND_LOG2    2.0
/* Another shape's times, scaled. Unit: share. Why: as for TND_ERROR_LINE. Test:
 * error_bars_grow_with_the_distance_from_what_was_measured. */
#define TND_ERROR_SHAPE    0.15
/* Farther than this from its own samples a curve borrows the shape of another thread count's
 * curve. Unit: doublings of M. Why: kernels step at the same M on any thread count. Test:
 * a_thin_curve_follows_the_one_of_another_thread_count. */
#define TND_GUIDE_GAP_LOG2 0.6
/* And that curve's nearest sample is at most this part as far. Unit: ratio. Why: a guide at the
 * same distance tells nothing more. Test: none. */
#define TND_GUIDE_NEARER   0.5
/* Shapes with more or less work than this many times the wanted one tell nothing about it. Unit:
 * ratio. Why: caches of other levels serve them. Test:
 * unmeasured_shapes_scale_by_work_from_the_nearest. */
#define TND_SHAPE_RATIO    8.0
/* Nearest shapes that are asked for a stage, on each side. Unit: shapes. Why: bounds planning.
 * Test: none. */
#define TND_SHAPES_TRIED   8
/* Serial share of a stage's time on one thread, at least. Unit: share. Why: hand-offs and the last
 * part of work that not all threads share. Test: more_threads_than_measured_give_a_range. */
#define TND_SERIAL_LEAST   0.01
/* What measuring on two threads leaves unknown of it; n threads leave 1 / (n - 1) of that; and
 * all of it where one count was measured. Unit: share. Why: efficiencies of two threads differ
 * by a tenth between runs; two threads told from one so miss by 9.8 % (Zen 4) and 11.7 % (Zen 5)
 * in the median. Test: more_threads_than_measured_give_a_range. */
#define TND_SERIAL_PRIOR   0.12

/* ---- The observer: predictions compared with runs ---- */

/* Uses of two plans, by turns, after which a look is over; a lost one is dropped sooner. Unit:
 * uses. Why: the median of four tells 5 % apart on a machine in use. Test:
 * a_device_that_lies_is_dropped_within_eight_uses. */
#define TND_OBSERVER_USES       8
/* Least noise of a computation's time, and least lead of a plan that takes over. Unit: share. Why:
 * times differ by a few percent in quiet. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_NOISE      0.02
/* Least error of a single time, of two half of it. Unit: share. Why: other programs cost a factor
 * of two. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_ONE        0.3
/* By which two times in a row, or a first use, must lie above what was expected to count as a
 * change at once; a computation on a device is given up after it. Unit: ratio. Why: other programs
 * cost a factor of two. Test: a_device_that_becomes_slow_is_left_and_found_again. */
#define TND_OBSERVER_STALL      3.0
/* More that the plan which serves is given. Unit: ns. Why: somebody waits a second at most. Test:
 * a_device_that_becomes_slow_is_left_and_found_again. */
#define TND_OBSERVER_STALL_NS   0.7e9
/* Of the computing time, for looks at plans that do not serve. Unit: share. Why: less than what
 * is told apart. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_SHARE      0.015
/* Between two looks, unless the serving plan becomes slow. Unit: uses. Why: plans move weights.
 * Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_REST       50
/* Most that is saved for a look, and within which a first use (weights packed, moved) is to be
 * repaid. Unit: uses. Why: a look at a plan 50 times slower. Test:
 * a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_HOARD      100.0
/* For first looks at once. Unit: uses. Why: they find a device that is told ten times too slow.
 * Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_GRANT_USES 12.0
/* Most of that for all graphs of a runtime; of what is left of it each one gets a half. Unit: ns.
 * Why: nobody feels a second. Test: a_zoo_of_machines_is_served_well. */
#define TND_OBSERVER_GRANT_NS   1e9
/* Times that are older are forgotten. Unit: ns. Why: a day: updates, other neighbours. Test:
 * verdicts_are_looked_at_again_after_a_day. */
#define TND_OBSERVER_OLD_NS     UINT64_C(86400000000000)
/* Of which one is compared. Unit: runs. Why: a run without costs nothing. Test: none. */
#define TND_DRIFT_EVERY         3
/* Of the computing time, for all that comparing takes: probes, readings of clocks, judging, new
 * tables. Unit: share. Why: nobody notices it. Test: watching_costs_its_share_and_no_more. */
#define TND_DRIFT_COST          0.005
/* That a worker of a stage may be off its CPU, or late, while its time counts, when comparing and
 * when measuring. Unit: share. Why: as for TND_DRIFT_SHARE; interrupts take 1 or 2 us of
 * a millisecond. Test: no_cell_is_blamed_on_a_machine_that_others_use. */
#define TND_QUIET_LOST          0.10
/* Less than this is no interruption but how threads meet. Unit: us. Why: a hand-off. Test: none. */
#define TND_QUIET_LOST_US       2.0
/* Comparisons in a row that must find a cell wrong, each with new times. Unit: runs. Why: one burst
 * of another program does not last through them all. Test:
 * a_wrong_cell_is_found_within_eighteen_quiet_graphs. */
#define TND_DRIFT_STRIKES       3
/* A cell that was given back needs twice as many the next time, up to this many doublings. Unit:
 * doublings. Why: ends a swinging between two choices. Test: none. */
#define TND_DRIFT_DOUBLINGS     5
/* A case is given another trial after it. Unit: runs that were compared. Why: three minutes of
 * a model that takes 30 ms for a token; ten slow tokens of six thousand. Test:
 * a_cell_that_was_blamed_wrongly_is_given_back_after_a_trial. */
#define TND_DRIFT_TRIAL_RUNS    2000
/* A trial that decides nothing ends after it. Unit: runs that were compared. Why: nothing plans the
 * cell any more. Test: none. */
#define TND_DRIFT_TRIAL_GRAPHS  100
/* And this many times as long after each trial that found it wrong again. Unit: ratio. Why: the
 * cost of trials goes to zero. Test: a_cell_that_is_wrong_stays_so_through_its_trials. */
#define TND_DRIFT_TRIAL_GROWS   4
/* Of the probe. Unit: rounds of the reference kernel. Why: 10 us. Test: none. */
#define TND_PROBE_ROUNDS        6000
/* Of the probe's product. Unit: passes over 2048 products. Why: 5 to 20 us. Test: none. */
#define TND_PROBE_PASSES        32
/* By which the probe's best time grows at each probe. Unit: share. Why: a clock rate that is never
 * reached again is forgotten after a few hundred. Test: none. */
#define TND_PROBE_FORGETS       0.0005
/* That a running median is taken of. Unit: runs. Why: four outliers do not move it. Test: none. */
#define TND_DRIFT_RING          9
/* Before a cell is judged. Unit: runs. Why: with TND_DRIFT_STRIKES a case rests on six. Test:
 * a_cell_ten_times_too_fast_is_found_and_given_up_for_good. */
#define TND_DRIFT_RUNS          4
/* Needed to tell the machine's own speed, and runs of each. Unit: cells. Why: a median needs
 * three. Test: a_machine_that_is_slow_as_a_whole_is_not_blamed_on_cells. */
#define TND_DRIFT_CELLS         3
/* A cell that was not seen for longer says nothing of the machine's speed now. Unit: runs. Why:
 * clock rates change within seconds. Test: none. */
#define TND_DRIFT_RECENT        8
/* Smallest deviation that is reported. Unit: share. Why: smaller ones seldom change a choice.
 * Test: a_cell_ten_times_too_fast_is_found_and_given_up_for_good. */
#define TND_DRIFT_SHARE         0.25
/* The same while the machine's own speed is unknown. Unit: share. Why: another program on the
 * same cores costs a factor of two. Test: none. */
#define TND_DRIFT_SHARE_ALONE   1.0
/* End of the curve that is made up for a shape that was not measured. Unit: tokens. Why: the
 * longest prompts that models are given. Test: none. */
#define TND_DRIFT_M             4096

/* ---- Budgets of a bench run ---- */

/* Effort `measure`: a time this certain is measured no further. Unit: share. Why: below half of
 * TND_NOISY_FRAC. Test: none. */
#define TND_BENCH_MEASURE_TOLERANCE  0.035
/* Of one cell without a budget. Unit: trials. Why: disturbances only slow down, so the fastest
 * of several counts. Test: none. */
#define TND_BENCH_TRIALS             3
/* A trial repeats short products this long at most, and a transfer of one size or the hand-offs
 * of one thread count. Unit: s. Why: hundreds of samples of 100 us. Test: none. */
#define TND_BENCH_TRIAL_S            0.04
/* Effort `estimate`. Unit: share. Why: anchors alone. Test: none. */
#define TND_BENCH_ESTIMATE_TOLERANCE 0.10
/* With a budget: it is used as long as anything is less certain than this. Unit: share. Why:
 * below what two runs differ by. Test: none. */
#define TND_BENCH_BUDGET_TOLERANCE   0.002
/* A trial takes at least, and a run of a peak. Unit: s. Why: several repeats of a product of 200
 * us. Test: none. */
#define TND_BENCH_SHORTEST_TRIAL_S   0.002
/* Of the budget for the first grid, on top of it where a driver compiled kernels meanwhile. Unit:
 * share. Why: the rest goes where interpolation errs. Test: tests/gpu_day.sh. */
#define TND_BENCH_GRID_SHARE         (1.0 / 3)
/* Of the budget for one cell at most. Unit: share. Why: six cells at least are compared with
 * each other. Test: none. */
#define TND_BENCH_LONGEST_TRIAL      0.15
/* Of the budget for all that is measured before the first cell: what comes later of it is left
 * out. Unit: share. Why: beside eight busy programs it took all of 5 s, and no cell was measured.
 * Test: none. */
#define TND_BENCH_PREPARE_SHARE      0.5
/* Of the budget, or of TND_BENCH_DEFAULT_S, for waiting until others are quiet. Unit: share. Why:
 * most of it is for measuring. Test: none. */
#define TND_BENCH_QUIET_SHARE        0.2
/* One look at who else computes. Unit: s. Why: the system counts in 0.01 s. Test: none. */
#define TND_BENCH_LOOK_S             0.25
/* What others may keep busy in a quiet machine. Unit: CPUs. Why: a desktop at rest takes 0.05 to
 * 0.2. Test: others_that_leave_cpus_free_do_not_disturb. */
#define TND_QUIET_CPUS               0.25
/* Between two times that a run writes what it has, and runs the reference kernel (10 ms). Unit: s.
 * Why: nothing worth more is lost; a laptop throttles within a minute. Test: none. */
#define TND_BENCH_SAVE_S             5.0
/* What measuring the peaks of the CPU takes at most. Unit: s. Why: five units on two or three
 * thread counts, a dozen runs each. Test: none. */
#define TND_BENCH_PEAKS_S            1.0
/* Of the budget for peaks, and for slow-downs of backends beside each other; half for operations
 * beside matrix products; twice for hand-offs, and for checking results; four times for
 * transfers. Unit: share. Why: a few numbers each. Test: none. */
#define TND_BENCH_FEW_SHARE          0.05
/* Largest transfer that is measured when time is short. Unit: bytes. Why: latency is known then,
 * bandwidth nearly. Test: none. */
#define TND_QUICK_TRANSFER_BYTES     (4 << 20)
/* A trial whose energy is measured lasts at least: with counters of processors. Unit: s. Why: they
 * step each millisecond, so that a step is 5 %. Test: none. */
#define TND_ENERGY_PACKAGE_S         0.02
/* With those of GPUs. Unit: s. Why: they step each 20 to 100 ms. Test: none. */
#define TND_ENERGY_GPU_S             0.2
/* With a battery alone. Unit: s. Why: its power is told each second or so; a longer trial would
 * make a bench take hours. Test: none. */
#define TND_ENERGY_BATTERY_S         0.5
/* In the search for the nearest cell with joules, a doubling of the threads counts as. Unit:
 * doublings of N or K. Why: another core draws more power, another shape hardly. Test:
 * power_comes_from_the_nearest_cell_that_has_some. */
#define TND_ENERGY_THREADS_LOG2      16.0
/* A counter that says more is wrong. Unit: W. Why: eight GPUs of 1 kW and their host, five times.
 * Test: counters_that_jump_are_not_believed. */
#define TND_ENERGY_MOST_W            50000.0
/* Budget of `mulmat-tune` and `bench` without --budget, --effort and lists of M. Unit: s. Why: the
 * first grid of a 7B takes half of it (Zen 4). Test: none. */
#define TND_BENCH_DEFAULT_S          60.0
/* What was measured so long ago is taken up by the next run. Unit: s. Why: a run that was ended is
 * begun again within the hour. Test: a_run_that_was_ended_goes_on. */
#define TND_BENCH_RESUME_S           3600
/* Budget of effort `estimate` and of tandem_tune_graph when none is given. Unit: s. Why: what a
 * user waits for. Test: none. */
#define TND_BENCH_ESTIMATE_S         5.0
/* Making or packing weights, before any were made or packed. Unit: s a byte. Why: a first guess;
 * the rate is learned. Test: none. */
#define TND_BENCH_OPENING            4e-9
/* A product that runs longer needs no warm-up of its own once its line has run. Unit: us. Why:
 * caches and clock rates settle within it. Test: none. */
#define TND_BENCH_LONG_US            20000
/* Of the newest trial in the mean by which trials overrun. Unit: share. Why: the last ten trials
 * count. Test: none. */
#define TND_BENCH_OVERRUN_SHARE      0.1
/* A single trial's overrun counts as no more. Unit: ratio. Why: one interruption does not end a
 * run early. Test: none. */
#define TND_BENCH_OVERRUN            4.0
/* Reading the weights takes as long as computing this many tokens. Unit: tokens. Why: only
 * orders the first trials. Test: none. */
#define TND_WEIGHT_READ_TOKENS       10.0
/* Turning the weights into floats takes as long as computing this many tokens. Unit: tokens.
 * Why: only orders the first trials. Test: none. */
#define TND_DEQUANTIZE_TOKENS        30.0
/* With a smaller budget nothing but times is measured. Unit: s. Why: checks would take a tenth
 * of it. Test: a_sweep_too_short_to_check_measures_times_alone. */
#define TND_BENCH_CHECKS_S           1.0

/* ---- What to measure next ---- */

/* Added to an expected time, so that a trial ends within the budget. Unit: ratio. Why: an
 * overrun costs the next trial. Test: a_budget_is_used_but_never_overdrawn. */
#define TND_EXPECT_SAFELY        1.2
/* The same when a similar line tells the time. Unit: ratio. Why: as above, between profiles.
 * Test: none. */
#define TND_EXPECT_SIMILAR       1.5
/* Relevance of a profile that loses clearly. Unit: share. Why: its times still show in reports.
 * Test: none. */
#define TND_RELEVANCE_LEAST      0.02
/* Relevance above which that is done: the profile may win there. Unit: share. Why: a time of 1.8
 * times the fastest one. Test:
 * a_point_above_the_line_around_it_is_measured_anew_before_finer_ones. */
#define TND_REMEASURE_RELEVANCE  0.30
/* Spent on a point whose samples do not agree. Unit: trials. Why: noise that lasts is the
 * machine's, not the sample's. Test: none. */
#define TND_TRIALS_NOISY         5
/* Graphs of M tokens are computed 1 / M^x as often: 0 as often, 1 as many tokens in all. Unit:
 * exponent. Why: between a chat and a batch. Test: none. */
#define TND_RARER_WITH_M         0.75
/* A gap in which another candidate begins to win counts this many times. Unit: ratio. Why: a
 * wrong crossover is a wrong choice. Test:
 * M_are_added_where_the_curve_bends_or_another_way_wins. */
#define TND_CROSSOVER_WEIGHT     3.0
/* Uncertainty of a line that is known on other thread counts. Unit: share. Why: 1 / threads errs
 * by up to a third. Test: none. */
#define TND_UNCERTAIN_THREADS    0.30
/* Speed where nothing is known at all. Unit: multiply-adds/s. Why: a scalar kernel on a slow
 * core. Test: a_budget_is_used_but_never_overdrawn. */
#define TND_SLOWEST_MADDS        2e9
/* For each doubling of M between two points; beyond them twice as much. Unit: share. Why: a prior;
 * the first miss replaces it. Test: gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_GAP        0.04
/* For each doubling of M away from a single point. Unit: share. Why: the fixed cost is unknown.
 * Test: gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_BEYOND_ONE 0.25
/* Of the difference to the lines through the points before and behind. Unit: share. Why: half of
 * TND_ERROR_BEND: the next point decides. Test: gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_BEND       0.25
/* Of a miss in the middle is left in each half. Unit: share. Why: a parabola would leave a
 * quarter, a step all of it in one half. Test: gaps_and_ends_of_a_line_are_uncertain. */
#define TND_UNCERTAIN_SEEN       0.40
/* Of TND_UNCERTAIN_GAP where the middle was predicted. Unit: share. Why: one right prediction
 * does not make a curve straight. Test: gaps_and_ends_of_a_line_are_uncertain. */
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

/* In a measured graph at most. Unit: products. Why: hides the hand-off at the start. Test:
 * short_products_share_a_graph. */
#define TND_MEASURE_NODES        8
/* A measured graph holds as many products as fit into this. Unit: us. Why: long ones need no
 * company. Test: short_products_share_a_graph. */
#define TND_MEASURE_GRAPH_US     5e3
/* Of the weights at most. Unit: copies. Why: small weights would be thousands. Test: none. */
#define TND_MEASURE_COPIES       256
/* Fewer may agree by chance: only the budget ends a measurement before; also the oracle's second
 * comparison. Unit: samples. Why: 1 of 64 agrees by chance; a median with three outliers. Test:
 * none. */
#define TND_MEASURE_REPEATS      7
/* Samples that may be left out because another program ran meanwhile, and as many more as were
 * kept. Unit: samples. Why: a burst of a few milliseconds. Test:
 * samples_beside_another_program_are_left_out. */
#define TND_MEASURE_LEFT_OUT     3
/* Of a measurement when none is given; of effort `patient`; for one time of a pair at most; of a
 * product that the oracle compares in several rounds. Unit: s. Why: longer than a slice of the
 * operating system. Test: none. */
#define TND_MEASURE_BUDGET_S     0.1
/* A measurement whose median is this certain ends, and misses as small say nothing about a curve.
 * Unit: share. Why: a tenth of TND_CLEAR_LEAD. Test: none. */
#define TND_MEASURE_SPREAD       0.01
/* Smallest transfer that is measured. Unit: bytes. Why: less costs the same latency. Test: none. */
#define TND_TRANSFER_LEAST_BYTES 4096
/* A download that ends after the upload before it. Unit: bytes. Why: one cache line. Test: none. */
#define TND_TRANSFER_PROBE_BYTES 64
/* Of a transfer or a hand-off at most. Unit: samples. Why: steady within 1 %. Test: none. */
#define TND_MOVE_REPEATS         60
/* In one sample. Unit: hand-offs. Why: the clock's own cost is 1 % of that. Test: none. */
#define TND_HANDOFF_ROUNDS       16
/* By so much interleaved pages must be read faster than first touch to be chosen. Unit: factor.
 * Why: equal memory measured 5 % apart (two pretended nodes of a virtual Zen 4). Test:
 * without_a_setting_the_policy_is_what_the_table_has_measured. */
#define TND_NUMA_GAIN            1.10
/* The best of as many runs. Unit: runs. Why: more find nothing better. Test: none. */
#define TND_PEAK_RUNS            24
/* Memory to read for a peak, at least; weights that pairs of backends read in turn, and a transfer,
 * at most. Unit: bytes. Why: larger than caches of desktops; rates are constant beyond. Test:
 * none. */
#define TND_LARGE_BYTES          (64 << 20)
/* The same. Unit: last-level caches. Why: what is left in the cache of the pass before counts for
 * little. Test: none. */
#define TND_PEAK_CACHES          8
/* Memory that is filled in a second of the budget. Unit: bytes. Why: half of the budget goes into
 * first touch at 1 GB/s. Test: none. */
#define TND_PEAK_BYTES_A_SECOND  0.5e9
/* Read again and again by each thread. Unit: bytes. Why: in every second-level cache. Test:
 * none. */
#define TND_PEAK_CACHE_BYTES     (256 << 10)
/* Where that memory begins. Unit: bytes. Why: pages of 2 MiB, where the system gives them. Test:
 * none. */
#define TND_PEAK_PAGE            (2u << 20)
/* Of an operation's graph on one thread count at most. Unit: runs. Why: 128 samples. Test: none. */
#define TND_OPS_RUNS             16
/* And at least, however short the budget. Unit: runs. Why: 16 samples. Test: none. */
#define TND_OPS_LEAST_RUNS       2
/* With a smaller budget no operation is measured. Unit: s. Why: less would know a part of them.
 * Test: none. */
#define TND_OPS_LEAST_S          0.2
/* For each thread count when no budget is given; a device gets twice as much. Unit: s. Why: about
 * 10 ms a cell. Test: none. */
#define TND_OPS_S                0.5
/* And so much more where kernels are compiled when they are first run, but not of a given budget.
 * Unit: s. Why: PoCL takes 0.1 s a kernel and size. Test: none. */
#define TND_OPS_COMPILE_S        5.0
/* A device that takes longer for a cell gets no larger one of the operation. Unit: shares of a cell
 * in the budget. Why: PoCL needs 0.4 s for a row that a GPU has done in 2 ms. Test: none. */
#define TND_OPS_LONG             2.0
/* In which backends are timed beside each other. Unit: rounds. Why: the faster of two. Test:
 * none. */
#define TND_PAIR_ROUNDS          2
/* Of the reference kernel. Unit: runs. Why: about 10 ms. Test: none. */
#define TND_REFERENCE_RUNS       101
/* Of a run: a multiplication and an addition, four cycles. Unit: rounds. Why: about 100 us at
 * 2.4 GHz. Test: none. */
#define TND_REFERENCE_ROUNDS     60000
/* By which the reference kernel's fastest run may change. Unit: share. Why: steps of clock rates
 * are larger. Test: a_machine_is_unsteady_from_a_tenth_and_busy_from_a_quarter. */
#define TND_STEADY               0.10
/* By which its mean may exceed its fastest run. Unit: share. Why: another program on the core
 * takes more. Test: a_machine_is_unsteady_from_a_tenth_and_busy_from_a_quarter. */
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

/* Of TANDEM_TUNE=on-first-use. Unit: s. Why: what a user waits for once. Test: none. */
#define TND_TUNE_FIRST_USE_S 3.0
/* Of the budget for writing the table. Unit: share. Why: writing takes milliseconds. Test: none. */
#define TND_TUNE_SAVING      0.03

/* ---- Methods of convolutions ---- */

/* Farthest that a measured convolution tells of another one: the root of the sum of squares of the
 * doublings of channels, filters and places. Unit: doublings. Why: four times as many places, or
 * twice of all three, and other caches serve. Test: convolutions_far_away_tell_nothing. */
#define TND_CONV_FARTHEST    2.0
/* Nearer ones count about alike. Unit: doublings. Why: kernels' tiles make a time of a multiply-add
 * differ by as much between neighbours. Test: none. */
#define TND_CONV_NEAR        0.25
/* A time of fewer samples has the error of a doubling at least. Unit: samples. Why: a spread of two
 * says nothing. Test: a_lead_within_the_errors_leaves_the_rule. */
#define TND_CONV_FEW         3

/* Most of the CPU's time that the convolutions of a net may take on a device, for the net to be
 * lowered for it. Unit: share. Why: what the device cannot compute then runs on the CPU without its
 * own methods, and values travel; neither is known before the net is lowered. Test:
 * a_net_is_for_a_device_that_is_clearly_faster. */
#define TND_CONV_DEVICE_GAIN  0.5
/* Least part of the multiply-adds of a net whose times must be known for that. Unit: share. Why:
 * convolutions of one method, such as depthwise ones, are not measured. Test: as above. */
#define TND_CONV_DEVICE_KNOWN 0.75

/* ---- Reports ---- */

/* Of the first comparison, of all candidates. Unit: rounds. Why: a median needs three. Test:
 * none. */
#define TND_ORACLE_FIRST_ROUNDS 3
/* Of a cell's time for the first comparison. Unit: share. Why: it runs all candidates. Test:
 * none. */
#define TND_ORACLE_FIRST_SHARE  0.6
/* A candidate this many times as slow as the fastest after one round runs no more. Unit: ratio.
 * Why: noise explains less. Test: none. */
#define TND_ORACLE_HOPELESS     1.5
/* Of more tokens than TND_ORACLE_PROBE_M all ways are first timed once on an eighth of them, or
 * on as many. Unit: tokens. Why: kernels have reached their rate. Test: none. */
#define TND_ORACLE_PROBE_M      256
/* A way that is so much slower than the fastest there is out. Unit: ratio. Why: turning weights
 * into floats is a third of a product of 256 tokens at most. Test: none. */
#define TND_ORACLE_PROBE_OUT    2.0
/* A regret above is asked for again in another moment, whose answer counts, and explained by name.
 * Unit: ratio. Why: what users notice. Test:
 * a_regret_is_explained_by_what_was_predicted_wrong. */
#define TND_ORACLE_EXPLAIN      0.10

/* ---- Placing weights (tune/fit_model.h) ---- */

/* Device memory that nobody plans with: the driver, its programs, the screen. Unit: bytes. Why:
 * what drivers of cards of 8 GB show as taken before the first buffer, and a part of the memory is
 * lost between buffers. Test: the_reserve_and_the_cache_are_taken_off_first. */
#define TND_FIT_RESERVE_BYTES (INT64_C(512) << 20)
/* A text that the objective "mixed" is about: tokens read, tokens written. Unit: tokens. Why: what
 * most published figures are told for. Test: none. */
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
/* How many times as much the use of an expert counts that a device keeps already. Unit: ratio. Why:
 * 32 uses, a period's share of one of 128 experts, scatter by 18 %. Test:
 * an_expert_that_is_hot_stays_until_another_one_is_clearly_used_more. */
#define TND_FIT_HOT_STAYS     1.2
/* With more of the bytes that a token touches priced so, nothing is predicted. Unit: share. Why: as
 * in simulate. Test: weights_without_a_time_are_priced_by_their_bytes. */
#define TND_FIT_MOST_GUESSED  0.1

/* ---- Ranks (tune/cluster.h) ---- */

/* Sums of more than two ranks go in segments from this many bytes on. Unit: bytes. Why: as
 * SEGMENTS_FROM_BYTES of cluster/communicator.c. Test: sums_follow_from_the_slowest_link. */
#define TND_CLUSTER_SEGMENTS_BYTES (16 * 1024)
/* How fast one thread adds up vectors of ranks. Unit: bytes read/us. Why: a quarter of what one
 * core of a laptop reads, since the vectors lie apart. Test: none. */
#define TND_CLUSTER_ADD_RATE       4000.0
/* Error bar of messages. Unit: share of their time. Why: other programs use the link too. Test:
 * none. */
#define TND_CLUSTER_LINK_ERROR     0.25
/* Up to this many ranks every choice of some of them is priced; of more, one rank after another is
 * added that brings most. Unit: ranks. Why: 63 choices take some 50 ms. Test:
 * a_plan_is_near_the_best_of_all_plans. */
#define TND_CLUSTER_TRY_ALL        6

#endif
