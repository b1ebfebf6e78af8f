/* SPDX-License-Identifier: MIT
 * Recurrent layers: the reference kernel in double, activations, packing of weights. */
#include "ggml-like/recurrent.h"

#include <math.h>
#include <string.h>

#include "ggml-like/conv_int8.h"
#include "ggml-like/net_kernels.h"

enum { PANEL = TND_RECURRENT_PANEL };

double tnd_activation_of(const struct tnd_activation *by, double x)
{
    const double alpha = (double)by->alpha;
    const double beta = (double)by->beta;
    switch ((enum tnd_activation_kind)by->kind) {
    case TND_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case TND_ACTIVATION_TANH:
        return tanh(x);
    case TND_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case TND_ACTIVATION_SOFTSIGN:
        return x / (1 + fabs(x));
    case TND_ACTIVATION_SOFTPLUS:
        return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case TND_ACTIVATION_LEAKY_RELU:
        return x < 0 ? alpha * x : x;
    case TND_ACTIVATION_ELU:
        return x < 0 ? alpha * expm1(x) : x;
    case TND_ACTIVATION_AFFINE:
        return alpha * x + beta;
    case TND_ACTIVATION_HARD_SIGMOID:
        x = alpha * x + beta;
        return x < 0 ? 0 : x > 1 ? 1 : x;
    case TND_ACTIVATION_SCALED_TANH:
        return alpha * tanh(beta * x);
    case TND_ACTIVATION_THRESHOLDED_RELU:
        return x <= alpha ? 0 : x;
    }
    return x;
}

int64_t tnd_recurrent_length(const struct tnd_view *lengths, int64_t i, int64_t steps)
{
    if (lengths == NULL) {
        return steps;
    }
    const int64_t n = ((const int64_t *)lengths->data)[i * lengths->strides[0]];
    return n < 0 ? 0 : n > steps ? steps : n;
}

struct tnd_recurrent_grid tnd_recurrent_grid(float low, float high)
{
    struct tnd_recurrent_grid grid = {.scale = (high - low) / 255.0F};
    if (grid.scale > 0.0F) {
        grid.zero = rintf(fminf(fmaxf(-low / grid.scale, 0.0F), 255.0F));
    }
    return grid;
}

/* Adding it rounds a float below 2^22 in magnitude to the nearest integer, ties to even: the sum
 * has no fraction bits. */
#define ROUNDER 12582912.0F

void tnd_recurrent_levels(const struct tnd_recurrent_grid *grid, const float *x, int64_t n,
                          uint8_t *out)
{
    const float scale = grid->scale > 0.0F ? grid->scale : 1.0F;
    for (int64_t i = 0; i < n; i++) {
        float at = x[i] / scale;
        at = at < 256.0F ? at : 256.0F;
        at = at > -256.0F ? at : -256.0F;
        at = (at + ROUNDER) - ROUNDER + grid->zero;
        at = at < 255.0F ? at : 255.0F;
        out[i] = (uint8_t)(int32_t)(at > 0.0F ? at : 0.0F);
    }
}

/* The value that x has on the grid. */
static float rounded(const struct tnd_recurrent_grid *grid, float x)
{
    uint8_t level;
    tnd_recurrent_levels(grid, &x, 1, &level);
    return ((float)level - grid->zero) * grid->scale;
}

/* ---- weights ---- */

struct tnd_view tnd_recurrent_panels(const struct tnd_view *r, int64_t gates, bool is_packed)
{
    const int64_t hidden = r->shape.dims[2];
    const int64_t panels = (hidden + PANEL - 1) / PANEL;
    struct tnd_view out = {.type = r->type,
                           .shape = {5, {r->shape.dims[0], gates, panels, PANEL, hidden}}};
    const int64_t packed[] = {panels * gates * hidden * PANEL, hidden * PANEL,
                              gates * hidden * PANEL, 1, PANEL};
    const int64_t plain[] = {r->strides[0], hidden * r->strides[1], PANEL * r->strides[1],
                             r->strides[1], r->strides[2]};
    memcpy(out.strides, is_packed ? packed : plain, sizeof(packed));
    out.data = r->data;
    return out;
}

void tnd_recurrent_pack(const struct tnd_view *panels, int64_t hidden, int64_t direction,
                        int64_t panel, float *out)
{
    const int64_t *strides = panels->strides;
    const int64_t left = hidden - panel * PANEL;
    const int n = left < PANEL ? (int)left : PANEL;
    const float *from = (const float *)panels->data + direction * strides[0] + panel * strides[2];
    for (int64_t g = 0; g < panels->shape.dims[1]; g++) {
        for (int64_t k = 0; k < hidden; k++, out += PANEL) {
            for (int i = 0; i < PANEL; i++) {
                out[i] = i < n ? from[g * strides[1] + i * strides[3] + k * strides[4]] : 0.0F;
            }
        }
    }
}

struct tnd_recurrent_bytes tnd_recurrent_bytes_in(const void *memory, int directions, int64_t gates,
                                                  int64_t hidden, size_t *size)
{
    const int64_t panels = (hidden + PANEL - 1) / PANEL;
    struct tnd_recurrent_bytes out = {.rows = directions * panels * gates * PANEL,
                                      .row_bytes = (hidden + TND_INT8_STEP - 1) / TND_INT8_STEP *
                                                   TND_INT8_STEP,
                                      .bytes = memory};
    const size_t bytes = (size_t)(out.rows * out.row_bytes);
    if (memory != NULL) {
        out.sum_w = (const void *)((const char *)memory + bytes);
        out.zero_w = out.sum_w + out.rows;
    }
    *size = bytes + 2 * (size_t)out.rows * sizeof(int32_t);
    return out;
}

bool tnd_recurrent_pack_bytes(const struct tnd_view *r, int64_t gates, void *out)
{
    size_t size;
    const int64_t hidden = r->shape.dims[2];
    const int64_t panels = (hidden + PANEL - 1) / PANEL;
    const struct tnd_recurrent_bytes to =
        tnd_recurrent_bytes_in(out, (int)r->shape.dims[0], gates, hidden, &size);
    const int64_t row_bytes = to.row_bytes;
    int32_t *sum_w = (void *)((char *)out + to.rows * row_bytes);
    bool fits = true;
    for (int64_t at = 0; at < to.rows && fits; at += PANEL) {
        const int64_t g = at / PANEL % gates;
        const int64_t first = at / PANEL / gates % panels * PANEL;
        const int64_t d = at / PANEL / gates / panels;
        const int64_t n = hidden - first < PANEL ? hidden - first : PANEL;
        struct tnd_conv_int8 product = {.images = 1, .channels = hidden, .filters = n, .groups = 1};
        struct tnd_int8_filter filters[PANEL] = {{.sum_w = 0}};
        struct tnd_view rows = {.type = r->type, .shape = {2, {n, hidden}}};
        rows.data =
            (const int32_t *)r->data + d * r->strides[0] + (g * hidden + first) * r->strides[1];
        rows.strides[0] = r->strides[1];
        rows.strides[1] = r->strides[2];
        fits = tnd_int8_pack(&product, &rows, (char *)out + at * row_bytes, filters);
        for (int i = 0; i < PANEL; i++) {
            sum_w[at + i] = filters[i].sum_w;
            sum_w[to.rows + at + i] = filters[i].zero_w;
        }
    }
    return fits;
}

size_t tnd_recurrent_bytes(const struct tnd_recurrent *layer, int64_t batch, int64_t hidden,
                           bool packs)
{
    const size_t panels = (size_t)((hidden + PANEL - 1) / PANEL);
    const size_t rows = packs ? panels * PANEL * (size_t)tnd_cell_gates(layer->cell) : 0;
    return 128 +
           (rows + (size_t)batch) * (size_t)hidden * (size_t)layer->directions * sizeof(float);
}

/* ---- the reference ---- */

struct run {
    const struct tnd_recurrent *layer;
    const struct tnd_view *x, *r, *extra, *state, *lengths;
    struct tnd_array *out;
    int64_t steps, batch, hidden;
    double *h;    /* {batch, hidden} of one direction: the last states */
    double *made; /* {hidden} of one sequence: product input computed from its state */
    int64_t direction;
};

static double get(enum tandem_dtype type, const void *data, int64_t at)
{
    return type == TANDEM_DTYPE_F32   ? (double)((const float *)data)[at]
           : type == TANDEM_DTYPE_I32 ? ((const int32_t *)data)[at]
                                      : ((const double *)data)[at];
}

static double at(const struct tnd_view *view, int64_t i, int64_t j, int64_t k)
{
    return get(view->type, view->data,
               i * view->strides[0] + j * view->strides[1] + k * view->strides[2]);
}

/* Index of a value of the result. */
static int64_t index_of(const struct run *run, int64_t row, int64_t text, int64_t u)
{
    return ((row * run->layer->directions + run->direction) * run->batch + text) * run->hidden + u;
}

static void put(const struct run *run, int64_t row, int64_t text, int64_t u, double value)
{
    if (run->out->type == TANDEM_DTYPE_F32) {
        ((float *)run->out->data)[index_of(run, row, text, u)] = (float)value;
    } else {
        ((double *)run->out->data)[index_of(run, row, text, u)] = value;
    }
}

/* A weight of bytes that are packed. */
static int level_of(const struct run *run, int g, int64_t u, int64_t k)
{
    const int64_t hidden = run->hidden;
    const int gates = tnd_cell_gates(run->layer->cell);
    const int64_t panels = (hidden + PANEL - 1) / PANEL;
    size_t size;
    const struct tnd_recurrent_bytes from =
        tnd_recurrent_bytes_in(run->r->data, run->layer->directions, gates, hidden, &size);
    const int64_t at = ((run->direction * panels + u / PANEL) * gates + g) * PANEL;
    const int64_t lane = u % TND_INT8_PANEL;
    const int8_t *panel = from.bytes + (at + u % PANEL - lane) * from.row_bytes;
    return panel[(k / 4 * TND_INT8_PANEL + lane) * 4 + k % 4] - from.zero_w[at + u % PANEL];
}

static double product_8_bit(const struct run *run, int g, int64_t u, const double *h)
{
    const struct tnd_view *r = run->r;
    double sum = 0;
    for (int64_t k = 0; k < run->hidden; k++) {
        sum += h[k] * (r->type == TANDEM_DTYPE_I8 ? level_of(run, g, u, k)
                                                  : at(r, run->direction, g * run->hidden + u, k));
    }
    const int64_t others = tnd_recurrent_extra(run->layer, &run->extra->shape, run->hidden);
    return sum * at(run->extra, run->direction, others + g * run->hidden + u, 0);
}

static double product(const struct run *run, int g, int64_t u, const double *h)
{
    const struct tnd_view *r = run->r;
    if (run->layer->is_8_bit) {
        return product_8_bit(run, g, u, h);
    }
    const int64_t *s = r->strides;
    const int64_t row =
        run->direction * s[0] + (r->shape.n == 3 ? (g * run->hidden + u) * s[1]
                                                 : g * s[1] + u / PANEL * s[2] + u % PANEL * s[3]);
    double sum = 0;
    for (int64_t k = 0; k < run->hidden; k++) {
        sum += h[k] * get(r->type, r->data, row + k * s[r->shape.n - 1]);
    }
    return sum;
}

static double input(const struct run *run, int64_t step, int64_t text, int g, int64_t u)
{
    const int gates = tnd_cell_gates(run->layer->cell);
    return at(run->x, step, text, (run->direction * gates + g) * run->hidden + u);
}

static double clip_and_activate(const struct run *run, int i, double x)
{
    const double clip = (double)run->layer->clip;
    if (clip > 0) {
        x = x < -clip ? -clip : x > clip ? clip : x;
    }
    return tnd_activation_of(&run->layer->activations[run->direction][i], x);
}

static void gru(const struct run *run, int64_t step, int64_t text, const double *h)
{
    const bool is_linear = run->layer->is_linear != 0;
    const bool has_bias = run->extra->shape.dims[1] > 0;
    for (int64_t u = 0; u < run->hidden; u++) {
        const double reset =
            clip_and_activate(run, 0, input(run, step, text, 1, u) + product(run, 1, u, h));
        run->made[u] = is_linear ? reset : reset * h[u];
    }
    for (int64_t u = 0; u < run->hidden; u++) {
        const double update =
            clip_and_activate(run, 0, input(run, step, text, 0, u) + product(run, 0, u, h));
        double rest = product(run, 2, u, is_linear ? h : run->made);
        if (is_linear) {
            rest = run->made[u] * (rest + (has_bias ? at(run->extra, run->direction, u, 0) : 0));
        }
        const double fresh = clip_and_activate(run, 1, input(run, step, text, 2, u) + rest);
        put(run, step, text, u, (1 - update) * fresh + update * h[u]);
    }
}

static void lstm(const struct run *run, int64_t step, int64_t text, const double *h)
{
    const bool sees = tnd_recurrent_extra(run->layer, &run->extra->shape, run->hidden) > 0;
    const struct tnd_activation *of_cells = &run->layer->activations[run->direction][2];
    for (int64_t u = 0; u < run->hidden; u++) {
        double sums[4];
        double peep[3] = {0};
        for (int g = 0; g < 4; g++) {
            sums[g] = input(run, step, text, g, u) + product(run, g, u, h);
        }
        for (int g = 0; g < 3 && sees; g++) {
            peep[g] = at(run->extra, run->direction, g * run->hidden + u, 0);
        }
        double cells = get(run->out->type, run->out->data, index_of(run, run->steps + 1, text, u));
        const double in = clip_and_activate(run, 0, sums[0] + peep[0] * cells);
        const double forget =
            run->layer->is_coupled ? 1 - in : clip_and_activate(run, 0, sums[2] + peep[2] * cells);
        cells = forget * cells + in * clip_and_activate(run, 1, sums[3]);
        const double out = clip_and_activate(run, 0, sums[1] + peep[1] * cells);
        put(run, run->steps + 1, text, u, cells);
        put(run, step, text, u, out * tnd_activation_of(of_cells, cells));
    }
}

static void rnn(const struct run *run, int64_t step, int64_t text, const double *h)
{
    for (int64_t u = 0; u < run->hidden; u++) {
        put(run, step, text, u,
            clip_and_activate(run, 0, input(run, step, text, 0, u) + product(run, 0, u, h)));
    }
}

static struct tnd_recurrent_grid grid_of(const struct run *run)
{
    double low = 0;
    double high = 0;
    for (int64_t i = 0; i < run->batch * run->hidden; i++) {
        low = run->h[i] < low ? run->h[i] : low;
        high = run->h[i] > high ? run->h[i] : high;
    }
    return tnd_recurrent_grid((float)low, (float)high);
}

/* One step of all sequences. One that has ended keeps its state, and its result is 0. */
static void take_step(const struct run *run, int64_t step)
{
    static void (*const cells[])(const struct run *, int64_t, int64_t, const double *) = {rnn, gru,
                                                                                          lstm};
    const struct tnd_recurrent_grid grid = grid_of(run);
    for (int64_t text = 0; text < run->batch; text++) {
        double *h = run->h + text * run->hidden;
        const bool counts = step < tnd_recurrent_length(run->lengths, text, run->steps);
        for (int64_t u = 0; u < run->hidden && run->layer->is_8_bit; u++) {
            run->made[u] = (double)rounded(&grid, (float)h[u]);
        }
        if (counts) {
            cells[run->layer->cell](run, step, text, run->layer->is_8_bit ? run->made : h);
        }
        for (int64_t u = 0; u < run->hidden; u++) {
            if (counts) {
                h[u] = get(run->out->type, run->out->data, index_of(run, step, text, u));
            } else {
                put(run, step, text, u, 0);
            }
        }
    }
}

/* Copies the initial state, operand 3, to the last rows of the result, which keep the cells, and to
 * `h`. */
static void begin(const struct run *run)
{
    const int64_t *s = run->state->strides;
    for (int64_t i = 0; i < tnd_cell_states(run->layer->cell) * run->batch * run->hidden; i++) {
        const int64_t u = i % run->hidden;
        const int64_t text = i / run->hidden % run->batch;
        const int64_t which = i / run->hidden / run->batch;
        const double value = get(run->state->type, run->state->data,
                                 which * s[0] + run->direction * s[1] + text * s[2] + u * s[3]);
        put(run, run->steps + which, text, u, value);
        if (which == 0) {
            run->h[i] = value;
        }
    }
}

enum tandem_status tnd_kernel_recurrent(const struct tnd_kernel_call *call)
{
    const struct tnd_recurrent *layer = &call->params->recurrent;
    struct run run = {.layer = layer,
                      .x = &call->in[0],
                      .r = &call->in[1],
                      .extra = &call->in[2],
                      .state = &call->in[3],
                      .lengths = call->n_in > 4 ? &call->in[4] : NULL,
                      .out = call->out,
                      .steps = call->in[0].shape.dims[0],
                      .batch = call->in[0].shape.dims[1],
                      .hidden = call->out->shape.dims[3],
                      .h = (double *)(((uintptr_t)call->scratch + 7) / 8 * 8)};
    run.made = run.h + run.batch * run.hidden;
    for (; run.direction < layer->directions; run.direction++) {
        begin(&run);
        for (int64_t i = 0; i < run.steps; i++) {
            take_step(&run, layer->reverse >> run.direction & 1 ? run.steps - 1 - i : i);
        }
        for (int64_t i = 0; i < run.batch * run.hidden; i++) {
            put(&run, run.steps, i / run.hidden, i % run.hidden, run.h[i]);
        }
    }
    return TANDEM_OK;
}
