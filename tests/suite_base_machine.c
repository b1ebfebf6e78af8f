/* SPDX-License-Identifier: MIT
 * Status, log, options, clock, CPU, environment, random numbers, hashes, optional libraries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/isa-list.h"
#include "base/dl.h"
#include "base/environment.h"
#include "base/hash.h"
#include "base/options.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/tnd_log.h"
#include "tests/suite_base.h"

static void every_status_has_a_name_and_a_sentence(void)
{
#define STATUS_ROW(name, number, text)                                                             \
    check_string(tandem_status_name((enum tandem_status)(number)), #name);                         \
    check_string(tandem_status_text((enum tandem_status)(number)), text);
    TANDEM_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
    check_string(tandem_status_name((enum tandem_status)9999), "UNKNOWN");
    CU_ASSERT_PTR_NOT_NULL(tandem_status_text((enum tandem_status)9999));
    check_string(tandem_version(), TANDEM_VERSION_STRING);
}

static void errors_are_filled_cut_and_optional(void)
{
    struct tandem_error error;
    char longer[400];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CU_ASSERT_EQUAL(tnd_error_set(NULL, TANDEM_E_SHAPE, "w", 1, 2, "%d", 3), TANDEM_E_SHAPE);
    check_status(tnd_error_set(&error, TANDEM_E_SHAPE, "w", 1, 2, "K is %d", 3), TANDEM_E_SHAPE,
                 "K is 3", &error);
    CU_ASSERT_TRUE(error.got == 1 && error.limit == 2);
    check_string(error.where, "w");
    tnd_error_set(&error, TANDEM_E_FILE, NULL, 0, 0, "again: %s", error.text);
    check_string(error.text, "again: K is 3");
    tnd_error_set(&error, TANDEM_E_FILE, longer, 0, 0, "%s", longer);
    check_int(strlen(error.text), sizeof(error.text) - 1);
    check_int(strlen(error.where), sizeof(error.where) - 1);
}

static char heard[600];
static int n_heard;

static void hear(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    n_heard++;
    strcpy(heard, text);
    CU_ASSERT_TRUE(user == heard && level == TANDEM_LOG_WARN && strcmp(room, "base") == 0);
}

static void log_lines_pass_the_level_and_are_cut(void)
{
    struct tnd_log log = {hear, heard, TANDEM_LOG_WARN};
    char longer[1000];
    memset(longer, 'y', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    n_heard = 0;
    tnd_log_line(NULL, TANDEM_LOG_WARN, "base", "nobody");
    tnd_log_line(&(struct tnd_log){0}, TANDEM_LOG_WARN, "base", "nobody");
    tnd_log_line(&log, TANDEM_LOG_INFO, "base", "too chatty");
    check_int(n_heard, 0);
    tnd_log_line(&log, TANDEM_LOG_WARN, "base", "%s %d", "line", 1);
    check_string(heard, "line 1");
    tnd_log_line(&log, TANDEM_LOG_WARN, "base", "%s", longer);
    check_int(strlen(heard), 511);
}

struct some_options {
    size_t size;
    int a;
    int b;
};

static void options_of_other_sizes_are_understood_or_refused(void)
{
    struct tandem_error error;
    struct some_options out = {sizeof(out), 1, 2};
    struct {
        struct some_options known;
        int64_t more;
    } longer = {{sizeof(longer), 5, 6}, 0};
    check_ok(tnd_options_read(NULL, "some", &out, sizeof(out), NULL));
    CU_ASSERT_TRUE(out.a == 1 && out.b == 2);
    struct some_options shorter = {offsetof(struct some_options, b), 3, 4};
    check_ok(tnd_options_read(&shorter, "some", &out, sizeof(out), NULL));
    CU_ASSERT_TRUE(out.a == 3 && out.b == 2);
    check_ok(tnd_options_read(&longer, "some", &out, sizeof(out), NULL));
    CU_ASSERT_TRUE(out.a == 5 && out.b == 6);
    longer.more = 1;
    check_status(tnd_options_read(&longer, "some", &out, sizeof(out), &error), TANDEM_E_ABI, "some",
                 &error);
    shorter.size = 0;
    check_status(tnd_options_read(&shorter, "some", &out, sizeof(out), &error), TANDEM_E_ABI,
                 "size", &error);
}

static void the_virtual_clock_moves_only_when_told(void)
{
    struct tnd_clock_virtual clock;
    tnd_clock_virtual_init(&clock, 100);
    const struct tnd_clock *face = &clock.clock;
    check_int(face->now_ns(face), 100);
    tnd_clock_virtual_advance(&clock, 50);
    check_int(face->now_ns(face), 150);
    face->wait_until_ns(face, 120); /* the past: no way back */
    check_int(face->now_ns(face), 150);
    face->wait_until_ns(face, 400);
    check_int(face->now_ns(face), 400);
    check_int(face->thread_ns(face), 400);
    tnd_clock_virtual_steal(&clock, 30);
    check_int(face->now_ns(face), 430);
    check_int(face->thread_ns(face), 400);
}

static void a_time_is_split_into_seconds_and_their_rest(void)
{
    static const uint64_t ns[][3] = {
        {0, 0, 0}, {999999999, 0, 999999999}, {1000000000, 1, 0}, {2500000000, 2, 500000000}};
    for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
        const struct timespec time = tnd_timespec(ns[i][0]);
        check_int(time.tv_sec, ns[i][1]);
        check_int(time.tv_nsec, ns[i][2]);
    }
}

static void the_real_clock_never_goes_back_and_waits_long_enough(void)
{
    const struct tnd_clock *clock = tnd_clock_real();
    uint64_t before = clock->now_ns(clock);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock->now_ns(clock);
        CU_ASSERT_FATAL(now >= before);
        before = now;
    }
    clock->wait_until_ns(clock, before + 1000);
    CU_ASSERT_TRUE(clock->now_ns(clock) >= before + 1000);
}

static void levels_mask_cpu_features(void)
{
    uint32_t everything = UINT32_MAX;
    uint32_t all = tnd_cpu_features_all();
    CU_ASSERT_EQUAL(tnd_cpu_mask(all, "scalar"), 0);
#define LEVEL(name, features, files) CU_ASSERT_EQUAL(tnd_cpu_mask(everything, #name), features);
    TND_ISA_LIST(LEVEL, NONE)
#undef LEVEL
    CU_ASSERT_EQUAL(tnd_cpu_mask(all, NULL), all);
    CU_ASSERT_EQUAL(tnd_cpu_mask(all, "pentium"), all);
    CU_ASSERT_EQUAL(tnd_cpu_features(), tnd_cpu_mask(all, getenv("TANDEM_CPU")));
    const uint32_t vnni = TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI;
    const uint32_t bf16 = vnni | (uint32_t)TND_CPU_AVX512_BF16;
    check_string(tnd_cpu_isa_name(0), "scalar");
    check_string(tnd_cpu_isa_name(TND_CPU_SET_AVX2), "avx2");
    check_string(tnd_cpu_isa_name(TND_CPU_SET_AVX2 | (uint32_t)TND_CPU_AVX_VNNI), "avx2+vnni");
    check_string(tnd_cpu_isa_name(TND_CPU_SET_AVX512), "avx512");
    check_string(tnd_cpu_isa_name(vnni), "avx512+vnni");
    check_string(tnd_cpu_isa_name(bf16), "avx512+vnni+bf16");
    check_string(tnd_cpu_isa_name(bf16 | (uint32_t)TND_CPU_AMX_INT8), "avx512+vnni+bf16");
    check_string(tnd_cpu_isa_name(bf16 | TND_CPU_SET_AMX), "avx512+vnni+bf16+amx");
    check_string(tnd_cpu_isa_name(TND_CPU_SET_AMX), "avx512+vnni+amx");
    check_string(tnd_cpu_isa_name(TND_CPU_NEON | TND_CPU_DOTPROD), "neon+dotprod");
}

/* A machine with AMX was told that AMX is in use, before there were kernels for it. */
static void features_that_no_kernel_uses_are_not_named(void)
{
    check_int(tnd_cpu_used(0), 0);
#define LEVEL(name, features, files) CU_ASSERT_EQUAL(tnd_cpu_used(features), features);
    TND_ISA_LIST(LEVEL, NONE)
#undef LEVEL
#if defined(__x86_64__)
    const uint32_t all = TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI;
    const uint32_t bf16 = (uint32_t)TND_CPU_AVX512_BF16;
    check_string(tnd_cpu_isa_name(tnd_cpu_used(all)), "avx512+vnni");
    check_string(tnd_cpu_isa_name(tnd_cpu_used(all | (uint32_t)TND_CPU_AMX_INT8)), "avx512+vnni");
    check_string(tnd_cpu_isa_name(tnd_cpu_used(all | TND_CPU_SET_AMX)), "avx512+vnni+amx");
    /* What a set of files needs only in part is not used. */
    check_int(tnd_cpu_used(TND_CPU_AVX2), 0);
    check_string(tnd_cpu_isa_name(tnd_cpu_used(TND_CPU_SET_AVX512 | bf16)), "avx512");
#endif
}

static int n_asked;

static int refuse_tiles(void)
{
    n_asked++;
    return -1;
}

static int permit_tiles(void)
{
    n_asked++;
    return 0;
}

/* Without permission the first tile instruction would end the process. */
static void tiles_are_used_only_with_permission(void)
{
    const uint32_t vnni = TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI;
    n_asked = 0;
    check_int(tnd_cpu_permit_tiles(vnni, refuse_tiles), vnni);
    check_int(n_asked, 0);
    check_int(tnd_cpu_permit_tiles(TND_CPU_SET_AMX, refuse_tiles), vnni);
    check_int(tnd_cpu_permit_tiles((uint32_t)TND_CPU_AMX_INT8, refuse_tiles), 0);
    check_int(tnd_cpu_permit_tiles((uint32_t)TND_CPU_AMX_BF16, refuse_tiles), 0);
    check_int(n_asked, 3);
    check_int(tnd_cpu_permit_tiles(TND_CPU_SET_AMX, permit_tiles), TND_CPU_SET_AMX);
}

/* A level that no kernel is written for would run the kernels of a lower one under its name. */
static void levels_without_kernels_are_not_offered(void)
{
    static const char *const without[] = {
        "sse2",
#if defined(__x86_64__)
        "neon",
        "dotprod",
        "i8mm"
    };
#else
        "avx2",
        "avx512",
        "vnni"
    };
#endif
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        CU_ASSERT_EQUAL(tnd_cpu_mask(UINT32_MAX, without[i]), UINT32_MAX);
    }
}

static void features_agree_with_the_compiler(void)
{
#if defined(__x86_64__)
    uint32_t all = tnd_cpu_features_all();
    __builtin_cpu_init();
    CU_ASSERT_EQUAL((all & TND_CPU_AVX2) != 0, __builtin_cpu_supports("avx2") != 0);
    CU_ASSERT_EQUAL((all & TND_CPU_FMA) != 0, __builtin_cpu_supports("fma") != 0);
    CU_ASSERT(((all & TND_CPU_GFNI) != 0) == (__builtin_cpu_supports("gfni") != 0));
    CU_ASSERT_EQUAL((all & TND_CPU_BMI2) != 0, __builtin_cpu_supports("bmi2") != 0);
    CU_ASSERT_EQUAL((all & TND_CPU_AVX512F) != 0, __builtin_cpu_supports("avx512f") != 0);
    CU_ASSERT_EQUAL((all & TND_CPU_AVX512BW) != 0, __builtin_cpu_supports("avx512bw") != 0);
    CU_ASSERT_EQUAL((all & TND_CPU_AVX512VL) != 0, __builtin_cpu_supports("avx512vl") != 0);
    CU_ASSERT_EQUAL((all & TND_CPU_AVX512DQ) != 0, __builtin_cpu_supports("avx512dq") != 0);
    CU_ASSERT_EQUAL((all & TND_CPU_AVX512_VNNI) != 0, __builtin_cpu_supports("avx512vnni") != 0);
#endif
    CU_ASSERT_TRUE(strlen(tnd_cpu_model()) > 0);
#if defined(__x86_64__)
    char vendor[16];
    unsigned int family, number;
    CU_ASSERT_EQUAL(sscanf(tnd_cpu_id(), "%15s %u %u", vendor, &family, &number), 3);
    CU_ASSERT_EQUAL(strlen(vendor), 12);
#endif
    CU_ASSERT_TRUE(tnd_cpu_ram_bytes() > 1 << 20);
    struct tnd_cpu_caches caches = tnd_cpu_caches();
    CU_ASSERT_TRUE(caches.l1d_bytes <= caches.l2_bytes || caches.l2_bytes == 0);
}

static void environment_variables_are_listed_with_a_sentence(void)
{
    for (int i = 0; i < TND_ENVIRONMENT_COUNT; i++) {
        enum tnd_environment_variable variable = (enum tnd_environment_variable)i;
        CU_ASSERT_EQUAL(strncmp(tnd_environment_name(variable), "TANDEM_", 7), 0);
        CU_ASSERT_EQUAL(tnd_environment_text(variable)[strlen(tnd_environment_text(variable)) - 1],
                        '.');
    }
    setenv("TANDEM_TRACE", "/some/file", 1);
    check_string(tnd_environment(TND_ENVIRONMENT_TRACE), "/some/file");
    setenv("TANDEM_TRACE", "", 1);
    CU_ASSERT_PTR_NULL(tnd_environment(TND_ENVIRONMENT_TRACE));
    unsetenv("TANDEM_TRACE");
    CU_ASSERT_PTR_NULL(tnd_environment(TND_ENVIRONMENT_TRACE));
}

struct told {
    int n;
    char text[512]; /* the last one */
};

static void keep_line(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    struct told *told = user;
    (void)level;
    (void)room;
    told->n++;
    snprintf(told->text, sizeof(told->text), "%s", text);
}

static void values_that_do_not_count_are_told_once(void)
{
    static const char *const threads[] = {"abc", "0", "-1", "3x", "1025", "nan", "inf", " "};
    struct told told = {0};
    const struct tnd_log log = {keep_line, &told, TANDEM_LOG_WARN};
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        setenv("TANDEM_THREADS", threads[i], 1);
        CU_ASSERT_PTR_NULL(tnd_environment(TND_ENVIRONMENT_THREADS));
        CU_ASSERT_EQUAL(tnd_environment_number(TND_ENVIRONMENT_THREADS), 0);
    }
    setenv("TANDEM_THREADS", "abc", 1);
    tnd_environment_check(&log);
    check_int(told.n, 1);
    check_string(told.text,
                 "TANDEM_THREADS='abc' is ignored, expected a number above 0, at most 1024");
    setenv("TANDEM_THREADS", "3", 1);
    CU_ASSERT_EQUAL(tnd_environment_number(TND_ENVIRONMENT_THREADS), 3);
    setenv("TANDEM_LOG", "inf", 1);
    CU_ASSERT_PTR_NULL(tnd_environment(TND_ENVIRONMENT_LOG));
    setenv("TANDEM_MAP", "copies", 1);
    tnd_environment_check(&log);
    tnd_environment_check(&log);
    check_int(told.n, 3);
    check_string(told.text, "TANDEM_MAP='copies' is ignored, expected copy");
    setenv("TANDEM_LOG", "info", 1);
    check_string(tnd_environment(TND_ENVIRONMENT_LOG), "info");
    setenv("TANDEM_MAP", "copy", 1);
    check_string(tnd_environment(TND_ENVIRONMENT_MAP), "copy");
    tnd_environment_check(&log);
    check_int(told.n, 3);
    unsetenv("TANDEM_THREADS");
    unsetenv("TANDEM_LOG");
    unsetenv("TANDEM_MAP");
}

/* docs/environment.md is made from the list; TANDEM_TEST_UPDATE=1 writes it anew. */
static void the_page_of_environment_variables_is_that_of_the_list(void)
{
    static const char path[] = "docs/environment.md";
    const char *update = getenv("TANDEM_TEST_UPDATE");
    struct tnd_text page = TND_TEXT_INIT;
    tnd_text_add(&page,
                 "# Environment variables\n\n"
                 "They are for diagnosis only: programs set everything by the options of calls. "
                 "This page is made from\n"
                 "the list in base/environment.h. (`TANDEM_BRIDGE` and "
                 "`TANDEM_BRIDGE_BACKENDS` are read by\n"
                 "`libggml-tandem.so` alone: [bridge.md](bridge.md).)\n"
                 "\n"
                 "A program that has more rights than its user (setuid, capabilities) sees none "
                 "of them. Tables and\n"
                 "compiled kernels are neither read nor written at their usual places when "
                 "every user may write there;\n"
                 "a file that `TANDEM_TABLE` or an option names is used wherever it lies.\n"
                 "\n"
                 "| variable | meaning |\n|---|---|\n");
    for (int i = 0; i < TND_ENVIRONMENT_COUNT; i++) {
        enum tnd_environment_variable variable = (enum tnd_environment_variable)i;
        tnd_text_printf(&page, "| `%s` | %s |\n", tnd_environment_name(variable),
                        tnd_environment_text(variable));
    }
    if (update != NULL && strcmp(update, "1") == 0) {
        CU_ASSERT_TRUE(tnd_test_write_file(path, page.bytes, page.n));
    }
    char *got = tnd_test_read_file(path, NULL);
    check_string(got, tnd_text_string(&page));
    free(got);
    tnd_text_fini(&page);
}

static void random_numbers_are_spread_as_they_should(void)
{
    struct tnd_rng rng, same;
    double sum = 0, squares = 0, normal = 0, normal_squares = 0;
    int counts[7] = {0};
    enum { N = 100000 };
    tnd_rng_init(&rng, 1);
    tnd_rng_init(&same, 1);
    CU_ASSERT_EQUAL(tnd_rng_u64(&rng), tnd_rng_u64(&same));
    for (int i = 0; i < N; i++) {
        float uniform = tnd_rng_float(&rng);
        CU_ASSERT_FATAL(uniform >= 0 && uniform < 1);
        double bell = tnd_rng_normal(&rng);
        sum += uniform;
        squares += uniform * uniform;
        normal += bell;
        normal_squares += bell * bell;
        counts[tnd_rng_below(&rng, 7)]++;
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / N, 0.5, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(squares / N, 1.0 / 3, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(normal / N, 0, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(normal_squares / N, 1, 0.02);
    for (int i = 0; i < 7; i++) {
        CU_ASSERT_TRUE(counts[i] > N / 7 - 600 && counts[i] < N / 7 + 600);
    }
}

static void hashes_differ_in_every_bit(void)
{
    uint64_t hash = tnd_hash_bytes("abc", 3, 0);
    CU_ASSERT_EQUAL(hash, tnd_hash_bytes("abcd", 3, 0));
    CU_ASSERT_NOT_EQUAL(hash, tnd_hash_bytes("abd", 3, 0));
    CU_ASSERT_NOT_EQUAL(hash, tnd_hash_bytes("abc", 3, 1));
    CU_ASSERT_NOT_EQUAL(tnd_hash_string("", 0), tnd_hash_bytes("", 0, 0));
    /* Consecutive numbers fill a small table evenly. */
    int counts[64] = {0}, worst = 0;
    for (uint64_t i = 0; i < 6400; i++) {
        int *count = &counts[tnd_hash_bytes(&i, sizeof(i), 0) & 63];
        ++*count;
        worst = *count > worst ? *count : worst;
    }
    CU_ASSERT_TRUE(worst < 160);
}

struct some_functions {
    double (*cosine)(double);
    int (*absent)(void);
};

static void optional_libraries_are_opened_or_explained(void)
{
    static const struct tnd_dl_symbol wanted[] = {
        TND_DL_REQUIRED(struct some_functions, cosine, "cos"),
        TND_DL_OPTIONAL(struct some_functions, absent, "tandem_no_such_function"),
    };
    static const struct tnd_dl_symbol impossible[] = {
        TND_DL_REQUIRED(struct some_functions, absent, "tandem_no_such_function"),
    };
    static const char *const names[] = {"libtandem-no-such.so.3", "libm.so.6", NULL};
    static const char *const missing[] = {"libtandem-no-such.so.3", NULL};
    struct some_functions table = {NULL, NULL};
    struct tandem_error error;
    void *library = NULL;
    check_status(tnd_dl_open(missing, wanted, 2, &table, &library, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "libtandem-no-such", &error);
    check_status(tnd_dl_open(names, impossible, 1, &table, &library, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "tandem_no_such_function", &error);
    const char *const pipes[] = {tnd_test_temp("library.so"), NULL};
    CU_ASSERT_EQUAL_FATAL(mkfifo(pipes[0], 0600), 0);
    check_status(tnd_dl_open(pipes, wanted, 2, &table, &library, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "library.so; not a regular file", &error);
    unlink(pipes[0]);
    CU_ASSERT_TRUE(library == NULL && table.cosine == NULL);
    check_ok(tnd_dl_open(names, wanted, 2, &table, &library, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(table.cosine);
    CU_ASSERT_EQUAL(table.cosine(0), 1.0);
    CU_ASSERT_TRUE(table.absent == NULL);
    check_contains(tnd_dl_path((void (*)(void))table.cosine), "libm");
    tnd_dl_close(library);
    tnd_dl_close(NULL);
}

CU_TestInfo tnd_tests_base_machine[] = {
    {"every_status_has_a_name_and_a_sentence", every_status_has_a_name_and_a_sentence},
    {"errors_are_filled_cut_and_optional", errors_are_filled_cut_and_optional},
    {"log_lines_pass_the_level_and_are_cut", log_lines_pass_the_level_and_are_cut},
    {"options_of_other_sizes_are_understood_or_refused",
     options_of_other_sizes_are_understood_or_refused},
    {"the_virtual_clock_moves_only_when_told", the_virtual_clock_moves_only_when_told},
    {"a_time_is_split_into_seconds_and_their_rest", a_time_is_split_into_seconds_and_their_rest},
    {"the_real_clock_never_goes_back_and_waits_long_enough",
     the_real_clock_never_goes_back_and_waits_long_enough},
    {"levels_mask_cpu_features", levels_mask_cpu_features},
    {"features_that_no_kernel_uses_are_not_named", features_that_no_kernel_uses_are_not_named},
    {"tiles_are_used_only_with_permission", tiles_are_used_only_with_permission},
    {"levels_without_kernels_are_not_offered", levels_without_kernels_are_not_offered},
    {"features_agree_with_the_compiler", features_agree_with_the_compiler},
    {"environment_variables_are_listed_with_a_sentence",
     environment_variables_are_listed_with_a_sentence},
    {"values_that_do_not_count_are_told_once", values_that_do_not_count_are_told_once},
    {"the_page_of_environment_variables_is_that_of_the_list",
     the_page_of_environment_variables_is_that_of_the_list},
    {"random_numbers_are_spread_as_they_should", random_numbers_are_spread_as_they_should},
    {"hashes_differ_in_every_bit", hashes_differ_in_every_bit},
    {"optional_libraries_are_opened_or_explained", optional_libraries_are_opened_or_explained},
    CU_TEST_INFO_NULL,
};
