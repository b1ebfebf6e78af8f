/* SPDX-License-Identifier: MIT
 * Convolutions by Winograd's F(2x2, 3x3) (Lavin & Gray 2015, arXiv 1509.09308): 2 by 2 places of
 * the result come from 16 products instead of 36. One node transforms the input, tile by tile;
 * another one computes the products of some tiles with some filters and transforms them back in the
 * cache.
 *
 * How exact: let u be 2^-24, C the channels, x the largest value that a tile reads and w the
 * largest weight. Transforming adds two values twice (two roundings, 4 x at most), weights are
 * transformed in double precision and rounded once (9/4 w at most), a product sums C values, and
 * transforming back adds three values twice (four roundings, 9 sums). So the error is at most
 * (C + 7) u * 81 C x w to first order. Direct sums of 9 C products have 9 C u * 9 C x w: the bound
 * is 1 + 7 / C times theirs, 1.5 times at TND_WINOGRAD_CHANNELS. Tiles with a result that is not
 * finite are computed directly, so that infinities, NaN and overflow reach just the places that see
 * them. */
#include "graph/lower_conv.h"

enum { ITEM_TILES = 16 /* tiles per work item */, PAD = 16 };

/* Where the transformed tiles of a strip fit onto a stack (TND_WINOGRAD_LOCAL) and all weights into
 * a cache of one core, a worker transforms a strip for itself and goes through all filters: nothing
 * goes through memory and there is one node. */
enum { LOCAL_WEIGHTS = 262144 };

/* More transformed values than that go through memory. */
enum { LARGE_VALUES = 2097152 };

/* ---- weights ---- */

/* G g G' of one filter and channel; G: 1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1. */
static void transform_weights(const float *g, double out[TND_WINOGRAD_PLACES])
{
    double t[4][3];
    for (int j = 0; j < 3; j++) {
        const double a = g[j];
        const double b = g[3 + j];
        const double c = g[6 + j];
        t[0][j] = a;
        t[1][j] = (a + b + c) / 2;
        t[2][j] = (a - b + c) / 2;
        t[3][j] = c;
    }
    for (int i = 0; i < 4; i++) {
        out[4 * i] = t[i][0];
        out[4 * i + 1] = (t[i][0] + t[i][1] + t[i][2]) / 2;
        out[4 * i + 2] = (t[i][0] - t[i][1] + t[i][2]) / 2;
        out[4 * i + 3] = t[i][2];
    }
}

/* By panel of filters, position and channel: one value for each filter of the panel. */
static void pack(const struct tnd_conv *conv, const float *plain, float *out)
{
    const int width = TND_CONV_PANEL;
    for (int64_t f = 0; f < conv->filters; f++) {
        float *panel = out + f / width * TND_WINOGRAD_PLACES * conv->channels * width + f % width;
        for (int64_t c = 0; c < conv->channels; c++) {
            double u[TND_WINOGRAD_PLACES];
            transform_weights(plain + (f * conv->channels + c) * TND_WINOGRAD_TAPS, u);
            for (int p = 0; p < TND_WINOGRAD_PLACES; p++) {
                panel[(p * conv->channels + c) * width] = (float)u[p];
            }
        }
    }
}

static enum tandem_status prepare(struct tnd_lowering *l, struct tnd_winograd *w, int weights)
{
    const struct tnd_view view = tnd_lower_known(l, weights);
    const void *plain;
    struct tnd_conv *conv = &w->conv;
    const struct tnd_dims packed = {
        1,
        {tnd_conv_panels(conv->filters) * TND_CONV_PANEL * TND_WINOGRAD_PLACES * conv->channels}};
    const struct tnd_dims zeros = {1, {conv->channels}};
    const int64_t how[] = {TND_CONV_WINOGRAD};
    bool is_new;
    struct tnd_array *array =
        tnd_lower_shared(l, weights, &view, TANDEM_DTYPE_F32, &packed, how, sizeof(how), &is_new);
    struct tnd_array *nothing = array == NULL ? NULL : tnd_lower_array(l, TANDEM_DTYPE_F32, &zeros);
    if (nothing == NULL) {
        return tnd_lower_no_memory(l);
    }
    TND_TRY(tnd_lower_keep(l, weights, &view, &plain));
    if (is_new) {
        pack(conv, plain, array->data);
        tnd_lower_packed(array);
    }
    conv->packed = array->data;
    conv->zeros = nothing->data;
    w->plain = plain;
    return TANDEM_OK;
}

/* ---- lowering ---- */

bool tnd_conv_may_winograd(const struct tnd_conv *conv, bool for_device)
{
    bool may = !for_device && conv->n == 2 && conv->channels == conv->all_channels &&
               conv->channels >= TND_WINOGRAD_CHANNELS;
    for (int i = 0; i < conv->n; i++) {
        may = may && conv->taps[i] == 3 && conv->stride[i] == 1 && conv->dilation[i] == 1;
    }
    return may;
}

static void describe(struct tnd_winograd *w, const struct tnd_conv *conv)
{
    const int64_t filters = tnd_conv_panels(conv->filters) * TND_CONV_PANEL;
    w->conv = *conv;
    w->tiles[0] = (conv->out[0] + 1) / 2;
    w->tiles[1] = (conv->out[1] + 1) / 2;
    w->n_tiles = conv->n_pixels / (conv->out[0] * conv->out[1]) * w->tiles[0] * w->tiles[1];
    /* (one line of the cache more than it takes, or all tiles would lie in the same few sets; so
     * would all positions, but for an odd number of lines) */
    w->row = (conv->channels + TND_WINOGRAD_IN - 1) / TND_WINOGRAD_IN * TND_WINOGRAD_IN + PAD;
    w->step = w->n_tiles * w->row / PAD % 2 == 0 ? w->n_tiles * w->row + PAD : w->n_tiles * w->row;
    w->is_local = TND_WINOGRAD_PLACES * TND_CONV_PIXELS * w->row <= TND_WINOGRAD_LOCAL &&
                  TND_WINOGRAD_PLACES * conv->channels * filters <= LOCAL_WEIGHTS;
    w->src = w->is_local ? 0 : 1;
}

/* The node that transforms the input. */
static enum tandem_status emit_in(struct tnd_lowering *l, const struct tnd_winograd *w,
                                  tandem_tensor *x, tandem_tensor **out)
{
    struct tnd_work *job = tnd_lower_job(l, 0);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->op = TND_NET_CONV;
    job->type = TANDEM_DTYPE_F32;
    job->shape = (struct tnd_dims){2, {TND_WINOGRAD_PLACES, w->step}};
    job->row = TANDEM_OP_MOVE;
    job->of.winograd = w;
    job->n_items = w->n_tiles;
    job->kind = TND_WORK_WINOGRAD_IN;
    return tnd_lower_emit(l, job, &x, 1, out);
}

double tnd_conv_winograd_gain(const struct tnd_conv *conv)
{
    struct tnd_winograd w;
    if (!tnd_conv_may_winograd(conv, false)) {
        return 0;
    }
    describe(&w, conv);
    const bool is_large = TND_WINOGRAD_PLACES * w.step > LARGE_VALUES;
    const double few = tnd_conv_few_gain(conv);
    return !w.is_local && is_large
               ? 0
               : (double)(TND_WINOGRAD_TAPS * conv->n_pixels) /
                     ((double)(TND_WINOGRAD_PLACES * w.n_tiles) * (few > 1 ? few : 1));
}

enum tandem_status tnd_lower_conv_winograd(struct tnd_lowering *l, struct tnd_conv *conv,
                                           const struct tnd_net_node *node, tandem_tensor *x,
                                           tandem_tensor **out)
{
    struct tnd_winograd *w =
        tnd_arena_alloc(&l->out->arena, sizeof(*w), _Alignof(struct tnd_winograd));
    struct tnd_work *job = tnd_lower_job(l, 0);
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {x, x};
    if (w == NULL || job == NULL) {
        return tnd_lower_no_memory(l);
    }
    TND_TRY(tnd_conv_find_offsets(l, conv));
    describe(w, conv);
    int n_tensors = w->src + 1;
    TND_TRY(prepare(l, w, node->inputs[1]));
    if (!w->is_local) {
        TND_TRY(emit_in(l, w, x, &tensors[0]));
    }
    job->op = TND_NET_CONV;
    job->type = TANDEM_DTYPE_F32;
    job->shape = (struct tnd_dims){2, {conv->n_pixels, conv->filters}};
    job->amount = (double)TND_WINOGRAD_PLACES * (double)w->n_tiles * (double)conv->channels *
                  (double)conv->filters;
    job->of.winograd = w;
    job->kind = TND_WORK_WINOGRAD;
    job->n_items = (w->n_tiles + ITEM_TILES - 1) / ITEM_TILES *
                   (w->is_local ? 1 : tnd_conv_panels(conv->filters));
    w->conv.epilogue = tnd_lower_take_epilogue(l, tensors, &n_tensors, conv->all_filters);
    return tnd_lower_emit(l, job, tensors, n_tensors, out);
}
