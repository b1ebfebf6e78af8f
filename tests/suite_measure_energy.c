/* SPDX-License-Identifier: MIT
 * Energy counters of machines that tests make up: a powercap tree, a battery, a GPU library. */
#include <linux/capability.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure/bench.h"
#include "measure/energy.h"
#include "sched/pool.h"
#include "tests/support.h"
#include "tests/support_tune.h"

static char root[512];
static struct tnd_energy *energy;
static struct tandem_error error;
static struct tnd_energy_options options;

static void set_up(void)
{
    static int n;
    char name[32];
    snprintf(name, sizeof(name), "energy-%d", n++);
    snprintf(root, sizeof(root), "%s", tnd_test_temp(name));
    CU_ASSERT_EQUAL(mkdir(root, 0700), 0);
    memset(&error, 0, sizeof(error));
    options = (struct tnd_energy_options){root, root, ""};
    energy = NULL;
}

static void tear_down(void)
{
    tnd_energy_close(energy);
}

static void put(const char *folder, const char *file, const char *text)
{
    char path[700];
    snprintf(path, sizeof(path), "%s/%s", root, folder);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/%s", root, folder, file);
    CU_ASSERT_TRUE(tnd_test_write_file(path, text, strlen(text)));
}

static void put_zone(const char *folder, const char *name, const char *uj)
{
    put(folder, "name", name);
    put(folder, "energy_uj", uj);
    put(folder, "max_energy_range_uj", "1000000\n");
}

static void open_meter(void)
{
    check_status(tnd_energy_open(&options, &energy, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_TRUE_FATAL(energy != NULL);
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 1000000000), 0, 1e-12);
}

static void packages_and_memory_count_and_parts_of_packages_do_not(void)
{
    put_zone("intel-rapl:0", "package-0\n", "100\n");
    put_zone("intel-rapl:0:0", "core\n", "100\n");
    put_zone("intel-rapl:0:1", "dram\n", "5\n");
    put_zone("intel-rapl:1", "package-1\n", "999999\n");
    put_zone("intel-rapl:2", "psys\n", "7\n");
    put_zone("intel-rapl-mmio:0", "package-0\n", "100\n");
    put("intel-rapl", "enabled", "1\n");
    open_meter();
    check_string(tnd_energy_sources(energy), "package-0, dram, package-1");
    CU_ASSERT_EQUAL(tnd_energy_least_s(energy) < 0.1, true);
    put("intel-rapl:0", "energy_uj", "300100\n");
    put("intel-rapl:0:0", "energy_uj", "900000\n");
    put("intel-rapl:0:1", "energy_uj", "50005\n");
    put("intel-rapl:2", "energy_uj", "900000\n");
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 2000000000), 0.35, 1e-9);
}

static void a_counter_that_begins_anew_counts_on(void)
{
    put_zone("intel-rapl:0", "package-0\n", "900000\n");
    open_meter();
    put("intel-rapl:0", "energy_uj", "150000\n");
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 2000000000), 0.25, 1e-9);
    put("intel-rapl:0", "energy_uj", "150001\n");
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 3000000000), 1e-6, 1e-12);
}

static void counters_that_jump_are_not_believed(void)
{
    static const char *const wrong[] = {"-5\n",
                                        "much\n",
                                        "",
                                        "12 apples\n",
                                        "0x10\n",
                                        "99999999999999999999999\n",
                                        "999999999999999999\n"};
    put_zone("intel-rapl:0", "package-0\n", "100\n");
    open_meter();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put("intel-rapl:0", "energy_uj", wrong[i]);
        CU_ASSERT_TRUE(isnan(tnd_energy_lap(energy, (i + 2) * UINT64_C(1000000000))));
        put("intel-rapl:0", "energy_uj", "100\n");
        (void)tnd_energy_lap(energy, (i + 2) * UINT64_C(1000000000) + 1);
    }
    put("intel-rapl:0", "energy_uj", "200\n");
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, UINT64_C(60000000000)), 1e-4, 1e-9);
    /* it falls, and nobody knows where it begins anew */
    tnd_energy_close(energy);
    put("intel-rapl:0", "energy_uj", "500\n");
    put("intel-rapl:0", "max_energy_range_uj", "no idea\n");
    open_meter();
    put("intel-rapl:0", "energy_uj", "100\n");
    CU_ASSERT_TRUE(isnan(tnd_energy_lap(energy, 2000000000)));
}

static void a_machine_without_counters_says_so(void)
{
    check_status(tnd_energy_open(&options, &energy, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "this machine shows no energy counters: ", &error);
    check_contains(error.text, "has no readable energy_uj");
    options.powercap = "/nowhere/at/all";
    check_status(tnd_energy_open(&options, &energy, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "/nowhere/at/all", &error);
    options.powercap = root;
    put_zone("intel-rapl:0", "package-0\n", "ten\n");
    check_status(tnd_energy_open(&options, &energy, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "is no number from 0 on", &error);
}

/* Root reads every file by two of its capabilities. Leaves `kept` of those in effect, of the first
 * 32; returns what was. */
static uint32_t set_capabilities(uint32_t kept)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
    CU_ASSERT_EQUAL(syscall(SYS_capget, &header, data), 0);
    uint32_t before = data[0].effective;
    data[0].effective = data[0].permitted & kept;
    CU_ASSERT_EQUAL(syscall(SYS_capset, &header, data), 0);
    return before;
}

static void who_may_not_read_counters_is_told_how(void)
{
    char path[700];
    put_zone("intel-rapl:0", "package-0\n", "100\n");
    snprintf(path, sizeof(path), "%s/intel-rapl:0/energy_uj", root);
    CU_ASSERT_EQUAL(chmod(path, 0), 0);
    uint32_t before = set_capabilities(~((1u << CAP_DAC_OVERRIDE) | (1u << CAP_DAC_READ_SEARCH)));
    check_status(tnd_energy_open(&options, &energy, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "sudo chmod a+r", &error);
    (void)set_capabilities(before);
}

static void a_battery_counts_while_it_discharges(void)
{
    put("BAT0", "status", "Charging\n");
    put("BAT0", "power_now", "10000000\n");
    check_int(tnd_energy_open(&options, &energy, &error), TANDEM_E_UNSUPPORTED_MACHINE);
    put("BAT0", "status", "Discharging\n");
    open_meter();
    check_string(tnd_energy_sources(energy), "battery");
    put("BAT0", "power_now", "20000000\n");
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 3000000000), 30, 1e-6); /* 15 W, 2 s */
    put("BAT0", "status", "Full\n");
    CU_ASSERT_TRUE(isnan(tnd_energy_lap(energy, 4000000000)));
    tnd_energy_close(energy);
    /* from current and voltage; drivers differ about the sign */
    char path[700];
    snprintf(path, sizeof(path), "%s/BAT0/power_now", root);
    CU_ASSERT_EQUAL(unlink(path), 0);
    put("BAT0", "status", "Discharging\n");
    put("BAT0", "current_now", "-2000000\n");
    put("BAT0", "voltage_now", "12000000\n");
    open_meter();
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 1500000000), 12, 1e-6); /* 24 W, half a second */
}

static void gpus_count_by_their_library(void)
{
    unsigned long long mj = 5000;
    char text[32];
    const char *library = tnd_test_beside("fake-nvml.so");
    const char *path = tnd_test_temp("mj");
    options.nvml = library;
    setenv("FAKE_NVML_MJ", path, 1);
    snprintf(text, sizeof(text), "%llu", mj);
    CU_ASSERT_TRUE(tnd_test_write_file(path, text, strlen(text)));
    put_zone("intel-rapl:0", "package-0\n", "100\n");
    open_meter();
    check_string(tnd_energy_sources(energy), "package-0, NVML GPU 0, NVML GPU 2");
    put("intel-rapl:0", "energy_uj", "500100\n");
    CU_ASSERT_TRUE(tnd_test_write_file(path, "6500", 4));
    CU_ASSERT_DOUBLE_EQUAL(tnd_energy_lap(energy, 2000000000), 0.5 + 2 * 1.5, 1e-9);
    CU_ASSERT_TRUE(tnd_test_write_file(path, "1", 1));
    CU_ASSERT_TRUE(isnan(tnd_energy_lap(energy, 3000000000)));
    unsetenv("FAKE_NVML_MJ");
}

/* Two GPUs that take 10 W each, whatever runs. */
static void a_bench_keeps_the_joules_of_each_cell(void)
{
    struct tnd_registry_options registry_options = {.backends = "cpu", .n_threads_max = 8};
    struct tnd_pool_options pool_options = {.n_threads = 1, .n_cpus = 1, .spin_limit = -1};
    struct tnd_shapes shapes = {.model = "custom", .count = 1, .shape = {{256, 256}}};
    struct tnd_registry *registry = NULL;
    struct tnd_pool *pool = NULL;
    struct tnd_exec *exec = NULL;
    tandem_table *table = tune_new();
    options.nvml = tnd_test_beside("fake-nvml.so");
    open_meter();
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, registry, tnd_clock_real(), &exec, NULL));
    struct tnd_bench_options bench = {.measure = {.registry = registry,
                                                  .exec = exec,
                                                  .clock = tnd_clock_real(),
                                                  .rotate_bytes = (size_t)1 << 20,
                                                  .limit_bytes = (size_t)64 << 20,
                                                  .energy = energy},
                                      .shapes = &shapes,
                                      .n_types = 1,
                                      .types = {TANDEM_TYPE_Q4_0},
                                      .n_m = 1,
                                      .m = {4},
                                      .profile = "cpu",
                                      .n_thread_counts = 1,
                                      .thread_counts = {1}};
    check_status(tnd_bench_run(&bench, table, NULL, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_TRUE(table->n_curves >= 2); /* INIT and COMPUTE */
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_sample *sample = &table->curves[i].samples[0];
        double watts = sample->joules / (sample->median_us * 1e-6);
        CU_ASSERT_TRUE(watts > 15 && watts < 25);
    }
#ifdef TND_HAVE_CJSON
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    check_contains(tnd_text_string(&text), "\"joules\": ");
    tandem_table *again = tune_parse(text.bytes);
    CU_ASSERT_EQUAL(again->curves[0].samples[0].joules, table->curves[0].samples[0].joules);
    tandem_table_free(again);
    tnd_text_fini(&text);
#endif
    tandem_table_free(table);
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_registry_close(registry);
}

static CU_TestInfo tests[] = {
    {"packages_and_memory_count_and_parts_of_packages_do_not",
     packages_and_memory_count_and_parts_of_packages_do_not},
    {"a_counter_that_begins_anew_counts_on", a_counter_that_begins_anew_counts_on},
    {"counters_that_jump_are_not_believed", counters_that_jump_are_not_believed},
    {"a_machine_without_counters_says_so", a_machine_without_counters_says_so},
    {"who_may_not_read_counters_is_told_how", who_may_not_read_counters_is_told_how},
    {"a_battery_counts_while_it_discharges", a_battery_counts_while_it_discharges},
    {"gpus_count_by_their_library", gpus_count_by_their_library},
    {"a_bench_keeps_the_joules_of_each_cell", a_bench_keeps_the_joules_of_each_cell},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_energy[];
CU_SuiteInfo suites_measure_energy[] = {
    {"energy", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
