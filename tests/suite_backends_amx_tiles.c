/* SPDX-License-Identifier: MIT
 * Emulated tile instructions: against plain sums, at the edges of their state, and bit for bit
 * against those of a CPU that has them. */
#define TND_TILES_EMULATED
#include "backends/cpu/x86/amx_tiles.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_amx.h"
#include "tests/support.h"

static struct tile_config shapes(int m, int n, int k_rows)
{
    struct tile_config config = {.palette = 1};
    config.rows[0] = config.rows[1] = (uint8_t)m;
    config.row_bytes[0] = config.row_bytes[2] = (uint16_t)(4 * n);
    config.row_bytes[1] = (uint16_t)(4 * k_rows);
    config.rows[2] = (uint8_t)k_rows;
    return config;
}

static void begin(const struct tile_config *config)
{
    tiles_release();
    tiles.fault = TILE_NO_FAULT;
    tiles_configure(config);
    check_int(tiles.fault, TILE_NO_FAULT);
}

static void check_fault(enum tile_fault want)
{
    check_int(tiles.fault, want);
    tiles.fault = TILE_NO_FAULT;
}

/* gcc 12 took the configuration for 8 bytes, and dropped what was stored behind them. */
static void all_of_a_configuration_arrives(void)
{
    struct tile_config got;
    const struct tile_config all = tiles_all();
    check_int(sizeof(all), 64);
    begin(&all);
    tiles_read_config(&got);
    check_bits(&got, &all, sizeof(all), "configuration");
    tiles_release();
    const struct tile_config none = {.palette = 0};
    tiles_read_config(&got);
    check_bits(&got, &none, sizeof(none), "released");
    if ((tnd_cpu_features_all() & (uint32_t)TND_CPU_AMX_INT8) != 0) {
        tnd_test_cpu_tiles_config(&all, &got);
        check_bits(&got, &all, sizeof(all), "configuration of the CPU");
    }
}

static void what_is_no_configuration_is_refused(void)
{
    const struct tile_config good = shapes(3, 4, 5);
    struct tile_config bad[9];
    for (int i = 0; i < 9; i++) {
        bad[i] = good;
    }
    bad[0].palette = 2;
    bad[1].reserved[13] = 1;
    bad[2].row_bytes[0] = 65;
    bad[3].rows[2] = 17;
    bad[4].row_bytes[8] = 4;
    bad[5].rows[15] = 1;
    bad[6].rows[3] = 1; /* of no bytes */
    bad[7].row_bytes[4] = 4;
    bad[8].start_row = 16;
    begin(&good);
    for (int i = 0; i < 9; i++) {
        struct tile_config got;
        tiles_configure(&bad[i]);
        check_fault(TILE_GENERAL_PROTECTION);
        tiles_read_config(&got);
        check_bits(&got, &good, sizeof(good), "configuration before");
    }
    const struct tile_config none = {.palette = 0};
    tiles_configure(&none);
    check_fault(TILE_NO_FAULT);
}

static void tiles_that_do_not_fit_are_undefined(void)
{
    uint8_t memory[TILE_BYTES] = {0};
    tiles_release();
    TILE_ZERO(0);
    check_fault(TILE_UNDEFINED);
    TILE_LOAD(0, memory, 64);
    check_fault(TILE_UNDEFINED);
    TILE_STORE(0, memory, 64);
    check_fault(TILE_UNDEFINED);
    struct tile_config config = shapes(3, 4, 5);
    begin(&config);
    TILE_DOT_S8(0, 1, 2);
    TILE_DOT_BF16(0, 1, 2);
    check_fault(TILE_NO_FAULT);
    TILE_ZERO(3); /* has no rows */
    check_fault(TILE_UNDEFINED);
    TILE_DOT_S8(0, 2, 1);
    check_fault(TILE_UNDEFINED);
    TILE_DOT_S8(0, 0, 2);
    check_fault(TILE_UNDEFINED);
    config = tiles_all();
    begin(&config);
    TILE_DOT_BF16(1, 2, 2); /* one tile twice */
    check_fault(TILE_UNDEFINED);
    tiles_release();
}

static void loads_and_stores_keep_to_their_shape(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const struct tile_config config = shapes(5, 7, 3);
    uint8_t from[5 * 100];
    for (size_t i = 0; i < sizeof(from); i++) {
        from[i] = (uint8_t)tnd_test_rng_next(&rng);
    }
    begin(&config);
    memset(tiles.rows[0], 0xee, TILE_BYTES);
    TILE_LOAD(0, from, 100);
    uint8_t *to = tnd_guarded_alloc(5 * 28, 4);
    TILE_STORE(0, to, 28);
    for (int r = 0; r < 5; r++) {
        check_bits(to + 28 * r, from + 100 * r, 28, "row");
        CU_ASSERT(tiles_are_zero(tiles.rows[0][r] + 28, 64 - 28));
    }
    CU_ASSERT(tiles_are_zero(tiles.rows[0][5], 11 * 64));
    TILE_STREAM(0, from + 400, -100); /* upwards */
    TILE_STORE(0, to, 28);
    check_bits(to, from + 400, 28, "upwards");
    TILE_LOAD(0, from, 0);
    TILE_STORE(0, to, 28);
    check_bits(to + 28 * 4, from, 28, "one row again and again");
    tnd_guarded_free(to);
    tiles_release();
}

/* ---- products ---- */

struct operands {
    _Alignas(64) uint8_t c[TILE_BYTES], a[TILE_BYTES], b[TILE_BYTES];
};

static void run_emulated(const struct tile_config *config, bool is_bf16, struct operands *o)
{
    begin(config);
    TILE_LOAD(0, o->c, 64);
    TILE_LOAD(1, o->a, 64);
    TILE_LOAD(2, o->b, 64);
    if (is_bf16) {
        TILE_DOT_BF16(0, 1, 2);
    } else {
        TILE_DOT_S8(0, 1, 2);
    }
    check_fault(TILE_NO_FAULT);
    TILE_STORE(0, o->c, 64);
    tiles_release();
}

static void fill(struct tnd_test_rng *rng, struct operands *o, bool extreme)
{
    uint8_t *bytes[] = {o->c, o->a, o->b};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < TILE_BYTES; j++) {
            bytes[i][j] = extreme ? (uint8_t)(tnd_test_rng_int(rng, 0, 1) != 0 ? 0x80 : 0x7f)
                                  : (uint8_t)tnd_test_rng_next(rng);
        }
    }
}

/* Sums in 64 bits, cut to 32. */
static void check_int8(const struct operands *before, const struct operands *after, int m, int n,
                       int k)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            int32_t sum;
            int32_t got;
            memcpy(&sum, before->c + 64 * i + 4 * j, 4);
            memcpy(&got, after->c + 64 * i + 4 * j, 4);
            int64_t want = sum;
            for (int at = 0; at < 4 * k; at++) {
                want += (int64_t)(int8_t)before->a[64 * i + at] *
                        (int8_t)before->b[at / 4 * 64 + 4 * j + at % 4];
            }
            check_int((int64_t)(uint32_t)got, (int64_t)(uint32_t)want);
        }
    }
}

static void products_of_bytes_are_exact(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 1);
    static const int sizes[][3] = {{16, 16, 16}, {1, 1, 1}, {16, 3, 7}, {5, 16, 2}, {9, 11, 13}};
    for (int i = 0; i < 10; i++) {
        const int *size = sizes[i / 2];
        struct operands before;
        fill(&rng, &before, i % 2 != 0);
        struct operands after = before;
        struct operands cpu = before;
        const struct tile_config config = shapes(size[0], size[1], size[2]);
        run_emulated(&config, false, &after);
        check_int8(&before, &after, size[0], size[1], size[2]);
        if ((tnd_cpu_features_all() & (uint32_t)TND_CPU_AMX_INT8) != 0) {
            tnd_test_cpu_tiles_dot(&config, false, cpu.c, cpu.a, cpu.b);
            check_bits(cpu.c, after.c, TILE_BYTES, "int8 tiles of the CPU");
        }
    }
}

/* ---- bf16 ---- */

static uint16_t bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    CU_ASSERT_EQUAL_FATAL(bits & 0xffff, 0); /* tests take values that bf16 has */
    return (uint16_t)(bits >> 16);
}

/* c + x . w of n pairs, in the first row and column. */
static float dot(float c, const float *x, const float *w, int n_pairs)
{
    struct operands o;
    memset(&o, 0, sizeof(o));
    memcpy(o.c, &c, sizeof(c));
    for (int i = 0; i < 2 * n_pairs; i++) {
        uint16_t a = bf16(x[i]);
        uint16_t b = bf16(w[i]);
        memcpy(o.a + 2 * i, &a, 2);
        memcpy(o.b + i / 2 * 64 + i % 2 * 2, &b, 2);
    }
    const struct tile_config config = shapes(1, 1, n_pairs);
    run_emulated(&config, true, &o);
    memcpy(&c, o.c, sizeof(c));
    return c;
}

static void check_dot(float c, const float *x, const float *w, int n_pairs, float want)
{
    float got = dot(c, x, w, n_pairs);
    check_bits(&got, &want, sizeof(want), "bf16");
}

static void bf16_products_round_and_flush_as_the_manual_says(void)
{
    check_dot(1, (float[]){2, 3}, (float[]){4, 5}, 1, 24);
    /* Even and odd values have chains of their own: 1 is lost beside 2^24 in one chain. */
    check_dot(0, (float[]){0x1p24f, 1, -0x1p24f, 1}, (float[]){1, 1, 1, 1}, 2, 2);
    check_dot(0, (float[]){0x1p24f, 0, 1, 0, -0x1p24f, 0}, (float[]){1, 1, 1, 1, 1, 1}, 3, 0);
    /* c is added last. */
    check_dot(0x1p24f, (float[]){-0x1p24f, 1}, (float[]){1, 1}, 1, 1);
    check_dot(1, (float[]){0x1p24f, -0x1p24f}, (float[]){1, 1}, 1, 1);
    /* Halves to even, each product rounded together with its sum. */
    check_dot(0, (float[]){0x1p24f, 0, 1, 0}, (float[]){1, 0, 3, 0}, 2, 0x1p24f + 4);
    check_dot(0, (float[]){0x1p24f, 0, 1, 0}, (float[]){1, 0, 1, 0}, 2, 0x1p24f);
    /* Denormals: of operands, of the sum, of products, of results. */
    check_dot(0, (float[]){0x1p-127f, 0}, (float[]){0x1p100f, 0}, 1, 0);
    check_dot(0x1p-127f, (float[]){0, 0}, (float[]){0, 0}, 1, 0);
    check_dot(0, (float[]){0x1p-100f, 0}, (float[]){0x1p-27f, 0}, 1, 0);
    check_dot(-0x1.8p-126f, (float[]){0x1p-100f, 0}, (float[]){0x1p-26f, 0}, 1, -0.0f);
    check_dot(0, (float[]){0x1p-100f, 0}, (float[]){0x1p-26f, 0}, 1, 0x1p-126f);
    /* Just below the least normal number: rounded to 24 bits it stays below. */
    check_dot(0, (float[]){0x1p-126f, 0, -0x1.8p-76f, 0}, (float[]){1, 0, 0x1p-75f, 0}, 2, 0);
    check_dot(0, (float[]){0x1p-126f, 0, -0x1p-76f, 0}, (float[]){1, 0, 0x1p-75f, 0}, 2, 0x1p-126f);
    check_dot(0, (float[]){-0x1p-126f, 0, 0x1p-75f, 0}, (float[]){1, 0, 0x1.8p-76f, 0}, 2, 0);
    const float infinity = HUGE_VALF;
    check_dot(0, (float[]){infinity, 1}, (float[]){2, 1}, 1, infinity);
    CU_ASSERT(isnan(dot(0, (float[]){infinity, 1}, (float[]){0, 1}, 1)));
    CU_ASSERT(isnan(dot(infinity, (float[]){infinity, 1}, (float[]){-1, 1}, 1)));
    CU_ASSERT(isnan(dot(NAN, (float[]){1, 1}, (float[]){1, 1}, 1)));
}

/* Values of many magnitudes; what is no number may differ in its bits. */
static void bf16_products_have_the_bits_of_the_cpu(void)
{
    if ((tnd_cpu_features_all() & (uint32_t)TND_CPU_AMX_BF16) == 0) {
        tnd_skip("tiles of a CPU need AMX");
        return;
    }
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 2);
    const struct tile_config config = tiles_all();
    for (int i = 0; i < 200; i++) {
        struct operands emulated;
        fill(&rng, &emulated, false);
        struct operands cpu = emulated;
        run_emulated(&config, true, &emulated);
        tnd_test_cpu_tiles_dot(&config, true, cpu.c, cpu.a, cpu.b);
        for (int j = 0; j < TILE_BYTES; j += 4) {
            float a;
            float b;
            memcpy(&a, emulated.c + j, 4);
            memcpy(&b, cpu.c + j, 4);
            CU_ASSERT(memcmp(&a, &b, 4) == 0 || (isnan(a) && isnan(b)));
        }
    }
}

CU_TestInfo tnd_tests_amx_tiles[] = {
    {"all_of_a_configuration_arrives", all_of_a_configuration_arrives},
    {"what_is_no_configuration_is_refused", what_is_no_configuration_is_refused},
    {"tiles_that_do_not_fit_are_undefined", tiles_that_do_not_fit_are_undefined},
    {"loads_and_stores_keep_to_their_shape", loads_and_stores_keep_to_their_shape},
    {"products_of_bytes_are_exact", products_of_bytes_are_exact},
    {"bf16_products_round_and_flush_as_the_manual_says",
     bf16_products_round_and_flush_as_the_manual_says},
    {"bf16_products_have_the_bits_of_the_cpu", bf16_products_have_the_bits_of_the_cpu},
    CU_TEST_INFO_NULL,
};
