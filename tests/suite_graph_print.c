/* SPDX-License-Identifier: MIT
 * Printed programs: as C they are compiled by the system's compiler and give what the interpreter
 * gives. The texts themselves are nobody's business. */
#include <dlfcn.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "graph/fuse_print.h"
#include "tests/net_levels.h"
#include "tests/suite_graph.h"
#include "tests/support.h"

extern char **environ;

enum { CASES = 640, MEMORY = 4096, EXTENT = 5 };

typedef void (*printed_fn)(void *y, const void *const *b, long long begin, long long end);

/* A program and the memory of its operands. */
struct one {
    struct tnd_fuse fuse;
    struct tnd_fuse_space space;
    struct tnd_fuse_printed printed;
    char name[16];
    double tolerance; /* relative */
};
static struct one cases[CASES];
static int n_cases;
static struct tnd_rng rng;

static int below(int n)
{
    return (int)tnd_rng_below(&rng, (uint64_t)n);
}

static enum tandem_dtype type_of(const struct one *one, int i)
{
    return i < one->fuse.n_inputs ? one->fuse.inputs[i]
                                  : one->fuse.steps[i - one->fuse.n_inputs].type;
}

/* A new case with operands of a type, over a shape of one to three dimensions that operands walk
 * along, stand still in, or walk backwards. */
static struct one *begin_case(const enum tandem_dtype *types, int n)
{
    struct one *one = &cases[n_cases++];
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS] = {{0}};
    int64_t offsets[TND_FUSE_INPUTS] = {0};
    struct tnd_dims shape = {.n = 1 + below(3)};
    memset(one, 0, sizeof(*one));
    for (int d = 0; d < shape.n; d++) {
        shape.dims[d] = 1 + below(d == shape.n - 1 ? 100 : EXTENT);
    }
    for (int i = 0; i < n; i++) {
        int64_t stride = 1;
        (void)tnd_fuse_input(&one->fuse, types[i]);
        for (int d = shape.n - 1; d >= 0; d--) {
            const int way = below(4);
            strides[i][d] = way == 0 ? 0 : way == 1 ? -stride : stride;
            offsets[i] += way == 1 ? stride * (shape.dims[d] - 1) : 0;
            stride *= shape.dims[d];
        }
    }
    tnd_fuse_space(&one->space, n, &shape, strides, NULL);
    one->printed = (struct tnd_fuse_printed){.n_buffers = n, .name = one->name};
    snprintf(one->name, sizeof(one->name), "f%d", n_cases);
    for (int i = 0; i < n; i++) {
        one->printed.in[i] = (struct tnd_fuse_place){.buffer = i, .offset = offsets[i]};
    }
    one->tolerance = 1e-5;
    return one;
}

/* ---- compiling ---- */

static bool run_compiler(const char *from, const char *to)
{
    const char *const words[] = {"cc", "-w", "-O1", "-shared", "-fPIC",
                                 "-o", to,   from,  "-lm",     NULL};
    pid_t child;
    int status = 0;
    return posix_spawnp(&child, "cc", NULL, NULL, (char *const *)words, environ) == 0 &&
           waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool graph_test_has_compiler(void)
{
    const char *const words[] = {"cc", "--version", NULL};
    posix_spawn_file_actions_t quiet;
    pid_t child;
    int status = 1;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1, 0);
    const bool is_there =
        posix_spawnp(&child, "cc", &quiet, NULL, (char *const *)words, environ) == 0 &&
        waitpid(child, &status, 0) == child && status == 0;
    posix_spawn_file_actions_destroy(&quiet);
    if (!is_there) {
        tnd_skip("printed C: no compiler is called cc");
    }
    return is_there;
}

void *graph_test_compile(const struct tnd_text *text)
{
    const char *from = tnd_test_temp("printed.c");
    const char *to = tnd_test_temp("printed.so");
    void *library = NULL;
    FILE *file = fopen(from, "w");
    if (file != NULL) {
        const bool is_written = fwrite(text->bytes, 1, text->n, file) == text->n;
        CU_ASSERT_TRUE(fclose(file) == 0 && is_written);
        CU_ASSERT_TRUE(run_compiler(from, to));
        library = dlopen(to, RTLD_NOW | RTLD_LOCAL);
    }
    CU_ASSERT_PTR_NOT_NULL(library);
    return library;
}

/* All cases in one library; NULL when it cannot be made. */
static void *compile_cases(void)
{
    struct tnd_text text = TND_TEXT_INIT;
    tnd_fuse_print_prelude(TND_DIALECT_C, true, &text);
    for (int i = 0; i < n_cases; i++) {
        cases[i].printed.fuse = &cases[i].fuse;
        cases[i].printed.space = &cases[i].space;
        CU_ASSERT_TRUE(tnd_fuse_print_function(&cases[i].printed, TND_DIALECT_C, &text));
    }
    void *library = graph_test_compile(&text);
    tnd_text_fini(&text);
    return library;
}

/* ---- running ---- */

static void fill(enum tandem_dtype type, char *to, bool is_real)
{
    for (int i = 0; i < MEMORY; i++) {
        const double value = is_real ? (double)tnd_rng_normal(&rng) * 3 : (double)(below(13) - 6);
        union tnd_values lane;
        tnd_values_load(TANDEM_DTYPE_F64, &value, 1, 1, TND_LANE_F64, &lane);
        tnd_values_store(type, TND_LANE_F64, &lane, 1, to + (size_t)i * tandem_dtype_bytes(type));
    }
}

/* (4e-7: a unit of the last place of 1 + erf(x), which gelu multiplies by x / 2) */
static bool is_near(double got, double want, double tolerance)
{
    return got == want || (isnan(got) && isnan(want)) ||
           fabs(got - want) <= 4e-7 + tolerance * (1e-3 + fabs(want));
}

static void compare(const struct one *one, const void *got, const void *want, int64_t n)
{
    const enum tandem_dtype type = type_of(one, one->fuse.n_inputs + one->fuse.n_steps - 1);
    const struct tnd_array a = {type, {1, {n}}, n, (void *)got, NULL};
    const struct tnd_array b = {type, {1, {n}}, n, (void *)want, NULL};
    for (int64_t i = 0; i < n; i++) {
        const double x = tnd_array_number(&a, i);
        const double y = tnd_array_number(&b, i);
        if (!is_near(x, y, one->tolerance)) {
            printf("%s: %s of %s: value %lld is %.9g, expected %.9g\n", one->name,
                   tnd_net_op_name(one->fuse.steps[0].op), tandem_dtype_name(one->fuse.inputs[0]),
                   (long long)i, x, y);
            CU_FAIL("a value differs");
            return;
        }
    }
}

static void check_case(const struct one *one, printed_fn run)
{
    static char memory[TND_FUSE_INPUTS][MEMORY * 8];
    static char want[MEMORY * 8];
    static char got[MEMORY * 8];
    const void *buffers[TND_FUSE_INPUTS];
    const void *in[TND_FUSE_INPUTS];
    const int64_t n = tnd_dims_values(&one->space.shape);
    for (int i = 0; i < one->fuse.n_inputs; i++) {
        const enum tandem_dtype type = one->fuse.inputs[i];
        const struct tnd_fuse_place *place = &one->printed.in[i];
        fill(type, memory[i], one->tolerance > 0);
        buffers[i] = memory[i];
        in[i] = place->buffer < 0 ? place->value
                                  : memory[i] + place->offset * (int64_t)tandem_dtype_bytes(type);
    }
    memset(got, 0, sizeof(got));
    memset(want, 0, sizeof(want));
    tnd_fuse_run(tnd_test_strip(0), &one->fuse, &one->space, in, want, 0, one->space.n_items);
    const int64_t half = below((int)n + 1);
    run(got, buffers, 0, half);
    run(got, buffers, half, n);
    compare(one, got, want, n);
}

static void check_cases(void)
{
    void *library = compile_cases();
    for (int i = 0; library != NULL && i < n_cases; i++) {
        printed_fn run;
        void *symbol = dlsym(library, cases[i].name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(symbol);
        memcpy(&run, &symbol, sizeof(run));
        check_case(&cases[i], run);
    }
    if (library != NULL) {
        dlclose(library);
    }
}

/* False after a skip. */
static bool begin(void)
{
    n_cases = 0;
    tnd_rng_init(&rng, tnd_test_seed());
    return graph_test_has_compiler();
}

/* ---- tests ---- */

static void add_unary(enum tandem_dtype type, int kind)
{
    struct one *one = begin_case(&type, 1);
    const int x = 0;
    const bool is_bool = kind == TANDEM_UNARY_IS_NAN || kind == TANDEM_UNARY_IS_INF;
    (void)tnd_fuse_step(&one->fuse, TND_NET_UNARY, kind, is_bool ? TANDEM_DTYPE_BOOL : type, &x, 1);
    one->tolerance = type == TANDEM_DTYPE_BF16 ? 0.01 : type == TANDEM_DTYPE_F16 ? 1e-3 : 1e-5;
}

static void add_binary(enum tandem_dtype type, int kind)
{
    const enum tandem_dtype types[] = {type, type};
    struct one *one = begin_case(types, 2);
    const int in[] = {0, 1};
    (void)tnd_fuse_step(&one->fuse, TND_NET_BINARY, kind,
                        kind >= TANDEM_BINARY_EQUAL ? TANDEM_DTYPE_BOOL : type, in, 2);
    one->tolerance = tnd_dtype_kind(type) == TND_KIND_FLOAT ? 1e-5 : 0;
}

static void functions_of_one_and_two_values_are_those_of_the_interpreter(void)
{
    if (begin()) {
        for (int kind = 0; kind < TND_N_UNARY; kind++) {
            add_unary(TANDEM_DTYPE_F32, kind);
            add_unary(TANDEM_DTYPE_F64, kind);
        }
        static const int of_integers[] = {TANDEM_UNARY_NEG, TANDEM_UNARY_ABS, TANDEM_UNARY_SIGN,
                                          TANDEM_UNARY_NOT};
        for (int i = 0; i < 4; i++) {
            add_unary(TANDEM_DTYPE_I64, of_integers[i]);
            add_unary(TANDEM_DTYPE_I16, of_integers[i]);
        }
        add_unary(TANDEM_DTYPE_BOOL, TANDEM_UNARY_NOT);
        add_unary(TANDEM_DTYPE_F16, TANDEM_UNARY_TANH);
        add_unary(TANDEM_DTYPE_BF16, TANDEM_UNARY_TANH);
        for (int kind = 0; kind <= TANDEM_BINARY_LESS_EQUAL; kind++) {
            const bool is_bits = kind >= TANDEM_BINARY_AND && kind < TANDEM_BINARY_EQUAL;
            if (!is_bits) {
                add_binary(TANDEM_DTYPE_F32, kind);
                add_binary(TANDEM_DTYPE_F64, kind);
            }
            if (kind <= TANDEM_BINARY_XOR && kind != TANDEM_BINARY_POW &&
                kind != TANDEM_BINARY_MOD) {
                add_binary(TANDEM_DTYPE_I64, kind);
                add_binary(TANDEM_DTYPE_I8, kind);
                add_binary(TANDEM_DTYPE_U16, kind);
            }
        }
        check_cases();
    }
}

static void casts_between_all_types_are_those_of_the_interpreter(void)
{
    if (begin()) {
        for (int from = 0; from < TND_N_DTYPES; from++) {
            for (int to = 0; to < TND_N_DTYPES; to++) {
                const enum tandem_dtype type = (enum tandem_dtype)from;
                struct one *one = begin_case(&type, 1);
                const int x = 0;
                one->tolerance = 1e-9;
                (void)tnd_fuse_step(&one->fuse, TND_NET_CAST, 0, (enum tandem_dtype)to, &x, 1);
            }
        }
        check_cases();
    }
}

/* Trees of additions, products, bounds and choices over four operands, one of them a constant. */
static void random_trees_are_those_of_the_interpreter(void)
{
    static const float constants[] = {0.75f, -3.0f, INFINITY, 1e-30f};
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_F32, TANDEM_DTYPE_F32, TANDEM_DTYPE_BOOL,
                                              TANDEM_DTYPE_F32};
    static const int kinds[] = {TANDEM_BINARY_ADD, TANDEM_BINARY_SUB, TANDEM_BINARY_MUL,
                                TANDEM_BINARY_MAX, TANDEM_BINARY_MIN};
    if (!begin()) {
        return;
    }
    for (int i = 0; i < 100; i++) {
        struct one *one = begin_case(types, 4);
        int made[TND_FUSE_REGISTERS] = {0, 1, 3};
        int n = 3;
        one->printed.in[3] = (struct tnd_fuse_place){.buffer = -1, .value = &constants[i % 4]};
        memset(one->space.strides[3], 0, sizeof(one->space.strides[3]));
        for (int steps = 1 + below(10); steps > 0; steps--) {
            const int in[] = {2, made[below(n)], made[below(n)]};
            made[n++] = below(5) == 0
                            ? tnd_fuse_step(&one->fuse, TND_NET_SELECT, 0, TANDEM_DTYPE_F32, in, 3)
                            : tnd_fuse_step(&one->fuse, TND_NET_BINARY, kinds[below(5)],
                                            TANDEM_DTYPE_F32, in + 1, 2);
        }
        one->tolerance = 1e-4; /* (compilers may contract) */
    }
    check_cases();
}

static void what_has_no_text_is_refused(void)
{
    const enum tandem_dtype types[] = {TANDEM_DTYPE_U64, TANDEM_DTYPE_U64};
    const int in[] = {0, 1};
    struct tnd_text text = TND_TEXT_INIT;
    n_cases = 0;
    tnd_rng_init(&rng, tnd_test_seed());
    struct one *one = begin_case(types, 2);
    (void)tnd_fuse_step(&one->fuse, TND_NET_BINARY, TANDEM_BINARY_SHIFT_LEFT, TANDEM_DTYPE_U64, in,
                        2);
    one->printed.fuse = &one->fuse;
    one->printed.space = &one->space;
    for (int dialect = 0; dialect < TND_N_DIALECTS; dialect++) {
        CU_ASSERT_FALSE(tnd_fuse_print(&one->printed, (enum tnd_dialect)dialect, &text));
    }
    tnd_text_fini(&text);
}

static CU_TestInfo tests_print[] = {
    {"functions_of_one_and_two_values_are_those_of_the_interpreter",
     functions_of_one_and_two_values_are_those_of_the_interpreter},
    {"casts_between_all_types_are_those_of_the_interpreter",
     casts_between_all_types_are_those_of_the_interpreter},
    {"random_trees_are_those_of_the_interpreter", random_trees_are_those_of_the_interpreter},
    {"what_has_no_text_is_refused", what_has_no_text_is_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_graph_print[] = {
    {"print", NULL, NULL, NULL, NULL, tests_print},
    CU_SUITE_INFO_NULL,
};
