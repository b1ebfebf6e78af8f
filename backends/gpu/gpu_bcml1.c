/* SPDX-License-Identifier: MIT
 * Host side of bcml1.cl: makes a weight's panels once, and chooses kernels. A group handles a panel
 * of 64 rows; if there are few panels, more work-items share its columns. */
#include "backends/gpu/gpu_bcml1.h"

#include "backends/gpu/bcml1_panels.h"
#include "backends/gpu/gpu_memory.h"
#include "ggml-like/tnd_tensor.h"

enum {
    IN_PANELS = 1, /* FLAGS of the kernels */
    VALUES = 32,
    COLUMNS_MOST = 16,     /* most tokens per pass over the weights */
    ITEMS_PER_UNIT = 1024, /* work-items that keep a compute unit's memory busy */
    BLOCKS_LEAST = 8,      /* least blocks per work-item before another one shares its row */
    COLUMNS_OF_PANELS_MOST = 1 << 24
};

static struct tnd_gpu_variant variant_of(int32_t group, int32_t columns)
{
    return (struct tnd_gpu_variant){.type = 1 + (int32_t)TANDEM_TYPE_BCML1,
                                    .flags = IN_PANELS,
                                    .group = group,
                                    .columns = columns};
}

/* ---- panels ---- */

static enum tandem_status make_panels(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                      struct tnd_gpu_range from, struct tnd_gpu_range to,
                                      struct tandem_error *error)
{
    const uint32_t n = (uint32_t)weight->ne[1];
    const uint32_t columns = (uint32_t)(weight->ne[0] / VALUES);
    const size_t global[2] = {((size_t)n + TND_PANEL_ROWS - 1) / TND_PANEL_ROWS * TND_PANEL_ROWS,
                              columns};
    const size_t local[2] = {TND_PANEL_ROWS, 1};
    const struct tnd_gpu_variant variant = variant_of(0, 0);
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_BCML1, &variant, error));
    TND_TRY(tnd_gpu_bind_bcml1_pack(&launch, from, to, n, columns, error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

/* ---- products ---- */

/* Number of panels that hold rows begin .. end - 1. */
static size_t panels_of(const struct tnd_gpu_product *p)
{
    return (p->end - 1) / TND_PANEL_ROWS - p->begin / TND_PANEL_ROWS + 1;
}

/* Work-items per group: 64 times a power of two. Depends only on the shape and the device. With
 * 1024 of them, a GPU has 64 registers for each, too few for the sums of 8 tokens. */
static int32_t group_of(const struct tnd_gpu_caps *caps, const struct tnd_gpu_product *p,
                        size_t n_groups, int32_t tokens)
{
    const uint32_t most = tokens < 8 ? 16 : 8;
    const size_t wanted = (size_t)caps->compute_units * ITEMS_PER_UNIT;
    const uint32_t columns = p->k / VALUES;
    uint32_t shares = 1;
    while (!caps->is_cpu && shares < most && n_groups * shares * TND_PANEL_ROWS < wanted &&
           2 * shares * TND_PANEL_ROWS <= caps->max_group && 2 * shares * BLOCKS_LEAST <= columns) {
        shares *= 2;
    }
    return (int32_t)(shares * TND_PANEL_ROWS);
}

static enum tandem_status multiply_few(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_product *p, int32_t columns,
                                       struct tandem_error *error)
{
    const size_t passes = ((size_t)p->m + (size_t)columns - 1) / (size_t)columns;
    /* from all panels of W, so that sums do not depend on where rows are split */
    const size_t all_panels = ((size_t)p->n + TND_PANEL_ROWS - 1) / TND_PANEL_ROWS;
    const struct tnd_gpu_variant variant =
        variant_of(group_of(&device->caps, p, all_panels * passes, columns), columns);
    const size_t local[2] = {(size_t)variant.group, 1};
    const size_t global[2] = {panels_of(p) * local[0], passes};
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_BCML1, &variant, error));
    TND_TRY(tnd_gpu_bind_bcml1_matvec(&launch, p->w, p->x, p->y, p->k, p->n, p->m, p->begin, p->end,
                                      error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

/* Uses the tiled kernel of all types, which reads weights with weight16 of bcml1.clh. */
static enum tandem_status multiply_many(struct tnd_gpu_device *device,
                                        const struct tnd_gpu_product *p, struct tandem_error *error)
{
    const struct tnd_gpu_tiles *tiles = &device->matmul->tiles;
    struct tnd_gpu_variant variant = variant_of(0, 0);
    tnd_gpu_tiled_variant(tiles, &variant);
    variant.aligned = !device->matmul->without_aligned && p->x.offset % 16 == 0;
    const size_t tile_n = (size_t)tiles->tile_n;
    const size_t tile_m = (size_t)tiles->tile_m;
    const size_t local[2] = {(size_t)tnd_gpu_tiles_group(tiles), 1};
    const size_t global[2] = {(p->end - p->begin + tile_n - 1) / tile_n * local[0],
                              (p->m + tile_m - 1) / tile_m};
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_TILED, &variant, error));
    TND_TRY(
        tnd_gpu_bind_tiled(&launch, p->w, p->x, p->y, p->k, p->n, p->m, p->begin, p->end, error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

static enum tandem_status multiply(struct tnd_gpu_device *device, const struct tnd_gpu_product *p,
                                   struct tandem_error *error)
{
    const enum tnd_gpu_family family = device->matmul->family;
    int32_t columns = 1;
    if (family == TND_GPU_FAMILY_TILED ||
        (family == TND_GPU_FAMILY_AUTO && p->m > (uint32_t)COLUMNS_MOST)) {
        return multiply_many(device, p, error);
    }
    while (family != TND_GPU_FAMILY_MATVEC && columns < COLUMNS_MOST && (uint32_t)columns < p->m) {
        columns *= 2;
    }
    return multiply_few(device, p, columns, error);
}

static enum tandem_status dequantize(struct tnd_gpu_device *device, const struct tnd_gpu_product *p,
                                     struct tandem_error *error)
{
    const struct tnd_gpu_variant variant = variant_of(0, 0);
    const size_t global[2] = {panels_of(p) * TND_PANEL_ROWS, p->k / VALUES};
    const size_t local[2] = {TND_PANEL_ROWS, 1};
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_BCML1, &variant, error));
    TND_TRY(tnd_gpu_bind_bcml1_dequantize(&launch, p->w, p->y, p->k, p->begin, p->end, error));
    return tnd_gpu_launch_run(&launch, 2, global, local, error);
}

enum tandem_status tnd_gpu_bcml1_find(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                      struct tandem_place place, struct tnd_gpu_range *out_range,
                                      struct tandem_error *error)
{
    const int64_t k = weight->ne[0];
    const int64_t n = weight->ne[1];
    const size_t bytes = tnd_bcml1_panel_bytes(n, k);
    if (bytes == 0 || device->caps.max_group < TND_PANEL_ROWS ||
        k / VALUES >= COLUMNS_OF_PANELS_MOST || weight->ne[2] != 1 || weight->ne[3] != 1 ||
        weight->nb[1] != tandem_type_row_bytes(weight->type, k)) {
        return tnd_error_set(error, TANDEM_E_STATE, weight->name, n, 0,
                             "%s device '%.60s': '%.60s' cannot lie in panels of 64 rows",
                             device->driver->name, device->name, weight->name);
    }
    /* together with the size, it distinguishes matrices of other shapes at the same address */
    const int form = (int)(k / VALUES * TND_PANEL_ROWS + n % TND_PANEL_ROWS);
    TND_TRY(tnd_gpu_find_form(device, weight, place, form, bytes, make_panels, out_range, error));
    tnd_gpu_keep_form_only(device, weight, place);
    return TANDEM_OK;
}

/* Not resident, or no memory for panels: use rows instead. */
static bool is_for_rows(enum tandem_status status)
{
    return status == TANDEM_E_STATE || status == TANDEM_E_DEVICE_MEMORY;
}

enum tandem_status tnd_gpu_bcml1_prepare(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                         struct tnd_gpu_block *block, struct tandem_error *error)
{
    struct tnd_gpu_range panels;
    if (weight->type != TANDEM_TYPE_BCML1) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&device->submit_lock);
    struct tandem_place place = {block, 0};
    enum tandem_status status = tnd_gpu_bcml1_find(device, weight, place, &panels, error);
    pthread_mutex_unlock(&device->submit_lock);
    return is_for_rows(status) ? TANDEM_OK : status;
}

enum tandem_status tnd_gpu_bcml1_weight(struct tnd_gpu_device *device,
                                        const struct tandem_work *work,
                                        struct tnd_gpu_range *out_range, bool *out_in_panels,
                                        struct tandem_error *error)
{
    const struct tandem_place place =
        work->places != NULL ? work->places->src[0] : (struct tandem_place){NULL, 0};
    enum tandem_status status =
        tnd_gpu_bcml1_find(device, work->node->src[0], place, out_range, error);
    *out_in_panels = !is_for_rows(status);
    return *out_in_panels ? status : tnd_gpu_original(device, work, out_range, error);
}

enum tandem_status tnd_gpu_bcml1_run(struct tnd_gpu_device *device, uint32_t task,
                                     const struct tnd_gpu_product *product,
                                     struct tandem_error *error)
{
    return task == TANDEM_TASK_DEQUANTIZE_W ? dequantize(device, product, error)
                                            : multiply(device, product, error);
}
