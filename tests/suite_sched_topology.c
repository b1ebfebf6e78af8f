/* SPDX-License-Identifier: MIT
 * Topology of made-up machines and quotas of made-up control groups. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup.h"
#include "sched/topology.h"
#include "sched/topology_internal.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

/* ---- made-up file systems ---- */

/* Writes a file below the folder `tree` of this test's own, with all folders above it. */
static void put(const char *tree, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s", tnd_test_temp(tree));
    mkdir(path, 0700);
    size_t used = strlen(path);
    snprintf(path + used, sizeof(path) - used, "/%s", name);
    for (char *at = path + used + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    CU_ASSERT_TRUE(tnd_test_write_file(path, text, strlen(text)));
}

static double quota_of(const char *tree)
{
    char root[1024];
    char self[1024 + 8];
    snprintf(root, sizeof(root), "%s", tnd_test_temp(tree));
    snprintf(self, sizeof(self), "%s/self", root);
    return tnd_cgroup_cpus(root, self);
}

/* ---- control groups ---- */

static void version_2_quotas_count_at_every_level(void)
{
    put("v2", "self", "0::/a/b\n");
    put("v2", "a/b/cpu.max", "300000 100000\n");
    CU_ASSERT_DOUBLE_EQUAL(quota_of("v2"), 3.0, 1e-12);
    put("v2", "a/cpu.max", "150000 100000\n");
    CU_ASSERT_DOUBLE_EQUAL(quota_of("v2"), 1.5, 1e-12);
    put("v2", "cpu.max", "50000 100000\n"); /* what a container sees as its root */
    CU_ASSERT_DOUBLE_EQUAL(quota_of("v2"), 0.5, 1e-12);
}

static void no_quota_is_zero(void)
{
    put("max", "self", "0::/a\n");
    CU_ASSERT_EQUAL(quota_of("max"), 0);
    put("max", "a/cpu.max", "max 100000\n");
    CU_ASSERT_EQUAL(quota_of("max"), 0);
    CU_ASSERT_EQUAL(tnd_cgroup_cpus("/nowhere", "/nowhere/self"), 0);
}

static void version_1_quotas_are_read_from_the_cpu_controller(void)
{
    put("v1", "self",
        "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n1:name=systemd:/y\n0::/y\n");
    put("v1", "cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
    put("v1", "cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    CU_ASSERT_DOUBLE_EQUAL(quota_of("v1"), 2.5, 1e-12);
    put("v1", "cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
    put("v1", "cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    CU_ASSERT_DOUBLE_EQUAL(quota_of("v1"), 2.5, 1e-12);
    put("v1-link", "self", "4:cpuacct,cpu:/gone\n");
    put("v1-link", "cpu/cpu.cfs_quota_us", "100000\n"); /* the group's own mount */
    put("v1-link", "cpu/cpu.cfs_period_us", "50000\n");
    CU_ASSERT_DOUBLE_EQUAL(quota_of("v1-link"), 2.0, 1e-12);
    put("v1-set", "self", "3:cpuset:/\n");
    put("v1-set", "cpuset/cpu.cfs_quota_us", "1\n");
    put("v1-set", "cpuset/cpu.cfs_period_us", "1\n");
    CU_ASSERT_EQUAL(quota_of("v1-set"), 0);
}

static void nonsense_in_a_control_group_grants_no_quota(void)
{
    static const char *const texts[] = {"",         "\n",       "0 100000", "-5 100000",
                                        "50000",    "50000 0",  "x y",      "nan 100000",
                                        "inf 1000", "1e99 1.0", "50000 -1"};
    put("bad", "self", "0::/\n");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put("bad", "cpu.max", texts[i]);
        CU_ASSERT_EQUAL(quota_of("bad"), 0);
    }
    put("bad", "cpu.max", "100000 100000");
    static const char *const selves[] = {"", "0", "0:", "::", ":::::\n", "0:cpu\n", "\n\n\n"};
    for (size_t i = 0; i < sizeof(selves) / sizeof(selves[0]); i++) {
        put("bad", "self", selves[i]);
        double quota = quota_of("bad");
        CU_ASSERT(quota == 0 || quota == 1);
    }
}

static double memory_of(const char *tree)
{
    char root[1024];
    snprintf(root, sizeof(root), "%s", tnd_test_temp(tree));
    return tnd_memory_available(root, root);
}

static void memory_is_what_machine_and_groups_leave(void)
{
    CU_ASSERT_EQUAL(tnd_memory_available("/nowhere", "/nowhere"), 0);
    put("mem", "meminfo", "MemTotal:       8000 kB\nMemAvailable:    4000 kB\nCached:  9 kB\n");
    CU_ASSERT_EQUAL(memory_of("mem"), 4000 * 1024.0);
    put("mem", "self/cgroup", "0::/a/b\n");
    put("mem", "a/b/memory.max", "max\n");
    CU_ASSERT_EQUAL(memory_of("mem"), 4000 * 1024.0);
    put("mem", "a/memory.max", "3000000\n");
    put("mem", "a/memory.current", "2500000\n");
    put("mem", "a/memory.stat", "anon 7\ninactive_file 200000\nactive_file 100000\nfile 1\n");
    CU_ASSERT_EQUAL(memory_of("mem"), 800000);
    put("mem", "a/memory.current", "9000000\n"); /* nothing is left, which is not "no limit" */
    CU_ASSERT_EQUAL(memory_of("mem"), 1);
    put("mem1", "self/cgroup", "5:memory:/x\n4:cpu:/x\n");
    put("mem1", "memory/x/memory.limit_in_bytes", "5000000\n");
    put("mem1", "memory/x/memory.usage_in_bytes", "1000000\n");
    put("mem1", "memory/x/memory.stat", "total_inactive_file 500000\n");
    CU_ASSERT_EQUAL(memory_of("mem1"), 4500000);
    put("mem1", "memory/x/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    CU_ASSERT_EQUAL(memory_of("mem1"), 0);
    put("mem1", "memory/x/memory.limit_in_bytes", "x\n");
    CU_ASSERT_EQUAL(memory_of("mem1"), 0);
}

/* ---- machines ---- */

static struct tnd_topology topology;
static struct tnd_cpu_rows rows;

static void a_smt_machine_places_one_thread_a_core_first(void)
{
    if (!tnd_topology_rows_from_hwloc(NULL, "pack:1 l3:1(size=8388608) l2:2 l1d:1 core:1 pu:2",
                                      &rows)) {
        return; /* built without hwloc */
    }
    tnd_topology_fill(&rows, 0, &topology);
    check_int(topology.n_cpus, 4);
    check_int(topology.n_cores, 2);
    check_int(topology.threads_per_core, 2);
    check_int(topology.n_core_kinds, 1);
    check_int(tnd_topology_fast_cores(&topology), 0);
    check_int(topology.recommended_threads, 2);
    check_int(topology.l3_bytes, 8388608);
    check_int(topology.cpu_ids[0], 0);
    check_int(topology.cpu_ids[1], 2);
    check_int(topology.cpu_ids[2], 1);
    check_int(topology.cpu_ids[3], 3);
    check_contains(topology.text, "2 cores, 4 threads, 1 NUMA node");
    check_contains(topology.text, "L3 8 MiB");
}

static void two_numa_nodes_are_counted(void)
{
    if (!tnd_topology_rows_from_hwloc(NULL, "pack:2 [numa] core:4 pu:1", &rows)) {
        return;
    }
    tnd_topology_fill(&rows, 6.5, &topology);
    check_int(topology.n_numa_nodes, 2);
    check_int(topology.n_cores, 8);
    check_int(topology.recommended_threads, 6);
    check_contains(topology.text, "quota 6.5 CPUs");
    uint64_t hash = topology.hash;
    tnd_topology_rows_from_hwloc(NULL, "pack:2 [numa] core:5 pu:1", &rows);
    tnd_topology_fill(&rows, 0, &topology);
    CU_ASSERT_NOT_EQUAL(topology.hash, hash);
}

/* 2 fast cores with two threads (0-3), 4 slow ones (4-7), as Intel's sysfs shows them. */
static void put_hybrid(const char *tree)
{
    put(tree, "devices/system/cpu/online", "0-7\n");
    put(tree, "devices/cpu_core/cpus", "0-3\n");
    put(tree, "devices/system/node/node0/cpulist", "0-7\n");
    for (int id = 0; id < 8; id++) {
        char name[128];
        char text[32];
        snprintf(name, sizeof(name), "devices/system/cpu/cpu%d/topology/core_id", id);
        snprintf(text, sizeof(text), "%d\n", id < 4 ? id / 2 * 4 : 8 + id);
        put(tree, name, text);
        snprintf(name, sizeof(name), "devices/system/cpu/cpu%d/topology/physical_package_id", id);
        put(tree, name, "0\n");
        snprintf(name, sizeof(name), "devices/system/cpu/cpu%d/topology/thread_siblings_list", id);
        snprintf(text, sizeof(text), id < 4 ? "%d-%d\n" : "%d\n", id < 4 ? id / 2 * 2 : id,
                 id / 2 * 2 + 1);
        put(tree, name, text);
    }
    put(tree, "devices/system/cpu/cpu0/cache/index0/type", "Data\n");
    put(tree, "devices/system/cpu/cpu0/cache/index0/level", "1\n");
    put(tree, "devices/system/cpu/cpu0/cache/index0/size", "48K\n");
    put(tree, "devices/system/cpu/cpu0/cache/index1/type", "Instruction\n");
    put(tree, "devices/system/cpu/cpu0/cache/index1/level", "1\n");
    put(tree, "devices/system/cpu/cpu0/cache/index1/size", "64K\n");
    put(tree, "devices/system/cpu/cpu0/cache/index2/type", "Unified\n");
    put(tree, "devices/system/cpu/cpu0/cache/index2/level", "2\n");
    put(tree, "devices/system/cpu/cpu0/cache/index2/size", "1280K\n");
}

static void a_hybrid_machine_places_fast_cores_first(void)
{
    put_hybrid("hybrid");
    CU_ASSERT_TRUE_FATAL(tnd_topology_rows_from_sysfs(tnd_test_temp("hybrid"), &rows));
    tnd_topology_fill(&rows, 0, &topology);
    check_int(topology.n_cpus, 8);
    check_int(topology.n_cores, 6);
    check_int(topology.n_core_kinds, 2);
    check_int(topology.threads_per_core, 2);
    check_int(topology.l1d_bytes, 48 * 1024);
    check_int(topology.l2_bytes, 1280 * 1024);
    static const int order[] = {0, 2, 4, 5, 6, 7, 1, 3};
    for (int i = 0; i < 8; i++) {
        check_int(topology.cpu_ids[i], order[i]);
        check_int(topology.kind[i], order[i] < 4 ? 0 : 1);
    }
    check_contains(topology.text, "6 cores of 2 kinds");
    check_int(tnd_topology_fast_cores(&topology), 2);
}

static void a_mask_changes_the_cpus_and_not_the_hash(void)
{
    put_hybrid("masked");
    CU_ASSERT_TRUE_FATAL(tnd_topology_rows_from_sysfs(tnd_test_temp("masked"), &rows));
    tnd_topology_fill(&rows, 0, &topology);
    uint64_t hash = topology.hash;
    CU_ASSERT_TRUE_FATAL(tnd_topology_rows_from_sysfs(tnd_test_temp("masked"), &rows));
    for (int i = 0; i < rows.n; i++) {
        rows.row[i].is_allowed = i == 1 || i == 5;
    }
    tnd_topology_fill(&rows, 0, &topology);
    check_int(topology.n_cpus, 2);
    check_int(topology.n_cores, 2);
    check_int(topology.threads_per_core, 1);
    check_int(topology.cpu_ids[0], 1);
    check_int(topology.cpu_ids[1], 5);
    CU_ASSERT_EQUAL(topology.hash, hash);
}

static void damaged_files_of_the_system_do_no_harm(void)
{
    put("damaged", "devices/system/cpu/online", "0-1,x\n");
    put("damaged", "devices/system/cpu/cpu0/topology/core_id", "-\n");
    put("damaged", "devices/system/cpu/cpu0/topology/thread_siblings_list", "0-,,\n");
    put("damaged", "devices/system/cpu/cpu1/topology/thread_siblings_list", "\n");
    put("damaged", "devices/system/cpu/cpu1/cache/index0/type", "Data\n");
    put("damaged", "devices/system/cpu/cpu1/cache/index0/size", "99999999999999999999K\n");
    CU_ASSERT_TRUE(tnd_topology_rows_from_sysfs(tnd_test_temp("damaged"), &rows));
    tnd_topology_fill(&rows, 0, &topology);
    check_int(topology.n_cpus, 2);
    check_int(topology.l1d_bytes, 0);
    CU_ASSERT_FALSE(tnd_topology_rows_from_sysfs("/nowhere", &rows));
}

static void this_machine_is_read_by_both_ways_alike(void)
{
    struct tandem_error error = {0};
    cpu_set_t mask;
    check_status(tnd_topology_read(&topology, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT_FATAL(sched_getaffinity(0, sizeof(mask), &mask) == 0);
    check_int(topology.n_cpus, CPU_COUNT(&mask));
    CU_ASSERT(topology.n_cores >= 1 && topology.n_cores <= topology.n_cpus);
    CU_ASSERT(topology.recommended_threads >= 1);
    CU_ASSERT(strlen(topology.text) > 0);
    for (int i = 0; i < topology.n_cpus; i++) {
        CU_ASSERT(CPU_ISSET((size_t)topology.cpu_ids[i], &mask));
    }
    if (topology.from_hwloc && tnd_topology_rows_from_sysfs("/sys", &rows)) {
        int n_cores = topology.n_cores;
        int n_all = rows.n;
        tnd_topology_fill(&rows, 0, &topology);
        CU_ASSERT(topology.n_cores >= n_cores); /* sysfs shows CPUs outside our mask too */
        check_int(topology.n_cpus, n_all);
    }
}

static const char recorded[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
    "allowed_cpuset=\"0x2\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" "
    "gp_index=\"1\">\n"
    "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
    "nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"6\" local_memory=\"1024\"/>\n"
    "<object type=\"Core\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"2\">\n"
    "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"3\"/></object>\n"
    "<object type=\"Core\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"4\">\n"
    "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"5\"/></object>\n"
    "</object>\n</topology>\n";

/* Of an XML file that hwloc wrote. False: it is none, or hwloc is not built in. */
static bool read_xml(const char *path)
{
    if (!tnd_topology_rows_from_hwloc(path, NULL, &rows) || rows.n == 0) {
        return false;
    }
    tnd_topology_fill(&rows, 0, &topology);
    return true;
}

static void recorded_machines_are_read_from_xml(void)
{
    const char *path = tnd_test_temp("machine.xml");
    CU_ASSERT_TRUE(tnd_test_write_file(path, recorded, strlen(recorded)));
    const bool is_read = read_xml(path);
    if (!is_read && !tnd_topology_rows_from_hwloc(NULL, "pu:1", &rows)) {
        return; /* built without hwloc */
    }
    CU_ASSERT_TRUE_FATAL(is_read);
    check_int(topology.n_cpus, 1); /* CPU 0 is not allowed */
    check_int(topology.cpu_ids[0], 1);
    CU_ASSERT_FALSE(read_xml("/nowhere.xml"));
    CU_ASSERT_TRUE(tnd_test_write_file(path, "not xml", 7));
    CU_ASSERT_FALSE(read_xml(path));
}

static void core_kinds_of_recorded_machines_are_known(void)
{
    static const char kinds[] = "<cpukind cpuset=\"0x1\" forced_efficiency=\"0\"/>\n"
                                "<cpukind cpuset=\"0x2\" forced_efficiency=\"1\"/>\n"
                                "</topology>\n";
    char xml[sizeof(recorded) + sizeof(kinds)];
    const char *path = tnd_test_temp("hybrid.xml");
    snprintf(xml, sizeof(xml), "%.*s%s", (int)(strstr(recorded, "</topology>") - recorded),
             recorded, kinds);
    char *allowed = strstr(xml, "allowed_cpuset=\"0x2\"");
    memcpy(allowed, "allowed_cpuset=\"0x3\"", strlen("allowed_cpuset=\"0x3\""));
    CU_ASSERT_TRUE(tnd_test_write_file(path, xml, strlen(xml)));
    const bool is_read = read_xml(path);
    if (!is_read && !tnd_topology_rows_from_hwloc(NULL, "pu:1", &rows)) {
        return; /* built without hwloc */
    }
    CU_ASSERT_TRUE_FATAL(is_read);
    check_int(topology.n_cpus, 2);
    check_int(topology.n_core_kinds, 2);
    check_int(topology.cpu_ids[0], 1); /* the fast one comes first */
    check_int(topology.kind[0], 0);
    check_int(topology.cpu_ids[1], 0);
    check_int(topology.kind[1], 1);
}

static CU_TestInfo tests[] = {
    {"version_2_quotas_count_at_every_level", version_2_quotas_count_at_every_level},
    {"no_quota_is_zero", no_quota_is_zero},
    {"version_1_quotas_are_read_from_the_cpu_controller",
     version_1_quotas_are_read_from_the_cpu_controller},
    {"nonsense_in_a_control_group_grants_no_quota", nonsense_in_a_control_group_grants_no_quota},
    {"memory_is_what_machine_and_groups_leave", memory_is_what_machine_and_groups_leave},
    {"a_smt_machine_places_one_thread_a_core_first", a_smt_machine_places_one_thread_a_core_first},
    {"two_numa_nodes_are_counted", two_numa_nodes_are_counted},
    {"a_hybrid_machine_places_fast_cores_first", a_hybrid_machine_places_fast_cores_first},
    {"a_mask_changes_the_cpus_and_not_the_hash", a_mask_changes_the_cpus_and_not_the_hash},
    {"damaged_files_of_the_system_do_no_harm", damaged_files_of_the_system_do_no_harm},
    {"this_machine_is_read_by_both_ways_alike", this_machine_is_read_by_both_ways_alike},
    {"recorded_machines_are_read_from_xml", recorded_machines_are_read_from_xml},
    {"core_kinds_of_recorded_machines_are_known", core_kinds_of_recorded_machines_are_known},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_topology[] = {
    {"topology", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
