/* SPDX-License-Identifier: MIT
 * What the sched suites share: their lists, and two backends of the test's own. `fakecpu`
 * computes in chunks, with workspace and scratch; `fakedev` is an asynchronous device that reads
 * its operands and writes its result as late as it may, at sync, so that a missing or late sync
 * gives wrong numbers. */
#ifndef TND_TESTS_SUITE_SCHED_H
#define TND_TESTS_SUITE_SCHED_H

#include <CUnit/CUnit.h>

#include "backends/registry.h"
#include "base/clock.h"
#include "sched/exec.h"

extern CU_SuiteInfo suites_sched_pool[];
extern CU_SuiteInfo suites_sched_step[];
extern CU_SuiteInfo suites_sched_plan_text[];
extern CU_SuiteInfo suites_sched_exec[];
extern CU_SuiteInfo suites_sched_split[];
extern CU_SuiteInfo suites_sched_topology[];
extern CU_SuiteInfo suites_sched_devices[];
extern CU_SuiteInfo suites_sched_random[];
extern CU_SuiteInfo suites_sched_wave[];
extern CU_SuiteInfo suites_sched_waiting[];
extern CU_SuiteInfo suites_sched_fuse[];
extern CU_SuiteInfo suites_sched_chunks[];
extern CU_SuiteInfo suites_sched_numa[];
extern CU_SuiteInfo suites_sched_residency[];
extern CU_SuiteInfo suites_sched_stream[];

enum { FAKE_MAX_EVENTS = 256, FAKE_MAX_TICKETS = 1024 };

struct fake_event {
    char what; /* 'r' run by worker 0, 's' submit, 'y' sync */
    const tandem_tensor *node;
};

struct fake_backend {
    tandem_backend backend;
    /* what to do wrong: fails when task and worker are those (task 0: never) */
    enum tandem_task fail_task;
    int fail_worker;
    enum tandem_status fail_status; /* of run and submit */
    enum tandem_status sync_status; /* of every sync */
    /* virtual time */
    struct tnd_clock_virtual *clock; /* NULL: none */
    uint64_t cost_ns;                /* of every task */
    bool is_off_cpu;                 /* no thread runs meanwhile */
    uint64_t free_ns;                /* when the device is free */
    /* what happened, as seen by the calling thread */
    struct fake_event *events; /* FAKE_MAX_EVENTS, or NULL */
    int n_events;
    /* tickets in flight */
    struct tandem_work work[FAKE_MAX_TICKETS];
    uint64_t done_ns[FAKE_MAX_TICKETS];
    bool is_in_flight[FAKE_MAX_TICKETS];
    uint64_t n_tickets;
    int n_in_flight;
};

struct fakes {
    struct tnd_registry *registry;
    struct tnd_pool *pool;
    struct tnd_exec *exec;
    struct fake_backend *cpu;
    struct fake_backend *device;
    int cpu_slot;
    int device_slot;
};

/** Opens all of it; `clock` NULL: the real one. Ends the test when that fails. */
void fakes_open(struct fakes *fakes, int n_threads, int64_t spin_limit,
                struct tnd_clock_virtual *clock);
void fakes_close(struct fakes *fakes);

/** A plan in which every node runs whole on the slot, by this many threads. */
tandem_plan *fake_plan(const tandem_graph *graph, int slot, int n_threads);
/** Changes one node. */
void fake_plan_node(tandem_plan *plan, int i, int slot, int n_threads);
/** Changes a mul_mat to two stages: DEQUANTIZE_W on `init_slot`, MUL_MAT_F32 on `compute_slot`. */
void fake_plan_product(tandem_plan *plan, int i, int init_slot, int compute_slot, int n_threads);

#endif
