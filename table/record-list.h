/* SPDX-License-Identifier: MIT
 * The kinds of records of a table, and their facts: one list, from which adding, ordering, merging,
 * filtering, invalidating, the checksum, reading and writing JSON, and the test of the schema are
 * derived. A new kind: its struct in tnd_table.h, its facts and its row here. */
#ifndef TND_RECORD_LIST_H
#define TND_RECORD_LIST_H

/* Kinds of facts: X(KIND, form, low, high). The form decides how a fact is stored, compared, hashed
 * and written; a file may have values from `low` to `high`. */
#define TND_FACT_KIND_LIST(X)                                                                      \
    X(NAME, TEXT, 0, 0)             /* a name, never empty */                                      \
    X(BACKEND, TEXT, 0, 0)          /* a backend; the record depends on its identity */            \
    X(DEVICE, TEXT, 0, 0)           /* a backend; neither written nor hashed if it is the CPU */   \
    X(PROFILE, TEXT, 0, 0)          /* a name: the record depends on the backends of its stages */ \
    X(TYPE, TYPE, 0, 0)             /* enum tandem_type */                                         \
    X(EXTENT, WHOLE, 1, 1073741824) /* M, N, K, bytes */                                           \
    X(AMOUNT, WHOLE, 1, 9007199254740992) /* of a whole model: bytes, weights */                   \
    X(THREADS, WHOLE, 1, 65536)           /* of a stage; more than one: depends on the cores */    \
    X(TEAM, WHOLE, 2, 65536)              /* that share work */                                    \
    X(COUNT, WHOLE, 0, 4294967295)        /* of measurements; optional: 0 */                       \
    X(WHEN, WHOLE, 0, 9007199254740992)   /* seconds since 1970; optional: 0 */                    \
    X(GENERATION, WHOLE, 0, 1000000000)   /* neither written nor hashed when 0 */                  \
    X(MARK, WHOLE, 0, 1)                  /* a flag added to a kind later; the same */             \
    X(TIME, REAL, 0, 1000000000000)       /* microseconds */                                       \
    X(SPREAD, REAL, 0, 1000000000000)     /* microseconds; optional: 0 */                          \
    X(JOULES, REAL, 0, 1000000000)        /* neither written nor hashed when 0 */                  \
    X(ERROR, REAL, 0, 1000000000000)                                                               \
    X(FACTOR, REAL, 1, 1000)                                                                       \
    X(RATE, REAL, 0, 1000000000000)                                                                \
    X(FLAG_0, FLAG, 0, 1) /* a flag, and its bit in the checksum */                                \
    X(FLAG_1, FLAG, 0, 1) /* not written when false */                                             \
    X(FLAG_2, FLAG, 0, 1)                                                                          \
    X(STAGE, CHOICE, 0, TANDEM_STAGES - 1)                                                         \
    X(TASK, CHOICE, 0, TANDEM_TASK_COUNT - 1)                                                      \
    X(DIRECTION, CHOICE, 0, TND_DIRECTIONS - 1)                                                    \
    X(PAIR, PAIR, 0, 1000000000000) /* struct tnd_reference_time */

/* The facts of a kind, X(struct, member, KIND, role, place): first those of the key, in the order
 * in which records are sorted, then the values, in the order in which the merge rule compares them:
 * of two records with one key, the first value that differs decides. The role says which one comes
 * first or wins: KEY: the smaller first, KEY_DOWN: the larger first, LARGER and SMALLER: that value
 * wins. `place` is the order in files and in the checksum. */
#define TND_SAMPLE_FACTS(X)                                                                        \
    X(tnd_sample, m, EXTENT, KEY, 0)                                                               \
    X(tnd_sample, generation, GENERATION, LARGER, 5)                                               \
    X(tnd_sample, count, COUNT, LARGER, 3)                                                         \
    X(tnd_sample, when, WHEN, LARGER, 4)                                                           \
    X(tnd_sample, median_us, TIME, SMALLER, 1)                                                     \
    X(tnd_sample, spread_us, SPREAD, SMALLER, 2)                                                   \
    X(tnd_sample, joules, JOULES, LARGER, 6)

/* Numbers first: they decide most steps of a search. Thread counts last, so that all counts of one
 * stage and shape are adjacent. */
#define TND_CURVE_FACTS(X)                                                                         \
    X(tnd_curve_key, type, TYPE, KEY, 1)                                                           \
    X(tnd_curve_key, n, EXTENT, KEY, 2)                                                            \
    X(tnd_curve_key, k, EXTENT, KEY, 3)                                                            \
    X(tnd_curve_key, op, NAME, KEY, 0)                                                             \
    X(tnd_curve_key, stage, STAGE, KEY, 5)                                                         \
    X(tnd_curve_key, task, TASK, KEY, 6)                                                           \
    X(tnd_curve_key, backend, BACKEND, KEY, 4)                                                     \
    X(tnd_curve_key, parallel, FLAG_0, KEY, 7)                                                     \
    X(tnd_curve_key, own_threads, FLAG_2, KEY, 8)                                                  \
    X(tnd_curve_key, warm, FLAG_1, KEY, 9)                                                         \
    X(tnd_curve_key, threads, THREADS, KEY, 10)

#define TND_TRANSFER_FACTS(X)                                                                      \
    X(tnd_transfer, backend, BACKEND, KEY, 0)                                                      \
    X(tnd_transfer, direction, DIRECTION, KEY, 1)

#define TND_HANDOFF_FACTS(X)                                                                       \
    X(tnd_handoff, threads, TEAM, KEY, 0)                                                          \
    X(tnd_handoff, count, COUNT, LARGER, 3)                                                        \
    X(tnd_handoff, when, WHEN, LARGER, 4)                                                          \
    X(tnd_handoff, spin_us, TIME, SMALLER, 1)                                                      \
    X(tnd_handoff, wake_us, TIME, SMALLER, 2)

/* The newer outcome wins; of two of the same time the worse one. */
#define TND_CHECK_FACTS(X)                                                                         \
    X(tnd_check, profile, PROFILE, KEY, 0)                                                         \
    X(tnd_check, type, TYPE, KEY, 1)                                                               \
    X(tnd_check, n, EXTENT, KEY, 2)                                                                \
    X(tnd_check, k, EXTENT, KEY, 3)                                                                \
    X(tnd_check, m, EXTENT, KEY, 4)                                                                \
    X(tnd_check, when, WHEN, LARGER, 7)                                                            \
    X(tnd_check, nmse, ERROR, LARGER, 5)                                                           \
    X(tnd_check, bound, ERROR, SMALLER, 6)

#define TND_SLOWDOWN_FACTS(X)                                                                      \
    X(tnd_slowdown, backend, BACKEND, KEY, 0)                                                      \
    X(tnd_slowdown, beside, BACKEND, KEY, 1)                                                       \
    X(tnd_slowdown, count, COUNT, LARGER, 3)                                                       \
    X(tnd_slowdown, when, WHEN, LARGER, 4)                                                         \
    X(tnd_slowdown, factor, FACTOR, SMALLER, 2)

/* Newest first; those of the same time by their values, the larger first. */
#define TND_SWEEP_FACTS(X)                                                                         \
    X(tnd_sweep_state, when, WHEN, KEY_DOWN, 0)                                                    \
    X(tnd_sweep_state, before, PAIR, KEY_DOWN, 1)                                                  \
    X(tnd_sweep_state, between, PAIR, KEY_DOWN, 2)                                                 \
    X(tnd_sweep_state, after, PAIR, KEY_DOWN, 3)

/* The larger value wins: disturbances only slow a measurement down, and a peak bounds times. */
#define TND_PEAK_FACTS(X)                                                                          \
    X(tnd_peak, unit, NAME, KEY, 0)                                                                \
    X(tnd_peak, threads, THREADS, KEY, 1)                                                          \
    X(tnd_peak, rate, RATE, LARGER, 2)                                                             \
    X(tnd_peak, count, COUNT, LARGER, 3)                                                           \
    X(tnd_peak, when, WHEN, LARGER, 4)

/* All facts are in the key, the time of the measurement first: a newer measurement is kept beside
 * the older one until that is dropped. */
#define TND_PROGRAM_FACTS(X)                                                                       \
    X(tnd_program_time, when, WHEN, KEY_DOWN, 0)                                                   \
    X(tnd_program_time, program, NAME, KEY, 1)                                                     \
    X(tnd_program_time, version, NAME, KEY, 2)                                                     \
    X(tnd_program_time, backends, NAME, KEY, 3)                                                    \
    X(tnd_program_time, device, NAME, KEY, 4)                                                      \
    X(tnd_program_time, cache, NAME, KEY, 5)                                                       \
    X(tnd_program_time, bytes, AMOUNT, KEY, 6)                                                     \
    X(tnd_program_time, weights, AMOUNT, KEY, 7)                                                   \
    X(tnd_program_time, prompt, COUNT, KEY, 8)                                                     \
    X(tnd_program_time, generated, COUNT, KEY, 9)                                                  \
    X(tnd_program_time, threads, THREADS, KEY, 10)                                                 \
    X(tnd_program_time, ubatch, EXTENT, KEY, 11)                                                   \
    X(tnd_program_time, layers, COUNT, KEY, 12)                                                    \
    X(tnd_program_time, expert_layers, COUNT, KEY, 13)                                             \
    X(tnd_program_time, repack, FLAG_0, KEY, 14)                                                   \
    X(tnd_program_time, no_op_offload, FLAG_1, KEY, 15)                                            \
    X(tnd_program_time, count, COUNT, LARGER, 18)                                                  \
    X(tnd_program_time, median_us, TIME, SMALLER, 16)                                              \
    X(tnd_program_time, spread_us, SPREAD, SMALLER, 17)

/* The newer one wins: the methods compete, and were measured together. */
#define TND_CONV_FACTS(X)                                                                          \
    X(tnd_conv_time, channels, EXTENT, KEY, 1)                                                     \
    X(tnd_conv_time, filters, EXTENT, KEY, 2)                                                      \
    X(tnd_conv_time, groups, EXTENT, KEY, 3)                                                       \
    X(tnd_conv_time, window, NAME, KEY, 4)                                                         \
    X(tnd_conv_time, stride, NAME, KEY, 5)                                                         \
    X(tnd_conv_time, dilation, NAME, KEY, 6)                                                       \
    X(tnd_conv_time, padding, NAME, KEY, 7)                                                        \
    X(tnd_conv_time, images, EXTENT, KEY, 8)                                                       \
    X(tnd_conv_time, result, NAME, KEY, 9)                                                         \
    X(tnd_conv_time, followed, MARK, KEY, 15)                                                      \
    X(tnd_conv_time, threads, THREADS, KEY, 10)                                                    \
    X(tnd_conv_time, device, DEVICE, KEY, 16)                                                      \
    X(tnd_conv_time, method, NAME, KEY, 0)                                                         \
    X(tnd_conv_time, when, WHEN, LARGER, 14)                                                       \
    X(tnd_conv_time, count, COUNT, LARGER, 13)                                                     \
    X(tnd_conv_time, median_us, TIME, SMALLER, 11)                                                 \
    X(tnd_conv_time, spread_us, SPREAD, SMALLER, 12)

/* Both ends are names of machines, so links do not depend on this machine's fingerprint. */
#define TND_LINK_FACTS(X)                                                                          \
    X(tnd_link, kind, NAME, KEY, 0)                                                                \
    X(tnd_link, transport, NAME, KEY, 1)                                                           \
    X(tnd_link, ranks, TEAM, KEY, 2)                                                               \
    X(tnd_link, from, NAME, KEY, 3)                                                                \
    X(tnd_link, to, NAME, KEY, 4)

/* The newer one wins: a new measurement already includes what was known before. */
#define TND_HOSTED_FACTS(X)                                                                        \
    X(tnd_hosted_time, program, NAME, KEY, 0)                                                      \
    X(tnd_hosted_time, type, TYPE, KEY, 2)                                                         \
    X(tnd_hosted_time, n, EXTENT, KEY, 3)                                                          \
    X(tnd_hosted_time, k, EXTENT, KEY, 4)                                                          \
    X(tnd_hosted_time, experts, COUNT, KEY, 5)                                                     \
    X(tnd_hosted_time, used, COUNT, KEY, 6)                                                        \
    X(tnd_hosted_time, m, EXTENT, KEY, 7)                                                          \
    X(tnd_hosted_time, threads, THREADS, KEY, 8)                                                   \
    X(tnd_hosted_time, kernels, NAME, KEY, 1)                                                      \
    X(tnd_hosted_time, when, WHEN, LARGER, 12)                                                     \
    X(tnd_hosted_time, count, COUNT, LARGER, 11)                                                   \
    X(tnd_hosted_time, median_us, TIME, SMALLER, 9)                                                \
    X(tnd_hosted_time, spread_us, SPREAD, SMALLER, 10)                                             \
    X(tnd_hosted_time, disturbed, MARK, SMALLER, 13)

/* The newer one wins. A family comes from one layer, since its candidates compete. */
#define TND_KERNEL_TIME_FACTS(X)                                                                   \
    X(tnd_kernel_time, backend, BACKEND, KEY, 0)                                                   \
    X(tnd_kernel_time, family, NAME, KEY, 1)                                                       \
    X(tnd_kernel_time, numbers, NAME, KEY, 2)                                                      \
    X(tnd_kernel_time, type, TYPE, KEY, 3)                                                         \
    X(tnd_kernel_time, n, EXTENT, KEY, 4)                                                          \
    X(tnd_kernel_time, k, EXTENT, KEY, 5)                                                          \
    X(tnd_kernel_time, m, EXTENT, KEY, 6)                                                          \
    X(tnd_kernel_time, threads, THREADS, KEY, 7)                                                   \
    X(tnd_kernel_time, when, WHEN, LARGER, 11)                                                     \
    X(tnd_kernel_time, count, COUNT, LARGER, 10)                                                   \
    X(tnd_kernel_time, median_us, TIME, SMALLER, 8)                                                \
    X(tnd_kernel_time, spread_us, SPREAD, SMALLER, 9)

/* X(KIND, list, struct, facts, struct of the facts, samples, over, limit, kept, layers, parts,
 *   team):
 *   list     member of the file and of the table
 *   samples  offset of the record's own list of samples over `over` ("m", "bytes"); 0: none
 *   limit    most records of a table
 *   kept     of a kind that is no cell: as many are kept, the first ones; 0: a kind of cells
 *   layers   a record of an upper layer hides those below with the same first `layers` facts
 *   parts    of the fingerprint on which all records of the kind depend, beside their backends'
 *   team     whether times on the host depend on the cores: ALWAYS, NEVER, or BY_THREADS */
#define TND_RECORD_LIST(X)                                                                         \
    X(CURVES, curves, tnd_curve, TND_CURVE_FACTS, tnd_curve_key,                                   \
      offsetof(struct tnd_curve, samples), "m", TND_TABLE_MAX_CURVES, 0, 11, 0, BY_THREADS)        \
    X(TRANSFERS, transfers, tnd_transfer, TND_TRANSFER_FACTS, tnd_transfer,                        \
      offsetof(struct tnd_transfer, curve.samples), "bytes", TND_TABLE_MAX_TRANSFERS, 0, 2,        \
      TND_PART_TRANSFERS, NEVER)                                                                   \
    X(HANDOFFS, handoffs, tnd_handoff, TND_HANDOFF_FACTS, tnd_handoff, 0, "",                      \
      TND_TABLE_MAX_HANDOFFS, 0, 1, TND_PART_HANDOFFS, NEVER)                                      \
    X(CHECKS, checks, tnd_check, TND_CHECK_FACTS, tnd_check, 0, "", TND_TABLE_MAX_CHECKS, 0, 2, 0, \
      NEVER)                                                                                       \
    X(SLOWDOWNS, slowdowns, tnd_slowdown, TND_SLOWDOWN_FACTS, tnd_slowdown, 0, "",                 \
      TND_TABLE_MAX_SLOWDOWNS, 0, 2, 0, ALWAYS)                                                    \
    X(SWEEPS, sweeps, tnd_sweep_state, TND_SWEEP_FACTS, tnd_sweep_state, 0, "",                    \
      TND_TABLE_MAX_CURVES, TND_TABLE_MAX_SWEEPS, 0, TND_PART_CPU, NEVER)                          \
    X(PEAKS, peaks, tnd_peak, TND_PEAK_FACTS, tnd_peak, 0, "", TND_TABLE_MAX_PEAKS, 0, 2,          \
      TND_PART_CPU, BY_THREADS)                                                                    \
    X(PROGRAMS, programs, tnd_program_time, TND_PROGRAM_FACTS, tnd_program_time, 0, "",            \
      TND_TABLE_MAX_CURVES, TND_TABLE_MAX_PROGRAMS, 0, TND_PART_CPU, ALWAYS)                       \
    X(CONVOLUTIONS, convolutions, tnd_conv_time, TND_CONV_FACTS, tnd_conv_time, 0, "",             \
      TND_TABLE_MAX_CONVOLUTIONS, 0, 12, TND_PART_CPU | TND_PART_LIBRARY, BY_THREADS)              \
    X(LINKS, links, tnd_link, TND_LINK_FACTS, tnd_link, offsetof(struct tnd_link, curve.samples),  \
      "bytes", TND_TABLE_MAX_LINKS, 0, 5, 0, NEVER)                                                \
    X(HOSTED, hosted, tnd_hosted_time, TND_HOSTED_FACTS, tnd_hosted_time, 0, "",                   \
      TND_TABLE_MAX_HOSTED, 0, 9, TND_PART_CPU | TND_PART_LIBRARY, BY_THREADS)                     \
    X(KERNEL_TIMES, kernel_times, tnd_kernel_time, TND_KERNEL_TIME_FACTS, tnd_kernel_time, 0, "",  \
      TND_TABLE_MAX_KERNEL_TIMES, 0, 2, 0, BY_THREADS)

#endif
