/* SPDX-License-Identifier: MIT
 * The parts of mulmat-tune test, each in a file of its own. */
#ifndef MULMAT_TUNE_TEST_PARTS_H
#define MULMAT_TUNE_TEST_PARTS_H

#include "tools/args.h"
#include "tools/mulmat-tune/net_convs.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/report/oracle.h"

/* The command line. */
struct test_request {
    bool oracle;
    bool interpolation;
    bool extrapolation;
    bool json;
    const char *shapes;
    struct net_option net;
    struct args_ints m;
    const char *types;
    int64_t threads;
    const char *table;
    const char *profile;
    const char *device;
    int64_t rounds;
    double cell_s;
    double budget_s;
    int64_t seed;
    double max_median, max_p95, max_worst; /* percent; 0: no bound */
    double max_far, min_within, max_within;
    uint64_t begin_ns;
};

/** Tests whether the plan's choices are near the best ones (test_oracle.c). Returns the exit
 * status. */
int test_oracle(const struct test_request *request, tandem_runtime *runtime);
/** Like test_oracle, for the convolutions of a net (test_oracle_net.c). */
int test_oracle_net(const struct test_request *request, tandem_runtime *runtime);
/** Exit status for a regret; prints to stderr which bound it exceeds (test_oracle.c). */
int test_judge_regret(const struct test_request *request, const struct tnd_regret *regret);
/** Tests how far one table's predictions are from another one's times (test_interpolation.c). */
int test_interpolation(const struct test_request *request, const char *path, const char *full_path);
/** Tests predictions outside of what tables measured (test_extrapolation.c); uses this machine's
 * own table when no path is given. */
int test_extrapolation(const struct test_request *request, const char *const *paths, int n_paths);

#endif
