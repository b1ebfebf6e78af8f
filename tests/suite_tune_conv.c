/* SPDX-License-Identifier: MIT
 * Methods of convolutions by a table: measured times, times near, errors, the rule. */
#include <string.h>

#include "tests/support_tune.h"
#include "tune/conv_choice.h"
#include "tune/policy.h"

enum { THREADS = 2, COUNT = 20 };

/* 3 x 3, 64 channels and filters, 28 x 28 places: Winograd's by rule. */
static struct tnd_conv_question usual(void)
{
    struct tnd_conv_question question = {.may = {true, true, true}, .winograd_gain = 2.25};
    question.shape = (struct tnd_conv_shape){.n = 2,
                                             .images = 1,
                                             .channels = 64,
                                             .filters = 64,
                                             .groups = 1,
                                             .window = {3, 3},
                                             .stride = {1, 1},
                                             .dilation = {1, 1},
                                             .padding = {1, 1},
                                             .result = {28, 28},
                                             .is_followed = true};
    return question;
}

static void add(tandem_table *table, const struct tnd_conv_shape *shape,
                enum tnd_conv_method method, double us, double spread_us, uint32_t count)
{
    struct tnd_conv_time record;
    tnd_conv_key(shape, method, THREADS, &record);
    record.median_us = us;
    record.spread_us = spread_us;
    record.count = count;
    record.when = 1;
    check_ok(tnd_record_add(table, TND_RECORD_CONVOLUTIONS, &record));
}

/* Direct, im2col, Winograd; below 0: not measured. */
static void add_all(tandem_table *table, const struct tnd_conv_shape *shape, double direct,
                    double columns, double winograd)
{
    const double us[] = {direct, columns, winograd};
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        if (us[method] >= 0) {
            add(table, shape, (enum tnd_conv_method)method, us[method], 0, COUNT);
        }
    }
}

static void what_was_measured_decides(void)
{
    const struct tnd_conv_question question = usual();
    struct tnd_conv_choice choice;
    tandem_table *table = tune_new();
    add_all(table, &question.shape, 50, 90, 100);
    tnd_conv_choose(table, THREADS, &question, &choice);
    check_int(choice.method, TND_CONV_DIRECT);
    check_int(choice.by_rule, TND_CONV_WINOGRAD);
    CU_ASSERT_TRUE(choice.is_measured);
    CU_ASSERT_EQUAL(choice.times[TND_CONV_COLUMNS].us, 90);
    CU_ASSERT_DOUBLE_EQUAL(choice.times[TND_CONV_COLUMNS].error_us, 90 * TND_ERROR_LINE, 1e-9);
    struct tnd_conv_question fewer = question;
    fewer.may[TND_CONV_DIRECT] = false;
    tnd_conv_choose(table, THREADS, &fewer, &choice);
    check_int(choice.method, TND_CONV_COLUMNS);
    tandem_table_free(table);
}

static void without_times_the_rule_decides(void)
{
    struct tnd_conv_question question = usual();
    struct tnd_conv_choice choice;
    tandem_table *table = tune_new();
    tnd_conv_choose(NULL, THREADS, &question, &choice);
    check_int(choice.method, TND_CONV_WINOGRAD);
    CU_ASSERT_FALSE(choice.is_measured);
    add_all(table, &question.shape, 50, 90, 100);
    tnd_conv_choose(table, THREADS + 1, &question, &choice); /* other threads */
    CU_ASSERT_FALSE(choice.is_measured);
    question.shape.is_followed = false;
    tnd_conv_choose(table, THREADS, &question, &choice);
    CU_ASSERT_FALSE(choice.is_measured);
    question = usual();
    question.for_device = true;
    question.may[TND_CONV_WINOGRAD] = false;
    tnd_conv_choose(table, THREADS, &question, &choice); /* the times are the CPU's */
    check_int(choice.method, TND_CONV_COLUMNS);
    CU_ASSERT_FALSE(choice.is_measured);
    tandem_table_free(table);
    table = tune_new();
    question = usual();
    add_all(table, &question.shape, 50, 90, -1); /* nothing to compare the rule's method with */
    tnd_conv_choose(table, THREADS, &question, &choice);
    check_int(choice.method, TND_CONV_WINOGRAD);
    CU_ASSERT_FALSE(choice.is_measured);
    tandem_table_free(table);
}

static void a_lead_within_the_errors_leaves_the_rule(void)
{
    const struct tnd_conv_question question = usual();
    static const struct {
        double us, spread_us;
        uint32_t count;
        enum tnd_conv_method method;
    } cases[] = {{99, 0, COUNT, TND_CONV_WINOGRAD}, /* 2 % of each are sure */
                 {95, 0, COUNT, TND_CONV_DIRECT},   {80, 0, COUNT, TND_CONV_DIRECT},
                 {80, 60, 9, TND_CONV_WINOGRAD}, /* noisy */
                 {95, 0, 1, TND_CONV_WINOGRAD},  /* a single sample */
                 {80, 0, 1, TND_CONV_DIRECT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_conv_choice choice;
        tandem_table *table = tune_new();
        add(table, &question.shape, TND_CONV_WINOGRAD, 100, 0, COUNT);
        add(table, &question.shape, TND_CONV_DIRECT, cases[i].us, cases[i].spread_us,
            cases[i].count);
        tnd_conv_choose(table, THREADS, &question, &choice);
        check_int(choice.method, cases[i].method);
        CU_ASSERT_TRUE(choice.is_measured);
        tandem_table_free(table);
    }
}

static void what_is_near_tells_with_an_error_that_says_so(void)
{
    struct tnd_conv_question question = usual();
    struct tnd_conv_choice choice;
    tandem_table *table = tune_new();
    struct tnd_conv_shape smaller = question.shape;
    struct tnd_conv_shape larger = question.shape;
    smaller.result[0] = smaller.result[1] = 20;
    larger.result[0] = larger.result[1] = 40;
    add_all(table, &smaller, 40, 70, 80);
    add_all(table, &larger, 160, 280, 320); /* four times the places, four times the time */
    tnd_conv_choose(table, THREADS, &question, &choice);
    check_int(choice.method, TND_CONV_DIRECT);
    CU_ASSERT_TRUE(choice.is_measured);
    const struct tnd_conv_estimate *direct = &choice.times[TND_CONV_DIRECT];
    check_int(direct->n_near, 2);
    CU_ASSERT_DOUBLE_EQUAL(direct->us, 40.0 * 28 * 28 / 400, 0.5);
    CU_ASSERT_TRUE(direct->error_us > TND_ERROR_BEYOND * 0.9 * direct->us);
    /* the nearer one counts more */
    tandem_table_free(table);
    table = tune_new();
    larger.result[0] = larger.result[1] = 30;
    add_all(table, &smaller, 40, 70, 80);
    add_all(table, &larger, 180, 280, 320);
    tnd_conv_estimate(table, &question.shape, TND_CONV_DIRECT, THREADS, &choice.times[0]);
    CU_ASSERT_TRUE(choice.times[0].us > 0.8 * 180 * 784 / 900);
    /* a lead that a doubling may turn does not count */
    tandem_table_free(table);
    table = tune_new();
    larger.result[0] = larger.result[1] = 40;
    add_all(table, &larger, 95, 200, 100);
    tnd_conv_choose(table, THREADS, &question, &choice);
    check_int(choice.method, TND_CONV_WINOGRAD);
    tandem_table_free(table);
}

static void convolutions_far_away_tell_nothing(void)
{
    struct tnd_conv_question question = usual();
    struct tnd_conv_estimate time;
    for (int i = 0; i < 7; i++) {
        tandem_table *table = tune_new();
        struct tnd_conv_shape other = question.shape;
        other.channels *= i == 0 ? 5 : 1;
        other.result[0] *= i == 1 ? 5 : 1;
        other.window[1] += i == 2;
        other.stride[0] += i == 3;
        other.groups *= i == 4 ? 2 : 1;
        other.dilation[1] += i == 5;
        other.is_followed = i != 6;
        add_all(table, &other, 50, 90, 100);
        tnd_conv_estimate(table, &question.shape, TND_CONV_DIRECT, THREADS, &time);
        CU_ASSERT_TRUE(time.us < 0);
        tandem_table_free(table);
    }
}

static void texts_that_are_no_extents_are_passed_over(void)
{
    static const char *const texts[] = {
        "", "x", "28", "28x", "28x28x28x28", "0x28", "28x28 ", "99999999999999999999x1", "-3x4"};
    struct tnd_conv_question question = usual();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tnd_conv_time record;
        struct tnd_conv_shape shape = {.n = 77};
        tnd_conv_key(&question.shape, TND_CONV_DIRECT, THREADS, &record);
        memset(record.result, 0, sizeof(record.result));
        strcpy(record.result, texts[i]);
        CU_ASSERT_FALSE(tnd_conv_shape_of(&record, &shape));
        check_int(shape.n, 77);
    }
}

static void add_on(tandem_table *table, const struct tnd_conv_shape *shape,
                   enum tnd_conv_method method, const char *device, double us)
{
    struct tnd_conv_time record;
    tnd_conv_key(shape, method, 1, &record);
    strcpy(record.device, device);
    record.median_us = us;
    record.count = COUNT;
    check_ok(tnd_record_add(table, TND_RECORD_CONVOLUTIONS, &record));
}

static void a_device_has_times_of_its_own(void)
{
    struct tnd_conv_question question = usual();
    struct tnd_conv_choice choice;
    struct tnd_text text = TND_TEXT_INIT;
    tandem_table *table = tune_new();
    add_all(table, &question.shape, 50, 90, 100);
    add_on(table, &question.shape, TND_CONV_DIRECT, "sim", 8);
    add_on(table, &question.shape, TND_CONV_COLUMNS, "sim", 20);
    add_on(table, &question.shape, TND_CONV_DIRECT, "sim1", 30);
    add_on(table, &question.shape, TND_CONV_COLUMNS, "sim1", 10);
    check_int(table->n_convolutions, 7);
    tnd_conv_choose(table, THREADS, &question, &choice);
    CU_ASSERT_EQUAL(choice.times[TND_CONV_DIRECT].us, 50);
    tnd_conv_explain_on(table, "sim", &question, &text);
    check_string(tnd_text_string(&text),
                 "conv:f32:w3x3:c64:f64:r28x28:p1x1:e\n"
                 "  direct on sim: the fastest that was measured;  direct 8.0 +- 0.2 us  im2col "
                 "20.0 +- 0.4 us\n");
    tnd_text_clear(&text);
    question = tnd_conv_question_on(&question, "sim1");
    tnd_conv_choose(table, THREADS, &question, &choice);
    check_int(choice.method, TND_CONV_COLUMNS);
    tnd_conv_explain_json(&choice, THREADS, &text);
    check_contains(tnd_text_string(&text), "\"by_rule\": \"im2col\", \"device\": \"sim1\", ");
    question = tnd_conv_question_on(&question, "sim2"); /* of which nothing is known */
    tnd_conv_choose(table, THREADS, &question, &choice);
    CU_ASSERT_FALSE(choice.is_measured);
    tnd_text_fini(&text);
#ifdef TND_HAVE_CJSON
    text = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table *read = tune_parse(tnd_text_string(&text));
    check_int(read->n_convolutions, 7);
    for (int i = 0; i < read->n_convolutions; i++) {
        check_string(read->convolutions[i].device, table->convolutions[i].device);
    }
    tandem_table_free(read);
    tnd_text_fini(&text);
#endif
    tandem_table_free(table);
}

static void a_net_is_for_a_device_that_is_clearly_faster(void)
{
    struct tnd_conv_shape shapes[3] = {usual().shape, usual().shape, usual().shape};
    tandem_table *table = tune_new();
    shapes[1].filters = 8;
    shapes[2].window[0] = 5; /* never measured */
    shapes[2].filters = 1;
    CU_ASSERT_FALSE(tnd_conv_prefers_device(NULL, THREADS, "sim", shapes, 3));
    add_all(table, &shapes[0], 50, -1, 60);
    add_all(table, &shapes[1], 20, 30, -1);
    add_on(table, &shapes[0], TND_CONV_COLUMNS, "sim", 15);
    CU_ASSERT_TRUE(tnd_conv_prefers_device(table, THREADS, "sim", shapes, 3));
    CU_ASSERT_FALSE(tnd_conv_prefers_device(table, THREADS, "sim1", shapes, 3));
    CU_ASSERT_FALSE(tnd_conv_prefers_device(table, THREADS + 1, "sim", shapes, 3));
    add_on(table, &shapes[1], TND_CONV_DIRECT, "sim", 21); /* 36 of 70, and the error bars */
    CU_ASSERT_FALSE(tnd_conv_prefers_device(table, THREADS, "sim", shapes, 3));
    shapes[2].filters = 64; /* most of the work is unknown */
    CU_ASSERT_FALSE(tnd_conv_prefers_device(table, THREADS, "sim", shapes + 2, 1));
    tandem_table_free(table);
}

static void a_choice_is_explained(void)
{
    struct tnd_conv_question question = usual();
    struct tnd_conv_choice choice;
    struct tnd_text text = TND_TEXT_INIT;
    tandem_table *table = tune_new();
    add_all(table, &question.shape, 50, -1, 100);
    tnd_conv_choose(table, THREADS, &question, &choice);
    tnd_conv_explain(&choice, THREADS, &text);
    check_string(tnd_text_string(&text),
                 "conv:f32:w3x3:c64:f64:r28x28:p1x1:e:t2\n"
                 "  direct: the fastest that was measured;  direct 50.0 +- 1.0 us  im2col not "
                 "measured  winograd 100.0 +- 2.0 us\n");
    tnd_text_clear(&text);
    tnd_conv_explain_json(&choice, THREADS, &text);
    check_string(tnd_text_string(&text),
                 "{\"problem\": \"conv:f32:w3x3:c64:f64:r28x28:p1x1:e:t2\", \"method\": "
                 "\"direct\", \"by_rule\": \"winograd\", \"is_measured\": true, \"reason\": \"the "
                 "fastest that was measured\", \"methods\": {\"direct\": {\"us\": 50, "
                 "\"error_us\": 1, \"near\": 0}, \"im2col\": null, \"winograd\": {\"us\": 100, "
                 "\"error_us\": 2, \"near\": 0}}}");
    tnd_text_fini(&text);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"what_was_measured_decides", what_was_measured_decides},
    {"without_times_the_rule_decides", without_times_the_rule_decides},
    {"a_lead_within_the_errors_leaves_the_rule", a_lead_within_the_errors_leaves_the_rule},
    {"what_is_near_tells_with_an_error_that_says_so",
     what_is_near_tells_with_an_error_that_says_so},
    {"convolutions_far_away_tell_nothing", convolutions_far_away_tell_nothing},
    {"texts_that_are_no_extents_are_passed_over", texts_that_are_no_extents_are_passed_over},
    {"a_device_has_times_of_its_own", a_device_has_times_of_its_own},
    {"a_net_is_for_a_device_that_is_clearly_faster", a_net_is_for_a_device_that_is_clearly_faster},
    {"a_choice_is_explained", a_choice_is_explained},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_conv[];
CU_SuiteInfo suites_tune_conv[] = {
    {"methods of convolutions", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
