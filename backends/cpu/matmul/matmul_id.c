/* SPDX-License-Identifier: MIT
 * Products of experts. The tokens of each expert are gathered and multiplied with a range of the
 * expert's rows by the drivers of plain products; the results are scattered. Weights of experts
 * that no token uses are never read. Index -1 means no expert: its results are zeroed, as an
 * additional group after those of the experts. Each worker groups the tokens by itself, which takes
 * less time than a barrier. Knows no instruction set. */
#include "backends/cpu/matmul/matmul_id.h"

#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum {
    TOKENS = 256,      /* most tokens gathered together */
    TOKENS_LEAST = 32, /* gathered at least, whatever their size */
    GATHERED_BYTES = 4 << 20,
    ROWS = 192,  /* per item */
    ROWS_F = 768 /* of floats, because their drivers transpose the tokens for each item */
};

/* Layout of a worker's scratch memory: offsets in bytes. */
struct layout {
    int64_t tokens; /* gathered together */
    int64_t rows;   /* per item */
    size_t row_bytes, offsets_bytes, order_bytes, x_bytes, tiles_bytes, y_bytes;
};

/* An item: rows of one expert, and some of its tokens. */
struct item {
    int64_t expert;
    int64_t first, n_tokens; /* in `order` */
    int64_t row, n_rows;
};

/* What is constant during a call. */
struct product {
    const struct tnd_cpu_kernels *kernels;
    const struct tandem_work *work;
    const struct tnd_packed_weight *packed; /* NULL: the original rows are used */
    const struct tandem_tensor *node, *w, *x, *ids;
    bool is_quantized; /* X is quantised in the workspace */
    struct layout layout;
    int64_t n_groups; /* experts + 1: the last group has no expert */
    int64_t *offsets; /* {groups + 1}: start of each expert's tokens in `order` */
    int64_t *order;   /* {used * M}: m * used + u, by expert */
    char *gathered;
    char *tiles; /* of the gathered tokens, for AMX */
    float *y;
    struct tandem_worker *worker;
    struct tandem_worker alone; /* as a single worker, for drivers of one item */
};

static size_t aligned(size_t bytes)
{
    return (bytes + TND_ALIGNMENT - 1) / TND_ALIGNMENT * TND_ALIGNMENT;
}

/* Whether it is a product by AMX. Tiles hold tokens that are multiplied together, so each worker
 * makes those of its items from gathered floats, and TILE_X does nothing. */
static bool is_of_tiles(uint32_t task)
{
    return task == TANDEM_TASK_TILE_X || task == TANDEM_TASK_MUL_MAT_TILES;
}

static bool is_quantized_x(const struct tandem_tensor *node, uint32_t task)
{
    return task != TANDEM_TASK_NODE && !is_of_tiles(task) &&
           tnd_quant_code(node->src[0]->type) != NULL;
}

static struct layout find_layout(const struct tandem_tensor *node, uint32_t task)
{
    const struct tandem_tensor *w = node->src[0];
    const bool is_quantized = is_quantized_x(node, task);
    struct layout out = {.rows = is_quantized ? ROWS : ROWS_F};
    out.row_bytes = is_quantized ? tnd_x_row_blocks(w->ne[0]) * sizeof(struct tnd_x_block)
                                 : aligned((size_t)w->ne[0] * sizeof(float));
    const int64_t fit = out.row_bytes > 0 ? (int64_t)(GATHERED_BYTES / out.row_bytes) : TOKENS;
    out.tokens = tnd_min(tnd_max(tnd_min(TOKENS, fit), TOKENS_LEAST), node->ne[1] * node->ne[2]);
    out.offsets_bytes = aligned((size_t)(w->ne[2] + 2) * sizeof(int64_t));
    out.order_bytes = aligned((size_t)(node->ne[1] * node->ne[2]) * sizeof(int64_t));
    out.x_bytes = aligned((size_t)out.tokens * out.row_bytes);
    out.tiles_bytes =
        is_of_tiles(task) ? aligned(tnd_matmul_amx_workspace(w->type, out.tokens, w->ne[0])) : 0;
    out.y_bytes = aligned((size_t)(out.tokens * out.rows) * sizeof(float));
    return out;
}

/* Scratch memory of the drivers, for any number of gathered tokens. */
static size_t driver_scratch(const struct tandem_tensor *node, uint32_t task, int64_t tokens)
{
    const int64_t k = node->src[0]->ne[0];
    size_t most = 0;
    if (is_of_tiles(task)) {
        return tnd_matmul_amx_scratch();
    }
    if (is_quantized_x(node, task)) {
        const size_t packed = tnd_matmul_packed_scratch();
        const size_t rows = tnd_matmul_q_scratch();
        return packed > rows ? packed : rows;
    }
    for (int64_t m = 1; m < tokens + TOKENS_LEAST;
         m = m / TOKENS_LEAST * TOKENS_LEAST + TOKENS_LEAST) {
        const size_t rows = tnd_matmul_f_scratch(tnd_min(m, tokens), k);
        const size_t packed = tnd_matmul_packed_f_scratch(tnd_min(m, tokens), k);
        most = rows > most ? rows : most;
        most = packed > most ? packed : most;
    }
    return most;
}

size_t tnd_cpu_mul_mat_id_workspace(const struct tandem_tensor *node, uint32_t task)
{
    const struct tandem_tensor *x = node->src[1];
    return is_quantized_x(node, task) ? (size_t)tnd_tensor_rows(x) * tnd_x_row_blocks(x->ne[0]) *
                                            sizeof(struct tnd_x_block)
                                      : 0;
}

size_t tnd_cpu_mul_mat_id_scratch(const struct tandem_tensor *node, uint32_t task)
{
    if (task == TANDEM_TASK_QUANTIZE_X || task == TANDEM_TASK_TILE_X) {
        return 0;
    }
    const struct layout at = find_layout(node, task);
    return at.offsets_bytes + at.order_bytes + at.x_bytes + at.tiles_bytes + at.y_bytes +
           driver_scratch(node, task, at.tokens);
}

/* ---- grouping tokens by expert ---- */

static int32_t id_at(const struct product *p, int64_t i)
{
    const int64_t used = p->node->ne[1];
    const char *row = (const char *)p->ids->data + (size_t)(i / used) * p->ids->nb[1];
    int32_t id;
    memcpy(&id, row + (size_t)(i % used) * sizeof(id), sizeof(id));
    return id;
}

/* The group of entry i: its expert, or after all experts the one without. */
static int64_t group_of(const struct product *p, int64_t i)
{
    const int32_t id = id_at(p, i);
    return id == -1 ? p->n_groups - 1 : id;
}

/* Counts the tokens of each expert and sorts them by expert. */
static enum tandem_status group(struct product *p)
{
    const int64_t n = p->node->ne[1] * p->node->ne[2];
    const int64_t experts = p->n_groups - 1;
    memset(p->offsets, 0, (size_t)(p->n_groups + 1) * sizeof(p->offsets[0]));
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = id_at(p, i);
        if (id < -1 || id >= experts) {
            return tnd_error_set(p->worker->error, TANDEM_E_ARGUMENT, p->node->name, id, experts,
                                 "mul_mat_id: index %lld of token %lld is %d, expected -1 to %lld",
                                 (long long)(i % p->node->ne[1]), (long long)(i / p->node->ne[1]),
                                 (int)id, (long long)experts - 1);
        }
        p->offsets[group_of(p, i) + 1]++;
    }
    for (int64_t g = 0; g < p->n_groups; g++) {
        p->offsets[g + 1] += p->offsets[g];
    }
    for (int64_t i = n - 1; i >= 0; i--) { /* turns ends of groups into starts */
        p->order[--p->offsets[group_of(p, i) + 1]] = i;
    }
    memmove(p->offsets, p->offsets + 1, (size_t)p->n_groups * sizeof(p->offsets[0]));
    p->offsets[p->n_groups] = n;
    return TANDEM_OK;
}

static int64_t tokens_of(const struct product *p, int64_t expert)
{
    return p->offsets[expert + 1] - p->offsets[expert];
}

static int64_t token_blocks(const struct product *p, int64_t expert)
{
    return (tokens_of(p, expert) + p->layout.tokens - 1) / p->layout.tokens;
}

static int64_t row_parts(const struct product *p, int64_t rows)
{
    return (p->node->ne[0] + rows - 1) / rows;
}

/* ---- one item ---- */

/* Worker callback for a driver: hands out all items once. */
static bool take_all(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                     int64_t *out_begin, int64_t *out_end)
{
    (void)chunk;
    const bool is_taken = worker->index == 1;
    worker->index = is_taken || n_items == 0 ? 0 : 1;
    *out_begin = 0;
    *out_end = n_items;
    return worker->index == 1;
}

/* Row of X that entry i of the order reads. */
static const char *x_row(const struct product *p, int64_t i)
{
    const int64_t used = p->node->ne[1];
    const int64_t u = p->x->ne[1] == 1 ? 0 : i % used;
    const int64_t m = i / used;
    if (p->is_quantized) {
        return (const char *)p->work->workspace +
               (size_t)(m * p->x->ne[1] + u) * p->layout.row_bytes;
    }
    return tnd_row_at(p->x, u, m, 0);
}

static char *y_row(const struct product *p, int64_t i)
{
    return tnd_row_at(p->node, i % p->node->ne[1], i / p->node->ne[1], 0);
}

/* The item's rows of X, one after the other: a single row in place, several ones gathered. They are
 * kept for the next items with the same tokens; *io_gathered is the first of them. */
static const char *gather(const struct product *p, const struct item *item, int64_t *io_gathered)
{
    if (item->n_tokens == 1) {
        *io_gathered = item->first;
        return x_row(p, p->order[item->first]);
    }
    const size_t bytes = p->is_quantized ? p->layout.row_bytes - sizeof(struct tnd_x_block)
                                         : (size_t)p->w->ne[0] * sizeof(float);
    for (int64_t t = 0; t < item->n_tokens && *io_gathered != item->first; t++) {
        memcpy(p->gathered + (size_t)t * p->layout.row_bytes, x_row(p, p->order[item->first + t]),
               bytes);
    }
    *io_gathered = item->first;
    return p->gathered;
}

/* A temporary tensor over a matrix in memory, for the drivers. */
static struct tandem_tensor matrix_at(enum tandem_type type, const char *data, int64_t ne0,
                                      int64_t ne1, size_t row_bytes)
{
    struct tandem_tensor out;
    memset(&out, 0, sizeof(out));
    out.type = type;
    out.op = TANDEM_OP_MUL_MAT;
    out.ne[0] = ne0;
    out.ne[1] = ne1;
    out.ne[2] = out.ne[3] = 1;
    out.nb[0] = tandem_type_block_bytes(type);
    out.nb[1] = row_bytes;
    out.nb[2] = out.nb[3] = row_bytes * (size_t)ne1;
    out.data = (void *)(uintptr_t)data;
    return out;
}

/* Zeroes the rows of an item without an expert. */
static void zero(const struct product *p, const struct item *item)
{
    for (int64_t t = 0; t < item->n_tokens; t++) {
        memset(y_row(p, p->order[item->first + t]) + (size_t)item->row * sizeof(float), 0,
               (size_t)item->n_rows * sizeof(float));
    }
}

/* Runs the driver for an item; `is_new`: its tokens differ from those of the previous item. */
static void run_driver(struct product *p, const struct item *item, struct tandem_work *work,
                       bool is_new)
{
    struct tnd_packed_weight part;
    if (p->packed != NULL) {
        part = tnd_packed_part(p->packed, item->expert, item->row, item->n_rows);
    }
    if (is_of_tiles(work->task)) {
        work->workspace = p->tiles;
        if (is_new) {
            tnd_matmul_amx_tile_x(p->kernels, work, &p->alone);
        }
        tnd_matmul_amx(p->kernels, p->packed != NULL ? &part : NULL, work, &p->alone);
    } else if (p->packed != NULL) {
        (p->is_quantized ? tnd_matmul_packed : tnd_matmul_packed_f)(p->kernels, &part, work,
                                                                    &p->alone);
    } else if (p->is_quantized) {
        tnd_matmul_q(&p->kernels->q, work, &p->alone);
    } else {
        tnd_matmul_f(p->kernels, work, &p->alone);
    }
}

static void multiply(struct product *p, const struct item *item, int64_t *io_gathered)
{
    const struct tandem_tensor *w = p->w;
    const bool is_direct = item->n_tokens == 1;
    const bool is_new = *io_gathered != item->first;
    const char *from = gather(p, item, io_gathered);
    char *to = is_direct ? y_row(p, p->order[item->first]) + (size_t)item->row * sizeof(float)
                         : (char *)p->y;
    const size_t y_row_bytes = (size_t)item->n_rows * sizeof(float);
    struct tandem_tensor weights = matrix_at(w->type, tnd_row_at(w, item->row, item->expert, 0),
                                             w->ne[0], item->n_rows, w->nb[1]);
    struct tandem_tensor x =
        matrix_at(TANDEM_TYPE_F32, from, w->ne[0], item->n_tokens, p->layout.row_bytes);
    struct tandem_tensor y =
        matrix_at(TANDEM_TYPE_F32, to, item->n_rows, item->n_tokens, y_row_bytes);
    y.src[0] = &weights;
    y.src[1] = &x;
    struct tandem_work work = {
        .node = &y,
        .task = p->work->task,
        .row_end = item->n_rows,
        .workspace = (void *)(uintptr_t)from,
    };
    run_driver(p, item, &work, is_new);
    for (int64_t t = 0; t < item->n_tokens && !is_direct; t++) {
        memcpy(y_row(p, p->order[item->first + t]) + (size_t)item->row * sizeof(float),
               (const char *)p->y + (size_t)t * y_row_bytes, y_row_bytes);
    }
}

/* ---- all items ---- */

/* Rows per item: whole tiles and panels of every driver; fewer if there would not be work for all
 * workers. */
static int64_t choose_rows(const struct product *p)
{
    const int64_t unit = TND_TILE_ROWS_MAX;
    int64_t blocks = 0;
    int64_t rows = p->layout.rows / unit * unit;
    for (int64_t e = 0; e < p->w->ne[2]; e++) {
        blocks += token_blocks(p, e);
    }
    while (rows > unit && blocks * row_parts(p, rows) < 4 * (int64_t)p->worker->count) {
        rows -= unit;
    }
    return rows;
}

/* Where an expert's items begin, kept because a worker's items are mostly consecutive. */
struct cursor {
    int64_t expert, first;
};

static struct item find_item(const struct product *p, struct cursor *cursor, int64_t i,
                             int64_t rows)
{
    const int64_t parts = row_parts(p, rows);
    if (i < cursor->first) {
        *cursor = (struct cursor){0, 0};
    }
    while (i >= cursor->first + token_blocks(p, cursor->expert) * parts) {
        cursor->first += token_blocks(p, cursor->expert) * parts;
        cursor->expert++;
        TND_ASSERT(cursor->expert < p->n_groups);
    }
    const int64_t block = (i - cursor->first) / parts;
    const int64_t blocks = token_blocks(p, cursor->expert);
    const int64_t all = tokens_of(p, cursor->expert);
    const int64_t begin = all * block / blocks;
    struct item item = {
        .expert = cursor->expert,
        .first = p->offsets[cursor->expert] + begin,
        .n_tokens = all * (block + 1) / blocks - begin,
        .row = (i - cursor->first) % parts * rows,
    };
    item.n_rows = tnd_min(rows, p->node->ne[0] - item.row);
    return item;
}

static void multiply_all(struct product *p)
{
    const int64_t rows = choose_rows(p);
    struct cursor cursor = {0, 0};
    int64_t gathered = -1; /* `first` of the gathered tokens */
    int64_t n_items = 0;
    int64_t begin, end;
    for (int64_t e = 0; e < p->n_groups; e++) {
        n_items += token_blocks(p, e) * row_parts(p, rows);
    }
    while (p->worker->next(p->worker, n_items, tnd_chunk(n_items, p->worker->count, 8), &begin,
                           &end)) {
        for (int64_t i = begin; i < end; i++) {
            const struct item item = find_item(p, &cursor, i, rows);
            if (item.expert == p->n_groups - 1) {
                zero(p, &item);
            } else {
                multiply(p, &item, &gathered);
            }
        }
    }
}

/* QUANTIZE_X: each row of X once, no matter how many experts read it. */
static void quantize_x(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                       struct tandem_worker *worker)
{
    const struct tandem_tensor *x = work->node->src[1];
    const struct tnd_quant_code *code = tnd_quant_code(work->node->src[0]->type);
    struct tnd_x_block *out = work->workspace;
    const int64_t n = tnd_tensor_rows(x);
    int64_t begin, end;
    while (worker->next(worker, n, tnd_chunk(n, worker->count, 16), &begin, &end)) {
        for (int64_t row = begin; row < end; row++) {
            kernels->q.quantize_x(tnd_row_f32(x, tnd_row_of(x, row)), x->ne[0], code->form,
                                  code->offset, out + (size_t)row * tnd_x_row_blocks(x->ne[0]));
        }
    }
}

enum tandem_status tnd_cpu_mul_mat_id_run(const struct tnd_cpu_kernels *kernels,
                                          const struct tandem_work *work,
                                          struct tandem_worker *worker)
{
    if (work->task == TANDEM_TASK_QUANTIZE_X) {
        quantize_x(kernels, work, worker);
        return TANDEM_OK;
    }
    if (work->task == TANDEM_TASK_TILE_X) {
        return TANDEM_OK;
    }
    const struct tandem_tensor *node = work->node;
    char *scratch = worker->scratch;
    struct product p = {
        .kernels = kernels,
        .work = work,
        .packed = work->task == TANDEM_TASK_MUL_MAT_PACKED || is_of_tiles(work->task)
                      ? work->prepared
                      : NULL,
        .node = node,
        .w = node->src[0],
        .x = node->src[1],
        .ids = node->src[2],
        .n_groups = node->src[0]->ne[2] + 1,
        .is_quantized = is_quantized_x(node, work->task),
        .layout = find_layout(node, work->task),
        .worker = worker,
        .alone = {.count = 1, .own_threads = 1, .next = take_all, .error = worker->error},
    };
    if (tandem_tensor_elements(node) == 0) {
        return TANDEM_OK;
    }
    p.offsets = (int64_t *)(void *)scratch;
    scratch += p.layout.offsets_bytes;
    p.order = (int64_t *)(void *)scratch;
    scratch += p.layout.order_bytes;
    p.gathered = scratch;
    scratch += p.layout.x_bytes;
    p.tiles = scratch;
    scratch += p.layout.tiles_bytes;
    p.y = (float *)(void *)scratch;
    p.alone.scratch = scratch + p.layout.y_bytes;
    p.alone.scratch_bytes =
        worker->scratch_bytes - (size_t)((char *)p.alone.scratch - (char *)worker->scratch);
    TND_TRY(group(&p));
    multiply_all(&p);
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_mul_mat_id(const struct tnd_cpu_kernels *kernels,
                                      const struct tandem_tensor *node,
                                      struct tandem_worker *worker)
{
    const struct tandem_work work = {
        .node = node, .task = TANDEM_TASK_NODE, .row_end = node->ne[0]};
    return tnd_cpu_mul_mat_run(kernels, &work, worker);
}
