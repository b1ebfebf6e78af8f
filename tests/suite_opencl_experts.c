/* SPDX-License-Identifier: MIT
 * Products of experts on an OpenCL device against a double-precision reference: every weight type,
 * every family of kernels, tokens spread in all ways, values that are hard, indices that are wrong;
 * guards around operands and results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_indices.h"
#include "backends/gpu/gpu_matmul.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_ops.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_opencl.h"

enum { GUARD = 64, GUARD_BYTE = 0x5C };

static struct tnd_gpu_device *device; /* opened by the first test, closed by the last */
static struct tnd_gpu_matmul before;  /* what tests change is put back */

static bool begin(void)
{
    if (device == NULL) {
        device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
        before = device != NULL ? *device->matmul : before;
    }
    if (device != NULL) {
        *device->matmul = before;
    }
    return device != NULL;
}

/* ---- one product ---- */

/* How the tokens go to experts. */
enum spread { SPREAD_ANY, SPREAD_ONE, SPREAD_SOME_NOBODY, SPREAD_ALL_NOBODY, SPREAD_COUNT };
static const char *const spreads[] = {"any", "all to one", "some to nobody", "all to nobody"};

struct shape {
    int64_t n, experts, used, m;
    bool is_shared; /* experts of a token read one row of X */
};

struct product {
    enum tandem_type type;
    int64_t k;
    struct shape s;
    tandem_context *context;
    tandem_tensor *node, *ids_of_graph;
    char *memory; /* all operands in one mirror, guards between */
    size_t bytes, y_bytes;
    char *w, *y;
    float *w_values, *x;
    int32_t *ids;
    char name[128];
};

static size_t room(size_t bytes)
{
    return (bytes + 63) / 64 * 64 + GUARD;
}

static void fill(struct product *p, enum spread spread)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(p->k + p->s.m));
    const int64_t rows = p->s.n * p->s.experts;
    const size_t row_bytes = tandem_type_row_bytes(p->type, p->k);
    tnd_test_fill(&rng, p->w_values, rows * p->k);
    tnd_test_fill(&rng, p->x, p->k * (p->s.is_shared ? 1 : p->s.used) * p->s.m);
    for (int64_t i = 0; i < rows; i++) {
        tandem_quantize(p->type, p->w_values + i * p->k, p->w + (size_t)i * row_bytes, p->k);
        tandem_dequantize(p->type, p->w + (size_t)i * row_bytes, p->w_values + i * p->k, p->k);
    }
    for (int64_t i = 0; i < p->s.used * p->s.m; i++) {
        /* the last expert has no token unless it is the only one */
        int64_t id = tnd_test_rng_int(&rng, 0, p->s.experts > 1 ? p->s.experts - 2 : 0);
        id = spread == SPREAD_ONE ? p->s.experts - 1 : id;
        id = spread == SPREAD_SOME_NOBODY && tnd_test_rng_int(&rng, 0, 2) == 0 ? -1 : id;
        p->ids[i] = spread == SPREAD_ALL_NOBODY ? -1 : (int32_t)id;
    }
}

/* `shift` bytes put the operands at places that are no multiples of 16. */
static void product_open(struct product *p, enum tandem_type type, int64_t k, const struct shape *s,
                         enum spread spread, size_t shift)
{
    *p = (struct product){.type = type, .k = k, .s = *s};
    const int64_t x_used = s->is_shared ? 1 : s->used;
    const size_t w_bytes = tandem_type_row_bytes(type, k) * (size_t)(s->n * s->experts);
    const size_t x_bytes = (size_t)(k * x_used * s->m) * sizeof(float);
    const size_t ids_bytes = (size_t)(s->used * s->m) * sizeof(int32_t);
    snprintf(p->name, sizeof(p->name), "%s {%d, %d} of %d experts, %d tokens use %d: %s",
             tandem_type_name(type), (int)k, (int)s->n, (int)s->experts, (int)s->m, (int)s->used,
             spreads[spread]);
    p->y_bytes = (size_t)(s->n * s->used * s->m) * sizeof(float);
    p->bytes = room(w_bytes) + room(x_bytes) + room(ids_bytes) + room(p->y_bytes) + 2 * GUARD;
    p->memory = aligned_alloc(64, room(p->bytes));
    memset(p->memory, GUARD_BYTE, p->bytes);
    p->w = p->memory + shift;
    p->x = (void *)(p->memory + room(w_bytes) + shift / 4 * 4);
    p->ids = (void *)(p->memory + room(w_bytes) + room(x_bytes));
    p->y = p->memory + room(w_bytes) + room(x_bytes) + room(ids_bytes) + GUARD;
    p->w_values = malloc((size_t)(k * s->n * s->experts + 1) * sizeof(float));
    fill(p, spread);
    check_ok(tandem_context_new(NULL, &p->context, NULL));
    tandem_tensor *w =
        tandem_tensor_borrow(p->context, type, 3, (int64_t[]){k, s->n, s->experts}, p->w, w_bytes);
    tandem_tensor *x = tandem_tensor_borrow(p->context, TANDEM_TYPE_F32, 3,
                                            (int64_t[]){k, x_used, s->m}, p->x, x_bytes);
    tandem_tensor *ids = tandem_tensor_borrow(p->context, TANDEM_TYPE_I32, 2,
                                              (int64_t[]){s->used, s->m}, p->ids, ids_bytes);
    p->node = tandem_mul_mat_id(p->context, w, x, ids);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->node);
    p->node->data = p->y;
    /* the same bytes as an operation of the graph would leave them */
    p->ids_of_graph = tandem_cont(p->context, ids);
    p->ids_of_graph->data = p->ids;
}

static void product_close(struct product *p)
{
    bool intact = true;
    for (int i = 0; i < GUARD; i++) {
        intact = intact && p->y[-1 - i] == GUARD_BYTE && p->y[p->y_bytes + (size_t)i] == GUARD_BYTE;
    }
    if (!intact) {
        printf("\n    %s: a guard byte was written\n", p->name);
        CU_FAIL("a guard byte was written");
    }
    tandem_context_free(p->context);
    free(p->w_values);
    free(p->memory);
}

/* Puts the node into the queue, fetches what it has left and asks for faults. */
static enum tandem_status compute(struct product *p, struct tandem_error *error)
{
    struct tandem_work work = {
        .node = p->node, .task = TANDEM_TASK_NODE, .row_end = tnd_tensor_rows(p->node)};
    uint64_t ticket = 0;
    check_status(tnd_gpu_ops_supports(device, p->node, error), TANDEM_OK, NULL, error);
    check_ok(tnd_test_cl_map(device, p->memory, p->bytes, NULL));
    check_ok(tnd_test_cl_upload(device, p->memory, p->bytes, NULL));
    const struct tandem_places places = tnd_test_cl_places(device, &work);
    work.places = &places;
    pthread_mutex_lock(&device->submit_lock);
    enum tandem_status status = tnd_gpu_ops_submit(device, &work, error);
    pthread_mutex_unlock(&device->submit_lock);
    check_ok(tnd_test_cl_download(device, p->memory, p->bytes, &ticket, NULL));
    check_ok(tnd_gpu_sync(device, ticket, NULL));
    tnd_test_cl_give_back(device, p->memory);
    return status == TANDEM_OK ? tnd_gpu_indices_check(device, error) : status;
}

static const float *x_of(const struct product *p, int64_t pair)
{
    const int64_t used = p->s.used;
    return p->x + p->k * (p->s.is_shared ? pair / used : pair);
}

static void check_result(const struct product *p, const char *variant)
{
    char what[224];
    const int64_t n = p->s.n;
    double *want = calloc((size_t)(n * p->s.used * p->s.m + 1), sizeof(double));
    for (int64_t pair = 0; pair < p->s.used * p->s.m; pair++) {
        for (int64_t row = 0; row < n && p->ids[pair] >= 0; row++) {
            const float *w = p->w_values + (p->ids[pair] * n + row) * p->k;
            for (int64_t i = 0; i < p->k; i++) {
                want[pair * n + row] += (double)w[i] * (double)x_of(p, pair)[i];
            }
        }
    }
    snprintf(what, sizeof(what), "%s, %s", p->name, variant);
    check_nmse_double((const float *)(const void *)p->y, want, n * p->s.used * p->s.m, 1e-10, what);
    free(want);
}

/* ---- the lists ---- */

static const enum tandem_type types[] = {
    TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0,  TANDEM_TYPE_Q4_1,
    TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K,  TANDEM_TYPE_Q3_K,
    TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_BCML1,
};
static const struct shape shapes[] = {
    {37, 5, 2, 1, true}, {19, 4, 3, 9, true},  {37, 3, 2, 21, false}, {130, 9, 4, 3, false},
    {5, 1, 1, 7, true},  {33, 40, 2, 2, true}, {16, 4, 2, 33, false}};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* A row that is no multiple of a part, of a unit, of the lanes. */
static int64_t odd_k(enum tandem_type type)
{
    const int64_t block = tandem_type_block_values(type);
    return block == 1 ? 133 : block == 32 ? 160 : 768;
}

static void check_product(enum tandem_type type, const struct shape *s, enum spread spread,
                          size_t shift, const char *variant)
{
    struct product p;
    struct tandem_error error = {.text = ""};
    product_open(&p, type, odd_k(type), s, spread, shift);
    check_status(compute(&p, &error), TANDEM_OK, NULL, &error);
    check_result(&p, variant);
    product_close(&p);
}

/* Every `step`-th type with the first shapes; one with all. */
static void check_types(int step, const char *variant)
{
    for (int t = 0; t < COUNT(types); t += step) {
        for (int i = 0; i < (types[t] == TANDEM_TYPE_Q4_0 ? COUNT(shapes) : 2); i++) {
            check_product(types[t], &shapes[i], (enum spread)((t + i) % SPREAD_COUNT), 0, variant);
        }
    }
}

static void use_lanes(int32_t lanes, int32_t columns)
{
    struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    tiles->matvec_lanes = tiles->skinny_lanes = lanes;
    tiles->matvec_rows = tiles->skinny_rows = 2;
    tiles->skinny_columns = columns;
}

static void use_tiles(void)
{
    struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    tiles->tile_m = 16;
    tiles->tile_n = 32;
    tiles->tile_k = 32;
    tiles->item_m = tiles->item_n = 4;
    device->matmul->family = TND_GPU_FAMILY_TILED;
}

/* ---- tests ---- */

static void products_of_experts_match_the_double_reference(void)
{
    if (begin()) {
        check_types(1, "as chosen");
        for (int spread = 0; spread < SPREAD_COUNT; spread++) {
            for (int i = 0; i < COUNT(shapes); i++) {
                check_product(TANDEM_TYPE_Q4_0, &shapes[i], (enum spread)spread, 0, "all spreads");
            }
        }
    }
}

static void experts_on_lanes_match_the_double_reference(void)
{
    if (begin()) {
        use_lanes(16, 8);
        device->matmul->family = TND_GPU_FAMILY_MATVEC;
        check_types(3, "matvec");
        device->matmul->family = TND_GPU_FAMILY_SKINNY;
        check_types(5, "skinny");
        use_lanes(64, 4);
        device->matmul->use_subgroups = 2;
        check_types(6, "subgroups of one");
    }
}

static void experts_in_tiles_match_the_double_reference(void)
{
    if (begin()) {
        use_tiles();
        check_types(1, "tiled");
    }
}

static void experts_on_tensor_cores_match_the_double_reference(void)
{
    if (begin() && !device->caps.mma) {
        tnd_skip("opencl: no tensor cores");
    } else if (begin()) {
        use_tiles();
        device->matmul->tiles.mma = 1;
        check_types(2, "tensor cores");
        device->matmul->tiles.item_m = 2;
        check_types(7, "tensor cores, two warps");
    }
}

static void operands_of_experts_may_lie_at_odd_places(void)
{
    if (begin()) {
        for (int i = 0; i < COUNT(shapes); i++) {
            check_product(TANDEM_TYPE_Q4_0, &shapes[i], SPREAD_ANY, 6, "shifted");
            check_product(TANDEM_TYPE_F32, &shapes[i], SPREAD_SOME_NOBODY, 4, "shifted");
        }
    }
}

/* Rows of nobody are zeros, whatever lies in weights and activations; a not-a-number stays in the
 * rows of its token, weights that nobody uses are not multiplied. */
static void hard_values_stay_where_they_are_used(void)
{
    static const struct shape s = {37, 4, 2, 9, false};
    for (int family = 0; family < 2 && begin(); family++) {
        struct product p;
        struct tandem_error error = {.text = ""};
        int wrong = 0;
        if (family == 1) {
            use_tiles();
        }
        product_open(&p, TANDEM_TYPE_F32, 133, &s, SPREAD_SOME_NOBODY, 0);
        float *w = (float *)(void *)p.w;
        for (int64_t i = 0; i < s.n * p.k; i++) {
            w[3 * s.n * p.k + i] = NAN; /* of the expert without tokens */
            w[i] = 1e30f;               /* of the first: outliers */
        }
        p.ids[0] = -1;
        p.ids[5] = 1;
        p.x[0] = NAN;
        p.x[5 * p.k + 7] = NAN;
        for (int64_t i = 0; i < p.k; i++) {
            p.x[7 * p.k + i] = 2.0f; /* a constant row */
        }
        check_status(compute(&p, &error), TANDEM_OK, NULL, &error);
        for (int64_t i = 0; i < s.n * s.used * s.m; i++) {
            const int64_t pair = i / s.n;
            const float y = ((const float *)(const void *)p.y)[i];
            uint32_t bits;
            memcpy(&bits, &y, sizeof(bits));
            wrong += p.ids[pair] < 0 ? bits != 0 : pair == 5 ? !isnan(y) : !isfinite(y);
        }
        check_int(wrong, 0);
        product_close(&p);
    }
}

/* The same kernel makes the same sums whoever else is in the batch. */
static void a_row_has_the_bits_of_a_plain_product(void)
{
    static const struct shape s = {37, 4, 2, 9, false};
    /* the last one: tiles on tensor cores */
    for (int family = TND_GPU_FAMILY_MATVEC; family <= TND_GPU_FAMILY_TILED + 1 && begin();
         family++) {
        const bool has_mma = family > TND_GPU_FAMILY_TILED;
        struct product p;
        struct tandem_error error = {.text = ""};
        use_lanes(16, 4);
        device->matmul->family = (enum tnd_gpu_family)family;
        if (family >= TND_GPU_FAMILY_TILED) {
            use_tiles();
            device->matmul->tiles.mma = has_mma;
        }
        if (has_mma && !device->caps.mma) {
            break;
        }
        product_open(&p, TANDEM_TYPE_Q5_1, 160, &s, SPREAD_SOME_NOBODY, 0);
        check_status(compute(&p, &error), TANDEM_OK, NULL, &error);
        check_ok(tnd_test_cl_map(device, p.memory, p.bytes, NULL));
        for (int64_t pair = 0; pair < s.used * s.m; pair++) {
            float y[37] = {0};
            const size_t w_bytes = p.node->src[0]->nb[2];
            uint64_t ticket = 0;
            if (p.ids[pair] < 0) {
                continue;
            }
            tandem_tensor *w = tandem_tensor_borrow(p.context, p.type, 2, (int64_t[]){p.k, s.n},
                                                    p.w + (size_t)p.ids[pair] * w_bytes, w_bytes);
            tandem_tensor *x =
                tandem_tensor_borrow(p.context, TANDEM_TYPE_F32, 2, (int64_t[]){p.k, 1},
                                     p.x + pair * p.k, (size_t)p.k * sizeof(float));
            tandem_tensor *one = tandem_mul_mat(p.context, w, x);
            one->data = y;
            struct tandem_work work = {.node = one, .task = TANDEM_TASK_NODE, .row_end = s.n};
            check_ok(tnd_test_cl_upload(device, p.memory, p.bytes, NULL));
            check_ok(tnd_test_cl_map(device, y, sizeof(y), NULL));
            const struct tandem_places places = tnd_test_cl_places(device, &work);
            work.places = &places;
            pthread_mutex_lock(&device->submit_lock);
            check_status(tnd_gpu_matmul_submit(device, &work, &error), TANDEM_OK, NULL, &error);
            pthread_mutex_unlock(&device->submit_lock);
            check_ok(tnd_test_cl_download(device, y, sizeof(y), &ticket, NULL));
            check_ok(tnd_gpu_sync(device, ticket, NULL));
            tnd_test_cl_give_back(device, y);
            (void)check_bits(p.y + (size_t)(pair * s.n) * sizeof(float), y, sizeof(y), p.name);
        }
        tnd_test_cl_give_back(device, p.memory);
        product_close(&p);
    }
}

/* The host sees its own indices; those of the graph the device sees. */
static void an_index_that_is_no_expert_fails_with_its_number(void)
{
    static const int32_t bad[] = {4, -2, INT32_MIN, INT32_MAX};
    static const struct shape of_batches[] = {{8, 4, 2, 3, true}, {8, 4, 6, 1, true}};
    for (int i = 0; i < 16 && begin(); i++) {
        struct product p;
        struct tandem_error error = {.text = ""};
        char text[80];
        const struct shape *s = &of_batches[i / 4 % 2];
        product_open(&p, TANDEM_TYPE_Q8_0, 64, s, SPREAD_ANY, 0);
        p.node->src[2] = i < 8 ? p.node->src[2] : p.ids_of_graph;
        const int32_t good = p.ids[5];
        p.ids[5] = bad[i % 4];
        snprintf(text, sizeof(text), "mul_mat_id: index %d of token %d is %d, expected -1 to 3",
                 (int)(5 % s->used), (int)(5 / s->used), (int)bad[i % 4]);
        check_status(compute(&p, &error), TANDEM_E_ARGUMENT, text, &error);
        p.ids[5] = good;
        check_status(compute(&p, &error), TANDEM_OK, NULL, &error);
        check_result(&p, "after a failure");
        product_close(&p);
    }
}

static void too_many_experts_are_refused(void)
{
    struct tandem_error error = {.text = ""};
    if (begin()) {
        tandem_context *context = NULL;
        check_ok(tandem_context_new(NULL, &context, NULL));
        tandem_tensor *w = tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (int64_t[]){1, 1, 2049});
        tandem_tensor *x = tandem_tensor_new(context, TANDEM_TYPE_F32, 3, (int64_t[]){1, 1, 1});
        tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, (int64_t[]){1, 1});
        tandem_tensor *node = tandem_mul_mat_id(context, w, x, ids);
        check_status(tnd_gpu_ops_supports(device, node, &error), TANDEM_E_UNSUPPORTED_BACKEND,
                     "1 to 2048 experts", &error);
        tandem_context_free(context);
    }
    tnd_gpu_device_close(device); /* this is the last test */
    device = NULL;
}

CU_TestInfo tnd_tests_opencl_experts[] = {
    {"products of experts match the double reference",
     products_of_experts_match_the_double_reference},
    {"experts on lanes match the double reference", experts_on_lanes_match_the_double_reference},
    {"experts in tiles match the double reference", experts_in_tiles_match_the_double_reference},
    {"experts on tensor cores match the double reference",
     experts_on_tensor_cores_match_the_double_reference},
    {"operands of experts may lie at odd places", operands_of_experts_may_lie_at_odd_places},
    {"hard values stay where they are used", hard_values_stay_where_they_are_used},
    {"a row has the bits of a plain product", a_row_has_the_bits_of_a_plain_product},
    {"an index that is no expert fails with its number",
     an_index_that_is_no_expert_fails_with_its_number},
    {"too many experts are refused", too_many_experts_are_refused},
    CU_TEST_INFO_NULL,
};
