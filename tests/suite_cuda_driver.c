/* SPDX-License-Identifier: MIT
 * What the stand-in for libcuda sees: faults that were planted are found, and nothing else. */
#include <stdlib.h>
#include <string.h>

#include "tests/suite_cuda.h"

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    UNKNOWN = 999,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    ITEMS = 64
};

static const char planted[] =
    "kernel void writes(global float *y, ulong y_at, int place) {"
    " if (get_global_id(0) == 0) { y[place] = 1; } }\n"
    "kernel void reads(global float *y, ulong y_at, int place) {"
    " if (get_global_id(0) == 0) { y[0] = y[place]; } }\n"
    "kernel void parts(global float *y, ulong y_at, int place) {"
    " if ((int)get_local_id(0) < place) { barrier(CLK_LOCAL_MEM_FENCE); } }\n"
    "kernel void fresh(global float *y, ulong y_at, int place) {"
    " shared float staged[64]; y[get_local_id(0)] = staged[get_local_id(0) ^ place]; }\n";

static int run_planted(const char *kernel, int32_t place, float *out)
{
    uint64_t zero = 0;
    const unsigned grid[] = {1, 1};
    uint64_t at = tnd_test_cu_upload(NULL, ITEMS * sizeof(float));
    void *module = tnd_test_cu_compile(planted, "");
    const int code =
        tnd_test_cu_run(module, kernel, grid, ITEMS, 0, TND_ARGUMENTS(&at, &zero, &place));
    if (code == 0 && out != NULL) {
        tnd_test_cu_download(out, at, ITEMS * sizeof(float));
    }
    tnd_cu.ModuleUnload(module);
    tnd_cu.MemFree(at);
    return code;
}

static struct tnd_fake_report report_now(void)
{
    struct tnd_fake_report report;
    tnd_cu.fake.report(&report);
    return report;
}

static void kernels_that_leave_their_memory_are_caught(void)
{
    if (!tnd_test_cu_is_there()) {
        return;
    }
    check_int(run_planted("writes", ITEMS - 1, NULL), 0);
    check_int(report_now().n_wrong, 0);
    check_int(run_planted("writes", ITEMS, NULL), ILLEGAL_ADDRESS);
    tnd_cu.fake.begin(NULL);
    check_int(run_planted("writes", -1, NULL), ILLEGAL_ADDRESS);
    tnd_cu.fake.begin(NULL);
    check_int(run_planted("reads", ITEMS, NULL), ILLEGAL_ADDRESS);
    check_contains(report_now().wrong, "not the device's");
}

static void barriers_that_only_some_reach_are_caught(void)
{
    if (!tnd_test_cu_is_there()) {
        return;
    }
    check_int(run_planted("parts", 0, NULL), 0);
    check_int(run_planted("parts", ITEMS, NULL), 0);
    check_int(run_planted("parts", ITEMS - 1, NULL), LAUNCH_FAILED);
    check_contains(report_now().wrong, "barrier");
}

static void fresh_memory_is_not_a_number(void)
{
    float got[ITEMS] = {0};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    check_int(run_planted("fresh", 1, NULL), LAUNCH_FAILED);
    check_contains(report_now().wrong, "nobody has written");
    tnd_cu.fake.begin(NULL);
    tnd_test_cu_check(false);
    check_int(run_planted("fresh", 1, got), 0);
    for (int i = 0; i < ITEMS; i++) {
        CU_ASSERT(got[i] != got[i]);
    }
}

static void ranges_and_frees_are_checked(void)
{
    char bytes[300] = {0};
    if (!tnd_test_cu_is_there()) {
        return;
    }
    uint64_t at = tnd_test_cu_upload(bytes, 200);
    check_int(at % 256, 0);
    check_int(tnd_cu.MemcpyHtoD(at, bytes, 201), INVALID_VALUE);
    check_int(tnd_cu.MemcpyHtoD(at + 100, bytes, 101), INVALID_VALUE);
    check_int(tnd_cu.MemcpyDtoH(bytes, at + 300, 1), INVALID_VALUE);
    check_int(tnd_cu.MemcpyHtoD(at + 100, bytes, 100), 0);
    check_int(tnd_cu.MemFree(at + 1), INVALID_VALUE);
    check_int(tnd_cu.MemFree(at), 0);
    check_int(tnd_cu.MemFree(at), INVALID_VALUE);
    check_int(report_now().n_wrong, 5);
}

static void memory_runs_out(void)
{
    uint64_t first = 0, second = 0;
    if (!tnd_test_cu_is_there()) {
        return;
    }
    tnd_cu.fake.set_memory(1 << 20);
    check_int(tnd_cu.MemAlloc(&first, 600 << 10), 0);
    check_int(tnd_cu.MemAlloc(&second, 600 << 10), OUT_OF_MEMORY);
    check_int(tnd_cu.MemFree(first), 0);
    check_int(tnd_cu.MemAlloc(&second, 600 << 10), 0);
    check_int(tnd_cu.MemFree(second), 0);
}

static void calls_fail_as_planned(void)
{
    uint64_t at = 0;
    if (!tnd_test_cu_is_there()) {
        return;
    }
    tnd_cu.fake.begin(
        &(struct tnd_fake_plan){.first = 2, .code = UNKNOWN, .name = "cuMemAlloc_v2"});
    check_int(tnd_cu.MemAlloc(&at, 16), 0);
    check_int(tnd_cu.MemFree(at), 0);
    check_int(tnd_cu.MemAlloc(&at, 16), UNKNOWN);
    check_int(tnd_cu.MemAlloc(&at, 16), 0);
    check_int(tnd_cu.MemFree(at), 0);
    tnd_cu.fake.begin(&(struct tnd_fake_plan){.first = 2, .code = LAUNCH_FAILED, .is_lost = true});
    check_int(tnd_cu.MemAlloc(&at, 16), 0);
    check_int(tnd_cu.CtxSynchronize(), LAUNCH_FAILED);
    check_int(tnd_cu.MemFree(at), LAUNCH_FAILED); /* and is freed all the same */
    check_int(report_now().n_failed, 1);
    check_int(report_now().n_live[TND_FAKE_MEMORY], 0);
}

/* A task that the test lets go. */
struct held {
    volatile int may_go;
    int was_done;
};

static void wait_until_let_go(void *data)
{
    struct held *held = data;
    while (!__atomic_load_n(&held->may_go, __ATOMIC_ACQUIRE)) {
    }
    held->was_done = 1;
}

static void note(void *data)
{
    struct held *held = data;
    held->may_go = held->was_done + 10;
}

static void streams_run_by_themselves_and_events_hold_them(void)
{
    void *first = NULL, *second = NULL, *event = NULL;
    struct held held = {0}, *seen = &held;
    if (!tnd_test_cu_is_there()) {
        return;
    }
    check_int(tnd_cu.StreamCreate(&first, 1), 0);
    check_int(tnd_cu.StreamCreate(&second, 1), 0);
    check_int(tnd_cu.EventCreate(&event, 0), 0);
    check_int(tnd_cu.LaunchHostFunc(first, wait_until_let_go, &held), 0);
    check_int(tnd_cu.EventRecord(event, first), 0);
    check_int(tnd_cu.StreamWaitEvent(second, event, 0), 0);
    check_int(tnd_cu.LaunchHostFunc(second, note, seen), 0);
    check_int(tnd_cu.EventQuery(event), NOT_READY);
    __atomic_store_n(&held.may_go, 1, __ATOMIC_RELEASE);
    check_int(tnd_cu.StreamSynchronize(second), 0);
    check_int(held.may_go, 11);
    check_int(tnd_cu.EventQuery(event), 0);
    check_int(tnd_cu.EventDestroy(event), 0);
    check_int(tnd_cu.StreamDestroy(first), 0);
    check_int(tnd_cu.StreamDestroy(second), 0);
}

CU_TestInfo tnd_tests_cuda_driver[] = {
    {"kernels that leave their memory are caught", kernels_that_leave_their_memory_are_caught},
    {"barriers that only some reach are caught", barriers_that_only_some_reach_are_caught},
    {"fresh memory is not a number", fresh_memory_is_not_a_number},
    {"ranges and frees are checked", ranges_and_frees_are_checked},
    {"memory runs out", memory_runs_out},
    {"calls fail as planned", calls_fail_as_planned},
    {"streams run by themselves and events hold them",
     streams_run_by_themselves_and_events_hold_them},
    CU_TEST_INFO_NULL,
};
