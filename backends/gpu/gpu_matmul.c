/* SPDX-License-Identifier: MIT
 * Matrix products on a device: chooses the kernel by M and by the device's tile numbers. Kernels
 * are matvec.cl (few tokens), tiled.cl (many) and dequantize.cl; F32 products use a library if
 * there is one. */
#include "backends/gpu/gpu_matmul.h"

#include <inttypes.h>

#include "backends/gpu/gpu_bcml1.h"
#include "backends/gpu/gpu_gemm.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "ggml-like/tnd_tensor.h"

/* ---- state ---- */

enum tandem_status tnd_gpu_matmul_open(struct tnd_gpu_device *device, struct tandem_error *error)
{
    struct tnd_gpu_matmul *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_gpu_no_memory(device, sizeof(*self), error);
    }
    self->use_subgroups = device->caps.subgroups ? 1 : 0;
    tnd_gpu_tiles_default(&device->caps, &self->tiles);
    device->matmul = self;
    return TANDEM_OK;
}

void tnd_gpu_matmul_close(struct tnd_gpu_device *device)
{
    tnd_free(device->matmul);
    device->matmul = NULL;
}

/* ---- what can be run ---- */

bool tnd_gpu_has_decoder(enum tandem_type type)
{
    static const enum tandem_type known[] = {
        TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q4_1,
        TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K, TANDEM_TYPE_Q3_K,
        TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K, TANDEM_TYPE_BCML1};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i] == type) {
            return true;
        }
    }
    return false;
}

static enum tandem_status refuse(const struct tnd_gpu_device *device, const tandem_tensor *node,
                                 struct tandem_error *error, const char *reason)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, node->name, 0, 0, "%s mul_mat: %s",
                         device->driver->name, reason);
}

static bool workspace_bytes(const tandem_tensor *w, size_t *out_bytes)
{
    return tnd_mul_size((size_t)w->ne[0], (size_t)w->ne[1], out_bytes) &&
           tnd_mul_size(*out_bytes, sizeof(float), out_bytes);
}

enum tandem_status tnd_gpu_matmul_supports(struct tnd_gpu_device *device, const tandem_tensor *node,
                                           enum tandem_task task, struct tandem_error *error)
{
    (void)device;
    size_t bytes = 0;
    if (!tnd_mul_mat_is_plain(node)) {
        return refuse(device, node, error, "multiplies two dense matrices whose first is a leaf");
    }
    const tandem_tensor *w = node->src[0]; /* {K, N} */
    if (!tnd_gpu_has_decoder(w->type) || node->src[1]->type != TANDEM_TYPE_F32) {
        return refuse(device, node, error, "has no kernel for operands of these types");
    }
    if (w->ne[0] > INT32_MAX || w->ne[1] > INT32_MAX || node->ne[1] > INT32_MAX ||
        !workspace_bytes(w, &bytes)) {
        return refuse(device, node, error,
                      "counts rows and columns in 31 bits, the matrices are larger");
    }
    switch (task) {
    case TANDEM_TASK_NODE:
    case TANDEM_TASK_MUL_MAT_F32:
        return TANDEM_OK;
    case TANDEM_TASK_DEQUANTIZE_W:
        return w->type != TANDEM_TYPE_F32
                   ? TANDEM_OK
                   : refuse(device, node, error, "the weights are F32 already");
    default:
        return refuse(device, node, error, "no such task");
    }
}

size_t tnd_gpu_matmul_workspace(struct tnd_gpu_device *device, const tandem_tensor *node,
                                enum tandem_task task)
{
    size_t bytes = 0;
    if (task == TANDEM_TASK_NODE || node->src[0]->type == TANDEM_TYPE_F32 ||
        tnd_gpu_matmul_supports(device, node, task, NULL) != TANDEM_OK ||
        !workspace_bytes(node->src[0], &bytes)) {
        return 0;
    }
    return bytes;
}

/* ---- choosing a kernel ---- */

static bool is_float(enum tandem_type type)
{
    return tandem_type_block_values(type) == 1;
}

/* Whether kernels may use 16-byte loads and need no partial blocks of 16 values. */
static bool is_aligned(const struct tnd_gpu_matmul *self, const struct tnd_gpu_product *p)
{
    return !self->without_aligned && p->w.offset % 16 == 0 && p->x.offset % 16 == 0 &&
           (!is_float(p->type) || p->k % 16 == 0);
}

enum tnd_gpu_family tnd_gpu_family_of(const struct tnd_gpu_matmul *self, uint32_t m)
{
    if (self->family != TND_GPU_FAMILY_AUTO) {
        return self->family;
    }
    return m == 1                                   ? TND_GPU_FAMILY_MATVEC
           : m <= (uint32_t)self->tiles.skinny_most ? TND_GPU_FAMILY_SKINNY
                                                    : TND_GPU_FAMILY_TILED;
}

static size_t groups(uint32_t items, int32_t per_group)
{
    return ((size_t)items + (size_t)per_group - 1) / (size_t)per_group;
}

enum tandem_status tnd_gpu_matvec_begin(struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                        struct tnd_gpu_variant *variant,
                                        struct tnd_gpu_launch *launch, struct tandem_error *error)
{
    variant->use_subgroups = variant->lanes > 1 ? device->matmul->use_subgroups : 0;
    if (variant->use_subgroups == 1) {
        if (tnd_gpu_launch_begin(launch, device, source, variant, NULL) == TANDEM_OK) {
            return TANDEM_OK;
        }
        device->matmul->use_subgroups = 0;
        variant->use_subgroups = 0;
    }
    return tnd_gpu_launch_begin(launch, device, source, variant, error);
}

void tnd_gpu_tiled_variant(const struct tnd_gpu_tiles *tiles, struct tnd_gpu_variant *variant)
{
    variant->tile_m = tiles->tile_m;
    variant->tile_n = tiles->tile_n;
    variant->tile_k = tiles->tile_k;
    variant->item_m = tiles->item_m;
    variant->item_n = tiles->item_n;
    /* F32 weights, and weights in panels, are not sums of few bf16 numbers: see tiled_mma.clh. */
    variant->use_mma =
        tiles->mma != 0 && variant->type != 1 + TANDEM_TYPE_F32 && variant->flags == 0;
}

static enum tandem_status bind_matvec(struct tnd_gpu_device *device,
                                      const struct tnd_gpu_product *p,
                                      struct tnd_gpu_variant *variant,
                                      struct tnd_gpu_launch *launch, struct tnd_gpu_shape *shape,
                                      struct tandem_error *error)
{
    shape->n_dims = 2;
    shape->local[0] = (size_t)variant->lanes;
    shape->local[1] = 1;
    shape->global[0] = groups(p->end - p->begin, variant->rows) * shape->local[0];
    shape->global[1] = groups(p->m, variant->columns);
    TND_TRY(tnd_gpu_matvec_begin(device, TND_GPU_SOURCE_MATVEC, variant, launch, error));
    return tnd_gpu_bind_matvec(launch, p->w, p->x, p->y, p->k, p->n, p->m, p->begin, p->end, error);
}

static enum tandem_status bind_tiled(struct tnd_gpu_device *device, const struct tnd_gpu_product *p,
                                     struct tnd_gpu_variant *variant, struct tnd_gpu_launch *launch,
                                     struct tnd_gpu_shape *shape, struct tandem_error *error)
{
    const struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    tnd_gpu_tiled_variant(tiles, variant);
    shape->n_dims = 2;
    shape->local[0] = (size_t)tnd_gpu_tiles_group(tiles);
    shape->local[1] = 1;
    shape->global[0] = groups(p->end - p->begin, tiles->tile_n) * shape->local[0];
    shape->global[1] = groups(p->m, tiles->tile_m);
    TND_TRY(tnd_gpu_launch_begin(launch, device, TND_GPU_SOURCE_TILED, variant, error));
    return tnd_gpu_bind_tiled(launch, p->w, p->x, p->y, p->k, p->n, p->m, p->begin, p->end, error);
}

enum tandem_status tnd_gpu_product_bind(struct tnd_gpu_device *device,
                                        const struct tnd_gpu_product *product,
                                        struct tnd_gpu_launch *launch,
                                        struct tnd_gpu_shape *out_shape, struct tandem_error *error)
{
    const struct tnd_gpu_matmul *self = device->matmul;
    const struct tnd_gpu_tiles *tiles = &self->tiles;
    struct tnd_gpu_variant variant = {.type = 1 + (int32_t)product->type,
                                      .aligned = is_aligned(self, product)};
    switch (tnd_gpu_family_of(self, product->m)) {
    case TND_GPU_FAMILY_TILED:
        return bind_tiled(device, product, &variant, launch, out_shape, error);
    case TND_GPU_FAMILY_SKINNY:
        variant.lanes = tiles->skinny_lanes;
        variant.rows = tiles->skinny_rows;
        variant.columns = product->m <= 4 ? 4 : tiles->skinny_columns;
        break;
    default:
        variant.lanes = tiles->matvec_lanes;
        variant.rows = tiles->matvec_rows;
        variant.columns = 1;
        break;
    }
    return bind_matvec(device, product, &variant, launch, out_shape, error);
}

/* ---- running ---- */

static enum tandem_status multiply(struct tnd_gpu_device *device, const struct tnd_gpu_product *p,
                                   struct tandem_error *error)
{
    struct tnd_gpu_launch launch;
    struct tnd_gpu_shape shape;
    TND_TRY(tnd_gpu_product_bind(device, p, &launch, &shape, error));
    return tnd_gpu_launch_run(&launch, shape.n_dims, shape.global, shape.local, error);
}

/* Whether half precision was measured to be faster; only for weights that are not exact anyway. */
static bool takes_half(const struct tnd_gpu_device *device, enum tandem_type type,
                       const struct tnd_gpu_product *p)
{
    return tnd_gpu_gemm_has_half(device) && tandem_type_is_quantized(type) &&
           p->k <= (uint32_t)device->matmul->tiles.half_most && p->m > 1 && p->begin == 0 &&
           p->end == p->n;
}

/* `type`: of the weights before they were dequantised. */
static enum tandem_status multiply_f32(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_product *p, enum tandem_type type,
                                       struct tandem_error *error)
{
    if (!device->context->has_blas || device->matmul->without_blas || p->k == 0) {
        return multiply(device, p, error);
    }
    struct tnd_gpu_gemm gemm = {p->w, p->x, p->y, p->n, p->m, p->k, p->begin, p->end};
    return takes_half(device, type, p) ? tnd_gpu_gemm_submit_half(device, &gemm, error)
                                       : tnd_gpu_gemm_submit(device, &gemm, error);
}

/* A group handles up to 64 parts of a row. */
enum tandem_status tnd_gpu_dequantize(struct tnd_gpu_device *device,
                                      const struct tnd_gpu_product *product, bool to_half,
                                      struct tandem_error *error)
{
    const struct tnd_gpu_product *p = product;
    struct tnd_gpu_variant variant = {
        .type = 1 + (int32_t)p->type, .aligned = is_aligned(device->matmul, p), .to_half = to_half};
    size_t lanes = device->caps.max_group < 64 ? 1 : 64;
    size_t global[2] = {groups((p->k + 15) / 16, (int32_t)lanes) * lanes, p->end - p->begin};
    size_t local[2] = {lanes, 1};
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_DEQUANTIZE, &variant, error));
    TND_TRY(tnd_gpu_bind_dequantize(&launch, p->w, p->y, p->k, p->begin, p->end, error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

/* Kernels read scales as 16-bit words and floats as 32-bit words. */
static enum tandem_status check_alignment(const tandem_tensor *node,
                                          const struct tnd_gpu_product *p,
                                          struct tandem_error *error)
{
    uint64_t w_step = p->type == TANDEM_TYPE_F32 ? 4 : 2;
    if (p->w.offset % w_step != 0 || p->x.offset % 4 != 0 || p->y.offset % 4 != 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, node->name, (int64_t)p->w.offset, 0,
                             "gpu mul_mat: operands of '%s' lie at odd addresses", node->name);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_matmul_submit(struct tnd_gpu_device *device,
                                         const struct tandem_work *work, struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    TND_TRY(tnd_gpu_matmul_supports(device, node, (enum tandem_task)work->task, error));
    const tandem_tensor *w = node->src[0]; /* {K, N} */
    bool to_workspace = work->task == TANDEM_TASK_DEQUANTIZE_W;
    bool from_workspace = work->task == TANDEM_TASK_MUL_MAT_F32 && w->type != TANDEM_TYPE_F32;
    bool in_panels = false;
    size_t bytes = tnd_gpu_matmul_workspace(device, node, (enum tandem_task)work->task);
    struct tnd_gpu_product p = {.type = from_workspace ? TANDEM_TYPE_F32 : w->type,
                                .k = (uint32_t)w->ne[0],
                                .n = (uint32_t)w->ne[1],
                                .m = (uint32_t)node->ne[1],
                                .begin = (uint32_t)work->row_begin,
                                .end = (uint32_t)work->row_end};
    if (work->workspace_bytes < bytes || work->row_begin < 0 || work->row_end > w->ne[1]) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, node->name, (int64_t)work->workspace_bytes, (int64_t)bytes,
            "gpu mul_mat: %zu bytes of workspace, needs %zu; rows %" PRId64 " to %" PRId64
            " of %" PRId64,
            work->workspace_bytes, bytes, work->row_begin, work->row_end, w->ne[1]);
    }
    if (work->row_begin >= work->row_end || (to_workspace ? p.k : p.m) == 0) {
        return TANDEM_OK;
    }
    struct tandem_place workspace = {NULL, 0};
    workspace = work->places != NULL ? work->places->workspace : workspace;
    TND_TRY(to_workspace ? tnd_gpu_find(device, workspace, bytes, &p.y, error)
                         : tnd_gpu_operand(device, work, -1, &p.y, error));
    p.w = p.y; /* K is 0: nothing is read */
    p.x = p.y;
    if (p.k > 0) {
        TND_TRY(from_workspace ? tnd_gpu_find(device, workspace, bytes, &p.w, error)
                : p.type == TANDEM_TYPE_BCML1
                    ? tnd_gpu_bcml1_weight(device, work, &p.w, &in_panels, error)
                    : tnd_gpu_operand(device, work, 0, &p.w, error));
    }
    if (p.k > 0 && !to_workspace) {
        TND_TRY(tnd_gpu_operand(device, work, 1, &p.x, error));
    }
    TND_TRY(check_alignment(node, &p, error));
    if (in_panels) {
        return tnd_gpu_bcml1_run(device, work->task, &p, error);
    }
    switch (work->task) {
    case TANDEM_TASK_DEQUANTIZE_W:
        return tnd_gpu_dequantize(device, &p, false, error);
    case TANDEM_TASK_MUL_MAT_F32:
        return multiply_f32(device, &p, w->type, error);
    default:
        return multiply(device, &p, error);
    }
}
