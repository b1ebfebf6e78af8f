/* SPDX-License-Identifier: MIT
 * Several NUMA nodes, made up: which node each CPU and each worker has, and how rows are shared out
 * among them. */
#include <sched.h>
#include <string.h>

#include "backends/chunks.h"
#include "sched/pool.h"
#include "sched/topology.h"
#include "sched/topology_internal.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { WORKERS = 12, MOST_ITEMS = 3000 };

static struct tnd_cpu_rows rows;
static struct tnd_topology topology;
static struct tnd_chunk_cursor cursors[WORKERS];

/* ---- machines ---- */

static const struct machine {
    int cpus[5]; /* of each node */
    int n;
} machines[] = {{{4, 4}, 2},    {{6, 2}, 2},       {{1, 3}, 2},         {{2, 2, 2}, 3},
                {{5, 1, 3}, 3}, {{1, 1, 1, 1}, 4}, {{4, 2, 2, 8, 1}, 5}};
enum { N_MACHINES = sizeof(machines) / sizeof(machines[0]) };

/* Node i has the number 10 i + 1. */
static const struct tnd_topology *make_machine(const struct machine *machine)
{
    memset(&rows, 0, sizeof(rows));
    for (int node = 0; node < machine->n; node++) {
        for (int i = 0; i < machine->cpus[node]; i++) {
            rows.row[rows.n] = (struct tnd_cpu_row){.id = rows.n,
                                                    .core = rows.n,
                                                    .package = node,
                                                    .numa_node = 10 * node + 1,
                                                    .is_allowed = true};
            rows.n++;
        }
    }
    tnd_topology_fill(&rows, 0, &topology);
    return &topology;
}

static struct tnd_pool *make_pool(const struct tnd_topology *machine, int n_threads)
{
    const struct tnd_pool_options options = {
        .n_threads = n_threads, .n_cpus = 2, .spin_limit = -1, .topology = machine};
    struct tnd_pool *pool = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&options, &pool, NULL), TANDEM_OK);
    return pool;
}

static void each_cpu_has_a_node_in_the_order_of_the_systems_numbers(void)
{
    make_machine(&machines[4]);
    check_int(topology.n_numa_nodes, 3);
    for (int i = 0; i < topology.n_cpus; i++) {
        int id = topology.cpu_ids[i];
        check_int(topology.node[i], id < 5 ? 0 : id < 6 ? 1 : 2);
    }
    check_int(topology.node_ids[0], 1);
    check_int(topology.node_ids[2], 21);
    rows.row[5].is_allowed = false; /* the only CPU of the node */
    for (int i = 0; i < rows.n; i++) {
        rows.row[i].is_allowed = rows.row[i].numa_node != 11;
    }
    tnd_topology_fill(&rows, 0, &topology);
    check_int(topology.n_numa_nodes, 2);
    check_int(topology.node_ids[1], 21);
}

static void hwloc_tells_the_nodes_of_a_synthetic_machine(void)
{
    if (!tnd_topology_rows_from_hwloc(NULL, "pack:2 [numa] core:4 pu:2", &rows)) {
        return; /* built without it */
    }
    tnd_topology_fill(&rows, 0, &topology);
    check_int(topology.n_cpus, 16);
    for (int i = 0; i < topology.n_cpus; i++) {
        check_int(topology.node[i], topology.cpu_ids[i] / 8);
    }
}

static void pretended_nodes_share_the_cores_out_and_leave_the_fingerprint(void)
{
    make_machine(&(struct machine){{6}, 1});
    uint64_t hash = topology.hash;
    tnd_topology_pretend(&topology, 3);
    check_int(topology.n_numa_nodes, 3);
    for (int i = 0; i < 6; i++) {
        check_int(topology.node[i], i / 2);
    }
    check_int(topology.node_ids[2], 1); /* where the memory really is */
    CU_ASSERT(topology.hash == hash);
    check_contains(topology.text, "3 NUMA nodes");
    tnd_topology_pretend(&topology, 100);
    check_int(topology.n_numa_nodes, 6);
}

/* ---- workers ---- */

static void workers_are_spread_in_proportion_to_the_cpus_of_each_node(void)
{
    for (int m = 0; m < N_MACHINES; m++) {
        struct tnd_pool *pool = make_pool(make_machine(&machines[m]), WORKERS);
        const struct tnd_chunk_nodes *nodes = tnd_pool_nodes(pool);
        CU_ASSERT_PTR_NOT_NULL_FATAL(nodes);
        int n_placed[5] = {0};
        for (int i = 0; i < WORKERS; i++) {
            n_placed[nodes->node[i]]++;
            for (int node = 0; node < machines[m].n; node++) {
                double wanted = (double)(i + 1) * machines[m].cpus[node] / topology.n_cpus;
                CU_ASSERT(n_placed[node] < wanted + 1 && n_placed[node] > wanted - 1.5);
            }
        }
        tnd_pool_free(pool);
    }
}

static void one_node_and_no_topology_divide_nothing(void)
{
    struct tnd_pool *pool = make_pool(make_machine(&(struct machine){{8}, 1}), 4);
    CU_ASSERT_PTR_NULL(tnd_pool_nodes(pool));
    tnd_pool_free(pool);
    pool = make_pool(NULL, 4);
    CU_ASSERT_PTR_NULL(tnd_pool_nodes(pool));
    tnd_pool_free(pool);
}

static void workers_bound_to_cpus_have_the_nodes_of_those(void)
{
    struct tnd_pool *pool = make_pool(make_machine(&machines[0]), 4);
    const struct tnd_chunk_nodes *nodes = tnd_pool_nodes(pool);
    (void)tnd_pool_set_cpus(pool, (const int[]){7, 0, 1}, 3); /* some of them may not be here */
    check_int(nodes->node[0], 1);
    check_int(nodes->node[1], 0);
    check_int(nodes->node[2], 0);
    check_int(nodes->node[3], 1);
    check_int(tnd_chunk_node_row(nodes, 1, 3 * 640), 2 * 640);
    check_ok(tnd_pool_set_cpus(pool, NULL, 0));
    check_int(tnd_chunk_node_row(nodes, 1, 4 * 640), 2 * 640);
    check_ok(tnd_pool_resize(pool, 9));
    check_int(nodes->node[8], 0);
    tnd_pool_free(pool);
}

static cpu_set_t seen[WORKERS];

static void look_at_mask(void *user, int index, int count)
{
    (void)user;
    (void)count;
    (void)sched_getaffinity(0, sizeof(seen[0]), &seen[index]);
}

static void workers_may_run_on_the_cpus_of_their_node_alone(void)
{
    check_ok(tnd_topology_read(&topology, NULL));
    if (topology.n_cores < 2) {
        return;
    }
    cpu_set_t before;
    (void)sched_getaffinity(0, sizeof(before), &before);
    tnd_topology_pretend(&topology, 2);
    struct tnd_pool *pool = make_pool(&topology, 4);
    check_ok(tnd_pool_run(pool, 4, look_at_mask, NULL));
    for (int w = 1; w < 4; w++) {
        for (int i = 0; i < topology.n_cpus; i++) {
            bool is_own = topology.node[i] == tnd_pool_nodes(pool)->node[w];
            CU_ASSERT(CPU_ISSET((size_t)topology.cpu_ids[i], &seen[w]) == is_own);
        }
    }
    CU_ASSERT(CPU_EQUAL(&seen[0], &before)); /* the caller's thread is its own business */
    tnd_pool_free(pool);
}

/* ---- rows ---- */

/* Workers of random speeds take the chunks of one loop; returns items that were not taken once. */
static int play(struct tnd_test_rng *rng, const struct tnd_chunk_share *share, int count,
                uint64_t loop, int64_t n_items)
{
    static uint8_t times[MOST_ITEMS];
    int64_t busy_until[WORKERS] = {0};
    int cost[WORKERS];
    int n_home = 0;
    int n_wrong = 0;
    int64_t chunk = tnd_test_rng_int(rng, 0, 30);
    memset(times, 0, sizeof(times));
    for (int w = 0; w < count; w++) {
        cost[w] = (int)tnd_test_rng_int(rng, 1, 30);
    }
    while (n_home < count) {
        int next = 0;
        for (int w = 1; w < count; w++) {
            next = busy_until[w] < busy_until[next] ? w : next;
        }
        int64_t begin = 0;
        int64_t end = 0;
        if (!tnd_chunk_next_of_node(cursors, share, next, loop, n_items, chunk, &begin, &end)) {
            busy_until[next] = INT64_MAX;
            n_home++;
            continue;
        }
        busy_until[next] += (end - begin) * cost[next];
        n_wrong += begin < 0 || begin >= end || end > n_items;
        for (int64_t i = begin; i < end && i < n_items; i++) {
            times[i]++;
        }
    }
    for (int64_t i = 0; i < n_items; i++) {
        n_wrong += times[i] != 1;
    }
    return n_wrong;
}

static void every_item_is_handed_out_once_on_every_machine(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    uint64_t loop = 0;
    int n_wrong = 0;
    memset(cursors, 0, sizeof(cursors));
    for (int m = 0; m < N_MACHINES; m++) {
        struct tnd_pool *pool = make_pool(make_machine(&machines[m]), WORKERS);
        for (int round = 0; round < 400; round++) {
            int count = (int)tnd_test_rng_int(&rng, 1, WORKERS);
            struct tnd_chunk_share share = {.rows = 0};
            tnd_chunk_share_begin(&share, tnd_pool_nodes(pool), count);
            if (share.nodes == NULL) {
                continue; /* some node has no worker */
            }
            if (round % 2 == 0) {
                share.rows = tnd_test_rng_int(&rng, 1, 5000);
                share.row_begin = round % 4 == 0 ? 0 : tnd_test_rng_int(&rng, 0, share.rows);
                share.row_end = round % 4 == 0
                                    ? share.rows
                                    : tnd_test_rng_int(&rng, share.row_begin, share.rows);
            }
            int64_t n_items = tnd_test_rng_int(&rng, 0, round % 3 == 0 ? 20 : MOST_ITEMS);
            n_wrong += play(&rng, &share, count, ++loop, n_items);
        }
        tnd_pool_free(pool);
    }
    check_int(n_wrong, 0);
    CU_ASSERT(loop > 1000);
}

/* What the workers of one node take while those of the others do nothing yet: its own range. */
static void take_range(const struct tnd_chunk_share *share, int node, int64_t n_items,
                       int64_t *out_begin, int64_t *out_end)
{
    const struct tnd_chunk_nodes *nodes = share->nodes;
    int64_t begin;
    int64_t end;
    int64_t n_taken = 0;
    memset(cursors, 0, sizeof(cursors));
    *out_begin = INT64_MAX;
    *out_end = 0;
    int64_t first = tnd_chunk_node_row(nodes, node, share->rows) * n_items / share->rows;
    int64_t last = tnd_chunk_node_row(nodes, node + 1, share->rows) * n_items / share->rows;
    while (n_taken < last - first &&
           tnd_chunk_next_of_node(cursors, share, nodes->member[nodes->first[node]], 1, n_items, 4,
                                  &begin, &end)) {
        *out_begin = begin < *out_begin ? begin : *out_begin;
        *out_end = end > *out_end ? end : *out_end;
        n_taken += end - begin;
    }
}

static void a_node_has_the_same_rows_whatever_tiles_tokens_and_threads(void)
{
    static const int64_t sizes[] = {4096, 11008, 1000, 32000, 640};
    static const int tiles[] = {4, 16, 32, 64};
    for (int m = 0; m < N_MACHINES; m++) {
        struct tnd_pool *pool = make_pool(make_machine(&machines[m]), WORKERS);
        for (size_t i = 0; i < 5 * 4 * 3; i++) {
            struct tnd_chunk_share share = {.rows = sizes[i / 12], .row_end = sizes[i / 12]};
            int tile = tiles[i / 3 % 4];
            tnd_chunk_share_begin(&share, tnd_pool_nodes(pool), i % 3 == 0 ? WORKERS : 9);
            if (share.nodes == NULL) {
                continue;
            }
            for (int node = 0; node < machines[m].n; node++) {
                int64_t begin;
                int64_t end;
                int64_t first = tnd_chunk_node_row(share.nodes, node, share.rows);
                int64_t last = tnd_chunk_node_row(share.nodes, node + 1, share.rows);
                take_range(&share, node, (share.rows + tile - 1) / tile, &begin, &end);
                if (first < last) {
                    check_int(begin * tile, first);
                    check_int(end * tile < share.rows ? end * tile : share.rows, last);
                }
            }
        }
        tnd_pool_free(pool);
    }
}

static void a_part_of_the_rows_is_divided_where_the_whole_is(void)
{
    struct tnd_pool *pool = make_pool(make_machine(&machines[0]), 4);
    struct tnd_chunk_share share = {.rows = 4096, .row_begin = 1024, .row_end = 4096};
    int64_t begin;
    int64_t end;
    memset(cursors, 0, sizeof(cursors));
    tnd_chunk_share_begin(&share, tnd_pool_nodes(pool), 4);
    /* items of 16 rows: rows 1024 .. 2047 are node 0's, 2048 .. 4095 are node 1's */
    CU_ASSERT(tnd_chunk_next_of_node(cursors, &share, 0, 1, 192, 8, &begin, &end));
    check_int(begin, 0);
    CU_ASSERT(tnd_chunk_next_of_node(cursors, &share, 1, 1, 192, 8, &begin, &end));
    check_int(begin, 64);
    tnd_pool_free(pool);
}

static void a_node_helps_another_one_only_when_its_own_rows_are_done(void)
{
    struct tnd_pool *pool = make_pool(make_machine(&machines[0]), 4);
    const struct tnd_chunk_nodes *nodes = tnd_pool_nodes(pool);
    struct tnd_chunk_share share = {.rows = 0};
    int64_t begin;
    int64_t end;
    int64_t own = 0;
    int64_t others = 0;
    memset(cursors, 0, sizeof(cursors));
    tnd_chunk_share_begin(&share, nodes, 4);
    /* Node 1's workers are late: worker 0 does everything, its node's half first. */
    while (tnd_chunk_next_of_node(cursors, &share, 0, 1, 200, 8, &begin, &end)) {
        if (begin < 100) {
            CU_ASSERT(others == 0 && end <= 100);
            own += end - begin;
        } else {
            others += end - begin;
        }
    }
    check_int(own, 100);
    check_int(others, 100);
    /* Fewer workers than nodes: nothing is divided, or a node would have nobody to begin it. */
    tnd_chunk_share_begin(&share, nodes, 1);
    CU_ASSERT_PTR_NULL(share.nodes);
    tnd_pool_free(pool);
}

static CU_TestInfo tests[] = {
    {"each_cpu_has_a_node_in_the_order_of_the_systems_numbers",
     each_cpu_has_a_node_in_the_order_of_the_systems_numbers},
    {"hwloc_tells_the_nodes_of_a_synthetic_machine", hwloc_tells_the_nodes_of_a_synthetic_machine},
    {"pretended_nodes_share_the_cores_out_and_leave_the_fingerprint",
     pretended_nodes_share_the_cores_out_and_leave_the_fingerprint},
    {"workers_are_spread_in_proportion_to_the_cpus_of_each_node",
     workers_are_spread_in_proportion_to_the_cpus_of_each_node},
    {"one_node_and_no_topology_divide_nothing", one_node_and_no_topology_divide_nothing},
    {"workers_bound_to_cpus_have_the_nodes_of_those",
     workers_bound_to_cpus_have_the_nodes_of_those},
    {"workers_may_run_on_the_cpus_of_their_node_alone",
     workers_may_run_on_the_cpus_of_their_node_alone},
    {"every_item_is_handed_out_once_on_every_machine",
     every_item_is_handed_out_once_on_every_machine},
    {"a_node_has_the_same_rows_whatever_tiles_tokens_and_threads",
     a_node_has_the_same_rows_whatever_tiles_tokens_and_threads},
    {"a_part_of_the_rows_is_divided_where_the_whole_is",
     a_part_of_the_rows_is_divided_where_the_whole_is},
    {"a_node_helps_another_one_only_when_its_own_rows_are_done",
     a_node_helps_another_one_only_when_its_own_rows_are_done},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_numa[] = {
    {"numa", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
