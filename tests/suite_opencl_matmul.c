/* SPDX-License-Identifier: MIT
 * Matrix products on an OpenCL device against a double-precision reference: every weight type,
 * every family of kernels and its variants, odd shapes, row ranges, operands at odd places, guards
 * around results. TANDEM_TEST_TYPES="q4_0 f16" restricts the types (for slow devices: oclgrind). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_matmul.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_tune.h"
#include "base/half.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_opencl.h"

enum { GUARD = 64 };

static struct tnd_gpu_device *device; /* opened by the first test, closed by the last */
static struct tnd_gpu_matmul before;  /* what tests change is put back */

/* False after a skip. The first device there is, whatever it is. */
static bool begin(void)
{
    if (device == NULL) {
        const struct tnd_gpu_options options = {.device = "0", .cache = "off"};
        struct tandem_error error = {0};
        enum tandem_status status = tnd_test_cl_device_open(&options, &device, &error);
        if (status == TANDEM_E_UNSUPPORTED_MACHINE) {
            tnd_skip("opencl: %s", error.text);
            return false;
        }
        if (!check_status(status, TANDEM_OK, NULL, &error)) {
            return false;
        }
        before = *device->matmul;
    }
    *device->matmul = before;
    return true;
}

/* ---- one product ---- */

struct product {
    enum tandem_type type;
    int64_t n, m, k;
    tandem_context *context;
    struct tandem_tensor *node;
    float *w_values; /* as the blocks say */
    char *memory;    /* all operands in one mirror: w, x, y with guards, workspace */
    size_t bytes;
    char *w, *y;
    float *x;
    char *workspace;
    size_t workspace_bytes;
    char name[96];
};

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void fill_operands(struct product *p, size_t row_bytes)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(p->n * 31 + p->m * 7));
    tnd_test_fill(&rng, p->w_values, p->n * p->k);
    tnd_test_fill(&rng, p->x, p->m * p->k);
    for (int64_t i = 0; i < p->n; i++) {
        tandem_quantize(p->type, p->w_values + i * p->k, p->w + (size_t)i * row_bytes, p->k);
        tandem_dequantize(p->type, p->w + (size_t)i * row_bytes, p->w_values + i * p->k, p->k);
    }
}

/* `shift` bytes put the operands at places that are no multiples of 16. */
static void product_open(struct product *p, enum tandem_type type, int64_t n, int64_t m, int64_t k,
                         size_t shift)
{
    *p = (struct product){.type = type, .n = n, .m = m, .k = k};
    snprintf(p->name, sizeof(p->name), "mul_mat:%s:n%d:k%d:m%d", tandem_type_name(type), (int)n,
             (int)k, (int)m);
    size_t row_bytes = tandem_type_row_bytes(type, k);
    size_t w_bytes = (size_t)n * row_bytes;
    size_t x_bytes = (size_t)(m * k) * sizeof(float);
    size_t y_bytes = (size_t)(m * n) * sizeof(float);
    p->workspace_bytes = (size_t)(n * k) * sizeof(float);
    p->bytes = rounded(w_bytes) + rounded(x_bytes) + rounded(y_bytes) + 2 * GUARD +
               rounded(p->workspace_bytes) + GUARD + 4 * 64;
    p->memory = aligned_alloc(64, rounded(p->bytes));
    memset(p->memory, 0x5C, p->bytes);
    size_t x_shift = shift / 4 * 4;
    p->w = p->memory + shift;
    p->x = (void *)(p->memory + rounded(shift + w_bytes) + x_shift);
    p->y = p->memory + rounded(shift + w_bytes) + rounded(x_shift + x_bytes) + GUARD + x_shift;
    p->workspace = p->y + rounded(y_bytes) + 2 * GUARD - x_shift;
    p->w_values = malloc((size_t)(n * k + 1) * sizeof(float));
    fill_operands(p, row_bytes);
    check_ok(tandem_context_new(NULL, &p->context, NULL));
    tandem_tensor *w = tandem_tensor_borrow(p->context, type, 2, (int64_t[]){k, n}, p->w, w_bytes);
    tandem_tensor *x =
        tandem_tensor_borrow(p->context, TANDEM_TYPE_F32, 2, (int64_t[]){k, m}, p->x, x_bytes);
    p->node = tandem_mul_mat(p->context, w, x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->node);
    p->node->data = p->y;
    check_ok(tnd_test_cl_map(device, p->memory, p->bytes, NULL));
    check_ok(tnd_test_cl_upload(device, p->memory, p->bytes, NULL));
}

static void check_guards(const struct product *p)
{
    size_t y_bytes = (size_t)(p->m * p->n) * sizeof(float);
    const char *behind = p->workspace + p->workspace_bytes;
    bool intact = true;
    for (int i = 0; i < GUARD; i++) {
        intact = intact && p->y[-1 - i] == 0x5C && p->y[y_bytes + (size_t)i] == 0x5C &&
                 behind[i] == 0x5C;
    }
    if (!intact) {
        printf("\n    %s: a guard byte was written\n", p->name);
        CU_FAIL("a guard byte was written");
    }
}

static void product_close(struct product *p)
{
    check_guards(p);
    tnd_test_cl_give_back(device, p->memory);
    tandem_context_free(p->context);
    free(p->w_values);
    free(p->memory);
}

static enum tandem_status submit(struct product *p, enum tandem_task task, int64_t begin_row,
                                 int64_t end_row, struct tandem_error *error)
{
    struct tandem_work work = {.node = p->node,
                               .task = (uint32_t)task,
                               .row_begin = begin_row,
                               .row_end = end_row,
                               .workspace = p->workspace,
                               .workspace_bytes = p->workspace_bytes};
    const struct tandem_places places = tnd_test_cl_places(device, &work);
    work.places = &places;
    pthread_mutex_lock(&device->submit_lock);
    enum tandem_status status = tnd_gpu_matmul_submit(device, &work, error);
    pthread_mutex_unlock(&device->submit_lock);
    return status;
}

static void run(struct product *p, enum tandem_task task, int64_t begin_row, int64_t end_row)
{
    struct tandem_error error = {.text = ""};
    if (!check_status(submit(p, task, begin_row, end_row, &error), TANDEM_OK, NULL, &error)) {
        printf("\n    %s\n", p->name);
    }
}

/* Everything comes back: also guards that a kernel may have written. */
static void fetch(struct product *p)
{
    uint64_t ticket = 0;
    check_ok(tnd_test_cl_download(device, p->memory, p->bytes, &ticket, NULL));
    check_ok(tnd_gpu_sync(device, ticket, NULL));
}

static double *reference(const struct product *p)
{
    double *y = malloc((size_t)(p->m * p->n + 1) * sizeof(double));
    for (int64_t t = 0; t < p->m; t++) {
        for (int64_t r = 0; r < p->n; r++) {
            double sum = 0;
            for (int64_t i = 0; i < p->k; i++) {
                sum += (double)p->w_values[r * p->k + i] * (double)p->x[t * p->k + i];
            }
            y[t * p->n + r] = sum;
        }
    }
    return y;
}

/* The reference uses the weights as stored, so products are exact to F32. */
static void check_result(struct product *p, const char *variant)
{
    char what[160];
    double *want = reference(p);
    fetch(p);
    snprintf(what, sizeof(what), "%s %s", p->name, variant);
    check_nmse_double((const float *)(const void *)p->y, want, p->m * p->n, 1e-10, what);
    free(want);
}

static void check_product(enum tandem_type type, enum tandem_task task, int64_t n, int64_t m,
                          int64_t k, size_t shift, const char *variant)
{
    struct product p;
    product_open(&p, type, n, m, k, shift);
    if (task == TANDEM_TASK_MUL_MAT_F32 && type != TANDEM_TYPE_F32) {
        run(&p, TANDEM_TASK_DEQUANTIZE_W, 0, n);
    }
    run(&p, task, 0, n);
    check_result(&p, variant);
    product_close(&p);
}

/* ---- the lists ---- */

static const enum tandem_type all_types[] = {
    TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0,  TANDEM_TYPE_Q4_1,
    TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K,  TANDEM_TYPE_Q3_K,
    TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_BCML1,
};
/* One of each way to read levels. */
static const enum tandem_type some_types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q4_0,
                                              TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q3_K};
static const int64_t all_tokens[] = {1, 2, 3, 7, 8, 16, 33, 128};
static const int64_t some_tokens[] = {1, 3, 7, 33};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static bool is_asked_for(enum tandem_type type)
{
    const char *types = getenv("TANDEM_TEST_TYPES");
    return types == NULL || strstr(types, tandem_type_name(type)) != NULL;
}

/* A row that is no multiple of a part, of a unit, of the lanes; blocks in odd number. */
static int64_t odd_k(enum tandem_type type)
{
    int64_t block = tandem_type_block_values(type);
    return block == 1 ? 133 : block == 32 ? 160 : 768;
}

static void check_types(const enum tandem_type *types, int n_types, const int64_t *tokens,
                        int n_tokens, const char *variant)
{
    for (int t = 0; t < n_types; t++) {
        for (int i = 0; i < n_tokens && is_asked_for(types[t]); i++) {
            check_product(types[t], TANDEM_TASK_NODE, 37, tokens[i], odd_k(types[t]), 0, variant);
        }
    }
}

/* Tile numbers of a GPU, small enough for few rows. */
static void use_lanes(int32_t lanes, int32_t columns)
{
    struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    tiles->matvec_lanes = lanes;
    tiles->matvec_rows = 2;
    tiles->skinny_lanes = lanes;
    tiles->skinny_rows = 2;
    tiles->skinny_columns = columns;
}

static void use_tiles(void)
{
    struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    tiles->tile_m = 16;
    tiles->tile_n = 32;
    tiles->tile_k = 32;
    tiles->item_m = 4;
    tiles->item_n = 4;
    device->matmul->family = TND_GPU_FAMILY_TILED;
    CU_ASSERT_TRUE(tnd_gpu_tiles_fit(&device->caps, tiles));
}

/* ---- tests ---- */

static void products_match_the_double_reference(void)
{
    if (begin()) {
        check_types(all_types, COUNT(all_types), all_tokens, COUNT(all_tokens), "as chosen");
    }
}

static void lanes_match_the_double_reference(void)
{
    if (begin()) {
        use_lanes(16, 8);
        device->matmul->family = TND_GPU_FAMILY_MATVEC;
        check_types(all_types, COUNT(all_types), some_tokens, COUNT(some_tokens), "matvec");
        device->matmul->family = TND_GPU_FAMILY_SKINNY;
        check_types(some_types, COUNT(some_types), all_tokens, COUNT(all_tokens), "skinny");
    }
}

static void tiles_match_the_double_reference(void)
{
    if (begin()) {
        use_tiles();
        check_types(all_types, COUNT(all_types), all_tokens, COUNT(all_tokens), "tiled");
    }
}

/* One warp; four in a tile that is not deep. */
static void tensor_cores_match_the_double_reference(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K};
    if (!begin()) {
        return;
    }
    if (!device->caps.mma) {
        tnd_skip("opencl: no tensor cores");
        return;
    }
    struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    use_tiles();
    tiles->mma = 1;
    check_types(all_types, COUNT(all_types), some_tokens, COUNT(some_tokens), "tensor cores");
    check_product(TANDEM_TYPE_Q4_0, TANDEM_TASK_NODE, 5, 7, 160, 6, "shifted");
    check_product(TANDEM_TYPE_BF16, TANDEM_TASK_NODE, 5, 7, 133, 6, "shifted");
    tiles->tile_n = 64;
    tiles->tile_k = 16;
    tiles->item_m = 2;
    CU_ASSERT_TRUE(tnd_gpu_tiles_fit(&device->caps, tiles));
    check_types(types, COUNT(types), some_tokens, COUNT(some_tokens), "tensor cores, 4 warps");
}

static void subgroups_match_the_double_reference(void)
{
    if (!begin()) {
        return;
    }
    use_lanes(16, 4);
    device->matmul->use_subgroups = 2;
    check_types(some_types, 3, some_tokens, COUNT(some_tokens), "subgroups of one");
    if (!device->caps.subgroups) {
        tnd_skip("opencl: the device has no subgroups");
        return;
    }
    use_lanes(64, 8);
    device->matmul->use_subgroups = 1;
    check_types(all_types, COUNT(all_types), some_tokens, COUNT(some_tokens), "subgroups");
}

/* The device claims subgroups, and its compiler knows none. */
static void subgroups_that_do_not_build_are_done_without(void)
{
    if (!begin()) {
        return;
    }
    if (device->caps.subgroups) {
        tnd_skip("opencl: the device has subgroups");
        return;
    }
    use_lanes(16, 4);
    device->matmul->use_subgroups = 1;
    check_types(some_types, 1, some_tokens, COUNT(some_tokens), "without subgroups");
    check_int(device->matmul->use_subgroups, 0);
}

/* Decoding, each type with wide loads and without, to the bits of the plain codec. */
static void dequantized_weights_have_the_bits_of_the_plain_codec(void)
{
    if (!begin()) {
        return;
    }
    for (int t = 1; t < COUNT(all_types); t++) {
        for (size_t shift = 0; shift <= 2 && is_asked_for(all_types[t]); shift += 2) {
            struct product p;
            product_open(&p, all_types[t], 21, 1, odd_k(all_types[t]), shift);
            run(&p, TANDEM_TASK_DEQUANTIZE_W, 5, 21);
            run(&p, TANDEM_TASK_DEQUANTIZE_W, 0, 5);
            fetch(&p);
            check_bits(p.workspace, p.w_values, p.workspace_bytes, p.name);
            product_close(&p);
        }
    }
    struct product p; /* all values of parts, none in a tail */
    product_open(&p, TANDEM_TYPE_F16, 5, 1, 64, 0);
    run(&p, TANDEM_TASK_DEQUANTIZE_W, 0, 5);
    fetch(&p);
    check_bits(p.workspace, p.w_values, p.workspace_bytes, p.name);
    product_close(&p);
}

static void operands_may_lie_at_odd_places(void)
{
    if (!begin()) {
        return;
    }
    for (int t = 0; t < COUNT(some_types); t++) {
        enum tandem_type type = some_types[t];
        size_t shift = type == TANDEM_TYPE_F32 ? 4 : 6;
        if (is_asked_for(type)) {
            check_product(type, TANDEM_TASK_NODE, 5, 1, odd_k(type), shift, "shifted");
            check_product(type, TANDEM_TASK_NODE, 5, 7, odd_k(type), shift, "shifted");
        }
    }
    struct product p;
    struct tandem_error error = {.text = ""};
    product_open(&p, TANDEM_TYPE_Q4_0, 3, 1, 64, 1);
    check_status(submit(&p, TANDEM_TASK_NODE, 0, 3, &error), TANDEM_E_ARGUMENT, "odd addresses",
                 &error);
    product_close(&p);
}

static void float_products_match_the_double_reference(void)
{
    if (!begin()) {
        return;
    }
    for (int own = 0; own < 2; own++) {
        device->matmul->without_blas = own != 0;
        if (own == 0 && !device->context->has_blas) {
            tnd_skip("opencl: no library: %s", device->context->blas_reason);
            continue;
        }
        for (int i = 0; i < COUNT(some_tokens); i++) {
            check_product(TANDEM_TYPE_F32, TANDEM_TASK_MUL_MAT_F32, 37, some_tokens[i], 133, 0,
                          own != 0 ? "own" : "library");
        }
        for (int t = 0; t < COUNT(all_types); t++) {
            check_product(all_types[t], TANDEM_TASK_MUL_MAT_F32, 37, 7, odd_k(all_types[t]), 4,
                          own != 0 ? "own" : "library");
        }
    }
    use_tiles();
    check_product(TANDEM_TYPE_F32, TANDEM_TASK_MUL_MAT_F32, 37, 33, 133, 0, "own tiles");
    check_product(TANDEM_TYPE_F32, TANDEM_TASK_MUL_MAT_F32, 64, 32, 128, 0, "own full tiles");
}

static struct tnd_cl_context *context_of(const struct tnd_gpu_device *of)
{
    return (struct tnd_cl_context *)of->context;
}

/* CLBlast's place in the half-precision product on devices that have no fp16: halves from the
 * buffers, products on the host. */
static int pretended_hgemm(int layout, int a_transpose, int b_transpose, size_t m, size_t n,
                           size_t k, cl_half alpha, cl_mem a, size_t a_offset, size_t a_ld,
                           cl_mem b, size_t b_offset, size_t b_ld, cl_half beta, cl_mem c,
                           size_t c_offset, size_t c_ld, cl_command_queue *queue, cl_event *event)
{
    const struct tnd_cl_functions *cl = &context_of(device)->library->cl;
    uint16_t *values = malloc((m * k + n * k + m * n) * sizeof(uint16_t));
    uint16_t *from_b = values + m * k;
    uint16_t *to = from_b + n * k;
    bool is_plain = layout == TND_CLBLAST_ROW_MAJOR && a_transpose == TND_CLBLAST_NO_TRANS &&
                    b_transpose == TND_CLBLAST_TRANS && alpha == 0x3C00 && beta == 0 && a_ld == k &&
                    b_ld == k && c_ld == n && event == NULL;
    CU_ASSERT_TRUE(is_plain);
    cl->EnqueueReadBuffer(*queue, a, CL_TRUE, a_offset * 2, m * k * 2, values, 0, NULL, NULL);
    cl->EnqueueReadBuffer(*queue, b, CL_TRUE, b_offset * 2, n * k * 2, from_b, 0, NULL, NULL);
    for (size_t i = 0; i < m * n; i++) {
        float sum = 0;
        for (size_t j = 0; j < k; j++) {
            sum += tnd_f16_to_f32(values[i / n * k + j]) * tnd_f16_to_f32(from_b[i % n * k + j]);
        }
        to[i] = tnd_f32_to_f16(sum);
    }
    cl->EnqueueWriteBuffer(*queue, c, CL_TRUE, c_offset * 2, m * n * 2, to, 0, NULL, NULL);
    free(values);
    return CL_SUCCESS;
}

/* Half precision as a library has it: on CUDA, what tells `sums`; else pretended, halves alone. */
static struct half {
    struct tnd_clblast_functions pretended;
    const struct tnd_clblast_functions *clblast;
    struct tnd_gpu_context before;
    bool fp16;
} half;

static bool half_begin(enum tnd_gpu_sums sums)
{
    half.before = *device->context;
    half.fp16 = device->caps.fp16;
    if (tnd_test_cl_is_cuda()) {
        device->context->blas_sums = sums;
        return sums != TND_GPU_SUMS_HALF;
    }
    half.clblast = context_of(device)->clblast;
    half.pretended =
        (struct tnd_clblast_functions){.sgemm = half.clblast->sgemm, .hgemm = pretended_hgemm};
    context_of(device)->clblast = &half.pretended;
    device->caps.fp16 = true;
    return sums == TND_GPU_SUMS_HALF;
}

static void half_end(void)
{
    if (!tnd_test_cl_is_cuda()) {
        context_of(device)->clblast = half.clblast;
    }
    *device->context = half.before;
    device->caps.fp16 = half.fp16;
}

static const enum tnd_gpu_sums all_sums[] = {TND_GPU_SUMS_HALF, TND_GPU_SUMS_F32,
                                             TND_GPU_SUMS_F32_OF_F32};

static void half_products_are_taken_where_they_were_measured_to_be_good(void)
{
    if (!begin() || !device->context->has_blas) {
        return;
    }
    static const struct {
        enum tandem_type type;
        int32_t most;
        double least, limit; /* of the error: halves leave one */
    } cases[] = {{TANDEM_TYPE_Q4_0, 256, 1e-9, 1e-6},
                 {TANDEM_TYPE_Q4_0, 128, 0, 1e-10},
                 {TANDEM_TYPE_F16, 256, 0, 1e-10}};
    for (int i = 0; i < COUNT(cases) * COUNT(all_sums); i++) {
        const int at = i % COUNT(cases);
        struct product p;
        if (half_begin(all_sums[i / COUNT(cases)])) {
            device->matmul->tiles.half_most = cases[at].most;
            product_open(&p, cases[at].type, 37, 7, 160, 0);
            double *want = reference(&p);
            run(&p, TANDEM_TASK_DEQUANTIZE_W, 0, p.n);
            run(&p, TANDEM_TASK_MUL_MAT_F32, 0, p.n);
            fetch(&p);
            double errors = 0;
            double squares = 0;
            for (int64_t j = 0; j < p.m * p.n; j++) {
                double got = ((const float *)(const void *)p.y)[j];
                errors += (got - want[j]) * (got - want[j]);
                squares += want[j] * want[j];
            }
            /* A real cuBLAS may take plain F32 where we allow it less. */
            const double least = getenv("TANDEM_TEST_LIBCUDA") != NULL ? 0 : cases[at].least;
            CU_ASSERT(errors >= least * squares && errors <= cases[at].limit * squares);
            free(want);
            product_close(&p);
        }
        half_end();
    }
}

static bool note_half(void *user, const struct tnd_tuner_time *time)
{
    if (strcmp(time->family, "half") == 0 && time->n_us > 0 && time->error >= 0) {
        *(double *)user = time->error;
    }
    return true;
}

/* The tuner's operands lie in scratch memory, and so do those of half products. */
static void the_tuner_sees_the_true_error_of_half_products(void)
{
    if (!begin() || !device->context->has_blas) {
        return;
    }
    for (int i = 0; i < COUNT(all_sums); i++) {
        double error = -1;
        const struct tnd_gpu_tune_options options = {
            .tuner = {.timed = note_half, .user = &error, .most_candidates = 1},
            .with_half = all_sums[i] != TND_GPU_SUMS_F32_OF_F32,
            .is_brief = true};
        if (half_begin(all_sums[i])) {
            check_ok(tnd_gpu_tune(device, &options, NULL));
            CU_ASSERT(error >= 0 && error < 1e-5);
        }
        half_end();
    }
}

/* Row ranges leave the other rows alone, in every family and in the library. */
static void row_ranges_make_their_rows_only(void)
{
    if (!begin()) {
        return;
    }
    static const enum tandem_task tasks[] = {TANDEM_TASK_NODE, TANDEM_TASK_NODE, TANDEM_TASK_NODE,
                                             TANDEM_TASK_MUL_MAT_F32};
    for (int i = 0; i < COUNT(tasks); i++) {
        *device->matmul = before;
        if (i == 1) {
            use_lanes(16, 8);
        } else if (i == 2) {
            use_tiles();
        }
        struct product p;
        product_open(&p, TANDEM_TYPE_F32, 37, 7, 133, 0);
        run(&p, tasks[i], 11, 30);
        run(&p, tasks[i], 5, 5);
        fetch(&p);
        for (int64_t t = 0; t < p.m; t++) {
            const char *row = p.y + (size_t)(t * p.n) * sizeof(float);
            CU_ASSERT(row[0] == 0x5C && row[11 * 4 - 1] == 0x5C && row[30 * 4] == 0x5C);
        }
        run(&p, tasks[i], 30, 37);
        run(&p, tasks[i], 0, 11);
        check_result(&p, "ranges");
        product_close(&p);
    }
}

static void products_without_depth_are_zeros(void)
{
    if (!begin()) {
        return;
    }
    static const enum tandem_task tasks[] = {TANDEM_TASK_NODE, TANDEM_TASK_MUL_MAT_F32};
    for (int i = 0; i < COUNT(tasks); i++) {
        struct product p;
        static const float zeros[15] = {0};
        product_open(&p, TANDEM_TYPE_F32, 5, 3, 0, 0);
        run(&p, tasks[i], 0, 5);
        fetch(&p);
        check_bits(p.y, zeros, sizeof(zeros), p.name);
        product_close(&p);
    }
    struct product p;
    product_open(&p, TANDEM_TYPE_Q4_0, 5, 0, 64, 0);
    run(&p, TANDEM_TASK_NODE, 0, 5);
    product_close(&p);
}

/* The order of additions depends on neither the rows of a call nor the other tokens. */
static void bits_do_not_depend_on_row_ranges_or_repetition(void)
{
    if (!begin()) {
        return;
    }
    for (int family = 0; family < 2; family++) {
        struct product p;
        product_open(&p, TANDEM_TYPE_Q4_0, 37, 8, 320, 0);
        size_t bytes = (size_t)(p.m * p.n) * sizeof(float);
        char *first = malloc(bytes);
        if (family == 1) {
            use_tiles();
        }
        run(&p, TANDEM_TASK_NODE, 0, p.n);
        fetch(&p);
        memcpy(first, p.y, bytes);
        for (int64_t split = 1; split < p.n; split += 17) {
            run(&p, TANDEM_TASK_NODE, 0, split);
            run(&p, TANDEM_TASK_NODE, split, p.n);
            fetch(&p);
            check_bits(p.y, first, bytes, p.name);
        }
        free(first);
        product_close(&p);
    }
}

static void what_cannot_run_is_refused_with_a_reason(void)
{
    if (!begin()) {
        return;
    }
    struct product p;
    struct tandem_error error = {.text = ""};
    product_open(&p, TANDEM_TYPE_F32, 5, 3, 16, 0);
    check_status(tnd_gpu_matmul_supports(device, p.node, TANDEM_TASK_QUANTIZE_X, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "no such task", &error);
    check_status(tnd_gpu_matmul_supports(device, p.node, TANDEM_TASK_DEQUANTIZE_W, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "F32 already", &error);
    check_int(tnd_gpu_matmul_workspace(device, p.node, TANDEM_TASK_MUL_MAT_F32), 0);
    tandem_tensor *sum = tandem_add(p.context, p.node, p.node);
    check_status(tnd_gpu_matmul_supports(device, sum, TANDEM_TASK_NODE, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "dense matrices", &error);
    check_status(submit(&p, TANDEM_TASK_NODE, 0, 6, &error), TANDEM_E_ARGUMENT, "rows 0 to 6",
                 &error);
    product_close(&p);
    product_open(&p, TANDEM_TYPE_Q8_0, 5, 3, 64, 0);
    check_int(tnd_gpu_matmul_workspace(device, p.node, TANDEM_TASK_MUL_MAT_F32), 5 * 64 * 4);
    check_int(tnd_gpu_matmul_workspace(device, p.node, TANDEM_TASK_NODE), 0);
    p.workspace_bytes -= 4;
    check_status(submit(&p, TANDEM_TASK_DEQUANTIZE_W, 0, 5, &error), TANDEM_E_ARGUMENT,
                 "of workspace", &error);
    p.workspace_bytes += 4;
    product_close(&p);
}

static void the_device_keeps_nothing_of_what_was_given_back(void)
{
    struct tnd_gpu_statistics statistics = {0};
    if (begin()) {
        tnd_gpu_statistics_get(device, &statistics);
        check_int(statistics.mirror_count, 0);
        check_int(statistics.mirror_bytes, 0);
    }
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    device = NULL;
}

CU_TestInfo tnd_tests_opencl_matmul[] = {
    {"what cannot run is refused with a reason", what_cannot_run_is_refused_with_a_reason},
    {"dequantized weights have the bits of the plain codec",
     dequantized_weights_have_the_bits_of_the_plain_codec},
    {"products match the double reference", products_match_the_double_reference},
    {"lanes match the double reference", lanes_match_the_double_reference},
    {"tiles match the double reference", tiles_match_the_double_reference},
    {"tensor cores match the double reference", tensor_cores_match_the_double_reference},
    {"subgroups match the double reference", subgroups_match_the_double_reference},
    {"subgroups that do not build are done without", subgroups_that_do_not_build_are_done_without},
    {"operands may lie at odd places", operands_may_lie_at_odd_places},
    {"float products match the double reference", float_products_match_the_double_reference},
    {"half products are taken where they were measured to be good",
     half_products_are_taken_where_they_were_measured_to_be_good},
    {"the tuner sees the true error of half products",
     the_tuner_sees_the_true_error_of_half_products},
    {"row ranges make their rows only", row_ranges_make_their_rows_only},
    {"products without depth are zeros", products_without_depth_are_zeros},
    {"bits do not depend on row ranges or repetition",
     bits_do_not_depend_on_row_ranges_or_repetition},
    {"the device keeps nothing of what was given back",
     the_device_keeps_nothing_of_what_was_given_back},
    CU_TEST_INFO_NULL,
};
