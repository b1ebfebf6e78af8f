/* SPDX-License-Identifier: MIT
 * Main of the sched suites; each tests/suite_sched_*.c brings one CU_SuiteInfo array. */
#include "tests/suite_sched.h"

#include "tests/support.h"

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_sched_pool, suites_sched_step, suites_sched_exec,
                          suites_sched_split, suites_sched_topology, suites_sched_devices,
                          suites_sched_plan_text, suites_sched_random, suites_sched_wave,
                          suites_sched_waiting, suites_sched_fuse, suites_sched_chunks,
                          suites_sched_stream, suites_sched_numa, suites_sched_residency, NULL);
}
