/* SPDX-License-Identifier: MIT
 * The main of every suite, checks and random numbers. Knows CUnit and base/, nothing of tensors.
 * Buffers with guards and files are in support_memory.c. */
#include "tests/support.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TND_HAVE_HWLOC
#include <hwloc.h>
#endif

static int skips;

/* ---- running ---- */

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [-s SUITE] [-t TEST] [-l]\n", program);
    return 2;
}

static void list_tests(void)
{
    for (CU_pSuite suite = CU_get_registry()->pSuite; suite != NULL; suite = suite->pNext) {
        for (CU_pTest test = suite->pTest; test != NULL; test = test->pNext) {
            printf("%s: %s\n", suite->pName, test->pName);
        }
    }
}

/** Makes everything inactive that was not asked for. Returns how many tests are left. */
static int select_tests(const char *suite_name, const char *test_name)
{
    int selected = 0;
    for (CU_pSuite suite = CU_get_registry()->pSuite; suite != NULL; suite = suite->pNext) {
        int in_suite = 0;
        for (CU_pTest test = suite->pTest; test != NULL; test = test->pNext) {
            bool wanted = (suite_name == NULL || strcmp(suite_name, suite->pName) == 0) &&
                          (test_name == NULL || strcmp(test_name, test->pName) == 0);
            CU_set_test_active(test, wanted ? CU_TRUE : CU_FALSE);
            in_suite += wanted ? 1 : 0;
        }
        CU_set_suite_active(suite, in_suite > 0 ? CU_TRUE : CU_FALSE);
        selected += in_suite;
    }
    return selected;
}

static int run_selected(const char *suite_name, const char *test_name)
{
    if (select_tests(suite_name, test_name) == 0) {
        fprintf(stderr, "no test fits -s %s -t %s\n", suite_name ? suite_name : "(any)",
                test_name ? test_name : "(any)");
        return 2;
    }
    /* Deselected tests are no failures. */
    CU_set_fail_on_inactive(CU_FALSE);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    /* Failure records, not failed assertions: a suite whose init fails has no assertion. And never
     * a count as exit code: it would wrap at 256. */
    bool failed = CU_get_number_of_failure_records() > 0 || CU_get_number_of_tests_run() == 0;
    printf("TANDEM-SUITE passed=%u failed=%u skipped=%d seed=%llu\n",
           CU_get_number_of_tests_run() - CU_get_number_of_tests_failed(),
           CU_get_number_of_tests_failed() + CU_get_number_of_suites_failed(), skips,
           (unsigned long long)tnd_test_seed());
    return failed ? 1 : 0;
}

/* While one topology lives, hwloc keeps its plug-ins: tests open runtimes by the hundred, and
 * loading them each time was half of the time of some suites. It lives to the end: ThreadSanitizer
 * gives up when a library is unloaded beside OpenBLAS. */
static void keep_plugins(void)
{
#ifdef TND_HAVE_HWLOC
    static hwloc_topology_t topology;
    (void)hwloc_topology_init(&topology);
#endif
}

int tnd_suites_run(int argc, char **argv, CU_SuiteInfo *suites, ...)
{
    const char *suite_name = NULL;
    const char *test_name = NULL;
    bool list = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-l") == 0) {
            list = true;
        } else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
            suite_name = argv[++i];
        } else if (strcmp(argv[i], "-t") == 0 && i + 1 < argc) {
            test_name = argv[++i];
        } else {
            return usage(argv[0]);
        }
    }
    /* Output must survive a crash of a later test. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (CU_initialize_registry() != CUE_SUCCESS) {
        fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
        return 2;
    }
    CU_set_error_action(CUEA_FAIL);
    int code = 0;
    va_list arrays;
    va_start(arrays, suites);
    for (CU_SuiteInfo *array = suites; array != NULL; array = va_arg(arrays, CU_SuiteInfo *)) {
        if (CU_register_suites(array) != CUE_SUCCESS) {
            fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
            code = 2;
        }
    }
    va_end(arrays);
    if (code == 0 && list) {
        list_tests();
    } else if (code == 0) {
        /* The tables that a user's own runs have stored are none of a test's; tests/process.sh
         * names a folder for all suites. */
        (void)setenv("XDG_CACHE_HOME", tnd_test_temp("cache"), 0);
        keep_plugins();
        code = run_selected(suite_name, test_name);
    }
    CU_cleanup_registry();
    return code;
}

void tnd_skip(const char *format, ...)
{
    CU_pTest test = CU_get_current_test();
    va_list arguments;
    va_start(arguments, format);
    printf("\n    SKIP %s: ", test != NULL ? test->pName : "(suite)");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    skips++;
}

int tnd_effort(void)
{
    const char *text = getenv("TANDEM_TEST_EFFORT");
    int effort = text != NULL ? atoi(text) : 2;
    return effort < 1 ? 1 : effort > 3 ? 3 : effort;
}

/* ---- checks ---- */

/** One CUnit assertion; CUnit copies the text. */
static bool report(bool held, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool report(bool held, const char *file, int line, const char *format, ...)
{
    char text[1024];
    text[0] = '\0';
    if (!held) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
    }
    CU_assertImplementation(held ? CU_TRUE : CU_FALSE, (unsigned)line, text, file, "", CU_FALSE);
    return held;
}

bool tnd_check_status(enum tandem_status got, enum tandem_status want, const char *part,
                      const struct tandem_error *error, const char *what, const char *file,
                      int line)
{
    const char *text = error != NULL && got != TANDEM_OK ? error->text : "";
    if (got != want) {
        return report(false, file, line, "%s: status %s, expected %s (%s)", what,
                      tandem_status_name(got), tandem_status_name(want), text);
    }
    if (part != NULL && error != NULL && strstr(text, part) == NULL) {
        return report(false, file, line, "%s: message \"%s\" lacks \"%s\"", what, text, part);
    }
    return report(true, file, line, "%s", "");
}

/** Keeps the sums of one comparison. */
struct nmse {
    double difference;
    double norm;
    int64_t bad; /**< first index where a value is not a number or infinite; -1: none */
};

static void nmse_add(struct nmse *sum, int64_t i, double got, double want)
{
    if (sum->bad < 0 && !(isfinite(got) && isfinite(want))) {
        sum->bad = i;
    }
    sum->difference += (got - want) * (got - want);
    sum->norm += want * want;
}

static bool nmse_report(const struct nmse *sum, double limit, const char *what, const char *file,
                        int line)
{
    if (sum->bad >= 0) {
        return report(false, file, line, "%s: value %lld is not finite (seed %llu)", what,
                      (long long)sum->bad, (unsigned long long)tnd_test_seed());
    }
    /* All zeros wanted: the plain sum of squares stands in for the ratio. */
    double error = sum->norm > 0 ? sum->difference / sum->norm : sum->difference;
    return report(error <= limit, file, line, "%s: error %.3g, limit %.3g (seed %llu)", what, error,
                  limit, (unsigned long long)tnd_test_seed());
}

bool tnd_check_nmse(const float *got, const float *want, int64_t n, double limit, const char *what,
                    const char *file, int line)
{
    struct nmse sum = {0, 0, -1};
    for (int64_t i = 0; i < n; i++) {
        nmse_add(&sum, i, (double)got[i], (double)want[i]);
    }
    return nmse_report(&sum, limit, what, file, line);
}

bool tnd_check_nmse_double(const float *got, const double *want, int64_t n, double limit,
                           const char *what, const char *file, int line)
{
    struct nmse sum = {0, 0, -1};
    for (int64_t i = 0; i < n; i++) {
        nmse_add(&sum, i, (double)got[i], want[i]);
    }
    return nmse_report(&sum, limit, what, file, line);
}

bool tnd_check_bits(const void *got, const void *want, size_t bytes, const char *what,
                    const char *file, int line)
{
    const unsigned char *a = got;
    const unsigned char *b = want;
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] != b[i]) {
            return report(false, file, line,
                          "%s: byte %zu of %zu is 0x%02x, not 0x%02x (seed %llu)", what, i, bytes,
                          a[i], b[i], (unsigned long long)tnd_test_seed());
        }
    }
    return report(true, file, line, "%s", "");
}

bool tnd_check_int(int64_t got, int64_t want, const char *what, const char *file, int line)
{
    return report(got == want, file, line, "%s is %lld, expected %lld", what, (long long)got,
                  (long long)want);
}

bool tnd_check_string(const char *got, const char *want, const char *what, const char *file,
                      int line)
{
    bool same = got != NULL && want != NULL && strcmp(got, want) == 0;
    return report(same, file, line, "%s is \"%s\", expected \"%s\"", what, got ? got : "(null)",
                  want ? want : "(null)");
}

bool tnd_check_contains(const char *text, const char *part, const char *what, const char *file,
                        int line)
{
    bool found = text != NULL && part != NULL && strstr(text, part) != NULL;
    return report(found, file, line, "%s is \"%s\", which lacks \"%s\"", what,
                  text ? text : "(null)", part ? part : "(null)");
}

/* ---- random numbers: splitmix64 (Steele, Lea, Flood 2014, figure 17) ---- */

uint64_t tnd_test_seed(void)
{
    const char *text = getenv("TANDEM_TEST_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

struct tnd_test_rng tnd_test_rng_new(uint64_t seed)
{
    struct tnd_test_rng rng = {seed * UINT64_C(0x2545F4914F6CDD1D) + tnd_test_seed()};
    return rng;
}

uint64_t tnd_test_rng_next(struct tnd_test_rng *rng)
{
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t tnd_test_rng_int(struct tnd_test_rng *rng, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    uint64_t drawn = tnd_test_rng_next(rng);
    return (int64_t)((uint64_t)low + (span == 0 ? drawn : drawn % span));
}

float tnd_test_rng_float(struct tnd_test_rng *rng)
{
    /* 24 bits fill a float's significand exactly. */
    return (float)(tnd_test_rng_next(rng) >> 40) * (1.0f / 8388608.0f) - 1.0f;
}

void tnd_test_fill(struct tnd_test_rng *rng, float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        values[i] = tnd_test_rng_float(rng);
    }
}
