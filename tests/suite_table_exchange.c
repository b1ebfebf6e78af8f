/* SPDX-License-Identifier: MIT
 * Two devices in one table, and one of them exchanged. PoCL shows two devices when its environment
 * says so before it is loaded; so the test runs once more in a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/registry.h"
#include "table/invalidate.h"
#include "table/table_filter.h"
#include "tests/support_tune.h"

#define SUITE     "exchange"
#define EXCHANGED "an exchanged device loses its records and the other one keeps them"

static const char *const devices[] = {"opencl", "opencl1"};

static struct tnd_curve_key key_of(int device)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_NODE, false, 1);
    snprintf(key.backend, sizeof(key.backend), "%s", devices[device]);
    return key;
}

/* Of each device two cells and an upload, under what the devices say of themselves; the table is
 * written and read. */
static tandem_table *table_of_both(const struct tnd_fingerprint *machine)
{
    const struct tnd_sample moved = {4096, 3.0, 0.1, 5, 100, 0, 0, 0, 0};
    tandem_table *table = tune_new();
    table->has_fingerprint = true;
    table->fingerprint = *machine;
    for (int i = 0; i < 2; i++) {
        struct tnd_curve_key key = key_of(i);
        tune_add(table, &key, 1, 10.0);
        tune_add(table, &key, 8, 20.0);
        (void)check_ok(tnd_table_add_transfer(table, devices[i], TND_UPLOAD, &moved));
    }
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table *again = tune_parse(tnd_text_string(&text));
    tnd_text_fini(&text);
    tandem_table_free(table);
    return again;
}

static void check_records(const tandem_table *table, int device, bool are_there)
{
    struct tnd_curve_key key = key_of(device);
    const struct tnd_curve *curve = tnd_table_find(table, &key);
    CU_ASSERT_EQUAL(curve != NULL, are_there);
    CU_ASSERT_TRUE(curve == NULL || curve->n_samples == 2);
    CU_ASSERT_EQUAL(tnd_table_transfer(table, devices[device], TND_UPLOAD) != NULL, are_there);
}

/* `exchanged`: the device whose identity is another one in the machine; -1: none. */
static void check_exchange(const struct tnd_fingerprint *machine, int exchanged)
{
    struct tnd_invalid_report report;
    struct tnd_fingerprint now = *machine;
    tandem_table *table = table_of_both(machine);
    const int64_t n_cells = tnd_table_count_cells(table);
    if (exchanged >= 0) {
        CU_ASSERT_TRUE(
            tnd_fingerprint_set_identity(&now, devices[exchanged], "device", "another device"));
    }
    tnd_table_invalidate(table, &now, &report);
    check_int(report.n, exchanged >= 0);
    check_records(table, 0, exchanged != 0);
    check_records(table, 1, exchanged != 1);
    check_int(report.n_cells, exchanged >= 0 ? n_cells / 2 : 0);
    check_int(tnd_table_count_cells(table), n_cells - report.n_cells);
    if (exchanged >= 0) {
        check_string(report.reasons[0].backend, devices[exchanged]);
        check_contains(report.reasons[0].text, "another device");
    }
    tandem_table_free(table);
}

static void with_both_devices(void)
{
    const struct tnd_registry_options options = {
        "opencl,opencl1", "opencl:cache=off;opencl1:cache=off", 1, {0}};
    struct tnd_registry *registry = NULL;
    struct tnd_fingerprint machine;
    const char *reason = NULL;
    if (!check_ok(tnd_registry_open(&options, &registry, NULL))) {
        return;
    }
    if (tnd_registry_find(registry, devices[0], &reason) < 0 ||
        tnd_registry_find(registry, devices[1], &reason) < 0) {
        tnd_skip("opencl: no two devices: %s", reason);
        tnd_registry_close(registry);
        return;
    }
    tnd_fingerprint_read_all(registry, &machine);
    tnd_registry_close(registry);
    char first[sizeof(machine.identities[0].value)];
    snprintf(first, sizeof(first), "%s", tnd_fingerprint_identity(&machine, devices[0], "device"));
    CU_ASSERT_TRUE(first[0] != '\0');
    CU_ASSERT_TRUE(strcmp(tnd_fingerprint_identity(&machine, devices[1], "device"), first) != 0);
    check_exchange(&machine, -1);
    check_exchange(&machine, 0);
    check_exchange(&machine, 1);
}

/* Its lines go to the same place; the line that sums up this process comes behind its own. */
static void run_again(void)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv("POCL_DEVICES", "pthread basic", 1);
        execl("/proc/self/exe", "suite_table", "-s", SUITE, "-t", EXCHANGED, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 127) {
        tnd_skip("opencl: no process of its own (/proc/self/exe)");
        return;
    }
    check_int(WEXITSTATUS(status), 0);
}

static void an_exchanged_device_loses_its_records_and_the_other_one_keeps_them(void)
{
    if (getenv("POCL_DEVICES") != NULL) {
        with_both_devices();
    } else {
        run_again();
    }
}

static CU_TestInfo tests[] = {
    {EXCHANGED, an_exchanged_device_loses_its_records_and_the_other_one_keeps_them},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_exchange[];
CU_SuiteInfo suites_table_exchange[] = {
    {SUITE, NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
