/* SPDX-License-Identifier: MIT
 * BCML1 in panels: the layout in plain C, the same one made by a device, and everything that is
 * computed from it, with guards around results. */
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/bcml1_panels.h"
#include "backends/gpu/gpu_bcml1.h"
#include "backends/gpu/gpu_matmul.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_transfer.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_opencl.h"

enum { GUARD = 64, GUARD_BYTE = 0x5C, BLOCK_BYTES = 20 };

/* ---- the layout ---- */

/* n, k: one row, a row less and a row more than a panel, several panels */
static const int64_t shapes[][2] = {{1, 32}, {63, 64}, {64, 96}, {65, 160}, {200, 2080}};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static unsigned char *random_bytes(size_t n)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    unsigned char *bytes = malloc(n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (unsigned char)tnd_test_rng_int(&rng, 0, 255);
    }
    return bytes;
}

/* By hand, after the layout: value v of row r has level (r + 3 v) % 16. */
static void words_of_panels_hold_the_values_in_their_order(void)
{
    enum { ROWS = 64, VALUES = 32 };
    static unsigned char rows[ROWS][BLOCK_BYTES];
    static unsigned char panel[1280];
    float y[VALUES];
    for (int r = 0; r < ROWS; r++) {
        rows[r][1] = 0x3c; /* multiplier 1, offset 0 */
        for (int i = 0; i < VALUES / 2; i++) {
            rows[r][4 + i] =
                (unsigned char)((r + 3 * (2 * i)) % 16 | (r + 3 * (2 * i + 1)) % 16 << 4);
        }
        check_ok(tandem_dequantize(TANDEM_TYPE_BCML1, rows[r], y, VALUES));
        for (int v = 0; v < VALUES; v++) {
            CU_ASSERT_EQUAL(y[v], (float)((r + 3 * v) % 16));
        }
    }
    tnd_bcml1_to_panels(rows, ROWS, VALUES, panel);
    for (int r = 0; r < ROWS; r++) {
        for (int v = 0; v < VALUES; v++) {
            const unsigned char byte = panel[256 + v / 8 * 256 + 4 * r + v % 8 / 2];
            check_int(v % 2 == 0 ? byte & 15 : byte >> 4, (r + 3 * v) % 16);
        }
    }
}

static void panels_lead_back_to_their_rows(void)
{
    for (int i = 0; i < N_SHAPES; i++) {
        const int64_t n = shapes[i][0];
        const int64_t k = shapes[i][1];
        const int64_t columns = k / 32;
        const size_t row_bytes = (size_t)columns * BLOCK_BYTES;
        const size_t bytes = tnd_bcml1_panel_bytes(n, k);
        check_int(bytes, (n + 63) / 64 * columns * 1280);
        unsigned char *rows = random_bytes((size_t)n * row_bytes);
        unsigned char *again = tnd_guarded_alloc((size_t)n * row_bytes, 4);
        unsigned char *panels = tnd_guarded_alloc(bytes, 64);
        tnd_bcml1_to_panels(rows, n, k, panels);
        tnd_bcml1_from_panels(panels, n, k, again);
        check_bits(again, rows, (size_t)n * row_bytes, "panels");
        /* word 2 of the last row's last block, and the first word of a row that is none */
        const unsigned char *column = panels + bytes - 1280;
        check_bits(column + 768 + (n - 1) % 64 * 4, rows + (size_t)n * row_bytes - 8, 4, "word 2");
        const unsigned char *behind = column + n % 64 * 4;
        CU_ASSERT_TRUE(n % 64 == 0 || (behind[0] | behind[1] | behind[2] | behind[3]) == 0);
        free(rows);
        tnd_guarded_free(again);
        tnd_guarded_free(panels);
    }
    check_int(tnd_bcml1_panel_bytes(5, 33), 0);
    check_int(tnd_bcml1_panel_bytes(-1, 32), 0);
    check_int(tnd_bcml1_panel_bytes(INT64_MAX, INT64_MAX / 32 * 32), 0);
}

/* ---- one product, its weights resident ---- */

static struct tnd_gpu_device *device; /* opened by the first test, closed by the last */
static struct tnd_gpu_matmul before;  /* what tests change is put back */
static struct tnd_gpu_caps caps_before;

/* False after a skip. */
static bool open_device(uint64_t budget, bool without_unified, struct tnd_gpu_device **out)
{
    const struct tnd_gpu_options options = {
        .device = "0", .cache = "off", .budget_bytes = budget, .without_unified = without_unified};
    struct tandem_error error = {0};
    enum tandem_status status = tnd_test_cl_device_open(&options, out, &error);
    if (status == TANDEM_E_UNSUPPORTED_MACHINE) {
        tnd_skip("opencl: %s", error.text);
        return false;
    }
    return check_status(status, TANDEM_OK, NULL, &error);
}

static bool begin(void)
{
    if (device == NULL) {
        if (!open_device(0, false, &device)) {
            return false;
        }
        before = *device->matmul;
        caps_before = device->caps;
    }
    *device->matmul = before;
    device->caps = caps_before;
    return true;
}

struct product {
    struct tnd_gpu_device *device;
    int64_t n, m, k;
    tandem_context *context;
    struct tandem_tensor *node;
    float *w_values; /* as the blocks say */
    char *w;
    char *memory; /* x, y with guards, workspace with a guard: one mirror */
    size_t bytes;
    float *x;
    char *y;
    char *workspace;
    size_t workspace_bytes;
    char name[96];
};

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void product_open(struct product *p, struct tnd_gpu_device *on, int64_t n, int64_t m,
                         int64_t k)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)(n * 31 + m));
    const size_t w_bytes = (size_t)n * tandem_type_row_bytes(TANDEM_TYPE_BCML1, k);
    const size_t x_bytes = rounded((size_t)(m * k) * sizeof(float));
    const size_t y_bytes = rounded((size_t)(m * n) * sizeof(float));
    *p = (struct product){.device = on, .n = n, .m = m, .k = k};
    snprintf(p->name, sizeof(p->name), "mul_mat:bcml1:n%d:k%d:m%d", (int)n, (int)k, (int)m);
    p->workspace_bytes = (size_t)(n * k) * sizeof(float);
    p->bytes = x_bytes + y_bytes + rounded(p->workspace_bytes) + 4 * GUARD;
    p->memory = aligned_alloc(64, p->bytes);
    memset(p->memory, GUARD_BYTE, p->bytes);
    p->x = (void *)p->memory;
    p->y = p->memory + x_bytes + GUARD;
    p->workspace = p->y + y_bytes + GUARD;
    p->w = aligned_alloc(64, rounded(w_bytes));
    p->w_values = malloc((size_t)(n * k) * sizeof(float));
    tnd_test_fill(&rng, p->w_values, n * k);
    tnd_test_fill(&rng, p->x, m * k);
    check_ok(tandem_quantize(TANDEM_TYPE_BCML1, p->w_values, p->w, n * k));
    check_ok(tandem_dequantize(TANDEM_TYPE_BCML1, p->w, p->w_values, n * k));
    check_ok(tandem_context_new(NULL, &p->context, NULL));
    tandem_tensor *w =
        tandem_tensor_borrow(p->context, TANDEM_TYPE_BCML1, 2, (int64_t[]){k, n}, p->w, w_bytes);
    tandem_tensor *x = tandem_tensor_borrow(p->context, TANDEM_TYPE_F32, 2, (int64_t[]){k, m}, p->x,
                                            (size_t)(m * k) * sizeof(float));
    p->node = tandem_mul_mat(p->context, w, x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->node);
    p->node->data = p->y;
    check_ok(tnd_test_cl_prepare(on, w, NULL));
    check_ok(tnd_test_cl_map(on, p->memory, p->bytes, NULL));
    check_ok(tnd_test_cl_upload(on, p->memory, p->bytes, NULL));
}

static void product_close(struct product *p)
{
    const char *y_end = p->y + (size_t)(p->m * p->n) * sizeof(float);
    const char *workspace_end = p->workspace + p->workspace_bytes;
    bool intact = true;
    for (int i = 0; i < GUARD; i++) {
        intact = intact && p->y[-1 - i] == GUARD_BYTE && y_end[i] == GUARD_BYTE &&
                 p->workspace[-1 - i] == GUARD_BYTE && workspace_end[i] == GUARD_BYTE;
    }
    if (!intact) {
        printf("\n    %s: a guard byte was written\n", p->name);
        CU_FAIL("a guard byte was written");
    }
    tnd_test_cl_give_back(p->device, p->memory);
    tnd_test_cl_give_back(p->device, p->w);
    tandem_context_free(p->context);
    free(p->w_values);
    free(p->w);
    free(p->memory);
}

static void run(struct product *p, enum tandem_task task, int64_t begin_row, int64_t end_row)
{
    struct tandem_error error = {.text = ""};
    struct tandem_work work = {.node = p->node,
                               .task = (uint32_t)task,
                               .row_begin = begin_row,
                               .row_end = end_row,
                               .workspace = p->workspace,
                               .workspace_bytes = p->workspace_bytes};
    const struct tandem_places places = tnd_test_cl_places(p->device, &work);
    work.places = &places;
    pthread_mutex_lock(&p->device->submit_lock);
    enum tandem_status status = tnd_gpu_matmul_submit(p->device, &work, &error);
    pthread_mutex_unlock(&p->device->submit_lock);
    if (!check_status(status, TANDEM_OK, NULL, &error)) {
        printf("\n    %s\n", p->name);
    }
}

/* Everything comes back: also guards that a kernel may have written. */
static void fetch(struct product *p)
{
    uint64_t ticket = 0;
    check_ok(tnd_test_cl_download(p->device, p->memory, p->bytes, &ticket, NULL));
    check_ok(tnd_gpu_sync(p->device, ticket, NULL));
}

static void check_result(struct product *p, const char *variant)
{
    char what[160];
    double *want = malloc((size_t)(p->m * p->n) * sizeof(double));
    for (int64_t t = 0; t < p->m; t++) {
        for (int64_t r = 0; r < p->n; r++) {
            double sum = 0;
            for (int64_t i = 0; i < p->k; i++) {
                sum += (double)p->w_values[r * p->k + i] * (double)p->x[t * p->k + i];
            }
            want[t * p->n + r] = sum;
        }
    }
    fetch(p);
    snprintf(what, sizeof(what), "%s %s", p->name, variant);
    check_nmse_double((const float *)(const void *)p->y, want, p->m * p->n, 1e-10, what);
    free(want);
}

static void check_shapes(const int64_t *tokens, int n_tokens, const char *variant)
{
    for (int i = 0; i < N_SHAPES; i++) {
        for (int j = 0; j < n_tokens; j++) {
            struct product p;
            product_open(&p, device, shapes[i][0], tokens[j], shapes[i][1]);
            run(&p, TANDEM_TASK_NODE, 0, p.n);
            check_result(&p, variant);
            product_close(&p);
        }
    }
}

static const int64_t all_tokens[] = {1, 2, 3, 7, 8, 16, 33, 128};
static const int64_t some_tokens[] = {1, 3, 33};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- tests ---- */

static void devices_make_the_panels_of_the_plain_code(void)
{
    for (int i = 0; i < N_SHAPES && begin(); i++) {
        struct product p;
        struct tnd_gpu_range range;
        uint64_t ticket = 0;
        product_open(&p, device, shapes[i][0], 1, shapes[i][1]);
        const size_t bytes = tnd_bcml1_panel_bytes(p.n, p.k);
        unsigned char *want = malloc(bytes);
        unsigned char *got = malloc(bytes);
        tnd_bcml1_to_panels(p.w, p.n, p.k, want);
        check_ok(tnd_gpu_bcml1_find(device, p.node->src[0],
                                    tnd_test_cl_place(device, p.node->src[0]->data), &range, NULL));
        check_ok(
            tnd_gpu_read(device, (struct tandem_place){NULL, 0}, range, got, bytes, &ticket, NULL));
        check_ok(tnd_gpu_sync(device, ticket, NULL));
        check_bits(got, want, bytes, p.name);
        struct tnd_gpu_range again;
        check_ok(tnd_gpu_bcml1_find(device, p.node->src[0],
                                    tnd_test_cl_place(device, p.node->src[0]->data), &again, NULL));
        CU_ASSERT_PTR_EQUAL(again.buffer, range.buffer);
        free(want);
        free(got);
        product_close(&p);
    }
}

static void products_from_panels_match_the_double_reference(void)
{
    if (begin()) {
        check_shapes(all_tokens, COUNT(all_tokens), "as chosen");
    }
}

/* As on a GPU with nothing else to do: several work-items a row. */
static void shared_rows_match_the_double_reference(void)
{
    if (begin()) {
        device->caps.is_cpu = false;
        device->caps.compute_units = 1000;
        check_shapes(some_tokens, COUNT(some_tokens), "shared rows");
        device->caps.max_group = 128;
        check_shapes(some_tokens, 1, "two a row");
    }
}

static void forced_families_match_the_double_reference(void)
{
    static const enum tnd_gpu_family families[] = {TND_GPU_FAMILY_MATVEC, TND_GPU_FAMILY_SKINNY,
                                                   TND_GPU_FAMILY_TILED};
    for (int i = 0; i < COUNT(families) && begin(); i++) {
        device->matmul->family = families[i];
        check_shapes(some_tokens, COUNT(some_tokens), "a forced family");
    }
}

static void dequantized_panels_have_the_bits_of_the_plain_codec(void)
{
    for (int i = 0; i < N_SHAPES && begin(); i++) {
        struct product p;
        product_open(&p, device, shapes[i][0], 1, shapes[i][1]);
        run(&p, TANDEM_TASK_DEQUANTIZE_W, p.n / 3, p.n);
        run(&p, TANDEM_TASK_DEQUANTIZE_W, 0, p.n / 3);
        fetch(&p);
        check_bits(p.workspace, p.w_values, p.workspace_bytes, p.name);
        product_close(&p);
    }
}

/* Ranges that begin and end within panels, and all rows at once: the same bits. */
static void row_ranges_make_their_rows_only(void)
{
    static const int64_t tokens[] = {1, 5, 40};
    for (int i = 0; i < COUNT(tokens) && begin(); i++) {
        struct product p;
        product_open(&p, device, 200, tokens[i], 160);
        const size_t y_bytes = (size_t)(p.m * p.n) * sizeof(float);
        float *all = malloc(y_bytes);
        run(&p, TANDEM_TASK_NODE, 70, 130);
        run(&p, TANDEM_TASK_NODE, 5, 5);
        fetch(&p);
        for (int64_t t = 0; t < p.m; t++) {
            const char *row = p.y + (size_t)(t * p.n) * sizeof(float);
            CU_ASSERT(row[0] == GUARD_BYTE && row[70 * 4 - 1] == GUARD_BYTE &&
                      row[130 * 4] == GUARD_BYTE && row[200 * 4 - 1] == GUARD_BYTE);
        }
        run(&p, TANDEM_TASK_NODE, 0, 70);
        run(&p, TANDEM_TASK_NODE, 130, 200);
        check_result(&p, "ranges");
        memcpy(all, p.y, y_bytes);
        run(&p, TANDEM_TASK_NODE, 0, 200);
        fetch(&p);
        check_bits(p.y, all, y_bytes, p.name);
        free(all);
        product_close(&p);
    }
}

/* A budget that holds the weights and not their panels: these are read in rows. */
static void weights_without_room_for_panels_are_read_in_rows(void)
{
    struct tnd_gpu_device *small = NULL;
    struct tnd_gpu_range range;
    struct tandem_error error = {.text = ""};
    if (!open_device(70 * 5 * BLOCK_BYTES + 100, false, &small)) {
        return;
    }
    static const int64_t tokens[] = {1, 7, 33};
    for (int i = 0; i < COUNT(tokens); i++) {
        struct product p;
        product_open(&p, small, 70, tokens[i], 160);
        check_status(tnd_gpu_bcml1_find(small, p.node->src[0],
                                        tnd_test_cl_place(small, p.node->src[0]->data), &range,
                                        &error),
                     TANDEM_E_DEVICE_MEMORY, "budget", &error);
        run(&p, TANDEM_TASK_NODE, 0, p.n);
        check_result(&p, "in rows");
        product_close(&p);
    }
    tnd_gpu_device_close(small);
    tnd_test_cl_closed(small);
}

static int64_t resident_bytes(struct tnd_gpu_device *on)
{
    struct tnd_gpu_statistics statistics;
    tnd_gpu_statistics_get(on, &statistics);
    return statistics.resident_bytes;
}

/* Where the device copies weights, only the panels stay. */
static void rows_are_given_back_when_panels_are_made(void)
{
    struct tnd_gpu_device *copying = NULL;
    struct tnd_gpu_range range;
    if (!open_device(0, true, &copying)) {
        return;
    }
    struct product p;
    product_open(&p, copying, 70, 3, 160);
    const tandem_tensor *w = p.node->src[0];
    check_int(resident_bytes(copying), 70 * 5 * BLOCK_BYTES);
    for (int i = 0; i < 2; i++) { /* again costs nothing */
        check_ok(
            tnd_gpu_bcml1_prepare(copying, w, tnd_test_cl_place(copying, w->data).handle, NULL));
        check_int(resident_bytes(copying), tnd_bcml1_panel_bytes(70, 160));
    }
    check_status(tnd_test_cl_find(copying, w->data, tandem_tensor_bytes(w), &range, NULL),
                 TANDEM_E_STATE, NULL, NULL);
    run(&p, TANDEM_TASK_NODE, 0, p.n);
    check_result(&p, "panels alone");
    run(&p, TANDEM_TASK_DEQUANTIZE_W, 0, p.n);
    fetch(&p);
    check_bits(p.workspace, p.w_values, p.workspace_bytes, p.name);
    /* Who reads rows gets them back, once. */
    const struct tandem_places places = {.src = {tnd_test_cl_place(copying, w->data)}};
    const struct tandem_work original = {.node = p.node, .places = &places};
    char *rows = malloc(tandem_tensor_bytes(w));
    uint64_t ticket = 0;
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_gpu_original(copying, &original, &range, NULL));
        check_ok(
            tnd_gpu_bcml1_prepare(copying, w, tnd_test_cl_place(copying, w->data).handle, NULL));
        check_int(resident_bytes(copying), tnd_bcml1_panel_bytes(70, 160) + 70 * 5 * BLOCK_BYTES);
    }
    check_ok(tnd_test_cl_find(copying, w->data, tandem_tensor_bytes(w), &range, NULL));
    check_ok(tnd_gpu_read(copying, (struct tandem_place){NULL, 0}, range, rows,
                          tandem_tensor_bytes(w), &ticket, NULL));
    check_ok(tnd_gpu_sync(copying, ticket, NULL));
    check_bits(rows, w->data, tandem_tensor_bytes(w), "rows");
    free(rows);
    product_close(&p);
    check_int(resident_bytes(copying), 0);
    tnd_gpu_device_close(copying);
    tnd_test_cl_closed(copying);
}

/* What other suites count is their own then. */
static void the_device_gives_all_back(void)
{
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    device = NULL;
}

CU_TestInfo tnd_tests_opencl_bcml1[] = {
    {"words of panels hold the values in their order",
     words_of_panels_hold_the_values_in_their_order},
    {"panels lead back to their rows", panels_lead_back_to_their_rows},
    {"devices make the panels of the plain code", devices_make_the_panels_of_the_plain_code},
    {"products from panels match the double reference",
     products_from_panels_match_the_double_reference},
    {"shared rows match the double reference", shared_rows_match_the_double_reference},
    {"forced families match the double reference", forced_families_match_the_double_reference},
    {"dequantized panels have the bits of the plain codec",
     dequantized_panels_have_the_bits_of_the_plain_codec},
    {"row ranges make their rows only", row_ranges_make_their_rows_only},
    {"rows are given back when panels are made", rows_are_given_back_when_panels_are_made},
    {"weights without room for panels are read in rows",
     weights_without_room_for_panels_are_read_in_rows},
    {"the device gives all back", the_device_gives_all_back},
    CU_TEST_INFO_NULL,
};
