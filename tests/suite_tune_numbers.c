/* SPDX-License-Identifier: MIT
 * Numbers of kernels: chosen by the times of a table, and used by an open backend. */
#include <string.h>

#include "tests/support_tune.h"
#include "tune/kernel_numbers.h"

static tandem_table *table;

static void set_up(void)
{
    table = tune_new();
}

static void tear_down(void)
{
    tandem_table_free(table);
}

static void add_of(const char *family, const char *numbers, int64_t m, double us, double spread_us)
{
    struct tnd_kernel_time time = {.backend = "cpu",
                                   .type = TANDEM_TYPE_Q4_0,
                                   .n = 4096,
                                   .k = 4096,
                                   .m = m,
                                   .threads = 1,
                                   .median_us = us,
                                   .spread_us = spread_us,
                                   .count = 12,
                                   .when = 1};
    strcpy(time.family, family);
    strcpy(time.numbers, numbers);
    check_ok(tnd_record_add(table, TND_RECORD_KERNEL_TIMES, &time));
}

static void add(const char *numbers, int64_t m, double us, double spread_us)
{
    add_of("packed_skinny", numbers, m, us, spread_us);
}

static void check_chosen(const char *prior, const char *want)
{
    char out[TND_NUMBERS_MAX];
    tnd_kernel_numbers_choose(table, "cpu", "packed_skinny", prior, out);
    check_string(out, want);
}

static void other_numbers_serve_only_with_a_clear_lead(void)
{
    check_chosen("packed_skinny=48", "packed_skinny=48"); /* nothing is known */
    add("packed_skinny=48", 64, 100, 0.5);
    check_chosen("packed_skinny=48", "packed_skinny=48");
    add("packed_skinny=96", 64, 98.5, 0.5); /* below TND_RULE_LEAD */
    check_chosen("packed_skinny=48", "packed_skinny=48");
    add("packed_skinny=128", 64, 80, 40); /* nobody knows */
    check_chosen("packed_skinny=48", "packed_skinny=48");
    add("packed_skinny=192", 64, 85, 0.5);
    check_chosen("packed_skinny=48", "packed_skinny=192");
    add_of("packed_ahead", "packed_ahead=0", 64, 1, 0); /* of another family */
    check_chosen("packed_skinny=48", "packed_skinny=192");
}

/* The mean gains by 96, which is clearly slower with 64 tokens. */
static void numbers_that_slow_a_product_down_do_not_serve(void)
{
    add("packed_skinny=48", 64, 100, 0.5);
    add("packed_skinny=48", 128, 200, 1);
    add("packed_skinny=96", 64, 110, 0.5);
    add("packed_skinny=96", 128, 120, 1);
    check_chosen("packed_skinny=48", "packed_skinny=48");
    tandem_table_free(table);
    table = tune_new();
    add("packed_skinny=48", 64, 100, 0.5);
    add("packed_skinny=48", 128, 200, 1);
    add("packed_skinny=96", 64, 101, 0.5);
    add("packed_skinny=96", 128, 120, 1);
    check_chosen("packed_skinny=48", "packed_skinny=96");
}

/* Only products that both were measured with are compared. */
static void candidates_are_compared_by_the_same_products(void)
{
    add("packed_skinny=48", 64, 100, 0.5);
    add("packed_skinny=96", 32, 10, 0.1);
    check_chosen("packed_skinny=48", "packed_skinny=48");
    add("packed_skinny=96", 64, 90, 0.5);
    check_chosen("packed_skinny=48", "packed_skinny=96");
    check_chosen("packed_skinny=7", "packed_skinny=96"); /* never measured: the fastest */
}

static void an_open_backend_uses_what_the_table_tells(void)
{
    const struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 1};
    struct tnd_registry *registry = NULL;
    char numbers[TND_NUMBERS_MAX];
    CU_ASSERT_FATAL(tnd_registry_open(&options, &registry, NULL) == TANDEM_OK);
    tandem_backend *cpu = tnd_registry_backend(registry, tnd_registry_find(registry, "cpu", NULL));
    const struct tnd_tuner *tuner = tnd_tuner_of(cpu);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tuner);
    check_ok(tuner->use(cpu, "packed_skinny=48,unpack_part=512", NULL));
    add("packed_skinny=48", 64, 100, 0.5);
    add("packed_skinny=96", 64, 80, 0.5);
    add_of("unpack_part", "unpack_part=512", 256, 100, 0.5);
    add_of("unpack_part", "unpack_part=300", 256, 50, 0.5); /* no multiple of 256 */
    add_of("wings", "wings=2", 64, 80, 0.5);
    tnd_kernel_numbers_use(table, registry, NULL);
    CU_ASSERT_TRUE(tuner->present(cpu, "packed_skinny,unpack_part", numbers));
    check_string(numbers, "packed_skinny=96,unpack_part=512");
    tnd_kernel_numbers_use(NULL, registry, NULL);
    tnd_registry_close(registry);
}

/* A table may have been written by anybody. */
static void numbers_of_hostile_tables_are_refused(void)
{
    static const struct {
        const char *numbers, *part;
    } broken[] = {
        {"", "names no number"},
        {",,", "names no number"},
        {"packed_skinny", "expected 0 to 4096"},
        {"packed_skinny=", "expected 0 to 4096"},
        {"packed_skinny=4097", "expected 0 to 4096"},
        {"packed_skinny=-1", "expected 0 to 4096"},
        {"packed_skinny=99999999999999999999", "expected 0 to 4096"},
        {"packed_skinny=1e2", "expected 0 to 4096"},
        {"packed_skinny=1,packed_skinny=2", "comes twice"},
        {"nonsense=1", "no number of its kernels"},
        {"unpack_part=384", "no multiple of 256"},
    };
    const struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = 1};
    struct tnd_registry *registry = NULL;
    char before[TND_NUMBERS_MAX];
    char after[TND_NUMBERS_MAX];
    CU_ASSERT_FATAL(tnd_registry_open(&options, &registry, NULL) == TANDEM_OK);
    tandem_backend *cpu = tnd_registry_backend(registry, 1);
    const struct tnd_tuner *tuner = tnd_tuner_of(cpu);
    CU_ASSERT_TRUE(tuner->present(cpu, "packed_skinny,unpack_part", before));
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct tandem_error error = {.text = ""};
        check_status(tuner->use(cpu, broken[i].numbers, &error), TANDEM_E_ARGUMENT, broken[i].part,
                     &error);
    }
    CU_ASSERT_TRUE(tuner->present(cpu, "packed_skinny,unpack_part", after));
    check_string(after, before);
    CU_ASSERT_FALSE(tuner->present(cpu, "nonsense", after));
    CU_ASSERT_FALSE(tuner->present(cpu, "", after));
    CU_ASSERT_FALSE(tuner->present(cpu,
                                   "packed_ahead,packed_ahead,packed_ahead,packed_ahead,"
                                   "packed_ahead,packed_ahead,packed_ahead",
                                   after)); /* too long */
    tnd_registry_close(registry);
}

static void times_of_a_backend_whose_numbers_changed_are_stale(void)
{
    struct tnd_curve_key key = tune_key(64, 32, TANDEM_TASK_MUL_MAT_Q, true, 1);
    const struct tnd_sample sample = {.m = 1, .median_us = 5, .count = 3, .when = 1};
    check_ok(tnd_table_add(table, &key, &sample));
    check_int(tnd_table_mark_backend_stale(table, "opencl"), 0);
    check_int(tnd_table_mark_backend_stale(table, key.backend), 1);
    check_int(tnd_table_mark_backend_stale(table, key.backend), 0); /* they are already */
    CU_ASSERT_TRUE(tnd_sample_is_stale(&tnd_table_find(table, &key)->samples[0]));
}

static CU_TestInfo tests[] = {
    {"other_numbers_serve_only_with_a_clear_lead", other_numbers_serve_only_with_a_clear_lead},
    {"numbers_that_slow_a_product_down_do_not_serve",
     numbers_that_slow_a_product_down_do_not_serve},
    {"candidates_are_compared_by_the_same_products", candidates_are_compared_by_the_same_products},
    {"an_open_backend_uses_what_the_table_tells", an_open_backend_uses_what_the_table_tells},
    {"numbers_of_hostile_tables_are_refused", numbers_of_hostile_tables_are_refused},
    {"times_of_a_backend_whose_numbers_changed_are_stale",
     times_of_a_backend_whose_numbers_changed_are_stale},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_numbers[];
CU_SuiteInfo suites_tune_numbers[] = {
    {"numbers", NULL, NULL, set_up, tear_down, tests},
    CU_SUITE_INFO_NULL,
};
