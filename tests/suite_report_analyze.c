/* SPDX-License-Identifier: MIT
 * Crossovers and the analyze report; the facts of the published table. */
#include "tests/suite_report.h"
#include "tests/support_tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/judge.h"
#include "tools/report/crossover.h"
#include "tune/objective.h"
#include "tune/profiles.h"

static void check_crossover(const struct tnd_crossover *got, int from, int to, double m,
                            int64_t first_m)
{
    check_int(got->from, from);
    check_int(got->to, to);
    check_int(got->first_m, first_m);
    CU_ASSERT_DOUBLE_EQUAL(got->m, m, 1e-9);
}

static void two_lines_cross_once(void)
{
    const int64_t m[] = {0, 10, 20};
    const double times[] = {0, 10, 20, 12, 12, 12};
    struct tnd_crossover found[8];
    check_int(tnd_crossovers(m, 3, times, NULL, 2, true, found, 8), 1);
    check_crossover(&found[0], 0, 1, 12.0, 13); /* at 12 both cost the same: `to` wins from 13 on */
}

/* Who leads only between two points never leads a measured one. */
static void only_what_leads_at_a_point_is_told(void)
{
    const int64_t m[] = {0, 100};
    const double times[] = {0, 100, 10, 60, 30, 40, 90, 90};
    struct tnd_crossover found[8];
    check_int(tnd_crossovers(m, 2, times, NULL, 4, true, found, 8), 1);
    check_crossover(&found[0], 0, 2, 100.0 / 3, 34);
}

static void the_winner_may_win_back(void)
{
    const int64_t m[] = {1, 11, 21};
    const double times[] = {10, 30, 10, 20, 20, 20};
    struct tnd_crossover found[8];
    check_int(tnd_crossovers(m, 3, times, NULL, 2, true, found, 8), 2);
    check_crossover(&found[0], 0, 1, 6.0, 7);
    check_crossover(&found[1], 1, 0, 16.0, 17);
}

static void equal_profiles_do_not_cross(void)
{
    const int64_t m[] = {1, 11, 21};
    const double times[] = {10, 20, 30, 10, 20, 30, 10, 20, 30};
    struct tnd_crossover found[8];
    check_int(tnd_crossovers(m, 3, times, NULL, 3, true, found, 8), 0);
    check_int(tnd_crossovers(m, 1, times, NULL, 3, true, found, 8), 0);
}

static void touching_at_the_last_point_is_no_crossover(void)
{
    const int64_t m[] = {1, 11};
    const double times[] = {10, 20, 20, 20};
    struct tnd_crossover found[8];
    check_int(tnd_crossovers(m, 2, times, NULL, 2, true, found, 8), 0);
}

/* 1.5 % are no reason to change; 10 % and 10 us are, from where the lead began, unless errors of
 * 6 us make as much by chance. */
static void a_lead_that_is_not_clear_is_no_crossover(void)
{
    const int64_t m[] = {1, 2, 4, 8};
    const double times[] = {80, 103, 103, 110, 90, 100, 100, 100};
    const double small[8] = {0}, large[] = {6, 6, 6, 6, 6, 6, 6, 6};
    struct tnd_crossover found[8];
    check_int(tnd_crossovers(m, 4, times, small, 2, true, found, 8), 1);
    check_crossover(&found[0], 0, 1, 1 + 10.0 / 13, 2);
    check_int(tnd_crossovers(m, 4, times, large, 2, true, found, 8), 0);
    const double near[] = {80, 101, 101, 101.5, 90, 100, 100, 100};
    check_int(tnd_crossovers(m, 4, near, small, 2, true, found, 8), 0);
}

/* Against the definition: at each point what is kept is the cheapest, or behind it by less than
 * counts. */
static void what_is_kept_is_near_the_fastest_at_every_point(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 500; round++) {
        int64_t m[5] = {1};
        double times[4 * 5], errors[4 * 5];
        for (int i = 1; i < 5; i++) {
            m[i] = m[i - 1] + tnd_test_rng_int(&rng, 1, 12);
        }
        for (int i = 0; i < 20; i++) {
            times[i] = (double)tnd_test_rng_int(&rng, 90, 120);
            errors[i] = (double)tnd_test_rng_int(&rng, 0, 4);
        }
        struct tnd_crossover found[5];
        int n = tnd_crossovers(m, 5, times, errors, 4, true, found, 5);
        int at = 0;
        int kept = tnd_winner(times, 4, 5, 0);
        for (int i = 0; i < 5; i++) {
            while (at < n && found[at].first_m <= m[i]) {
                CU_ASSERT_TRUE(i > 0 && (double)found[at].first_m > found[at].m);
                check_int(found[at].from, kept);
                kept = found[at++].to;
            }
            const int winner = tnd_winner(times, 4, 5, i);
            const double lead = times[kept * 5 + i] - times[winner * 5 + i];
            CU_ASSERT_TRUE(lead <= 0.02 * times[winner * 5 + i] + 1e-9 ||
                           lead <= TND_CLEAR_SIGMAS * hypot(4, 4));
        }
        check_int(at, n);
    }
}

static struct tnd_text published(enum tnd_analyze_format format, int threads)
{
    tandem_table *table = tune_parse(tune_example);
    struct tnd_analyze_options options = {format, "example", &threads, 1, TANDEM_TYPE_NUMBERS};
    struct tnd_text text = tune_analyze(table, &options);
    tandem_table_free(table);
    return text;
}

static void the_published_table_crosses_at_22_69_and_18_62(void)
{
    struct tnd_text json = published(TND_ANALYZE_JSON, 1);
    const char *crossovers = strstr(tnd_text_string(&json), "\"crossovers\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(crossovers);
    check_string(crossovers,
                 "\"crossovers\": [\n"
                 "    {\"n\": 4096, \"k\": 4096, \"threads\": 1, \"from\": \"cpu\", \"to\": "
                 "\"cpu+accelerate\", \"m\": 22.69, \"first_m\": 23, \"clear\": false},\n"
                 "    {\"n\": 4094, \"k\": 11008, \"threads\": 1, \"from\": \"cpu\", \"to\": "
                 "\"cpu+accelerate\", \"m\": 18.62, \"first_m\": 19, \"clear\": true}\n"
                 "  ]\n}\n");
    tnd_text_fini(&json);
    json = published(TND_ANALYZE_JSON, 4);
    check_contains(tnd_text_string(&json), "\"crossovers\": []");
    tnd_text_fini(&json);
}

static void the_report_for_people_names_winner_and_crossover(void)
{
    struct tnd_text text = published(TND_ANALYZE_TEXT, 1);
    check_contains(tnd_text_string(&text), "N 4096 x K 4096, 1 thread\n");
    check_contains(tnd_text_string(&text), "       8       7485.0*      18886.0 \n");
    check_contains(tnd_text_string(&text),
                   "Crossover at M = 22.69: from M = 23 on cpu+accelerate is not clearly faster "
                   "than cpu: no difference, a lead of 5.8 % where chance makes 18.0 %.\n");
    check_contains(tnd_text_string(&text),
                   "Crossover at M = 18.62: from M = 19 on cpu+accelerate is faster than cpu.\n");
    check_contains(tnd_text_string(&text), "  Standard errors of these times: 4.1 to 4.1 %.\n");
    check_contains(tnd_text_string(&text), "No crossover: cpu wins at every M from 8 to 24.");
    tnd_text_fini(&text);
    text = published(TND_ANALYZE_TEXT, 4);
    check_contains(tnd_text_string(&text), "4 threads (not measured, estimated)");
    tnd_text_fini(&text);
}

static void the_report_for_people_has_thread_scaling_and_shares(void)
{
    const struct tnd_analyze_options options = {TND_ANALYZE_TEXT, "t", NULL, 0,
                                                TANDEM_TYPE_NUMBERS};
    tandem_table *table = tune_new();
    struct tnd_table_profile profile;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, "cpu", TANDEM_TYPE_Q4_0, &profile));
    check_ok(tnd_table_add_profile(table, &profile));
    for (int threads = 1; threads <= 4; threads *= 2) {
        for (int s = 0; s <= TANDEM_STAGE_COMPUTE; s++) {
            struct tnd_curve_key key =
                tune_key(256, 512, (enum tandem_task)profile.stage[s].task, true, threads);
            key.stage = (uint8_t)s;
            /* INIT halves with each doubling, COMPUTE does so but for the last one. */
            const double us = s == TANDEM_STAGE_INIT ? 100.0 / threads : threads == 1 ? 300 : 150;
            tune_add(table, &key, 8, us);
        }
    }
    struct tnd_text text = tune_analyze(table, &options);
    check_contains(tnd_text_string(&text),
                   "  Shares in %, of INIT / COMPUTE / FINALIZE / transfers:\n"
                   "       8    25/75/0/0 \n");
    check_contains(tnd_text_string(&text), "  Thread scaling at M = 8, speed-up (efficiency):\n"
                                           "    cpu INIT: 2 threads 2.00 (100 %), "
                                           "4 threads 4.00 (100 %)\n"
                                           "    cpu COMPUTE: 2 threads 2.00 (100 %), "
                                           "4 threads 2.00 (50 %); more than 2 do not pay\n");
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static void csv_has_one_line_a_profile_and_m(void)
{
    struct tnd_text text = published(TND_ANALYZE_CSV, 1);
    int lines = 0;
    for (size_t i = 0; i < text.n; i++) {
        lines += text.bytes[i] == '\n';
    }
    check_int(lines, 1 + 4 * 3 * 2);
    check_contains(
        tnd_text_string(&text),
        "\nq4_0,4096,4096,1,8,cpu,8.000,7477.000,0.000,7485.000,1,0.000,0.000,0,0,308.614,\n");
    tnd_text_fini(&text);
}

static void add_energy(tandem_table *table, const char *profile, double us, double joules)
{
    struct tnd_table_profile described;
    CU_ASSERT_TRUE(tnd_profile_describe_name(NULL, profile, TANDEM_TYPE_Q4_0, &described));
    check_ok(tnd_table_add_profile(table, &described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &described.stage[s];
        struct tnd_curve_key key =
            tune_key(64, 128, (enum tandem_task)stage->task, stage->parallel, 1);
        bool computes = s == TANDEM_STAGE_COMPUTE;
        struct tnd_sample sample = {
            .m = 8, .median_us = computes ? us : 1e-3, .count = 5, .joules = computes ? joules : 0};
        key.stage = (uint8_t)s;
        if (stage->backend[0] != '\0') {
            check_ok(tnd_table_add(table, &key, &sample));
        }
    }
}

static void joules_are_shown_beside_times_with_the_choices_that_nothing_beats(void)
{
    static const char *const wanted[] = {"cpu-packed", "cpu", "cpu-packed"};
    tandem_table *table = tune_new();
    add_energy(table, "cpu", 1000, 0.004);
    add_energy(table, "cpu-packed", 500, 0.006);
    for (int aim = 0; aim < 3; aim++) {
        struct tnd_analyze_options options = {TND_ANALYZE_TEXT, "x", NULL, 0, TANDEM_TYPE_NUMBERS};
        check_ok(tnd_objective_set(table, (enum tandem_objective)aim, NULL));
        struct tnd_text text = tune_analyze(table, &options);
        check_contains(tnd_text_string(&text), "Energy of the machine in millijoules");
        check_contains(tnd_text_string(&text), aim == 2 ? "   8         4.000          6.000*"
                                                        : "   8         4.000*         6.000 ");
        check_contains(tnd_text_string(&text), "Time against energy at M = 8: cpu 1000.0 us 4.000 "
                                               "mJ, cpu-packed 500.0 us 6.000 mJ.");
        tnd_text_fini(&text);
        options.format = TND_ANALYZE_JSON;
        text = tune_analyze(table, &options);
        check_contains(tnd_text_string(&text), "\"pareto\": [\"cpu\", \"cpu-packed\"]");
        check_contains(tnd_text_string(&text), "\"joules\": 0.00");
        const char *choice = strstr(tnd_text_string(&text), "\"choice\": \"");
        CU_ASSERT_EQUAL(choice == NULL, aim == 0);
        if (choice != NULL) {
            char quoted[32];
            snprintf(quoted, sizeof(quoted), "\"choice\": \"%s\"", wanted[aim]);
            CU_ASSERT_EQUAL(strncmp(choice, quoted, strlen(quoted)), 0);
        }
        tnd_text_fini(&text);
    }
    /* a way that is faster and takes less leaves nothing to weigh */
    tandem_table_free(table);
    table = tune_new();
    add_energy(table, "cpu", 400, 0.001);
    add_energy(table, "cpu-packed", 500, 0.006);
    check_ok(tnd_objective_set(table, TANDEM_OBJECTIVE_TIME, NULL));
    struct tnd_analyze_options options = {TND_ANALYZE_TEXT, "x", NULL, 0, TANDEM_TYPE_NUMBERS};
    struct tnd_text text = tune_analyze(table, &options);
    check_contains(tnd_text_string(&text), "The fastest way takes the least energy at every M.");
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static void an_empty_table_has_nothing_to_report(void)
{
    tandem_table *table = tune_new();
    struct tnd_analyze_options options = {TND_ANALYZE_JSON, "empty", NULL, 0, TANDEM_TYPE_NUMBERS};
    struct tandem_error error = {0};
    check_status(tnd_analyze(table, &options, NULL, NULL, &error), TANDEM_E_TABLE,
                 "the table is empty", &error);
    tandem_table_free(table);
}

static void analyze_shows_crossovers_between_cpu_and_device(void)
{
    tandem_table *table = tune_new();
    const struct tnd_analyze_options json = {TND_ANALYZE_JSON, "t", NULL, 0, TANDEM_TYPE_NUMBERS};
    tune_add_cost(table, "cpu", 5, 4);
    tune_add_cost(table, "opencl", 80, 0.5);
    tune_add_link(table, "opencl", 10, 1000);
    struct tnd_text text = tune_analyze(table, &json);
    check_contains(tnd_text_string(&text), "\"from\": \"cpu\", \"to\": \"opencl\"");
    check_contains(tnd_text_string(&text), "\"finalize_us\": 14.096, \"transfer_us\": 14.09");
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"analyze shows crossovers between CPU and device",
     analyze_shows_crossovers_between_cpu_and_device},
    {"two_lines_cross_once", two_lines_cross_once},
    {"only_what_leads_at_a_point_is_told", only_what_leads_at_a_point_is_told},
    {"the_winner_may_win_back", the_winner_may_win_back},
    {"equal_profiles_do_not_cross", equal_profiles_do_not_cross},
    {"touching_at_the_last_point_is_no_crossover", touching_at_the_last_point_is_no_crossover},
    {"a_lead_that_is_not_clear_is_no_crossover", a_lead_that_is_not_clear_is_no_crossover},
    {"what_is_kept_is_near_the_fastest_at_every_point",
     what_is_kept_is_near_the_fastest_at_every_point},
    {"the_published_table_crosses_at_22_69_and_18_62",
     the_published_table_crosses_at_22_69_and_18_62},
    {"the_report_for_people_names_winner_and_crossover",
     the_report_for_people_names_winner_and_crossover},
    {"the_report_for_people_has_thread_scaling_and_shares",
     the_report_for_people_has_thread_scaling_and_shares},
    {"csv_has_one_line_a_profile_and_m", csv_has_one_line_a_profile_and_m},
    {"joules_are_shown_beside_times_with_the_choices_that_nothing_beats",
     joules_are_shown_beside_times_with_the_choices_that_nothing_beats},
    {"an_empty_table_has_nothing_to_report", an_empty_table_has_nothing_to_report},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_analyze[];
CU_SuiteInfo suites_report_analyze[] = {
    {"analyze", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
