/* SPDX-License-Identifier: MIT
 * Traces read back: the last run, its critical path, its picture. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tests/support_tune.h"
#include "tools/report/report_html.h"
#include "tools/report/trace_run.h"

#define STEP(process, lane, begin, took)                                                           \
    "{\"name\":\"mul_mat <y>\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":" process                  \
    ",\"tid\":\"" lane "\",\"ts\":" begin ",\"dur\":" took "}"

/* An upload, the device's part and the joining; the CPU's own part ends earlier. */
static const char two_runs[] =
    "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" STEP("1", "cpu", "0", "7") "," STEP(
        "2", "cpu", "0",
        "6") ","
             "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":2,\"args\":{\"name\":\"predicted\"}}"
             "," STEP("1", "opencl upload", "100", "10") "," STEP(
                 "1", "opencl", "112",
                 "40") "," STEP("1", "cpu", "100",
                                "30") "," STEP("1", "cpu", "152",
                                               "8") "," STEP("2", "opencl", "112",
                                                             "33") "," STEP("2", "cpu", "100",
                                                                            "45") "]}";

static struct tnd_trace_run read_run(const char *text)
{
    struct tnd_trace_run run = {.n = 0};
    check_ok(tnd_trace_run_read(text, strlen(text), "trace", &run, NULL));
    return run;
}

static const struct tnd_trace_lane *lane_of(const struct tnd_trace_run *run, const char *name)
{
    static const struct tnd_trace_lane none;
    for (int i = 0; i < run->n_lanes; i++) {
        if (strcmp(run->lanes[i].name, name) == 0) {
            return &run->lanes[i];
        }
    }
    return &none;
}

static void the_last_run_with_predictions_is_taken(void)
{
    struct tnd_trace_run run = read_run(two_runs);
    check_int(run.n, 6);
    check_int(run.n_measured, 4);
    check_int(run.n_lanes, 3);
    CU_ASSERT_DOUBLE_EQUAL(run.took_us, 60, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(run.predicted_us, 45, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(lane_of(&run, "cpu")->busy_us, 38, 1e-9);
    tnd_trace_run_fini(&run);
}

static void the_critical_path_goes_back_by_what_ended_last(void)
{
    struct tnd_trace_run run = read_run(two_runs);
    check_int(run.n_critical, 3);
    CU_ASSERT_DOUBLE_EQUAL(lane_of(&run, "opencl upload")->critical_us, 10, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(lane_of(&run, "opencl")->critical_us, 40, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(lane_of(&run, "cpu")->critical_us, 8, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(run.waiting_us, 2, 1e-9);
    tnd_trace_run_fini(&run);
}

static void steps_that_take_no_time_end_the_search_too(void)
{
    struct tnd_trace_run run = read_run("{\"traceEvents\":[" STEP("1", "cpu", "5", "0") "," STEP(
        "1", "cpu", "5", "0") "," STEP("1", "cpu", "5", "3") "]}");
    check_int(run.n_critical, 3);
    CU_ASSERT_DOUBLE_EQUAL(run.took_us, 3, 1e-9);
    tnd_trace_run_fini(&run);
}

static void broken_traces_are_refused_with_a_reason(void)
{
    static const struct {
        const char *text;
        enum tandem_status status;
        const char *words;
    } cases[] = {
        {"", TANDEM_E_FORMAT, "trace"},
        {"[]", TANDEM_E_FORMAT, "trace"},
        {"{}", TANDEM_E_FORMAT, "TANDEM_TRACE"},
        {"{\"traceEvents\":[]}", TANDEM_E_NOT_FOUND, "no measured step"},
        {"{\"traceEvents\":[" STEP("2", "cpu", "1", "1") "]}", TANDEM_E_NOT_FOUND, "no measured"},
        {"{\"traceEvents\":[" STEP("1", "cpu", "1", "-1") "]}", TANDEM_E_FORMAT, "without a time"},
        {"{\"traceEvents\":[" STEP("1", "cpu", "1e300", "1") "]}", TANDEM_E_FORMAT, "time"},
        {"{\"traceEvents\":[{\"ph\":\"X\"}]}", TANDEM_E_FORMAT, "without a time"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_trace_run run = {.n = 0};
        struct tandem_error error = {.text = ""};
        check_status(
            tnd_trace_run_read(cases[i].text, strlen(cases[i].text), "trace", &run, &error),
            cases[i].status, cases[i].words, &error);
        CU_ASSERT_PTR_NULL(run.events);
    }
    for (size_t n = 0; n + 1 < sizeof(two_runs) - 1; n++) { /* cut anywhere */
        struct tnd_trace_run run = {.n = 0};
        CU_ASSERT_NOT_EQUAL(tnd_trace_run_read(two_runs, n, "trace", &run, NULL), TANDEM_OK);
    }
}

static void too_many_lanes_are_refused(void)
{
    struct tnd_text text = TND_TEXT_INIT;
    struct tnd_trace_run run = {.n = 0};
    tnd_text_add(&text, "{\"traceEvents\":[");
    for (int i = 0; i <= TND_TRACE_LANES; i++) {
        tnd_text_printf(&text, "%s{\"ph\":\"X\",\"tid\":\"lane %d\",\"ts\":1,\"dur\":1}",
                        i > 0 ? "," : "", i);
    }
    tnd_text_add(&text, "]}");
    check_int(tnd_trace_run_read(text.bytes, text.n, "trace", &run, NULL), TANDEM_E_LIMIT);
    tnd_text_fini(&text);
}

static void running_out_of_memory_leaks_nothing(void)
{
    long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long fail_at = 1; status == TANDEM_E_MEMORY; fail_at++) {
        struct tnd_trace_run run = {.n = 0};
        tnd_alloc_fail_after(fail_at);
        status = tnd_trace_run_read(two_runs, strlen(two_runs), "trace", &run, NULL);
        tnd_alloc_fail_after(-1);
        tnd_trace_run_fini(&run);
        CU_ASSERT_EQUAL(tnd_alloc_live(), live);
    }
    check_ok(status);
}

static int append(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void a_page_shows_predicted_beside_measured_and_the_path(void)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_trace_run run = read_run(two_runs);
    struct tnd_text page = TND_TEXT_INIT;
    const struct tnd_report_source source = {table, "table"};
    const struct tnd_analyze_options options = {.type = TANDEM_TYPE_NUMBERS};
    check_ok(tnd_report_html(&source, 1, &options, &run, append, &page, NULL));
    const char *text = tnd_text_string(&page);
    check_contains(text, "A run, lane by lane");
    check_contains(text, ">opencl upload</text>");
    check_contains(text, "Measured 60 \xc2\xb5s, predicted 45 \xc2\xb5s.");
    check_contains(text, "Critical path: 3 of 4 steps");
    check_contains(text, "<td>between steps</td><td>2 \xc2\xb5s</td>");
    CU_ASSERT_PTR_NULL(strstr(text, "<y>"));
    tnd_text_fini(&page);
    tnd_trace_run_fini(&run);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"the_last_run_with_predictions_is_taken", the_last_run_with_predictions_is_taken},
    {"the_critical_path_goes_back_by_what_ended_last",
     the_critical_path_goes_back_by_what_ended_last},
    {"steps_that_take_no_time_end_the_search_too", steps_that_take_no_time_end_the_search_too},
    {"broken_traces_are_refused_with_a_reason", broken_traces_are_refused_with_a_reason},
    {"too_many_lanes_are_refused", too_many_lanes_are_refused},
    {"running_out_of_memory_leaks_nothing", running_out_of_memory_leaks_nothing},
    {"a_page_shows_predicted_beside_measured_and_the_path",
     a_page_shows_predicted_beside_measured_and_the_path},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_lanes[];
CU_SuiteInfo suites_report_lanes[] = {
    {"runs of traces", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
