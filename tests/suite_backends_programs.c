/* SPDX-License-Identifier: MIT
 * Fused programs give the bits of the reference, value by value, with the kernel of every
 * instruction set that the machine has; and how far their polynomials are off. */
#include <math.h>
#include <string.h>

#include "ggml-like/fuse_program.h"
#include "tests/net_levels.h"
#include "tests/suite_backends.h"
#include "tests/support.h"

static bool is_same(uint32_t a, uint32_t b)
{
    const bool are_nan = (a & 0x7fffffffu) > 0x7f800000u && (b & 0x7fffffffu) > 0x7f800000u;
    return a == b || are_nan;
}

/* ---- functions ---- */

/* Distance of two floats around `want`. */
static double unit_of(double want)
{
    int exponent = -149;
    if (want != 0) {
        (void)frexp(want, &exponent);
        exponent = exponent - 24 < -149 ? -149 : exponent - 24;
    }
    return ldexp(1, exponent);
}

/* How many units a result is off; -1: it has not the kind or sign of the right one. */
static double error_of(float got, double want)
{
    const float rounded = (float)want;
    if (isnan(rounded) || isnan(got)) {
        return isnan(rounded) && isnan(got) ? 0 : -1;
    }
    if (signbit(rounded) != signbit(got)) {
        return -1;
    }
    return isinf(rounded) || isinf(got) ? (rounded == got ? 0 : -1)
                                        : fabs((double)got - want) / unit_of(want);
}

/* Each function on floats `step` apart in their bits, from 0 to NaN of both signs. */
static void check_function(int function, double (*right)(double), double most, uint64_t step)
{
    double worst = 0;
    float worst_at = 0;
    for (uint64_t first = 0; first < (uint64_t)1 << 32; first += step * TND_STRIP) {
        float x[TND_STRIP];
        float y[TND_STRIP];
        for (int i = 0; i < TND_STRIP; i++) {
            const uint32_t bits = (uint32_t)(first + (uint64_t)i * step);
            memcpy(&x[i], &bits, sizeof(bits));
        }
        memcpy(y, x, sizeof(y));
        tnd_test_scalar_strip()->functions[function](y, TND_STRIP);
        for (int k = 0; tnd_test_strip(k) != NULL; k++) {
            float other[TND_STRIP];
            memcpy(other, x, sizeof(other));
            tnd_test_strip(k)->functions[function](other, TND_STRIP);
            check_bits(other, y, sizeof(y), "function");
        }
        for (int i = 0; i < TND_STRIP; i++) {
            const double error = error_of(y[i], right((double)x[i]));
            if (error < 0 || error > worst) {
                worst = error < 0 ? INFINITY : error;
                worst_at = x[i];
            }
        }
    }
    if (worst > most) {
        printf("    function %d is %g units off at %a\n", function, worst, (double)worst_at);
        CU_FAIL("a function is farther off than it says");
    }
}

static void functions_are_as_near_as_they_say_on_every_instruction_set(void)
{
    /* (a prime: all exponents and all kinds of last bits; 1 checks all floats) */
    const uint64_t step = tnd_effort() == 1 ? 4099 : tnd_effort() == 2 ? 257 : 1;
    check_function(TND_STRIP_EXP, exp, 1.01, step);
    check_function(TND_STRIP_LOG, log, 0.87, step);
    check_function(TND_STRIP_TANH, tanh, 2.61, step);
    check_function(TND_STRIP_ERF, erf, 2.16, step);
}

static void ends_of_functions_are_those_of_the_library(void)
{
    static const struct {
        int function;
        float x, y;
    } cases[] = {{TND_STRIP_EXP, 0x1.62e42ep+6f, 0x1.ffff08p+127f}, /* the largest that is finite */
                 {TND_STRIP_EXP, 0x1.62e430p+6f, INFINITY},
                 {TND_STRIP_EXP, -0x1.9fe368p+6f, 0x1p-149f}, /* the smallest that is not 0 */
                 {TND_STRIP_EXP, -0x1.9fe36ap+6f, 0},
                 {TND_STRIP_EXP, INFINITY, INFINITY},
                 {TND_STRIP_EXP, -INFINITY, 0},
                 {TND_STRIP_EXP, -0.0f, 1},
                 {TND_STRIP_LOG, 0, -INFINITY},
                 {TND_STRIP_LOG, -0.0f, -INFINITY},
                 {TND_STRIP_LOG, 1, 0},
                 {TND_STRIP_LOG, -0x1p-149f, NAN},
                 {TND_STRIP_LOG, -INFINITY, NAN},
                 {TND_STRIP_LOG, INFINITY, INFINITY},
                 {TND_STRIP_TANH, -0.0f, -0.0f},
                 {TND_STRIP_TANH, 0x1p-149f, 0x1p-149f},
                 {TND_STRIP_TANH, -INFINITY, -1},
                 {TND_STRIP_ERF, -0.0f, -0.0f},
                 {TND_STRIP_ERF, INFINITY, 1},
                 {TND_STRIP_GELU, -INFINITY, NAN},
                 {TND_STRIP_SILU, -1000, -0.0f},
                 {TND_STRIP_SILU, INFINITY, INFINITY},
                 {TND_STRIP_GELU_TANH, 1000, 1000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int k = 0; tnd_test_strip(k) != NULL; k++) {
            float values[TND_STRIP_GRAIN];
            uint32_t got;
            uint32_t want;
            for (int v = 0; v < TND_STRIP_GRAIN; v++) {
                values[v] = cases[i].x;
            }
            tnd_test_strip(k)->functions[cases[i].function](values, TND_STRIP_GRAIN);
            memcpy(&got, &values[i % TND_STRIP_GRAIN], sizeof(got));
            memcpy(&want, &cases[i].y, sizeof(want));
            if (!is_same(got, want)) {
                printf("    case %d: %08x, expected %08x\n", (int)i, (unsigned)got, (unsigned)want);
                CU_FAIL("a value differs");
            }
        }
    }
}

/* ---- programs ---- */

enum { MEMORY = 40000, GUARD = 64, MOST_VALUES = 12000 };

static struct tnd_test_rng rng;
static char memory[TND_FUSE_INPUTS][MEMORY * 8];

static int below(int n)
{
    return (int)tnd_test_rng_int(&rng, 0, n - 1);
}

static void fill(enum tandem_dtype type, char *to)
{
    static const double special[] = {
        0.0,       -0.0, 1.0,  (double)INFINITY, -(double)INFINITY, -1.0, 0x1p-149,
        -0x1p-130, 3e38, 100.0};
    for (int i = 0; i < MEMORY; i++) {
        const int pick = below(40);
        const double value = pick < 10    ? special[pick]
                             : pick == 10 ? (double)NAN
                                          : (double)(tnd_test_rng_float(&rng) * 8 - 4);
        union tnd_values lanes;
        lanes.f64[0] = type == TANDEM_DTYPE_BOOL ? (double)below(2)
                       : type == TANDEM_DTYPE_I32 && pick < 20
                           ? 2147483647.0 - (double)below(2) * 4294967295.0 + (double)below(2)
                           : value;
        tnd_values_store(type, TND_LANE_F64, &lanes, 1, to + (size_t)i * tandem_dtype_bytes(type));
    }
}

static enum tandem_dtype random_type(void)
{
    return below(3) > 0 ? TANDEM_DTYPE_F32 : (enum tandem_dtype)below(TND_N_DTYPES);
}

/* A register of a type, an operand or a result; a cast where there is none. */
static int register_of(struct tnd_fuse *fuse, enum tandem_dtype type)
{
    const int n = fuse->n_inputs + fuse->n_steps;
    const int from = below(2) ? n - 1 : below(n);
    for (int i = 0; i < n; i++) {
        const int at = (from + i) % n;
        if (tnd_fuse_type(fuse, at) == type) {
            return at;
        }
    }
    return tnd_fuse_step(fuse, TND_NET_CAST, 0, type, &from, 1);
}

static void add_step(struct tnd_fuse *fuse)
{
    const enum tandem_dtype type = random_type();
    const bool is_float = tnd_dtype_kind(type) == TND_KIND_FLOAT;
    const int in[] = {register_of(fuse, TANDEM_DTYPE_BOOL), register_of(fuse, type),
                      register_of(fuse, type)};
    switch (below(6)) {
    case 0:
        (void)tnd_fuse_step(fuse, TND_NET_SELECT, 0, type, in, 3);
        return;
    case 1:
        (void)tnd_fuse_step(fuse, TND_NET_BINARY, TANDEM_BINARY_EQUAL + below(3), TANDEM_DTYPE_BOOL,
                            in + 1, 2);
        return;
    case 2:
        (void)tnd_fuse_step(fuse, TND_NET_UNARY, below(TANDEM_UNARY_NOT), type, in + 1, 1);
        return;
    case 3:
        if (is_float) {
            (void)tnd_fuse_step(fuse, TND_NET_UNARY, TANDEM_UNARY_GELU + below(4), type, in + 1, 1);
        } else {
            (void)tnd_fuse_step(fuse, TND_NET_COPY, 0, type, in + 1, 1);
        }
        return;
    default:
        (void)tnd_fuse_step(fuse, TND_NET_BINARY, below(TANDEM_BINARY_AND), type, in + 1, 2);
        return;
    }
}

/* A cast there and back, which kernels have for most types. */
static void add_casts(struct tnd_fuse *fuse, int from)
{
    const enum tandem_dtype type =
        (enum tandem_dtype)(TANDEM_DTYPE_F32 + 1 + below(TND_N_DTYPES - 1));
    const int there = tnd_fuse_step(fuse, TND_NET_CAST, 0, type, &from, 1);
    (void)tnd_fuse_step(fuse, TND_NET_CAST, 0, TANDEM_DTYPE_F32, &there, 1);
}

/* Logic of two comparisons, as a number. */
static void add_logic(struct tnd_fuse *fuse, const int *in)
{
    static const int kinds[] = {TANDEM_BINARY_AND, TANDEM_BINARY_OR, TANDEM_BINARY_XOR};
    int both[2];
    both[0] = tnd_fuse_step(fuse, TND_NET_BINARY, TANDEM_BINARY_EQUAL + below(3), TANDEM_DTYPE_BOOL,
                            in, 2);
    both[1] = tnd_fuse_step(fuse, TND_NET_UNARY, TANDEM_UNARY_IS_NAN, TANDEM_DTYPE_BOOL, in + 1, 1);
    both[1] = tnd_fuse_step(fuse, TND_NET_UNARY, TANDEM_UNARY_NOT, TANDEM_DTYPE_BOOL, both + 1, 1);
    both[0] = tnd_fuse_step(fuse, TND_NET_BINARY, kinds[below(3)], TANDEM_DTYPE_BOOL, both, 2);
    (void)tnd_fuse_step(fuse, TND_NET_CAST, 0, TANDEM_DTYPE_F32, both, 1);
}

/* Sums and comparisons of 32-bit integers, as a number: of operands of that type where there are
 * some. */
static void add_integers(struct tnd_fuse *fuse)
{
    static const int kinds[] = {TANDEM_BINARY_ADD, TANDEM_BINARY_SUB, TANDEM_BINARY_MUL,
                                TANDEM_BINARY_MAX, TANDEM_BINARY_MIN, TANDEM_BINARY_AND,
                                TANDEM_BINARY_OR,  TANDEM_BINARY_XOR};
    const enum tandem_dtype small = below(2) ? TANDEM_DTYPE_U8 : TANDEM_DTYPE_BOOL;
    int in[3] = {0};
    for (int i = 1; i < 3; i++) {
        in[i] = register_of(fuse, below(3) > 0 ? TANDEM_DTYPE_I32 : small);
        if (tnd_fuse_type(fuse, in[i]) != TANDEM_DTYPE_I32) {
            in[i] = tnd_fuse_step(fuse, TND_NET_CAST, 0, TANDEM_DTYPE_I32, in + i, 1);
        }
    }
    in[0] = tnd_fuse_step(fuse, TND_NET_BINARY, TANDEM_BINARY_EQUAL + below(3), TANDEM_DTYPE_BOOL,
                          in + 1, 2);
    if (below(2)) {
        in[0] = tnd_fuse_step(fuse, TND_NET_SELECT, 0, TANDEM_DTYPE_I32, in, 3);
    } else {
        in[0] = tnd_fuse_step(fuse, TND_NET_BINARY, kinds[below(8)], TANDEM_DTYPE_I32, in + 1, 2);
    }
    (void)tnd_fuse_step(fuse, TND_NET_CAST, 0, below(3) ? TANDEM_DTYPE_F32 : TANDEM_DTYPE_BOOL, in,
                        1);
}

/* A step that kernels have, or a few. */
static void add_fast_step(struct tnd_fuse *fuse)
{
    static const int unary[] = {TANDEM_UNARY_NEG,        TANDEM_UNARY_ABS,   TANDEM_UNARY_SIGN,
                                TANDEM_UNARY_SQRT,       TANDEM_UNARY_FLOOR, TANDEM_UNARY_CEIL,
                                TANDEM_UNARY_RECIPROCAL, TANDEM_UNARY_ROUND, TANDEM_UNARY_TANH};
    static const int binary[] = {TANDEM_BINARY_ADD, TANDEM_BINARY_SUB, TANDEM_BINARY_MUL,
                                 TANDEM_BINARY_DIV, TANDEM_BINARY_MAX, TANDEM_BINARY_MIN};
    int in[] = {register_of(fuse, TANDEM_DTYPE_F32), register_of(fuse, TANDEM_DTYPE_F32),
                register_of(fuse, TANDEM_DTYPE_F32)};
    switch (fuse->n_inputs + fuse->n_steps < TND_FUSE_REGISTERS - 8 ? below(8) : 7) {
    case 0:
        (void)tnd_fuse_step(fuse, TND_NET_UNARY, unary[below(9)], TANDEM_DTYPE_F32, in, 1);
        return;
    case 2:
        add_casts(fuse, in[0]);
        return;
    case 3:
        add_logic(fuse, in);
        return;
    case 4:
        add_integers(fuse);
        return;
    case 1:
        in[0] = tnd_fuse_step(fuse, TND_NET_BINARY, TANDEM_BINARY_EQUAL + below(3),
                              TANDEM_DTYPE_BOOL, in + 1, 2);
        (void)tnd_fuse_step(fuse, TND_NET_SELECT, 0, TANDEM_DTYPE_F32, in, 3);
        return;
    default:
        (void)tnd_fuse_step(fuse, TND_NET_BINARY, binary[below(6)], TANDEM_DTYPE_F32, in, 2);
        return;
    }
}

/* Some steps over some operands. */
static void make_program(struct tnd_fuse *fuse, bool is_all_f32)
{
    const int n_inputs = 1 + below(5);
    const bool is_fast = below(2);
    *fuse = (struct tnd_fuse){.n_inputs = 0};
    for (int i = 0; i < n_inputs; i++) {
        (void)tnd_fuse_input(fuse, is_all_f32      ? TANDEM_DTYPE_F32
                                   : below(4) == 0 ? TANDEM_DTYPE_I32
                                                   : random_type());
    }
    for (int steps = 1 + below(is_fast ? 8 : 5); steps > 0; steps--) {
        if (is_fast) {
            add_fast_step(fuse);
        } else {
            add_step(fuse);
        }
    }
    if (is_all_f32 && tnd_fuse_type(fuse, fuse->n_inputs + fuse->n_steps - 1) != TANDEM_DTYPE_F32) {
        const int last = fuse->n_inputs + fuse->n_steps - 1;
        (void)tnd_fuse_step(fuse, TND_NET_CAST, 0, TANDEM_DTYPE_F32, &last, 1);
    }
}

/* One value by the reference's functions; `from`: of each operand. */
static void compute_one(const struct tnd_fuse *fuse, const char *const *from, void *out)
{
    union tnd_values registers[TND_FUSE_REGISTERS];
    const int last = fuse->n_inputs + fuse->n_steps - 1;
    for (int i = 0; i < fuse->n_inputs; i++) {
        tnd_values_load(fuse->inputs[i], from[i], 0, 1, tnd_lane_of(fuse->inputs[i]),
                        &registers[i]);
    }
    for (int s = 0; s < fuse->n_steps; s++) {
        const struct tnd_fuse_step *step = &fuse->steps[s];
        union tnd_values in[3];
        union tnd_values result;
        char stored[8];
        for (int i = 0; i < step->n_in; i++) {
            in[i] = registers[step->in[i]];
        }
        step->job.run(&step->job, in, 1, &result);
        tnd_values_store(step->type, step->job.out_lane, &result, 1, stored);
        tnd_values_load(step->type, stored, 0, 1, tnd_lane_of(step->type),
                        &registers[fuse->n_inputs + s]);
    }
    tnd_values_store(tnd_fuse_type(fuse, last), tnd_lane_of(tnd_fuse_type(fuse, last)),
                     &registers[last], 1, out);
}

/* Whether two results are the same, NaN whatever its bits. */
static bool compare(enum tandem_dtype type, const char *got, const char *want, int64_t n)
{
    const struct tnd_array a = {type, {1, {n}}, n, (void *)got, NULL};
    const struct tnd_array b = {type, {1, {n}}, n, (void *)want, NULL};
    const size_t bytes = tandem_dtype_bytes(type);
    for (int64_t i = 0; i < n; i++) {
        const size_t at = (size_t)i * bytes;
        if (memcmp(got + at, want + at, bytes) != 0 &&
            !(isnan(tnd_array_number(&a, i)) && isnan(tnd_array_number(&b, i)))) {
            printf("    value %lld of %lld of %s is %a, expected %a\n", (long long)i, (long long)n,
                   tandem_dtype_name(type), tnd_array_number(&a, i), tnd_array_number(&b, i));
            return false;
        }
    }
    return true;
}

/* Operands that walk a shape in any order, backwards, with gaps, or broadcast. */
static void make_space(const struct tnd_fuse *fuse, struct tnd_dims *shape,
                       int64_t (*strides)[TANDEM_NET_MAX_DIMS], const void **in)
{
    static const int extents[] = {0, 1, 2, 3, 7, 31, 32, 33, 64, 65, 127, 128, 129, 200, 5000};
    shape->n = 1 + below(3);
    do {
        for (int d = 0; d < shape->n; d++) {
            shape->dims[d] = extents[below(40) == 0 ? 0 : 1 + below(14)];
        }
    } while (tnd_dims_values(shape) > MOST_VALUES);
    for (int i = 0; i < fuse->n_inputs; i++) {
        const bool is_turned = below(4) == 0;
        const bool is_broadcast = below(3) == 0;
        int64_t at = 0;
        int64_t stride = below(5) == 0 ? 3 : 1;
        for (int k = 0; k < shape->n; k++) {
            const int d = is_turned ? k : shape->n - 1 - k;
            const bool is_back = below(10) == 0;
            strides[i][d] = is_broadcast && below(2) ? 0 : is_back ? -stride : stride;
            at += is_back && strides[i][d] != 0 ? (shape->dims[d] - 1) * stride : 0;
            stride *= shape->dims[d] > 0 ? shape->dims[d] : 1;
        }
        at = tnd_dims_values(shape) > 0 ? at : 0;
        in[i] = memory[i] + at * (int64_t)tandem_dtype_bytes(fuse->inputs[i]);
    }
}

/* The program over the space: each kernel, in two parts. */
static bool check_program(struct tnd_fuse *fuse)
{
    static char want[MOST_VALUES * 8];
    static char got[MOST_VALUES * 8 + GUARD];
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS] = {{0}};
    const void *in[TND_FUSE_INPUTS] = {NULL};
    struct tnd_dims shape;
    struct tnd_fuse_space space;
    const enum tandem_dtype type = tnd_fuse_type(fuse, fuse->n_inputs + fuse->n_steps - 1);
    make_space(fuse, &shape, strides, in);
    tnd_fuse_space(&space, fuse->n_inputs, &shape, strides, NULL);
    const int64_t n = tnd_dims_values(&shape);
    for (int64_t v = 0; v < n; v++) {
        const char *from[TND_FUSE_INPUTS];
        for (int i = 0; i < fuse->n_inputs; i++) {
            int64_t rest = v;
            int64_t at = 0;
            for (int d = shape.n - 1; d >= 0; d--) {
                at += rest % shape.dims[d] * strides[i][d];
                rest /= shape.dims[d];
            }
            from[i] = (const char *)in[i] + at * (int64_t)tandem_dtype_bytes(fuse->inputs[i]);
        }
        compute_one(fuse, from, want + (size_t)v * tandem_dtype_bytes(type));
    }
    bool is_right = true;
    for (int k = 0; tnd_test_strip(k) != NULL && is_right; k++) {
        const size_t bytes = (size_t)n * tandem_dtype_bytes(type);
        const int64_t half = below((int)space.n_items + 1);
        memset(got, 0x5a, sizeof(got));
        tnd_fuse_run(tnd_test_strip(k), fuse, &space, in, got, half, space.n_items);
        tnd_fuse_run(tnd_test_strip(k), fuse, &space, in, got, 0, half);
        is_right = compare(type, got, want, n);
        for (int i = 0; i < GUARD; i++) {
            is_right = is_right && got[bytes + (size_t)i] == 0x5a;
        }
    }
    return is_right;
}

static void programs_give_the_bits_of_the_reference_on_every_instruction_set(void)
{
    const int n = tnd_effort() == 1 ? 300 : 1500;
    for (int c = 0; c < n; c++) {
        const uint64_t seed = tnd_test_seed() * 1000003 + (uint64_t)c;
        struct tnd_fuse fuse;
        rng = tnd_test_rng_new(seed);
        make_program(&fuse, false);
        for (int i = 0; i < fuse.n_inputs; i++) {
            fill(fuse.inputs[i], memory[i]);
        }
        if (!check_program(&fuse)) {
            printf("    program of seed %llu\n", (unsigned long long)seed);
            CU_FAIL("a program differs");
        }
    }
}

static void a_program_may_write_over_an_operand(void)
{
    static float want[MOST_VALUES];
    for (int c = 0; c < 100; c++) {
        struct tnd_fuse fuse;
        struct tnd_fuse_space space;
        int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS] = {{0}};
        const void *in[TND_FUSE_INPUTS];
        rng = tnd_test_rng_new(tnd_test_seed() * 7919 + (uint64_t)c);
        make_program(&fuse, true);
        const struct tnd_dims shape = {2, {1 + below(20), 1 + below(500)}};
        for (int i = 0; i < fuse.n_inputs; i++) {
            fill(TANDEM_DTYPE_F32, memory[i]);
            in[i] = memory[i];
            tnd_dims_strides(&shape, strides[i]);
            strides[i][0] = i > 0 && below(2) ? 0 : strides[i][0];
        }
        tnd_fuse_space(&space, fuse.n_inputs, &shape, strides, NULL);
        tnd_fuse_run(tnd_test_strip(0), &fuse, &space, in, want, 0, space.n_items);
        tnd_fuse_run(tnd_test_strip(0), &fuse, &space, in, memory[0], 0, space.n_items);
        CU_ASSERT_TRUE(
            compare(TANDEM_DTYPE_F32, memory[0], (const char *)want, tnd_dims_values(&shape)));
    }
}

static bool check_tile(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse)
{
    enum { ROWS = 9, COLUMNS = 300, GAP = 7 };
    static float values[ROWS * (COLUMNS + GAP)];
    static float before[ROWS * (COLUMNS + GAP)];
    const int columns[] = {1, 5, 16, 24, 32, 64, 96, 128, 131, COLUMNS};
    struct tnd_fuse_tile tile = {.row = below(3), .column = below(3), .n_rows = 1 + below(ROWS)};
    struct tnd_fuse_matrix matrix = {.self = below(fuse->n_inputs)};
    const void *in[TND_FUSE_INPUTS];
    tile.n_columns = columns[below(10)];
    tile.stride = tile.n_columns + (below(2) ? GAP : 0);
    tile.values = values;
    memcpy(before, memory[matrix.self], sizeof(before));
    for (int i = 0; i < fuse->n_inputs; i++) {
        matrix.strides[i][0] = below(3) == 0 ? 0 : tile.stride + below(2);
        matrix.strides[i][1] = below(3) == 0 ? 0 : 1;
        in[i] = memory[i];
    }
    memcpy(values, before, sizeof(values));
    tnd_fuse_tile(kernel, fuse, &matrix, in, &tile);
    for (int r = 0; r < ROWS; r++) {
        for (int64_t c = 0; c < tile.stride; c++) {
            const char *from[TND_FUSE_INPUTS];
            float want = before[r * tile.stride + c];
            for (int i = 0; i < fuse->n_inputs; i++) {
                from[i] = i == matrix.self
                              ? (const char *)&before[r * tile.stride + c]
                              : memory[i] + ((tile.row + r) * matrix.strides[i][0] +
                                             (tile.column + c) * matrix.strides[i][1]) *
                                                (int64_t)sizeof(float);
            }
            if (r < tile.n_rows && c < tile.n_columns) {
                compute_one(fuse, from, &want);
            }
            if (!compare(TANDEM_DTYPE_F32, (const char *)&values[r * tile.stride + c],
                         (const char *)&want, 1)) {
                return false;
            }
        }
    }
    return true;
}

static void tiles_give_the_bits_of_the_reference_on_every_instruction_set(void)
{
    const int n = tnd_effort() == 1 ? 300 : 1500;
    for (int c = 0; c < n; c++) {
        const uint64_t seed = tnd_test_seed() * 1000033 + (uint64_t)c;
        struct tnd_fuse fuse;
        int n_kernels = 0;
        rng = tnd_test_rng_new(seed);
        make_program(&fuse, true);
        for (int i = 0; i < fuse.n_inputs; i++) {
            fill(TANDEM_DTYPE_F32, memory[i]);
        }
        while (tnd_test_strip(n_kernels) != NULL) {
            n_kernels++;
        }
        if (!check_tile(tnd_test_strip(c % n_kernels), &fuse)) {
            printf("    tile of seed %llu\n", (unsigned long long)seed);
            CU_FAIL("a tile differs");
        }
    }
}

CU_TestInfo tnd_tests_programs[] = {
    {"functions_are_as_near_as_they_say_on_every_instruction_set",
     functions_are_as_near_as_they_say_on_every_instruction_set},
    {"ends_of_functions_are_those_of_the_library", ends_of_functions_are_those_of_the_library},
    {"programs_give_the_bits_of_the_reference_on_every_instruction_set",
     programs_give_the_bits_of_the_reference_on_every_instruction_set},
    {"a_program_may_write_over_an_operand", a_program_may_write_over_an_operand},
    {"tiles_give_the_bits_of_the_reference_on_every_instruction_set",
     tiles_give_the_bits_of_the_reference_on_every_instruction_set},
    CU_TEST_INFO_NULL,
};
