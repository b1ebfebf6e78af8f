/* SPDX-License-Identifier: MIT
 * No reference kernel does the work: a net of each operation and type is lowered, and what a
 * reference kernel computes must stand in the list of exceptions, with its reason. Kernels of all
 * instruction sets have the same functions, so that this is decided once. */
#include <string.h>

#include "ggml-like/fuse_program.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/net_levels.h"
#include "tests/support.h"

enum { SIDE = 24, ROWS = 128, COLUMNS = 160 };

static const struct tnd_dims matrix = {2, {ROWS, COLUMNS}};
static const struct tnd_dims images = {4, {2, 16, SIDE, SIDE}};
static const struct tnd_window window = {
    .n = 2, .extent = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .begin = {1, 1}, .end = {1, 1}};

static int input(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape)
{
    return tnd_net_input(net, type, shape, "x", NULL);
}

static int constant(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    for (int64_t i = 0; i < array->n; i++) {
        union tnd_values lanes;
        lanes.i64[0] = type == TANDEM_DTYPE_BOOL ? i & 1 : i % 5;
        tnd_values_store(type, TND_LANE_I64, &lanes, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(type));
    }
    return tnd_net_constant(net, array);
}

/* ---- one operation ---- */

static int of_copy(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const int axes[] = {1, 0};
    (void)kind;
    return tnd_net_copy(net, tnd_net_permute(net, input(net, type, &matrix), axes));
}

static int of_cast(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_cast(net, input(net, kind == 0 ? type : TANDEM_DTYPE_F32, &matrix),
                        kind == 0 ? TANDEM_DTYPE_F32 : type);
}

static int of_unary(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_unary(net, (enum tandem_unary)kind, input(net, type, &matrix));
}

static int of_binary(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_binary(net, (enum tandem_binary)kind, input(net, type, &matrix),
                          input(net, type, &matrix));
}

static int of_select(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    (void)kind;
    return tnd_net_select(net, input(net, TANDEM_DTYPE_BOOL, &matrix), input(net, type, &matrix),
                          input(net, type, &matrix));
}

static int of_reduce(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_reduce(net, (enum tandem_reduce)kind, input(net, type, &matrix), 2u);
}

static int of_arg_reduce(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_arg_reduce(net, kind != 0, input(net, type, &matrix), 1, false);
}

static int of_contract(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const struct tnd_dims turned = {2, {COLUMNS, ROWS}};
    return tnd_net_matmul(net, input(net, type, &matrix),
                          kind == 0 ? constant(net, type, &turned) : input(net, type, &turned));
}

/* Along either axis, and kind 2: two values a row. */
static int of_concat(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const struct tnd_dims column = {2, {ROWS * COLUMNS, 1}};
    const struct tnd_dims *shape = kind == 2 ? &column : &matrix;
    const int both[] = {input(net, type, shape), input(net, type, shape)};
    return tnd_net_concat(net, both, 2, kind == 0 ? 0 : 1);
}

static int of_pad(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const int64_t side[] = {1, 2};
    return tnd_net_pad(net, (enum tandem_pad)kind, input(net, type, &matrix), side, side,
                       tnd_net_scalar(net, type, 1));
}

static int of_gather(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const struct tnd_dims rows = {1, {ROWS}};
    return tnd_net_gather(net, input(net, type, &matrix), input(net, TANDEM_DTYPE_I64, &rows),
                          kind);
}

static int of_gather_elements(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    (void)kind;
    return tnd_net_gather_elements(net, input(net, type, &matrix),
                                   input(net, TANDEM_DTYPE_I64, &matrix), 0);
}

static int of_scatter_elements(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_scatter_elements(net, (enum tandem_scatter)kind, input(net, type, &matrix),
                                    input(net, TANDEM_DTYPE_I64, &matrix),
                                    input(net, type, &matrix), 0);
}

static int of_scan(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    (void)kind;
    return tnd_net_scan(net, input(net, type, &matrix), 1, false, false);
}

static int of_arg_sort(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    (void)kind;
    return tnd_net_arg_sort(net, input(net, type, &matrix), 1, false);
}

static int of_conv(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    struct tnd_window w = window;
    w.groups = kind > 1 ? kind : 1;
    const struct tnd_dims filters = {4, {16, 16 / w.groups, 3, 3}};
    return tnd_net_conv(net, input(net, type, &images),
                        kind == 0 ? input(net, type, &filters) : constant(net, type, &filters), &w);
}

static int of_pool(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_pool(net, (enum tandem_pool)kind, input(net, type, &images), &window);
}

static int of_softmax(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    (void)kind;
    return tnd_net_softmax(net, input(net, type, &matrix), 1);
}

static int of_norm(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    return tnd_net_norm(net, (enum tandem_norm)kind, input(net, type, &matrix), 2u, 1e-5);
}

static int of_attention(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const struct tnd_dims heads = {3, {2, 64, 32}};
    const struct tnd_dims masks = {3, {2, 64, 64}};
    return tnd_net_attention(net, input(net, type, &heads), input(net, type, &heads),
                             input(net, type, &heads),
                             kind == 0 ? TANDEM_NET_NONE : input(net, type, &masks), 0.125);
}

static int of_recurrent(struct tnd_net *net, enum tandem_dtype type, int kind)
{
    const int64_t hidden = 64;
    const int64_t rows = tnd_cell_gates(kind) * hidden;
    const struct tnd_dims x = {3, {8, 2, rows}};
    const struct tnd_dims r = {3, {1, rows, hidden}};
    const struct tnd_dims none = {2, {1, 0}};
    const struct tnd_dims state = {4, {tnd_cell_states(kind), 1, 2, hidden}};
    const struct tnd_recurrent layer = {.cell = kind, .directions = 1};
    return tnd_net_recurrent(net, &layer, input(net, type, &x), constant(net, type, &r),
                             constant(net, type, &none), input(net, type, &state), TANDEM_NET_NONE);
}

/* By operation: how a net of a type and kind is built, and how many kinds there are. */
static const struct {
    int (*build)(struct tnd_net *net, enum tandem_dtype type, int kind);
    int n_kinds;
} cases[TND_N_NET_OPS] = {
    [TND_NET_COPY] = {of_copy, 1},
    [TND_NET_CAST] = {of_cast, 2},
    [TND_NET_UNARY] = {of_unary, TND_N_UNARY},
    [TND_NET_BINARY] = {of_binary, TANDEM_BINARY_LESS_EQUAL + 1},
    [TND_NET_SELECT] = {of_select, 1},
    [TND_NET_REDUCE] = {of_reduce, TANDEM_REDUCE_MIN + 1},
    [TND_NET_ARG_REDUCE] = {of_arg_reduce, 2},
    [TND_NET_CONTRACT] = {of_contract, 2},
    [TND_NET_CONCAT] = {of_concat, 3},
    [TND_NET_PAD] = {of_pad, TANDEM_PAD_WRAP + 1},
    [TND_NET_GATHER] = {of_gather, 2},
    [TND_NET_GATHER_ELEMENTS] = {of_gather_elements, 1},
    [TND_NET_SCATTER_ELEMENTS] = {of_scatter_elements, TANDEM_SCATTER_MIN + 1},
    [TND_NET_SCAN] = {of_scan, 1},
    [TND_NET_ARG_SORT] = {of_arg_sort, 1},
    [TND_NET_CONV] = {of_conv, 3},
    [TND_NET_POOL] = {of_pool, TANDEM_POOL_SUM + 1},
    [TND_NET_SOFTMAX] = {of_softmax, 1},
    [TND_NET_NORM] = {of_norm, TANDEM_NORM_RMS + 1},
    [TND_NET_ATTENTION] = {of_attention, 2},
    [TND_NET_RECURRENT] = {of_recurrent, 3},
};

/* ---- exceptions ---- */

#define BIT(name) (1u << TANDEM_DTYPE_##name)
#define FLOATS    (BIT(F32) | BIT(F16) | BIT(BF16))
#define BYTES     (BIT(I8) | BIT(U8))
#define WIDE      (BIT(F64) | BIT(I64) | BIT(U32) | BIT(U64))
#define INTEGERS  (BYTES | BIT(I16) | BIT(U16) | BIT(I32) | BIT(U32) | BIT(I64) | BIT(U64))
#define WORDS     (INTEGERS & ~BYTES)    /* (functions of one byte are looked up) */
#define OTHERS    (INTEGERS & ~BIT(I32)) /* (kernels compute with I32) */
#define SMALL     (~0u << TANDEM_DTYPE_F8E4M3FN)
#define STORED    "floats of a byte are stored and cast; operators do not compute with them"
#define ANY       0, 99

/* What a reference kernel may do, and why. Each row must be needed for all that it names. */
static const struct exception {
    enum tnd_net_op op;
    int first, last; /* kinds */
    unsigned types;
    const char *reason;
} exceptions[] = {
    /* programs: strips of 64 values by plain loops, one loop an operation */
    {TND_NET_CAST, 0, 0, BIT(F64) | BIT(U32) | BIT(U64), "no float holds them: strips"},
    {TND_NET_CAST, 1, 1, WIDE, "no float holds them: strips"},
    {TND_NET_SELECT, ANY, WIDE, "no float holds them: strips"},
    {TND_NET_UNARY, TANDEM_UNARY_NEG, TANDEM_UNARY_SQRT, WORDS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_RECIPROCAL, TANDEM_UNARY_RECIPROCAL, WORDS | BIT(F64) | BIT(BOOL),
     "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_SIN, TANDEM_UNARY_COSH, WORDS | BIT(F64) | BIT(BOOL) | FLOATS,
     "functions of the C library, rare beside products"},
    {TND_NET_UNARY, TANDEM_UNARY_TANH, TANDEM_UNARY_TANH, WORDS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_ASINH, TANDEM_UNARY_ATANH, WORDS | BIT(F64) | BIT(BOOL) | FLOATS,
     "functions of the C library, rare beside products"},
    {TND_NET_UNARY, TANDEM_UNARY_ERF, TANDEM_UNARY_ROUND, WORDS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_NOT, TANDEM_UNARY_NOT, WORDS | BIT(F64) | FLOATS, "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_IS_NAN, TANDEM_UNARY_IS_NAN, INTEGERS | BIT(F64) | BIT(BOOL),
     "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_IS_INF, TANDEM_UNARY_IS_INF,
     INTEGERS | BIT(F64) | BIT(BOOL) | FLOATS, "strips"},
    {TND_NET_UNARY, TANDEM_UNARY_GELU, TANDEM_UNARY_HARD_SWISH, WORDS | BIT(F64) | BIT(BOOL),
     "strips"},
    {TND_NET_BINARY, TANDEM_BINARY_ADD, TANDEM_BINARY_MUL, OTHERS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_BINARY, TANDEM_BINARY_DIV, TANDEM_BINARY_DIV, INTEGERS | BIT(F64) | BIT(BOOL),
     "strips"},
    {TND_NET_BINARY, TANDEM_BINARY_POW, TANDEM_BINARY_FMOD,
     INTEGERS | BIT(F64) | BIT(BOOL) | FLOATS, "functions of the C library, rare beside products"},
    {TND_NET_BINARY, TANDEM_BINARY_MAX, TANDEM_BINARY_MIN, OTHERS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_BINARY, TANDEM_BINARY_AND, TANDEM_BINARY_XOR, OTHERS, "strips"},
    {TND_NET_BINARY, TANDEM_BINARY_SHIFT_LEFT, TANDEM_BINARY_SHIFT_RIGHT, INTEGERS | BIT(BOOL),
     "strips"},
    {TND_NET_BINARY, TANDEM_BINARY_EQUAL, TANDEM_BINARY_LESS_EQUAL, OTHERS | BIT(F64) | BIT(BOOL),
     "strips"},
    /* nodes: plain loops over ranges of a dimension */
    {TND_NET_REDUCE, TANDEM_REDUCE_SUM, TANDEM_REDUCE_PROD, INTEGERS | BIT(F64) | BIT(BOOL),
     "not met as a hot node yet"},
    {TND_NET_REDUCE, TANDEM_REDUCE_MAX, TANDEM_REDUCE_MIN, WIDE | BIT(I32) | BIT(BOOL),
     "no float holds them"},
    {TND_NET_ARG_REDUCE, ANY, ~0u, "reads each value once, behind a product"},
    {TND_NET_CONTRACT, ANY, INTEGERS | BIT(F64) | BIT(BOOL), "no kernel yet"},
    {TND_NET_SCATTER_ELEMENTS, ANY, ~0u, "one index a value"},
    {TND_NET_SCAN, ANY, ~0u, "each sum needs the one before"},
    {TND_NET_ARG_SORT, ANY, ~0u, "a sort"},
    {TND_NET_CONV, 0, 2, INTEGERS | BIT(F64) | BIT(BOOL), "no kernel yet"},
    {TND_NET_POOL, TANDEM_POOL_ARG_MAX, TANDEM_POOL_ARG_MAX, ~0u, "of training"},
    {TND_NET_POOL, TANDEM_POOL_MAX, TANDEM_POOL_MAX, WIDE | BIT(I32) | BIT(BOOL),
     "no float holds them"},
    {TND_NET_POOL, TANDEM_POOL_SUM, TANDEM_POOL_SUM, INTEGERS | BIT(F64) | BIT(BOOL),
     "no kernel yet"},
    {TND_NET_SOFTMAX, ANY, INTEGERS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_NORM, ANY, INTEGERS | BIT(F64) | BIT(BOOL), "strips"},
    {TND_NET_ATTENTION, ANY, INTEGERS | BIT(F64) | BIT(BOOL), "as products"},
    {TND_NET_RECURRENT, ANY, BIT(F64), "rare"},
    {TND_NET_UNARY, ANY, SMALL, STORED},
    {TND_NET_BINARY, ANY, SMALL, STORED},
    {TND_NET_REDUCE, ANY, SMALL, STORED},
    {TND_NET_CONTRACT, ANY, SMALL, STORED},
    {TND_NET_CONV, 0, 2, SMALL, STORED},
    {TND_NET_POOL, ANY, SMALL, STORED},
    {TND_NET_SOFTMAX, ANY, SMALL, STORED},
    {TND_NET_NORM, ANY, SMALL, STORED},
    {TND_NET_ATTENTION, ANY, SMALL, STORED},
};

static const struct exception *exception_of(enum tnd_net_op op, int kind, enum tandem_dtype type)
{
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
        const struct exception *e = &exceptions[i];
        if (e->op == op && e->first <= kind && kind <= e->last && (e->types >> type & 1) != 0) {
            return e;
        }
    }
    return NULL;
}

/* Whether a reference kernel computes hot nodes of the net of one operation; false where there is
 * no such net. */
static bool is_slow(enum tnd_net_op op, int kind, enum tandem_dtype type, bool *exists)
{
    struct tandem_error error = {0};
    struct tnd_lowered *lowered = NULL;
    struct tnd_net *net = tnd_net_new();
    const int made = cases[op].build(net, type, kind);
    struct tnd_reference_work work = {.n = 0};
    *exists = made != TANDEM_NET_NONE;
    if (*exists) {
        (void)tnd_net_output(net, made);
        check_ok(tnd_net_optimize(net, TND_PASSES_ALL, NULL, &error));
        check_ok(tnd_net_lower(net, &lowered, &error));
        work = tnd_graph_reference_work(tnd_lowered_graph(lowered));
    }
    tnd_lowered_free(lowered);
    tnd_net_free(net);
    return work.n_hot > 0;
}

static void check_kind(enum tnd_net_op op, int kind)
{
    for (int type = 0; type < TND_N_DTYPES; type++) {
        bool exists;
        const bool slow = is_slow(op, kind, (enum tandem_dtype)type, &exists);
        const struct exception *e = exception_of(op, kind, (enum tandem_dtype)type);
        if (exists && slow != (e != NULL)) {
            printf("    %s, kind %d, of %s: %s\n", tnd_net_op_name(op), kind,
                   tandem_dtype_name((enum tandem_dtype)type),
                   slow ? "a reference kernel computes it" : "has a kernel, but is an exception");
            CU_FAIL("an operation is computed otherwise than the list says");
        }
    }
}

static void what_reference_kernels_compute_has_a_reason(void)
{
    for (int op = 0; op < TND_N_NET_OPS; op++) {
        CU_ASSERT_TRUE(cases[op].n_kinds > 0);
        for (int kind = 0; kind < cases[op].n_kinds; kind++) {
            check_kind((enum tnd_net_op)op, kind);
        }
    }
}

/* What programs are made for without a look at kernels is there in all of them. */
static void kernels_of_all_instruction_sets_have_the_same_functions(void)
{
    for (int k = 0; tnd_test_strip(k) != NULL; k++) {
        const struct tnd_strip_kernel *kernel = tnd_test_strip(k);
        for (int i = 0; i < TND_N_DTYPES; i++) {
            const enum tandem_dtype type = (enum tandem_dtype)i;
            CU_ASSERT_EQUAL(kernel->load[i] != NULL, tnd_strip_has_load(type));
            CU_ASSERT_EQUAL(kernel->store[i] != NULL, tnd_strip_has_store(type));
            CU_ASSERT_EQUAL(kernel->functions[TND_N_STRIP_FUNCTIONS + i] != NULL,
                            tnd_strip_has_cast(type));
        }
        for (int f = 0; f < TND_N_STRIP_FUNCTIONS; f++) {
            CU_ASSERT_PTR_NOT_NULL(kernel->functions[f]);
        }
    }
}

static CU_TestInfo tests[] = {
    {"what reference kernels compute has a reason", what_reference_kernels_compute_has_a_reason},
    {"kernels of all instruction sets have the same functions",
     kernels_of_all_instruction_sets_have_the_same_functions},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_reference[] = {
    {"reference", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
