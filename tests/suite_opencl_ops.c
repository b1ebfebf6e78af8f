/* SPDX-License-Identifier: MIT
 * Operations on an OpenCL device: the cases of the conformance suite through map, upload, submit
 * and download, with guard bytes around results; results in place; hard values; what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_backend.h"
#include "base/half.h"
#include "ggml-like/tnd_type.h"
#include "tests/suite_backends_cases.h"
#include "tests/suite_opencl.h"

#define WITHOUT_EXTENSIONS ",fp16=off,fp64=off,subgroups=off,unified=off"

enum { GUARD = 128, GUARD_BYTE = 0x5C };

static tandem_backend *backend;
static tandem_context *context;
static struct tnd_test_rng rng;

static void close_backend(void)
{
    if (backend != NULL) {
        backend->api->close(backend);
    }
    backend = NULL;
}

/* False after a skip. The first device there is, whatever it is; `more` is added to its settings.
 * It stays open while tests want the same, so that programs are built once. */
static bool begin(const char *more)
{
    static char settings[128];
    char wanted[sizeof(settings)];
    const struct tandem_backend_options options = {
        .size = sizeof(options), .n_threads_max = 1, .settings = settings};
    struct tandem_error error = {0};
    context = NULL;
    rng = tnd_test_rng_new(tnd_test_seed());
    snprintf(wanted, sizeof(wanted), "device=0,cache=off%s", more);
    if (backend == NULL || strcmp(settings, wanted) != 0) {
        close_backend();
        memcpy(settings, wanted, sizeof(settings));
        const enum tandem_status status = tnd_test_cl_backend_open(&options, &backend, &error);
        if (status == TANDEM_E_UNSUPPORTED_MACHINE || status == TANDEM_E_UNSUPPORTED_BUILD) {
            tnd_skip("opencl: %s", error.text);
            return false;
        }
        if (!check_status(status, TANDEM_OK, NULL, &error)) {
            return false;
        }
    }
    return check_ok(tandem_context_new(NULL, &context, NULL));
}

static void end(void)
{
    tandem_context_free(context);
}

/* ---- one node ---- */

/* Maps and uploads the memory that an operand lies in. */
static void lend(const tandem_tensor *tensor)
{
    const tandem_tensor *root = tensor->root;
    const size_t bytes = tandem_tensor_bytes(root);
    if (bytes > 0) {
        (void)check_ok(tnd_test_cl_map(tnd_gpu_device_of(backend), root->data, bytes, NULL));
        (void)check_ok(tnd_test_cl_upload(tnd_gpu_device_of(backend), root->data, bytes, NULL));
    }
}

/* Runs a supported node whose result lies in `memory`, which is mapped, uploaded and fetched. */
static enum tandem_status run_in(const tandem_tensor *node, void *memory, size_t bytes,
                                 struct tandem_error *error)
{
    struct tandem_work work = {
        .node = node, .task = TANDEM_TASK_NODE, .row_begin = 0, .row_end = tnd_test_rows(node)};
    struct tandem_places places;
    uint64_t ticket = 0;
    for (int i = 0; i < node->n_src; i++) {
        if (node->src[i]->data != memory) {
            lend(node->src[i]);
        }
    }
    (void)check_ok(tnd_test_cl_map(tnd_gpu_device_of(backend), memory, bytes, NULL));
    (void)check_ok(tnd_test_cl_upload(tnd_gpu_device_of(backend), memory, bytes, NULL));
    places = tnd_test_cl_places(tnd_gpu_device_of(backend), &work);
    work.places = &places;
    enum tandem_status status = tnd_backend_submit(backend, &work, &ticket, error);
    if (status == TANDEM_OK) {
        (void)check_ok(
            tnd_test_cl_download(tnd_gpu_device_of(backend), memory, bytes, &ticket, NULL));
        status = tnd_backend_sync(backend, ticket, error);
    }
    for (int i = 0; i < node->n_src; i++) {
        if (node->src[i]->data != memory) {
            tnd_test_cl_give_back(tnd_gpu_device_of(backend), node->src[i]->root->data);
        }
    }
    tnd_test_cl_give_back(tnd_gpu_device_of(backend), memory);
    return status;
}

/* Runs a node into memory with guards on both sides; the result goes to where it belongs. */
static bool run_guarded(tandem_tensor *node, const char *what)
{
    const tandem_tensor *root = node->root;
    const size_t bytes = tandem_tensor_bytes(root);
    char *home = root->data;
    char *at = node->data;
    char *memory = aligned_alloc(64, (bytes + 2 * GUARD + 63) / 64 * 64);
    const size_t all = bytes + 2 * GUARD;
    struct tandem_error error = {0};
    memset(memory, GUARD_BYTE, all);
    memcpy(memory + GUARD, home, bytes);
    node->data = memory + GUARD + (at - home);
    const bool ran = check_status(run_in(node, memory, all, &error), TANDEM_OK, NULL, &error);
    size_t i = 0;
    while (i < GUARD && memory[i] == GUARD_BYTE && memory[GUARD + bytes + i] == GUARD_BYTE) {
        i++;
    }
    if (i < GUARD) {
        printf("\n    %s: a guard byte was written\n", what);
        CU_FAIL("a guard byte was written");
    }
    memcpy(home, memory + GUARD, bytes);
    node->data = at;
    free(memory);
    return ran;
}

static enum tandem_status supports(const tandem_tensor *node, struct tandem_error *error)
{
    return tnd_backend_supports(backend, node, TANDEM_TASK_NODE, error);
}

/* ---- against the reference ---- */

/* Values of a result as floats, to be freed; rows of blocks one by one. */
static float *floats_of(const tandem_tensor *node)
{
    const int64_t n = tandem_tensor_elements(node);
    float *values = malloc((size_t)(n + 1) * sizeof(float));
    for (int64_t i = 0; i < n && node->type == TANDEM_TYPE_I32; i++) {
        values[i] = (float)((const int32_t *)node->data)[i];
    }
    if (n > 0 && node->type != TANDEM_TYPE_I32) {
        (void)check_ok(tandem_dequantize(node->type, node->data, values, n));
    }
    return values;
}

/* Where both have the same infinity they agree. */
static void check_values(const tandem_tensor *node, float *want, double limit, const char *what)
{
    const int64_t n = tandem_tensor_elements(node);
    float *got = floats_of(node);
    for (int64_t i = 0; i < n; i++) {
        if (isinf(want[i]) && got[i] == want[i]) {
            got[i] = 0;
            want[i] = 0;
        }
    }
    if (n > 0) {
        (void)check_nmse(got, want, n, limit, what);
    }
    free(got);
}

static double limit_of(const tandem_tensor *node, double limit)
{
    /* weights are multiplied as they are, in F32 */
    return node->op == TANDEM_OP_MUL_MAT || node->op == TANDEM_OP_MUL_MAT_ID ? 1e-10 : limit;
}

static void check_node(tandem_tensor *node, double limit, const char *what)
{
    struct tandem_error error = {0};
    if (node == NULL || !check_status(supports(node, &error), TANDEM_OK, NULL, &error)) {
        printf("\n    %s\n", what);
        return;
    }
    (void)check_status(tnd_eval_ref_node(node, &error), TANDEM_OK, NULL, &error);
    float *want = floats_of(node);
    tnd_test_spoil(node);
    if (run_guarded(node, what)) {
        check_values(node, want, limit_of(node, limit), what);
    }
    free(want);
}

/* Plain products have a suite of their own. Attention takes long to compile and long to check: not
 * all types with one query, not all with many values. */
static bool is_left_out(const tandem_tensor *node, int shape)
{
    const enum tandem_type type = node->n_src > 1 ? node->src[1]->type : TANDEM_TYPE_F32;
    const bool is_rare = type == TANDEM_TYPE_BF16 || type == TANDEM_TYPE_Q4_K;
    return tnd_mul_mat_is_plain(node) ||
           (node->op == TANDEM_OP_ATTENTION &&
            ((shape == 0 && (is_rare || type == TANDEM_TYPE_F32)) || (shape == 4 && is_rare)));
}

static void check_case(const struct tnd_test_case *one, int shape)
{
    char what[96];
    rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)shape);
    tandem_context_reset(context);
    tandem_tensor *node = tnd_test_case_build(one, context, shape, &rng);
    if (node == NULL || is_left_out(node, shape)) {
        return;
    }
    snprintf(what, sizeof(what), "%s {%d, %d, %d, %d}", one->name, (int)node->ne[0],
             (int)node->ne[1], (int)node->ne[2], (int)node->ne[3]);
    if (node->op == TANDEM_OP_CUSTOM || node->op == TANDEM_OP_SCATTER) { /* run on the host */
        struct tandem_error error = {0};
        (void)check_status(supports(node, &error), TANDEM_E_UNSUPPORTED_BACKEND, "has no kernel",
                           &error);
        return;
    }
    check_node(node, one->limit, what);
}

static void every_operation_matches_the_reference_on_odd_shapes(void)
{
    if (begin("")) {
        for (int i = 0; i < tnd_test_case_count(); i++) {
            for (int shape = 0; shape < TND_TEST_SHAPES; shape++) {
                check_case(tnd_test_case_at(i), shape);
            }
        }
    }
    end();
}

/* Only what differs without the extensions is run. The last test: it closes the device. */
static void operations_match_the_reference_without_extensions(void)
{
    if (begin(WITHOUT_EXTENSIONS)) {
        for (int i = 0; i < tnd_test_case_count(); i++) {
            const char *name = tnd_test_case_at(i)->name;
            if (strncmp(name, "rope", 4) == 0 || strncmp(name, "cpy", 3) == 0 ||
                strcmp(name, "norm") == 0) {
                for (int shape = 0; shape < TND_TEST_SHAPES; shape++) {
                    check_case(tnd_test_case_at(i), shape);
                }
            }
        }
    }
    end();
    close_backend();
}

/* ---- in place ---- */

static void element_operations_may_overwrite_their_first_operand(void)
{
    if (!begin("")) {
        end();
        return;
    }
    for (int i = 0; i < tnd_test_case_count(); i++) {
        tandem_context_reset(context);
        rng = tnd_test_rng_new(tnd_test_seed());
        tandem_tensor *node = tnd_test_case_build(tnd_test_case_at(i), context, 2, &rng);
        tandem_tensor *a = node != NULL && node->n_src > 0 ? node->src[0] : NULL;
        if (a == NULL || !tnd_op_may_run_in_place(node->op) || a->root != a) {
            continue;
        }
        const size_t bytes = tandem_tensor_bytes(a);
        char *want = malloc(bytes);
        (void)run_guarded(node, "apart");
        memcpy(want, node->data, bytes);
        void *apart = node->data;
        node->data = a->data;
        (void)check_ok(run_in(node, a->data, bytes, NULL));
        (void)check_bits(a->data, want, bytes, tnd_test_case_at(i)->name);
        node->data = apart;
        free(want);
    }
    end();
}

/* ---- hard values ---- */

static tandem_tensor *leaf(enum tandem_type type, int64_t e0, int64_t e1, int64_t e2)
{
    return tnd_test_leaf(context, type, (int64_t[]){e0, e1, e2, 1}, &rng);
}

static tandem_tensor *row_of(const float *values, int64_t n)
{
    tandem_tensor *row = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &n);
    memcpy(row->data, values, (size_t)n * sizeof(float));
    return row;
}

/* Runs the copy of a row into a type and compares all bits with the codec in C. */
static void check_conversion(const float *values, int64_t n, enum tandem_type type)
{
    tandem_tensor *to = tandem_tensor_new(context, type, 1, &n);
    tandem_tensor *node = tnd_test_node(context, tandem_cpy(context, row_of(values, n), to));
    const size_t bytes = tandem_tensor_bytes(node);
    char *want = malloc(bytes);
    tnd_type_traits(type)->quantize(values, want, n);
    (void)run_guarded(node, tandem_type_name(type));
    (void)check_bits(node->data, want, bytes, tandem_type_name(type));
    free(want);
}

static void conversions_give_the_bits_of_the_plain_codecs(void)
{
    enum { N = 64 * 32 };
    static const float hard[] = {0.0f,        -0.0f,      1.0f,        65504.0f,     65519.9f,
                                 65520.0f,    -65520.0f,  1e30f,       -3.4e38f,     0x1p-24f,
                                 0x1p-25f,    0x1.8p-25f, 0x1p-14f,    0x1.ffcp-15f, 1.0009765f,
                                 1.00048828f, 1.0014648f, 1.00390625f, 1.01171875f,  3.0e-39f};
    float values[N];
    if (!begin("")) {
        end();
        return;
    }
    tnd_test_fill(&rng, values, N);
    for (int i = 0; i < N; i++) {
        values[i] *= ldexpf(1.0f, (int)tnd_test_rng_int(&rng, -30, 18) * (i / 32 % 2));
    }
    memcpy(values + 40, hard, sizeof(hard));
    values[70] = INFINITY;
    values[71] = -INFINITY;
    check_conversion(values, N, TANDEM_TYPE_F16);
    check_conversion(values, N, TANDEM_TYPE_BF16);
    memset(values + 96, 0, 32 * sizeof(float));
    for (int i = 0; i < 32; i++) {
        values[128 + i] = (float)(i - 16) + 0.5f; /* halves, rounded away from zero */
        values[160 + i] = i == 0 ? 127.0f : (float)(i - 16) + 0.5f;
        values[192 + i] = 1e-41f * (float)i;
    }
    values[231] = NAN;
    check_conversion(values, N, TANDEM_TYPE_Q8_0);
    check_conversion(values, N, TANDEM_TYPE_Q4_0);
    end();
}

/* Keys of new tokens go into the rows of a cache: every byte beside them stays. */
static void a_copy_into_a_view_leaves_what_lies_beside_it(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0,
                                             TANDEM_TYPE_Q4_0};
    for (int i = 0; i < 4 && begin(""); i++) {
        tandem_tensor *cache = leaf(types[i], 256, 9, 1);
        const size_t nb[2] = {tandem_type_row_bytes(types[i], 64), 2 * cache->nb[1]};
        tandem_tensor *place =
            tandem_view(context, cache, 3, (int64_t[]){64, 2, 4}, nb, cache->nb[1] + nb[0]);
        tandem_tensor *from = leaf(TANDEM_TYPE_F32, 64, 4, 2);
        from = tandem_permute(context, from, 0, 2, 1, 3);
        tandem_tensor *node = tnd_test_node(context, tandem_cpy(context, from, place));
        const size_t bytes = tandem_tensor_bytes(cache);
        char *want = malloc(bytes);
        char *before = malloc(bytes);
        memcpy(before, cache->data, bytes);
        (void)check_ok(tnd_eval_ref_node(node, NULL));
        memcpy(want, cache->data, bytes);
        memcpy(cache->data, before, bytes);
        (void)run_guarded(node, "cpy into a view");
        (void)check_bits(cache->data, want, bytes, tandem_type_name(types[i]));
        free(before);
        free(want);
        end();
    }
}

/* A soft_max over a row of values and a row of mask; returns the result's values. */
static const float *soft_max_of(const float *values, const float *mask, int64_t n)
{
    tandem_tensor *node =
        tnd_test_node(context, tandem_soft_max(context, row_of(values, n), row_of(mask, n), 1.0f));
    (void)run_guarded(node, "soft_max");
    return node->data;
}

static void a_row_that_is_wholly_masked_becomes_zeros(void)
{
    enum { N = 300 };
    float values[N], mask[N];
    int wrong = 0;
    if (!begin("")) {
        end();
        return;
    }
    for (int i = 0; i < N; i++) {
        values[i] = (float)i;
        mask[i] = -INFINITY;
    }
    const float *y = soft_max_of(values, mask, N);
    for (int i = 0; i < N; i++) {
        wrong += y[i] != 0.0f;
    }
    mask[3] = 0.0f;
    y = soft_max_of(values, mask, N);
    for (int i = 0; i < N; i++) {
        wrong += y[i] != (i == 3 ? 1.0f : 0.0f);
    }
    mask[299] = NAN; /* what is no number spoils its row and is seen */
    y = soft_max_of(values, mask, N);
    for (int i = 0; i < N; i++) {
        wrong += !isnan(y[i]);
    }
    check_int(wrong, 0);
    end();
}

static void rotary_angles_are_right_far_into_a_text(void)
{
    static const char *const settings[] = {"", WITHOUT_EXTENSIONS};
    for (int i = 0; i < 2; i++) {
        if (begin(settings[i])) {
            struct tandem_rope_options options = TANDEM_ROPE_OPTIONS_INIT;
            options.pairs = TANDEM_ROPE_HALVES;
            options.freq_base = 500000.0f;
            tandem_tensor *positions =
                tandem_tensor_new(context, TANDEM_TYPE_I32, 1, (int64_t[]){5});
            memcpy(positions->data, (int32_t[]){0, 1, 4095, 16000, 32767}, 5 * sizeof(int32_t));
            check_node(tnd_test_node(context, tandem_rope(context, leaf(TANDEM_TYPE_F32, 128, 3, 5),
                                                          positions, &options)),
                       i == 0 ? 1e-12 : 1e-5, "rope far into a text");
        }
        end();
    }
}

/* ---- attention ---- */

/* Views of a cache as the sessions make them: heads side by side in the rows of a token. */
static tandem_tensor *cache_view(enum tandem_type type, int64_t head, int64_t tokens,
                                 int64_t kv_heads)
{
    tandem_tensor *cache = leaf(type, head * kv_heads, tokens + 3, 1);
    const size_t nb[2] = {cache->nb[1], tandem_type_row_bytes(type, head)};
    return tandem_view(context, cache, 3, (int64_t[]){head, tokens, kv_heads}, nb, cache->nb[1]);
}

static tandem_tensor *cached_attention(enum tandem_type type, int64_t head, int64_t tokens,
                                       int64_t kv_heads, int64_t group, int64_t m, int64_t window)
{
    tandem_tensor *q = leaf(TANDEM_TYPE_F32, head, kv_heads * group, m);
    q = tandem_permute(context, q, 0, 2, 1, 3);
    tandem_tensor *k = cache_view(type, head, tokens, kv_heads);
    tandem_tensor *v = cache_view(type, head, tokens, kv_heads);
    tandem_tensor *orders = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, (int64_t[]){tokens + m});
    for (int64_t i = 0; i < tokens + m; i++) { /* the last m tokens are the queries */
        ((int32_t *)orders->data)[i] = (int32_t)(i < tokens ? i : i - m);
    }
    return tnd_test_node(context,
                         tandem_attention_ordered(context, q, k, v, orders, window, 0.125f));
}

static void check_attention(int units)
{
    static const struct {
        enum tandem_type type;
        int64_t head, tokens, kv_heads, group, m, window;
    } cases[] = {
        {TANDEM_TYPE_F16, 64, 515, 2, 4, 1, 0},   /* one token: keys are shared out */
        {TANDEM_TYPE_F16, 64, 700, 1, 1, 1, 100}, /* parts of the keys that nobody sees */
        {TANDEM_TYPE_Q8_0, 128, 200, 2, 4, 5, 0}, /* several blocks of queries */
        {TANDEM_TYPE_Q4_0, 128, 200, 2, 4, 5, 0},
        {TANDEM_TYPE_Q8_0, 128, 257, 3, 1, 1, 0},
        {TANDEM_TYPE_F16, 96, 130, 2, 2, 12, 33},
        {TANDEM_TYPE_F16, 160, 65, 1, 3, 1, 0}, /* more values than work items */
    };
    if (begin("")) {
        struct tnd_gpu_caps *caps = &tnd_gpu_device_of(backend)->caps;
        const int units_here = caps->compute_units;
        caps->compute_units = units > 0 ? units : units_here;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            char what[96];
            tandem_context_reset(context);
            snprintf(what, sizeof(what), "attention %s, %d keys, %d queries, %d units",
                     tandem_type_name(cases[i].type), (int)cases[i].tokens, (int)cases[i].m,
                     caps->compute_units);
            check_node(cached_attention(cases[i].type, cases[i].head, cases[i].tokens,
                                        cases[i].kv_heads, cases[i].group, cases[i].m,
                                        cases[i].window),
                       1e-10, what);
        }
        caps->compute_units = units_here;
    }
    end();
}

static void attention_reads_caches_of_any_length_and_window(void)
{
    check_attention(0);
}

/* As on a large GPU: each tile of keys is a part of its own. */
static void attention_is_shared_out_over_many_units(void)
{
    check_attention(1000);
}

static void a_query_that_sees_nothing_gets_zeros(void)
{
    for (int tokens = 40; tokens <= 400; tokens += 360) { /* in one part, in several */
        if (begin("")) {
            tandem_tensor *node = cached_attention(TANDEM_TYPE_F16, 64, tokens, 1, 2, 2, 0);
            int32_t *orders = node->src[3]->data;
            float *y = node->data;
            orders[tokens] = -1; /* before all keys */
            (void)run_guarded(node, "attention");
            int wrong = 0;
            for (int i = 0; i < 2 * 2 * 64; i++) {
                wrong += i < 2 * 64 ? y[i] != 0.0f : y[i] == 0.0f || !isfinite(y[i]);
            }
            check_int(wrong, 0);
        }
        end();
    }
}

/* ---- errors and refusals ---- */

static void an_index_outside_the_matrix_fails_with_its_number(void)
{
    for (int of_graph = 0; of_graph < 2 && begin(""); of_graph++) {
        struct tandem_error error = {0};
        tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, (int64_t[]){3});
        tandem_tensor *from = of_graph ? tandem_cont(context, ids) : ids;
        from->data = ids->data;
        tandem_tensor *node =
            tnd_test_node(context, tandem_get_rows(context, leaf(TANDEM_TYPE_F32, 4, 5, 1), from));
        memcpy(ids->data, (int32_t[]){4, 0, 5}, 3 * sizeof(int32_t));
        (void)check_status(run_in(node, node->data, tandem_tensor_bytes(node), &error),
                           TANDEM_E_ARGUMENT, "get_rows: index 2 is 5", &error);
        ((int32_t *)ids->data)[2] = -1;
        (void)check_status(run_in(node, node->data, tandem_tensor_bytes(node), &error),
                           TANDEM_E_ARGUMENT, "is -1, expected 0 to 4", &error);
        ((int32_t *)ids->data)[2] = 4;
        check_node(node, 1e-14, "get_rows after a failure");
        end();
    }
}

/* Indices of the host and those of a graph, which the device looks at. */
static void a_gathered_index_outside_the_row_fails_with_its_number(void)
{
    for (int of_graph = 0; of_graph < 2 && begin(""); of_graph++) {
        struct tandem_error error = {0};
        tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){3, 2});
        tandem_tensor *from = of_graph ? tandem_cont(context, ids) : ids;
        from->data = ids->data;
        tandem_tensor *node =
            tnd_test_node(context, tandem_gather(context, leaf(TANDEM_TYPE_F32, 5, 2, 1), from));
        memcpy(ids->data, (int32_t[]){4, 0, 1, 3, 5, 2}, 6 * sizeof(int32_t));
        (void)check_status(run_in(node, node->data, tandem_tensor_bytes(node), &error),
                           TANDEM_E_ARGUMENT, "gather: index 1 of token 1 is 5, expected 0 to 4",
                           &error);
        ((int32_t *)ids->data)[4] = 0;
        check_node(node, 1e-14, "gather after a failure");
        end();
    }
}

/* The reference's order: the first of equal ones first, not-a-numbers last. */
static void the_largest_values_of_hard_rows_are_found(void)
{
    enum { N = 200 };
    float values[N];
    if (begin("")) {
        for (int i = 0; i < N; i++) {
            values[i] = (float)(i * 7 % 5);
        }
        values[3] = values[90] = NAN;
        values[17] = values[150] = INFINITY;
        values[20] = -INFINITY;
        values[21] = -0.0f;
        for (int64_t k = 1; k <= N; k += k == 1 ? 7 : 64) {
            check_node(tnd_test_node(context, tandem_top_k(context, row_of(values, N), k)), 1e-14,
                       "top_k of hard values");
        }
        check_node(tnd_test_node(context, tandem_top_k(context, row_of(values, N), N)), 1e-14,
                   "top_k of all");
    }
    end();
}

static void check_refused(tandem_tensor *node, const char *part)
{
    struct tandem_error error = {0};
    (void)check_status(supports(tnd_test_node(context, node), &error), TANDEM_E_UNSUPPORTED_BACKEND,
                       part, &error);
}

static void rows_of_every_type_are_read(void)
{
    if (begin("")) {
        for (int type = 0; type < TANDEM_TYPE_NUMBERS; type++) {
            if (tandem_type_is_valid((enum tandem_type)type)) {
                tandem_context_reset(context);
                tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, (int64_t[]){3});
                memcpy(ids->data, (int32_t[]){4, 0, 2}, 3 * sizeof(int32_t));
                tandem_tensor *w =
                    tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){37, 5});
                for (int32_t i = 0; i < 37 * 5; i++) {
                    ((int32_t *)w->data)[i] = i - 100;
                }
                w = type == TANDEM_TYPE_I32 ? w : leaf((enum tandem_type)type, 512, 5, 1);
                tandem_tensor *rows = tandem_get_rows(context, w, ids);
                if (type == TANDEM_TYPE_I32 || tnd_gpu_has_decoder((enum tandem_type)type)) {
                    check_node(tnd_test_node(context, rows), 1e-14,
                               tandem_type_name((enum tandem_type)type));
                } else {
                    check_refused(rows, "decodes no rows of this type");
                }
            }
        }
    }
    end();
}

static void what_no_kernel_can_do_is_refused_with_a_reason(void)
{
    if (begin("")) {
        tandem_tensor *a = leaf(TANDEM_TYPE_F32, 64, 4, 1);
        tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, (int64_t[]){4});
        check_refused(tandem_cpy(context, a, leaf(TANDEM_TYPE_Q5_0, 64, 4, 1)), "no blocks but");
        check_refused(tandem_get_rows(context, leaf(TANDEM_TYPE_F32, 64, 0, 1), ids), "no row");
        check_refused(tandem_attention(context, leaf(TANDEM_TYPE_F32, 64, 2, 1),
                                       leaf(TANDEM_TYPE_F16, 64, 3, 1),
                                       leaf(TANDEM_TYPE_F32, 64, 3, 1), NULL, 1.0f),
                      "one type");
        char *memory = malloc(4 * sizeof(float) + 1);
        memset(memory, 0, 4 * sizeof(float) + 1);
        tandem_tensor *odd = tandem_tensor_borrow(context, TANDEM_TYPE_F32, 1, (int64_t[]){4},
                                                  memory + 1, 4 * sizeof(float));
        check_refused(tandem_sqr(context, odd), "odd address");
        free(memory);
    }
    end();
}

CU_TestInfo tnd_tests_opencl_ops[] = {
    {"every operation matches the reference on odd shapes",
     every_operation_matches_the_reference_on_odd_shapes},
    {"element operations may overwrite their first operand",
     element_operations_may_overwrite_their_first_operand},
    {"conversions give the bits of the plain codecs",
     conversions_give_the_bits_of_the_plain_codecs},
    {"a copy into a view leaves what lies beside it",
     a_copy_into_a_view_leaves_what_lies_beside_it},
    {"a row that is wholly masked becomes zeros", a_row_that_is_wholly_masked_becomes_zeros},
    {"attention reads caches of any length and window",
     attention_reads_caches_of_any_length_and_window},
    {"attention is shared out over many units", attention_is_shared_out_over_many_units},
    {"a query that sees nothing gets zeros", a_query_that_sees_nothing_gets_zeros},
    {"an index outside the matrix fails with its number",
     an_index_outside_the_matrix_fails_with_its_number},
    {"a gathered index outside the row fails with its number",
     a_gathered_index_outside_the_row_fails_with_its_number},
    {"the largest values of hard rows are found", the_largest_values_of_hard_rows_are_found},
    {"rows of every type are read", rows_of_every_type_are_read},
    {"what no kernel can do is refused with a reason",
     what_no_kernel_can_do_is_refused_with_a_reason},
    {"rotary angles are right far into a text", rotary_angles_are_right_far_into_a_text},
    {"operations match the reference without extensions",
     operations_match_the_reference_without_extensions},
    CU_TEST_INFO_NULL,
};
