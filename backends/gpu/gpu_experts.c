/* SPDX-License-Identifier: MIT
 * Mixtures of experts on a device: products with weights that tokens select (experts_*.cl), and the
 * operations of routers: top_k, gather, weighted_sum (ops_router.cl). */
#include "backends/gpu/gpu_indices.h"

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory_state.h"
#include "backends/gpu/gpu_ops_parts.h"

enum {
    EXPERTS_MOST = 2048, /* two counters of each are in local memory */
    TOP_K_MOST = 4096,   /* values per row; each is compared with all others */
    TILE_WORDS = 3,
    SORTING_MOST = 1024, /* work-items that sort */
    ONE_TOKEN = 2        /* FLAGS of experts_matvec.cl; 1 is used by bcml1.clh */
};

/* ---- products ---- */

enum tandem_status tnd_gpu_mul_mat_id_supports(const struct tnd_gpu_device *device,
                                               const tandem_tensor *node,
                                               struct tandem_error *error)
{
    const tandem_tensor *w = node->src[0]; /* {K, N, experts} */
    const tandem_tensor *x = node->src[1];
    (void)device;
    if (!tnd_gpu_has_decoder(w->type)) {
        return tnd_gpu_ops_refuse(device, node, "has no kernel for weights of this type", error);
    }
    if (w->ne[2] < 1 || w->ne[2] > EXPERTS_MOST) {
        return tnd_gpu_ops_refuse(device, node, "counts 1 to 2048 experts", error);
    }
    if (w->nb[1] != tandem_type_row_bytes(w->type, w->ne[0]) || x->nb[1] % sizeof(float) != 0 ||
        x->nb[2] % sizeof(float) != 0 || w->nb[2] % 2 != 0) {
        return tnd_gpu_ops_refuse(device, node, "needs rows of weights that follow one another",
                                  error);
    }
    return TANDEM_OK;
}

/* A node's operands for the kernels. */
struct product {
    struct tnd_gpu_range w, x, y, ids, fault, groups;
    enum tandem_type type;
    uint32_t k, n, experts, used, pairs, x_used;
    uint64_t w_nb2, x_nb1, x_nb2, ids_nb1; /* x in floats */
    bool is_aligned;
};

static enum tandem_status find_product(struct tnd_gpu_device *device,
                                       const struct tandem_work *work, struct product *out,
                                       struct tandem_error *error)
{
    const tandem_tensor *node = work->node; /* {N, used, M} */
    const tandem_tensor *w = node->src[0];
    const tandem_tensor *x = node->src[1];
    struct product p = {
        .type = w->type,
        .k = (uint32_t)w->ne[0],
        .n = (uint32_t)w->ne[1],
        .experts = (uint32_t)w->ne[2],
        .used = (uint32_t)node->ne[1],
        .pairs = (uint32_t)(node->ne[1] * node->ne[2]),
        .x_used = (uint32_t)x->ne[1],
        .w_nb2 = w->nb[2],
        .x_nb1 = x->nb[1] / sizeof(float),
        .x_nb2 = x->nb[2] / sizeof(float),
        .ids_nb1 = node->src[2]->nb[1],
    };
    TND_TRY(tnd_gpu_operand(device, work, -1, &p.y, error));
    TND_TRY(tnd_gpu_operand(device, work, 2, &p.ids, error));
    TND_TRY(tnd_gpu_indices_fault(device, &p.fault, error));
    p.w = p.x = p.y; /* K is 0: nothing is read */
    if (p.k > 0) {
        TND_TRY(tnd_gpu_original(device, work, &p.w, error));
        TND_TRY(tnd_gpu_operand(device, work, 1, &p.x, error));
    }
    p.is_aligned = !device->matmul->without_aligned && p.w.offset % 16 == 0 &&
                   p.x.offset % 16 == 0 && w->nb[2] % 16 == 0 && x->nb[1] % 16 == 0 &&
                   x->nb[2] % 16 == 0 && p.k % 16 == 0;
    *out = p;
    return TANDEM_OK;
}

static size_t groups_of(uint32_t items, int32_t per_group)
{
    return ((size_t)items + (size_t)per_group - 1) / (size_t)per_group;
}

/* Work-items of the single group that sorts. It mostly waits for memory, so a GPU gets as many as
 * possible; a CPU runs them one after the other anyway. */
static size_t sorting_group(const struct tnd_gpu_device *device)
{
    const struct tnd_gpu_caps *caps = &device->caps;
    size_t group = tnd_gpu_ops_group(device);
    while (!caps->is_cpu && group < SORTING_MOST && 2 * group <= caps->max_group &&
           2 * group <= caps->max_items[0]) {
        group *= 2;
    }
    return group;
}

/* Sorts (token, expert) pairs into tiles of at most `tile`; *out_tiles: upper bound of their
 * number. */
static enum tandem_status group_pairs(struct tnd_gpu_device *device, struct product *p,
                                      uint32_t tile, size_t *out_tiles, struct tandem_error *error)
{
    const uint32_t lists = p->experts + 1;
    const size_t n_tiles = p->pairs / tile + (lists < p->pairs ? lists : p->pairs);
    const size_t words = p->pairs + TILE_WORDS * n_tiles;
    const size_t counts_bytes = lists * sizeof(int32_t);
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_EXPERTS, words * sizeof(uint32_t), &p->groups,
                            error));
    const size_t group = sorting_group(device);
    const struct tnd_gpu_variant variant = {.group = (int32_t)group};
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_EXPERTS_GROUP, &variant, error));
    TND_TRY(tnd_gpu_bind_group_experts(&launch, p->ids, p->groups, p->fault, p->ids_nb1, p->pairs,
                                       p->used, p->experts, tile, (uint32_t)n_tiles, counts_bytes,
                                       counts_bytes, error));
    *out_tiles = n_tiles;
    return tnd_gpu_launch_run(&launch, 1, &group, &group, error);
}

static enum tandem_status run_matvec(struct tnd_gpu_device *device, struct product *p,
                                     struct tnd_gpu_variant *variant, struct tandem_error *error)
{
    size_t n_tiles = p->pairs;
    struct tnd_gpu_launch launch;
    if (variant->flags != ONE_TOKEN) {
        TND_TRY(group_pairs(device, p, (uint32_t)variant->columns, &n_tiles, error));
    }
    const size_t local[2] = {(size_t)variant->lanes, 1};
    const size_t global[2] = {groups_of(p->n, variant->rows) * local[0], n_tiles};
    TND_TRY(tnd_gpu_matvec_begin(device, TND_GPU_SOURCE_EXPERTS_MATVEC, variant, &launch, error));
    TND_TRY(tnd_gpu_bind_experts_matvec(
        &launch, p->w, p->x, p->y, variant->flags == ONE_TOKEN ? p->ids : p->groups, p->fault, p->k,
        p->n, p->pairs, p->used, p->experts, p->x_used, p->w_nb2, p->x_nb1, p->x_nb2, error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

static enum tandem_status run_tiled(struct tnd_gpu_device *device, struct product *p,
                                    struct tnd_gpu_variant *variant, struct tandem_error *error)
{
    const struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    size_t n_tiles = 0;
    struct tnd_gpu_launch launch;
    tnd_gpu_tiled_variant(tiles, variant);
    TND_TRY(group_pairs(device, p, (uint32_t)tiles->tile_m, &n_tiles, error));
    const size_t local[2] = {(size_t)tnd_gpu_tiles_group(tiles), 1};
    const size_t global[2] = {groups_of(p->n, tiles->tile_n) * local[0], n_tiles};
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_EXPERTS_TILED, variant, error));
    TND_TRY(tnd_gpu_bind_experts_tiled(&launch, p->w, p->x, p->y, p->groups, p->k, p->n, p->pairs,
                                       p->used, p->experts, p->x_used, p->w_nb2, p->x_nb1, p->x_nb2,
                                       error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

/* Whether a tile and the indices of its tokens fit into local memory together. */
static bool tiles_fit(const struct tnd_gpu_device *device)
{
    const struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    const uint64_t places = (uint64_t)tiles->tile_m * sizeof(uint64_t);
    return tnd_gpu_tiles_local_bytes(tiles) + places <= device->caps.local_bytes;
}

enum tandem_status tnd_gpu_mul_mat_id(struct tnd_gpu_device *device, const struct tandem_work *work,
                                      struct tandem_error *error)
{
    const struct tnd_gpu_matmul *matmul = device->matmul;
    const struct tnd_gpu_tiles *tiles = &matmul->tiles;
    const tandem_tensor *node = work->node;
    struct product p;
    TND_TRY(tnd_gpu_indices_look(device, node, node->src[2], -1, node->src[0]->ne[2], error));
    TND_TRY(find_product(device, work, &p, error));
    /* tokens per expert if as many experts as possible are in use */
    const uint32_t in_use = p.experts < p.pairs ? p.experts : p.pairs;
    const uint32_t m = (p.pairs + in_use - 1) / in_use;
    struct tnd_gpu_variant variant = {.type = 1 + (int32_t)p.type, .aligned = p.is_aligned};
    enum tnd_gpu_family family = tnd_gpu_family_of(matmul, node->ne[2] == 1 ? 1 : m > 1 ? m : 2);
    if (family == TND_GPU_FAMILY_TILED && tiles_fit(device)) {
        return run_tiled(device, &p, &variant, error);
    }
    switch (family) {
    case TND_GPU_FAMILY_TILED:
    case TND_GPU_FAMILY_SKINNY:
        variant.lanes = tiles->skinny_lanes;
        variant.rows = tiles->skinny_rows;
        variant.columns = m <= 4 ? 4 : tiles->skinny_columns;
        break;
    default:
        variant.lanes = tiles->matvec_lanes;
        variant.rows = tiles->matvec_rows;
        variant.columns = 1;
        variant.flags = node->ne[2] == 1 ? ONE_TOKEN : 0;
        break;
    }
    return run_matvec(device, &p, &variant, error);
}

/* ---- routers ---- */

enum tandem_status tnd_gpu_top_k_supports(const struct tnd_gpu_device *device,
                                          const tandem_tensor *node, struct tandem_error *error)
{
    (void)device;
    return node->src[0]->ne[0] <= TOP_K_MOST
               ? TANDEM_OK
               : tnd_gpu_ops_refuse(device, node, "takes rows of up to 4096 values", error);
}

enum tandem_status tnd_gpu_top_k(struct tnd_gpu_device *device, const struct tandem_work *work,
                                 struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0];
    struct tnd_gpu_range y, from;
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    TND_TRY(tnd_gpu_operand(device, work, 0, &from, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ROUTER, 0, 0, error));
    TND_TRY(tnd_gpu_bind_top_k(&launch, y, from, (uint32_t)node->ne[0], (uint32_t)a->ne[0],
                               (uint32_t)a->ne[1], (uint32_t)a->ne[2], a->nb[1], a->nb[2], a->nb[3],
                               error));
    return tnd_gpu_ops_run_groups(&launch, (uint64_t)tnd_tensor_rows(node), error);
}

enum tandem_status tnd_gpu_gather_supports(const struct tnd_gpu_device *device,
                                           const tandem_tensor *node, struct tandem_error *error)
{
    (void)device;
    return node->src[0]->ne[0] > 0
               ? TANDEM_OK
               : tnd_gpu_ops_refuse(device, node, "has no value to read", error);
}

enum tandem_status tnd_gpu_gather(struct tnd_gpu_device *device, const struct tandem_work *work,
                                  struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *a = node->src[0]; /* {n, M} */
    const tandem_tensor *ids = node->src[1];
    const int64_t n = tandem_tensor_elements(node);
    struct tnd_gpu_range y, from, ids_range, fault;
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_indices_look(device, node, ids, 0, a->ne[0], error));
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    TND_TRY(tnd_gpu_operand(device, work, 0, &from, error));
    TND_TRY(tnd_gpu_operand(device, work, 1, &ids_range, error));
    TND_TRY(tnd_gpu_indices_fault(device, &fault, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ROUTER, 0, 0, error));
    TND_TRY(tnd_gpu_bind_gather(&launch, y, from, ids_range, fault, (uint32_t)n,
                                (uint32_t)node->ne[0], (uint32_t)a->ne[0], a->nb[1], ids->nb[1],
                                error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}

enum tandem_status tnd_gpu_weighted_sum(struct tnd_gpu_device *device,
                                        const struct tandem_work *work, struct tandem_error *error)
{
    const tandem_tensor *node = work->node; /* {N, M} */
    const tandem_tensor *a = node->src[0];
    const tandem_tensor *weights = node->src[1];
    const int64_t n = tandem_tensor_elements(node);
    struct tnd_gpu_range y, from, weights_range;
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 0, y, &from, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 1, y, &weights_range, error));
    TND_TRY(tnd_gpu_ops_begin(&launch, device, TND_GPU_SOURCE_OPS_ROUTER, 0, 0, error));
    TND_TRY(tnd_gpu_bind_weighted_sum(&launch, y, from, weights_range, (uint32_t)n,
                                      (uint32_t)node->ne[0], (uint32_t)a->ne[1], a->nb[1], a->nb[2],
                                      weights->nb[1], error));
    return tnd_gpu_ops_run_items(&launch, (uint64_t)n, error);
}
