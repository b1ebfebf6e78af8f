/* SPDX-License-Identifier: MIT
 * Pretended NUMA nodes: the same bits wherever rows and weights lie, and what is asked of the
 * system for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/packing/packed_numa.h"
#include "backends/cpu/packing/packed_weights.h"
#include "base/cpu.h"
#include "base/numa.h"
#include "base/text.h"
#include "measure/measure_peaks.h"
#include "runtime/tnd_runtime.h"
#include "table/tnd_table.h"
#include "tandem/tandem.h"
#include "tests/support.h"
#include "tests/support_tune.h"
#include "tune/policy.h"

enum { N = 200, K = 256, THREADS = 4 };

static const enum tandem_type types[] = {
    TANDEM_TYPE_Q4_0,  TANDEM_TYPE_Q4_1, TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0,
    TANDEM_TYPE_Q2_K,  TANDEM_TYPE_Q3_K, TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K,
    TANDEM_TYPE_BCML1, TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16,
};

static char log_text[8192];

static void collect_log(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)level;
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof(log_text) - used, "%s: %s\n", room, text);
}

static int count_in_log(const char *part)
{
    int n = 0;
    for (const char *at = log_text; (at = strstr(at, part)) != NULL; at++) {
        n++;
    }
    return n;
}

static tandem_team_fn team; /* of the runtimes that are opened next */

static bool have_no_time(void *user, int count, tandem_team_body_fn body, void *data)
{
    (void)user;
    (void)count;
    (void)body;
    (void)data;
    return false;
}

/* `nodes`: of TANDEM_NUMA; NULL: as the machine is. */
static tandem_runtime *open_nodes(const char *nodes, const char *settings)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = THREADS;
    options.table_path = "";
    options.backends = "cpu";
    options.settings = settings;
    options.team = team;
    options.log = collect_log;
    options.log_level = TANDEM_LOG_INFO;
    log_text[0] = '\0';
    if (nodes != NULL) {
        setenv("TANDEM_NUMA", nodes, 1);
    }
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    unsetenv("TANDEM_NUMA");
    return runtime;
}

static bool has_two_cores(void)
{
    struct tnd_runtime_parts parts;
    tandem_runtime *runtime = open_nodes("2", NULL);
    tnd_runtime_parts(runtime, &parts);
    bool has = parts.topology->n_numa_nodes == 2;
    tandem_runtime_close(runtime);
    return has;
}

/* ---- a product and an operation behind it ---- */

struct net {
    tandem_context *context;
    tandem_tensor *w, *y;
    tandem_graph *graph;
};

static struct net net_new(enum tandem_type type, int64_t n, int64_t m)
{
    struct net net;
    struct tnd_test_rng rng = tnd_test_rng_new(5);
    float row[K];
    check_ok(tandem_context_new(NULL, &net.context, NULL));
    net.w = tandem_tensor_new(net.context, type, 2, (const int64_t[]){K, n});
    for (int64_t i = 0; i < n; i++) {
        tnd_test_fill(&rng, row, K);
        char *data = tandem_tensor_data(net.w);
        check_ok(tandem_quantize(type, row, data + (size_t)i * tandem_tensor_nb(net.w)[1], K));
    }
    tandem_tensor_set_role(net.w, TANDEM_ROLE_CONSTANT);
    tandem_tensor *x = tandem_tensor_new(net.context, TANDEM_TYPE_F32, 2, (const int64_t[]){K, m});
    tnd_test_fill(&rng, tandem_tensor_data(x), K * m);
    net.y = tandem_silu(net.context, tandem_mul_mat(net.context, net.w, x));
    net.graph = tandem_graph_new(net.context);
    tandem_graph_add(net.graph, net.y);
    check_ok(tandem_graph_finish(net.graph, NULL));
    return net;
}

static tandem_plan *plan_on(tandem_runtime *runtime, const struct net *net, const char *profile,
                            int n_threads)
{
    tandem_plan *plan = NULL;
    check_ok(tandem_runtime_force_profile(runtime, profile, NULL));
    check_ok(tandem_runtime_plan(runtime, net->graph, &plan, NULL));
    for (int node = 0; node < 2; node++) {
        struct tandem_plan_node choice = *tandem_plan_node(plan, node);
        choice.n_threads = n_threads;
        check_ok(tandem_plan_set_node(plan, node, &choice));
    }
    return plan;
}

/* By every profile that there is, one behind the other, twice each: the second run finds what the
 * first one has packed. */
static void compute_all(tandem_runtime *runtime, const struct net *net, char *out)
{
    struct tandem_profile_info profiles[16];
    int n = tandem_runtime_profiles(runtime, profiles, 16);
    size_t bytes = tandem_tensor_bytes(net->y);
    for (int i = 0; i < n && i < 16; i++) {
        tandem_plan *plan = plan_on(runtime, net, profiles[i].name, THREADS);
        for (int run = 0; run < 2; run++) {
            memset(tandem_tensor_data(net->y), 0x5A, bytes);
            check_ok(tandem_runtime_compute(runtime, net->graph, plan, NULL, NULL));
            memcpy(out + (size_t)(2 * i + run) * bytes, tandem_tensor_data(net->y), bytes);
        }
        tandem_plan_free(plan);
    }
}

static void all_types_and_profiles_have_the_same_bits_on_pretended_nodes(void)
{
    static const char *const settings[] = {"cpu:numa=first-touch", "cpu:numa=interleave",
                                           "cpu:numa=mirror", "cpu:numa=off"};
    static const int64_t tokens[] = {1, 3, 40};
    enum { RESULTS = 2 * 16 };
    tandem_runtime *runtimes[4];
    tandem_runtime *plain = open_nodes(NULL, NULL);
    for (int i = 0; i < 4; i++) {
        runtimes[i] = open_nodes("2", settings[i]);
    }
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (int i = 0; i < 3; i++) {
            struct net net = net_new(types[t], N, tokens[i]);
            size_t bytes = RESULTS * tandem_tensor_bytes(net.y);
            char *want = calloc(1, bytes);
            char *got = calloc(1, bytes);
            compute_all(plain, &net, want);
            for (int r = 0; r < 4; r++) {
                compute_all(runtimes[r], &net, got);
                check_bits(got, want, bytes, settings[r]);
                tandem_runtime_forget(runtimes[r], net.w);
            }
            tandem_runtime_forget(plain, net.w);
            tandem_context_free(net.context);
            free(want);
            free(got);
        }
    }
    for (int i = 0; i < 4; i++) {
        tandem_runtime_close(runtimes[i]);
    }
    tandem_runtime_close(plain);
}

/* Nodes of uneven machines that nobody has here, by a pool and an executor of the test's own. */
static void machines_of_up_to_five_nodes_compute_the_same_bits(void)
{
    static const struct {
        int n, cpus[5];
    } machines[] = {{2, {1, 3}}, {3, {5, 1, 2}}, {4, {1, 1, 1, 1}}, {5, {2, 1, 1, 3, 1}}};
    static struct tnd_topology topology;
    struct tnd_runtime_parts parts;
    tandem_runtime *plain = open_nodes("1", NULL);
    tnd_runtime_parts(plain, &parts);
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct tnd_pool *pool = NULL;
        struct tnd_exec *exec = NULL;
        memset(&topology, 0, sizeof(topology));
        topology.n_numa_nodes = machines[i].n;
        for (int node = 0; node < machines[i].n; node++) {
            for (int cpu = 0; cpu < machines[i].cpus[node]; cpu++) {
                topology.cpu_ids[topology.n_cpus] = topology.n_cpus;
                topology.node[topology.n_cpus++] = (uint8_t)node;
            }
        }
        const struct tnd_pool_options options = {
            .n_threads = 8, .n_cpus = 2, .spin_limit = -1, .topology = &topology};
        check_ok(tnd_pool_new(&options, &pool, NULL));
        check_ok(tnd_exec_new(pool, parts.registry, parts.clock, &exec, NULL));
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            struct net net = net_new(types[t], t % 2 == 0 ? N : 777, t % 3 == 0 ? 1 : 20);
            size_t bytes = tandem_tensor_bytes(net.y);
            char *want = malloc(bytes);
            tandem_plan *plan = plan_on(plain, &net, "cpu-packed", 8);
            check_ok(tandem_runtime_compute(plain, net.graph, plan, NULL, NULL));
            memcpy(want, tandem_tensor_data(net.y), bytes);
            for (int run = 0; run < 3; run++) {
                const struct tnd_exec_run_options how = {.times = NULL};
                memset(tandem_tensor_data(net.y), 0x5A, bytes);
                check_ok(tnd_exec_run(exec, net.graph, plan, &how, NULL));
                check_bits(tandem_tensor_data(net.y), want, bytes, tandem_type_name(types[t]));
            }
            free(want);
            tandem_plan_free(plan);
            tnd_exec_forget(exec, net.w);
            tandem_runtime_forget(plain, net.w);
            tandem_context_free(net.context);
        }
        tnd_exec_free(exec);
        tnd_pool_free(pool);
    }
    tandem_runtime_close(plain);
}

/* ---- settings ---- */

static const struct tnd_chunk_nodes *nodes_of(tandem_runtime *runtime)
{
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(runtime, &parts);
    return tnd_pool_nodes(parts.pool);
}

static void the_setting_decides_whether_and_how_nodes_count(void)
{
    struct tandem_error error;
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.settings = "cpu:numa=somewhere";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_E_ARGUMENT, "mirror",
                 &error);
    if (!has_two_cores()) {
        return;
    }
    runtime = open_nodes("2", NULL);
    CU_ASSERT_PTR_NOT_NULL(nodes_of(runtime));
    check_int(count_in_log("2 NUMA nodes, packed weights: first-touch"), 1);
    check_ok(tandem_runtime_describe(runtime, &info));
    check_contains(info.topology, "2 NUMA nodes");
    tandem_runtime_close(runtime);
    runtime = open_nodes("2", "cpu:numa=off");
    CU_ASSERT_PTR_NULL(nodes_of(runtime));
    tandem_runtime_close(runtime);
    runtime = open_nodes("1", NULL);
    CU_ASSERT_PTR_NULL(nodes_of(runtime));
    check_int(count_in_log("NUMA"), 0);
    tandem_runtime_close(runtime);
}

static void add_rate(tandem_table *table, const char *unit, double rate)
{
    struct tnd_peak peak = {"", 2, rate, 5, 100};
    snprintf(peak.unit, sizeof(peak.unit), "%s", unit);
    check_ok(tnd_table_add_peak(table, &peak));
}

static void without_a_setting_the_policy_is_what_the_table_has_measured(void)
{
    if (!has_two_cores()) {
        return;
    }
    tandem_runtime *runtime = open_nodes("2", NULL);
    tandem_table *table = tune_new();
    add_rate(table, TND_NUMA_UNIT_ALL_OWN, 80);
    add_rate(table, TND_NUMA_UNIT_INTERLEAVE, 87);
    log_text[0] = '\0';
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_int(count_in_log("packed weights: first-touch (as measured)"), 1);
    add_rate(table, TND_NUMA_UNIT_INTERLEAVE, 100);
    check_ok(tandem_runtime_set_table(runtime, table, NULL));
    check_int(count_in_log("packed weights: interleave (as measured)"), 1);
    tandem_table_free(table);
    tandem_runtime_close(runtime);
}

static const char *const units[] = {TND_NUMA_UNIT_OWN, TND_NUMA_UNIT_OTHER, TND_NUMA_UNIT_ALL_OWN,
                                    TND_NUMA_UNIT_INTERLEAVE};

static void reading_is_measured_by_node_only_where_there_are_several(void)
{
    static const int counts[] = {2};
    /* time to fill twice the last cache, which is 300 MiB on some servers */
    const double budget_s = 0.3 + 2.1 * (double)tnd_cpu_caches().l3_bytes / TND_PEAK_BYTES_A_SECOND;
    for (int nodes = 1; nodes <= 2 && has_two_cores(); nodes++) {
        struct tnd_runtime_parts parts;
        tandem_runtime *runtime = open_nodes(nodes == 1 ? NULL : "2", NULL);
        tandem_table *table = tune_new();
        tnd_runtime_parts(runtime, &parts);
        check_ok(tnd_measure_peaks(parts.pool, parts.clock, counts, 1, budget_s, 5, table,
                                   NULL));
#ifdef TND_HAVE_CJSON
        if (nodes_of(runtime) != NULL || nodes == 2) {
            struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
            check_contains(tnd_text_string(&text), "numa-other");
            tandem_table_free(table);
            table = tune_parse(tnd_text_string(&text)); /* a table keeps them */
            tnd_text_fini(&text);
        }
#endif
        for (int i = 0; i < 4; i++) {
            bool is_known = tnd_table_peak(table, units[i], THREADS) > 0;
            /* the last one needs a system that allows mbind */
            CU_ASSERT(is_known == (nodes_of(runtime) != NULL) || i == 3);
        }
        if (nodes == 2) {
            check_int(table->peaks[table->n_peaks - 1].threads, 2);
        }
        tandem_table_free(table);
        tandem_runtime_close(runtime);
    }
}

/* ---- what is told ---- */

static int collect_text(void *user, const char *bytes, size_t n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void plan_explanation_and_trace_tell_the_rows_of_each_node(void)
{
    static const char wanted[] = "cpu node 0 rows 0-127, cpu node 1 rows 128-199";
    if (!has_two_cores()) {
        return;
    }
    for (int nodes = 1; nodes <= 2; nodes++) {
        struct net net = net_new(TANDEM_TYPE_Q4_0, N, 3);
        struct tnd_text plan_text = TND_TEXT_INIT;
        struct tnd_text explanation = TND_TEXT_INIT;
        char path[1024];
        snprintf(path, sizeof(path), "%s", tnd_test_temp("numa-trace"));
        setenv("TANDEM_TRACE", path, 1);
        tandem_runtime *runtime = open_nodes(nodes == 1 ? "1" : "2", NULL);
        unsetenv("TANDEM_TRACE");
        tandem_plan *plan = plan_on(runtime, &net, NULL, 2);
        check_ok(tandem_runtime_compute(runtime, net.graph, plan, NULL, NULL));
        check_ok(tandem_runtime_print_plan(runtime, net.graph, plan, collect_text, &plan_text));
        check_ok(tandem_runtime_explain(runtime, net.graph, plan, collect_text, &explanation));
        tandem_runtime_close(runtime);
        char *trace = tnd_test_read_file(path, NULL);
        bool is_told = nodes == 2;
        CU_ASSERT((strstr(tnd_text_string(&plan_text), wanted) != NULL) == is_told);
        CU_ASSERT((strstr(tnd_text_string(&explanation), wanted) != NULL) == is_told);
        CU_ASSERT((strstr(trace, "\"cpu_node_rows\":[0,128,200]") != NULL) == is_told);
        free(trace);
        tnd_text_fini(&plan_text);
        tnd_text_fini(&explanation);
        tandem_plan_free(plan);
        tandem_context_free(net.context);
    }
}

/* ---- memory ---- */

static size_t prepared_bytes(tandem_runtime *runtime)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    check_ok(tandem_runtime_describe(runtime, &info));
    return (size_t)info.prepared_bytes;
}

static size_t bytes_with(const char *settings)
{
    struct net net = net_new(TANDEM_TYPE_Q4_0, N, 1);
    tandem_runtime *runtime = open_nodes("2", settings);
    check_ok(tandem_runtime_force_profile(runtime, "cpu-packed", NULL));
    check_ok(tandem_runtime_compute(runtime, net.graph, NULL, NULL, NULL));
    size_t bytes = prepared_bytes(runtime);
    tandem_runtime_close(runtime);
    tandem_context_free(net.context);
    return bytes;
}

static void mirrors_take_memory_once_a_node_where_there_is_enough(void)
{
    size_t one = bytes_with("cpu:numa=first-touch");
    if (one == 0 || !has_two_cores()) {
        return; /* no packed weights with this instruction set */
    }
    size_t two = bytes_with("cpu:numa=mirror");
    CU_ASSERT(two >= 2 * one && two % (2 << 20) == 0);
    check_int(bytes_with("cpu:numa=mirror,packed=1"), one); /* MiB: no room for two */
    team = have_no_time; /* threads of the application are on no node */
    check_int(bytes_with("cpu:numa=mirror"), one);
    team = NULL;
}

/* Mode of the policy of a page: 3 is MPOL_INTERLEAVE; -1: the system does not tell. */
static int mode_of(const void *page)
{
    enum { ASK_ADDRESS = 1 << 1 };
    int mode = -1;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0UL, page, ASK_ADDRESS) == 0 ? mode : -1;
}

static void pages_are_interleaved_over_the_nodes_that_are_asked_for(void)
{
    enum { BYTES = 1 << 20, INTERLEAVED = 3 };
    const int first[] = {0};
    char *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(pages != MAP_FAILED);
    if (mode_of(pages) < 0) {
        tnd_skip("the system tells no memory policy");
    } else if (tnd_numa_interleave(pages, BYTES, first, 1) == 0) {
        check_int(mode_of(pages), INTERLEAVED);
        check_int(mode_of(pages + BYTES - 1), INTERLEAVED);
        pages[0] = 1;
        check_int(tnd_numa_node_of(pages), 0);
    }
    CU_ASSERT(tnd_numa_interleave(pages, BYTES, (const int[]){-1}, 1) != 0);
    CU_ASSERT(tnd_numa_interleave(pages, BYTES, (const int[]){5000}, 1) != 0);
    munmap(pages, BYTES);
}

/* The policy of a weight that a runtime packs; the result is right. */
static int packed_mode(tandem_backend *cpu)
{
    struct net net = net_new(TANDEM_TYPE_Q4_0, N, 1);
    void *handle = NULL;
    check_ok(cpu->api->prepare(cpu, net.w, &handle, NULL));
    int mode = mode_of(((struct tnd_packed_weight *)handle)->panels);
    cpu->api->forget(cpu, handle);
    tandem_context_free(net.context);
    return mode;
}

static void a_refused_policy_is_told_once_and_nothing_else_happens(void)
{
    struct tnd_runtime_parts parts;
    if (bytes_with(NULL) == 0 || !has_two_cores()) {
        return;
    }
    tandem_runtime *runtime = open_nodes("2", "cpu:numa=interleave");
    tnd_runtime_parts(runtime, &parts);
    tandem_backend *cpu = tnd_registry_backend(parts.registry, TANDEM_BACKEND_CPU);
    int mode = packed_mode(cpu);
    CU_ASSERT(mode == 3 || count_in_log("refuses mbind") == 1);
    /* Nodes that no machine has: the system refuses them everywhere. */
    const struct tnd_packed_numa numa = {
        .policy = TND_NUMA_INTERLEAVE, .n_nodes = 2, .node_ids = {1021, 1022}};
    tnd_cpu_numa_set(cpu, &numa);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT(packed_mode(cpu) != 3);
    }
    check_int(count_in_log("refuses mbind"), 1);
    check_int(count_in_log("lie where they are touched first"), 1);
    tandem_runtime_close(runtime);
}

static CU_TestInfo tests[] = {
    {"all_types_and_profiles_have_the_same_bits_on_pretended_nodes",
     all_types_and_profiles_have_the_same_bits_on_pretended_nodes},
    {"machines_of_up_to_five_nodes_compute_the_same_bits",
     machines_of_up_to_five_nodes_compute_the_same_bits},
    {"the_setting_decides_whether_and_how_nodes_count",
     the_setting_decides_whether_and_how_nodes_count},
    {"without_a_setting_the_policy_is_what_the_table_has_measured",
     without_a_setting_the_policy_is_what_the_table_has_measured},
    {"reading_is_measured_by_node_only_where_there_are_several",
     reading_is_measured_by_node_only_where_there_are_several},
    {"plan_explanation_and_trace_tell_the_rows_of_each_node",
     plan_explanation_and_trace_tell_the_rows_of_each_node},
    {"mirrors_take_memory_once_a_node_where_there_is_enough",
     mirrors_take_memory_once_a_node_where_there_is_enough},
    {"pages_are_interleaved_over_the_nodes_that_are_asked_for",
     pages_are_interleaved_over_the_nodes_that_are_asked_for},
    {"a_refused_policy_is_told_once_and_nothing_else_happens",
     a_refused_policy_is_told_once_and_nothing_else_happens},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_numa[];
CU_SuiteInfo suites_runtime_numa[] = {
    {"numa", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
