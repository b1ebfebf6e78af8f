/* SPDX-License-Identifier: MIT
 * Recurrent layers. Each worker has panels of 32 values of the state, of one direction or of both:
 * it multiplies the last state by their rows of all gates, and applies the gates while the sums
 * are in its cache. Workers that share a direction wait for each other once a step (a GRU whose
 * reset gate comes before the product: twice). */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/convolution/cpu_int8_tiles.h"
#include "backends/cpu/net/cpu_net.h"
#include "backends/cpu/ops/cpu_ops.h"

enum {
    PANEL = TND_RECURRENT_PANEL,
    BLOCK = 8 * PANEL, /* values that pass the gates together */
    TOKENS = TND_PACKED_F_TOKENS,
    GATES = 4,
    /* multiply-adds per step that justify one more worker: a few times the cost of a barrier; also
     * multiply-adds between two checks for cancellation */
    WORTH = 32768
};

/* Some values of the state for some sequences, one line per sequence. */
struct block {
    int64_t direction, step, text, unit;
    int texts;
    int units, width; /* `units` exist; `width`: padded to whole panels */
};

struct run {
    const struct tnd_cpu_kernels *kernels;
    const struct tnd_recurrent *layer;
    struct tnd_view in[5];
    const struct tnd_view *lengths; /* NULL: all sequences have all steps */
    int64_t steps, batch, hidden, gates, panels;
    float *y;                         /* the result */
    const float *packed;              /* weights, panel by panel */
    struct tnd_recurrent_bytes bytes; /* instead of them, where they are of 8 bits */
    bool has_zero_w;
    float *reset;       /* GRU: states times reset gates, {D, batch, H} */
    int64_t begin, end; /* this worker's panels, counted over all directions */
    struct tandem_worker *worker;
    bool waits;
    int64_t asks_each;     /* steps between two checks for cancellation */
    _Atomic int64_t *last; /* step at which synchronised workers stop; set by worker 0 */
    /* in the worker's scratch memory */
    float *sums[GATES], *cells;
    float *columns[2]; /* of a tile of sequences, transposed: last states, `reset` ones */
    /* of a tile of sequences in 8 bits: rows of bytes, their sums, and the kernel's parameters */
    uint8_t *rows;
    int32_t row_sums[TOKENS];
    struct tnd_recurrent_grid grid;
    struct tnd_int8_parameters parameters;
};

size_t tnd_cpu_recurrent_scratch(const struct tandem_tensor *node)
{
    const struct tnd_work *work = node->params.work;
    if (work->kind != TND_WORK_RECURRENT) {
        return 0;
    }
    const int64_t hidden = work->shape.dims[3];
    const int64_t bytes = TND_INT8_ROWS * tnd_int8_up(hidden, TND_INT8_STEP);
    return (size_t)((GATES + 1) * TOKENS * BLOCK + 2 * TOKENS * hidden +
                    PANEL * TND_INT8_PARAMETERS) *
               sizeof(float) +
           (work->params->recurrent.is_8_bit ? (size_t)bytes : 0);
}

static void wait_for_others(const struct run *run)
{
    if (run->waits) {
        run->worker->barrier(run->worker);
    }
}

/* Ends step `i`. Returns whether the run stops here; workers that synchronise get the same
 * answer. */
static bool end_step(const struct run *run, int64_t i)
{
    struct tandem_worker *worker = run->worker;
    const bool asks = i % run->asks_each == 0 && worker->stopped != NULL;
    if (!run->waits) {
        return asks && worker->stopped(worker);
    }
    if (asks && worker->index == 0 && worker->stopped(worker)) {
        atomic_store_explicit(run->last, i, memory_order_relaxed);
    }
    wait_for_others(run);
    /* Worker 0 may be a step ahead and have stopped at a later step, which does not count yet. */
    return atomic_load_explicit(run->last, memory_order_relaxed) <= i;
}

/* ---- states ---- */

/* Row `row` of the result: a step, then the last state, then the last cells. */
static float *row_of(const struct run *run, int64_t row, int64_t direction, int64_t text)
{
    return run->y + ((row * run->layer->directions + direction) * run->batch + text) * run->hidden;
}

static bool is_reverse(const struct run *run, int64_t direction)
{
    return (run->layer->reverse >> direction & 1) != 0;
}

/* A sequence's state before a step. One that has ended keeps its state. */
static const float *last_state(const struct run *run, int64_t direction, int64_t step, int64_t text)
{
    const int64_t length = tnd_recurrent_length(run->lengths, text, run->steps);
    const int64_t before = is_reverse(run, direction) ? step + 1 : tnd_min(step, length) - 1;
    const bool is_first = before < 0 || before >= length;
    return row_of(run, is_first ? run->steps : before, direction, text);
}

/* Extends low .. high to the values. (The compiler vectorises blocks of constant length.) */
static void look(const float *h, int64_t n, float *low, float *high)
{
    float lows[PANEL] = {0};
    float highs[PANEL] = {0};
    int64_t k = 0;
    for (; k + PANEL <= n; k += PANEL) {
        for (int i = 0; i < PANEL; i++) {
            lows[i] = h[k + i] < lows[i] ? h[k + i] : lows[i];
            highs[i] = h[k + i] > highs[i] ? h[k + i] : highs[i];
        }
    }
    for (int i = 0; k < n; k++, i++) {
        lows[i] = h[k] < lows[i] ? h[k] : lows[i];
        highs[i] = h[k] > highs[i] ? h[k] : highs[i];
    }
    for (int i = 0; i < PANEL; i++) {
        *low = lows[i] < *low ? lows[i] : *low;
        *high = highs[i] > *high ? highs[i] : *high;
    }
}

/* Quantises the states of a tile of sequences, on the grid of the states of all sequences. */
static void round_rows(struct run *run, const struct block *block)
{
    float low = 0;
    float high = 0;
    for (int64_t text = 0; text < run->batch; text++) {
        look(last_state(run, block->direction, block->step, text), run->hidden, &low, &high);
    }
    run->grid = tnd_recurrent_grid(low, high);
    for (int t = 0; t < block->texts; t++) {
        uint8_t *to = run->rows + t * run->bytes.row_bytes;
        tnd_recurrent_levels(&run->grid,
                             last_state(run, block->direction, block->step, block->text + t),
                             run->hidden, to);
        run->row_sums[t] = run->has_zero_w ? tnd_int8_sum_row(to, run->hidden) : 0;
    }
}

/* Input of products for a tile of sequences: last states, or states times reset gates. */
static const float *columns_of(const struct run *run, const struct block *block, bool is_reset)
{
    const float *rows[TOKENS];
    float *columns = run->columns[is_reset];
    for (int t = 0; t < block->texts; t++) {
        const int64_t text = block->text + t;
        rows[t] = is_reset ? run->reset + (block->direction * run->batch + text) * run->hidden
                           : last_state(run, block->direction, block->step, text);
    }
    if (block->texts == 1) {
        return rows[0];
    }
    for (int64_t k = 0; k < run->hidden; k++) {
        for (int t = 0; t < block->texts; t++) {
            columns[k * block->texts + t] = rows[t][k];
        }
    }
    return columns;
}

/* ---- products ---- */

/* Product of a tile, for instruction sets without packed kernels. */
static void multiply(const struct tnd_tile_packed_f *tile)
{
    const float *w = (const float *)(const void *)tile->panel;
    for (int64_t k = 0; k < tile->k; k++, w += PANEL) {
        for (int t = 0; t < tile->n_tokens; t++) {
            const float x = tile->x[k * tile->n_tokens + t];
            float *restrict y = tile->y + (size_t)t * tile->y_stride;
            for (int i = 0; i < PANEL; i++) {
                y[i] += x * w[i];
            }
        }
    }
}

/* Loads a line of a block from a row that may be shorter. */
static void load(const struct block *block, const float *from, float *to)
{
    memcpy(to, from, (size_t)block->units * sizeof(float));
    memset(to + block->units, 0, (size_t)(block->width - block->units) * sizeof(float));
}

static void load_inputs(const struct run *run, const struct block *block, int g, float *to)
{
    const struct tnd_view *x = &run->in[0];
    const float *from = (const float *)x->data + block->step * x->strides[0] +
                        block->text * x->strides[1] +
                        (block->direction * run->gates + g) * run->hidden + block->unit;
    for (int t = 0; t < block->texts; t++) {
        load(block, from + t * x->strides[1], to + (int64_t)t * block->width);
    }
}

/* Adds a gate's products to its sums. */
static void add_products(const struct run *run, const struct block *block, int g,
                         const float *columns)
{
    tnd_packed_f_fn *kernel = run->kernels->packed_f[TANDEM_TYPE_F32];
    const int64_t stretch = run->hidden * PANEL;
    const int64_t first = block->direction * run->panels + block->unit / PANEL;
    for (int i = 0; i < block->width / PANEL; i++) {
        const float *panel = run->packed + ((first + i) * run->gates + g) * stretch;
        (kernel != NULL ? kernel : multiply)(
            &(struct tnd_tile_packed_f){.panel = (const uint8_t *)panel,
                                        .k = run->hidden,
                                        .n_tokens = block->texts,
                                        .x = columns,
                                        .y = run->sums[g] + (int64_t)i * PANEL,
                                        .y_stride = (size_t)block->width,
                                        .accumulate = true});
    }
}

/* Sets the parameters that turn sums of bytes into products, for 32 rows. */
static void set_parameters(const struct run *run, const struct block *block, int g, int panel,
                           int64_t at)
{
    const struct tnd_view *view = &run->in[2];
    const struct tnd_int8_parameters *to = &run->parameters;
    const int64_t others = tnd_recurrent_extra(run->layer, &view->shape, run->hidden);
    const int64_t unit = block->unit + panel * PANEL;
    const int64_t n = tnd_min(run->hidden - unit, PANEL);
    const float *scales = (const float *)view->data + block->direction * view->strides[0] +
                          (others + g * run->hidden + unit) * view->strides[1];
    const int32_t zero = (int32_t)run->grid.zero;
    const int32_t k = (int32_t)run->hidden;
    for (int i = 0; i < PANEL; i++) {
        const uint32_t sum_w = (uint32_t)run->bytes.sum_w[at + i];
        const uint32_t zero_w = (uint32_t)run->bytes.zero_w[at + i];
        to->zero_w[i] = (int32_t)zero_w;
        to->base[i] = (int32_t)((uint32_t)run->kernels->int8.x_less * sum_w -
                                (uint32_t)zero * (sum_w - (uint32_t)k * zero_w));
        to->offset[i] = 0;
        to->scale[i] = i < n ? run->grid.scale * scales[i * view->strides[1]] : 0;
    }
}

/* Like add_products, for bytes; uses `cells` as a buffer, which are loaded later. */
static void add_products_8_bit(const struct run *run, const struct block *block, int g)
{
    const struct tnd_conv_int8 product = {.n = 0,
                                          .channels = run->hidden,
                                          .filters = block->width,
                                          .groups = 1,
                                          .result = TND_INT8_F32,
                                          .low = -INFINITY,
                                          .high = INFINITY};
    const int64_t first = block->direction * run->panels + block->unit / PANEL;
    for (int i = 0; i < block->width / PANEL; i++) {
        const int64_t at = ((first + i) * run->gates + g) * PANEL;
        set_parameters(run, block, g, i, at);
        tnd_int8_run_tiles(
            &(struct tnd_int8_tiles){.kernels = &run->kernels->int8,
                                     .conv = &product,
                                     .parameters = run->parameters,
                                     .n_filters = PANEL,
                                     .k = run->hidden,
                                     .x = run->rows,
                                     .x_stride = run->bytes.row_bytes,
                                     .n_rows = block->texts,
                                     .x_sums = run->has_zero_w ? run->row_sums : NULL,
                                     .w = run->bytes.bytes + at * run->bytes.row_bytes,
                                     .y = run->cells + (int64_t)i * PANEL});
    }
    run->kernels->vec.binary[TANDEM_OP_ADD](run->sums[g], run->cells, run->sums[g],
                                            (int64_t)block->texts * block->width);
}

static void sum_gate(const struct run *run, const struct block *block, int g, const float *columns)
{
    load_inputs(run, block, g, run->sums[g]);
    if (run->layer->is_8_bit) {
        add_products_8_bit(run, block, g);
    } else {
        add_products(run, block, g, columns);
    }
}

/* ---- gates ---- */

static void activate(const struct run *run, const struct tnd_activation *by, float *x, int64_t n)
{
    const enum tandem_op op = by->kind == TND_ACTIVATION_RELU      ? TANDEM_OP_RELU
                              : by->kind == TND_ACTIVATION_TANH    ? TANDEM_OP_TANH
                              : by->kind == TND_ACTIVATION_SIGMOID ? TANDEM_OP_SIGMOID
                                                                   : TANDEM_OP_NONE;
    if (op != TANDEM_OP_NONE) {
        run->kernels->vec.unary[op](x, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)tnd_activation_of(by, (double)x[i]);
    }
}

/* Applies clipping and activation `i` of the direction. */
static void clip_and_activate(const struct run *run, const struct block *block, int i, float *x,
                              int64_t n)
{
    const float clip = run->layer->clip;
    for (int64_t k = 0; k < n && clip > 0; k++) {
        x[k] = x[k] < -clip ? -clip : x[k] > clip ? clip : x[k];
    }
    activate(run, &run->layer->activations[block->direction][i], x, n);
}

/* An LSTM's peephole weight of gate `g`, or a GRU's bias in operand 2. */
static float extra(const struct run *run, const struct block *block, int g, int u)
{
    const struct tnd_view *view = &run->in[2];
    return ((const float *)view->data)[block->direction * view->strides[0] +
                                       (g * run->hidden + block->unit + u) * view->strides[1]];
}

static void see_cells(const struct run *run, const struct block *block, int g)
{
    for (int i = 0; i < block->texts * block->width; i++) {
        const int u = i % block->width;
        run->sums[g][i] += u < block->units ? extra(run, block, g, u) * run->cells[i] : 0;
    }
}

static int64_t values_of(const struct block *block)
{
    return (int64_t)block->texts * block->width;
}

/* Stores values to the rows of sequences that still run; rows of sequences that have ended become
 * zeros, or stay as they are. */
static void store(const struct run *run, const struct block *block, int64_t row, const float *from)
{
    for (int t = 0; t < block->texts; t++) {
        const int64_t text = block->text + t;
        float *to = row_of(run, row, block->direction, text) + block->unit;
        if (block->step < tnd_recurrent_length(run->lengths, text, run->steps)) {
            memcpy(to, from + (int64_t)t * block->width, (size_t)block->units * sizeof(float));
        } else if (row < run->steps) {
            memset(to, 0, (size_t)block->units * sizeof(float));
        }
    }
}

static void load_cells(const struct run *run, const struct block *block, bool are_states)
{
    for (int t = 0; t < block->texts; t++) {
        const float *from = are_states
                                ? last_state(run, block->direction, block->step, block->text + t)
                                : row_of(run, run->steps + 1, block->direction, block->text + t);
        load(block, from + block->unit, run->cells + (int64_t)t * block->width);
    }
}

static void rnn(const struct run *run, const struct block *block, const float *columns)
{
    sum_gate(run, block, 0, columns);
    clip_and_activate(run, block, 0, run->sums[0], values_of(block));
    store(run, block, block->step, run->sums[0]);
}

/* First part of a step of a GRU whose reset gate comes before the product. */
static void gru_reset(const struct run *run, const struct block *block, const float *columns)
{
    const int64_t n = values_of(block);
    sum_gate(run, block, 1, columns);
    clip_and_activate(run, block, 0, run->sums[1], n);
    load_cells(run, block, true);
    run->kernels->vec.binary[TANDEM_OP_MUL](run->sums[1], run->cells, run->sums[1], n);
    for (int t = 0; t < block->texts; t++) {
        memcpy(run->reset + (block->direction * run->batch + block->text + t) * run->hidden +
                   block->unit,
               run->sums[1] + (int64_t)t * block->width, (size_t)block->units * sizeof(float));
    }
}

/* Third sum of a GRU whose product comes before the reset gate. */
static void gru_linear(const struct run *run, const struct block *block, const float *columns)
{
    const bool has_bias = run->in[2].shape.dims[1] > 0;
    const int64_t n = values_of(block);
    float *const *sums = run->sums;
    for (int i = 0; i < n; i++) {
        const int u = i % block->width;
        sums[2][i] = has_bias && u < block->units ? extra(run, block, 0, u) : 0;
    }
    sum_gate(run, block, 1, columns);
    add_products(run, block, 2, columns);
    clip_and_activate(run, block, 0, sums[1], n);
    run->kernels->vec.binary[TANDEM_OP_MUL](sums[1], sums[2], sums[2], n);
    load_inputs(run, block, 2, sums[1]);
    run->kernels->vec.binary[TANDEM_OP_ADD](sums[1], sums[2], sums[2], n);
}

static void gru(const struct run *run, const struct block *block, const float *columns)
{
    const struct tnd_vec *vec = &run->kernels->vec;
    const int64_t n = values_of(block);
    float *const *sums = run->sums;
    sum_gate(run, block, 0, columns);
    if (run->layer->is_linear) {
        gru_linear(run, block, columns);
    } else {
        sum_gate(run, block, 2, columns_of(run, block, true));
    }
    clip_and_activate(run, block, 0, sums[0], n);
    clip_and_activate(run, block, 1, sums[2], n);
    load_cells(run, block, true);
    vec->binary[TANDEM_OP_MUL](sums[0], run->cells, run->cells, n);
    vec->affine(sums[0], 1.0F, -1.0F, sums[0], n); /* 1 - update */
    vec->binary[TANDEM_OP_MUL](sums[0], sums[2], sums[2], n);
    vec->binary[TANDEM_OP_ADD](sums[2], run->cells, sums[2], n);
    store(run, block, block->step, sums[2]);
}

/* Gates of an LSTM before its cells: input, output (unless it sees the new cells) and forget, whose
 * sums are adjacent. */
static void lstm_gates(const struct run *run, const struct block *block, bool sees)
{
    const int64_t n = values_of(block);
    float *const *sums = run->sums;
    if (!sees && !run->layer->is_coupled) {
        clip_and_activate(run, block, 0, sums[0], 3 * n);
        return;
    }
    for (int g = 0; g < 3; g += 2) {
        if (sees) {
            see_cells(run, block, g);
        }
        clip_and_activate(run, block, 0, sums[g], n);
    }
    if (!sees) {
        clip_and_activate(run, block, 0, sums[1], n);
    }
    if (run->layer->is_coupled) {
        run->kernels->vec.affine(sums[0], 1.0F, -1.0F, sums[2], n);
    }
}

static void lstm(const struct run *run, const struct block *block, const float *columns)
{
    const struct tnd_vec *vec = &run->kernels->vec;
    const bool sees = tnd_recurrent_extra(run->layer, &run->in[2].shape, run->hidden) > 0;
    const int64_t n = values_of(block);
    float *const *sums = run->sums;
    for (int g = 0; g < 4; g++) {
        sum_gate(run, block, g, columns);
    }
    load_cells(run, block, false);
    lstm_gates(run, block, sees);
    clip_and_activate(run, block, 1, sums[3], n);
    vec->binary[TANDEM_OP_MUL](sums[2], run->cells, run->cells, n);
    vec->binary[TANDEM_OP_MUL](sums[0], sums[3], sums[3], n);
    vec->binary[TANDEM_OP_ADD](sums[3], run->cells, run->cells, n);
    if (sees) {
        see_cells(run, block, 1);
        clip_and_activate(run, block, 0, sums[1], n);
    }
    store(run, block, run->steps + 1, run->cells);
    activate(run, &run->layer->activations[block->direction][2], run->cells, n);
    vec->binary[TANDEM_OP_MUL](sums[1], run->cells, sums[1], n);
    store(run, block, block->step, sums[1]);
}

/* ---- steps ---- */

typedef void part_fn(const struct run *run, const struct block *block, const float *columns);

/* This worker's values of a direction's state: how many, from *first on. */
static int64_t units_of(const struct run *run, int64_t direction, int64_t *first)
{
    const int64_t begin = tnd_max(run->begin - direction * run->panels, 0) * PANEL;
    const int64_t end = (run->end - direction * run->panels) * PANEL;
    *first = begin;
    return tnd_min(end, run->hidden) - begin;
}

static void place_sums(struct run *run, const struct block *block)
{
    for (int g = 1; g < GATES; g++) {
        run->sums[g] = run->sums[g - 1] + values_of(block);
    }
}

/* Runs one part of step `i`, for both directions and all sequences. */
static void run_part(struct run *run, int64_t i, part_fn *part)
{
    struct block block = {.direction = 0};
    for (; block.direction < run->layer->directions; block.direction++) {
        int64_t first;
        const int64_t n = units_of(run, block.direction, &first);
        block.step = is_reverse(run, block.direction) ? run->steps - 1 - i : i;
        for (block.text = 0; block.text < run->batch && n > 0; block.text += block.texts) {
            block.texts = (int)tnd_min(run->batch - block.text, TOKENS);
            const float *columns = NULL;
            if (run->layer->is_8_bit) {
                round_rows(run, &block);
            } else {
                columns = columns_of(run, &block, false);
            }
            for (block.unit = first; block.unit < first + n; block.unit += block.width) {
                block.units = (int)tnd_min(first + n - block.unit, BLOCK);
                block.width = (block.units + PANEL - 1) / PANEL * PANEL;
                place_sums(run, &block);
                part(run, &block, columns);
            }
        }
    }
}

/* Copies the initial states, or the final ones. */
static void place_states(const struct run *run, bool is_begin)
{
    const struct tnd_view *from = &run->in[3];
    const int64_t states = is_begin ? tnd_cell_states(run->layer->cell) : 1;
    for (int64_t i = 0; i < states * run->layer->directions * run->batch; i++) {
        const int64_t text = i % run->batch;
        const int64_t d = i / run->batch % run->layer->directions;
        const int64_t which = i / run->batch / run->layer->directions;
        int64_t first;
        const int64_t n = units_of(run, d, &first);
        float *to = row_of(run, run->steps + which, d, text);
        if (!is_begin && n > 0) {
            const float *last = last_state(run, d, is_reverse(run, d) ? -1 : run->steps, text);
            memmove(to + first, last + first, (size_t)n * sizeof(float));
        }
        for (int64_t u = first; u < first + n && is_begin; u++) {
            to[u] = ((const float *)from->data)[which * from->strides[0] + d * from->strides[1] +
                                                text * from->strides[2] + u * from->strides[3]];
        }
    }
}

static void run_steps(struct run *run)
{
    static part_fn *const parts[] = {rnn, gru, lstm};
    const bool has_reset = run->layer->cell == TND_CELL_GRU && !run->layer->is_linear;
    if (run->worker->index == 0) {
        atomic_store_explicit(run->last, run->steps, memory_order_relaxed);
    }
    place_states(run, true);
    wait_for_others(run);
    for (int64_t i = 0; i < run->steps; i++) {
        if (has_reset) {
            run_part(run, i, gru_reset);
            wait_for_others(run);
        }
        run_part(run, i, parts[run->layer->cell]);
        if (end_step(run, i)) {
            return;
        }
    }
    place_states(run, false);
}

/* Assigns panels to this worker; the work per step decides how many workers take part. */
static void divide(struct run *run)
{
    const int64_t directions = run->layer->directions;
    const int64_t all = directions * run->panels;
    const double worth =
        (double)run->batch * (double)(run->gates * run->hidden) * (double)run->hidden / WORTH;
    const int64_t fit = tnd_min(run->panels, run->worker->count / directions);
    const int64_t most = worth < (double)fit ? tnd_max((int64_t)worth, 1) : tnd_max(fit, 1);
    const int64_t n = tnd_min(directions * most, run->worker->count);
    const int64_t index = tnd_min(run->worker->index, n);
    run->waits = most > 1;
    run->asks_each = worth < 1 ? (int64_t)(1 / worth) : 1;
    run->begin = index * all / n;
    run->end = run->worker->index < n ? (index + 1) * all / n : run->begin;
}

/* Runs the steps with products of bytes. */
static void run_steps_8_bit(struct run *run)
{
    const struct tnd_int8_kernels *kernels = &run->kernels->int8;
    size_t size;
    run->bytes = tnd_recurrent_bytes_in(run->in[1].data, run->layer->directions, run->gates,
                                        run->hidden, &size);
    for (int64_t i = 0; i < run->bytes.rows; i++) {
        run->has_zero_w = run->has_zero_w || run->bytes.zero_w[i] != 0;
    }
    memset(run->rows, 0, (size_t)(TND_INT8_ROWS * run->bytes.row_bytes));
    if (kernels->begin != NULL) {
        kernels->begin();
    }
    run_steps(run);
    if (kernels->begin != NULL) {
        kernels->end();
    }
}

/* Packs computed weights: each worker packs those it reads. */
static void pack(struct run *run, float *to)
{
    const int64_t values = run->gates * run->hidden * PANEL;
    for (int64_t i = run->begin; i < run->end; i++) {
        tnd_recurrent_pack(&run->in[1], run->hidden, i / run->panels, i % run->panels,
                           to + i * values);
    }
}

void tnd_cpu_recurrent(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                       struct tandem_worker *worker)
{
    const struct tnd_work *work = node->params.work;
    struct run run = {.kernels = kernels,
                      .layer = &work->params->recurrent,
                      .batch = work->shape.dims[2],
                      .hidden = work->shape.dims[3],
                      .y = node->data,
                      .worker = worker};
    tnd_work_views(work, node, run.in);
    run.lengths = work->n_in > 4 ? &run.in[4] : NULL;
    run.steps = run.in[0].shape.dims[0];
    run.gates = run.in[1].shape.dims[1];
    run.panels = run.in[1].shape.dims[2];
    run.cells = worker->scratch;
    run.columns[0] = run.cells + TOKENS * BLOCK;
    run.columns[1] = run.columns[0] + TOKENS * run.hidden;
    run.sums[0] = run.columns[1] + TOKENS * run.hidden;
    float *const lists = run.sums[0] + GATES * TOKENS * BLOCK;
    run.parameters = tnd_int8_parameters_in(lists, PANEL);
    run.rows = (uint8_t *)(void *)(lists + PANEL * TND_INT8_PARAMETERS);
    divide(&run);
    char *behind = (char *)(run.y + tnd_dims_values(&work->shape));
    run.last = (void *)(((uintptr_t)behind + 63) / 64 * 64);
    float *spare = (float *)(void *)((char *)(void *)run.last + 64);
    run.packed = run.in[1].data;
    if (work->in[1].src >= 0) {
        run.packed = spare;
        pack(&run, spare);
        spare += run.layer->directions * run.panels * run.gates * run.hidden * PANEL;
    }
    run.reset = spare;
    if (run.layer->is_8_bit) {
        run_steps_8_bit(&run);
    } else {
        run_steps(&run);
    }
}
