/* SPDX-License-Identifier: MIT
 * Convolutions as direct sums over the taps of the window: packing of weights, and padding of rows.
 */
#include "graph/lower_conv.h"

enum {
    FEW_CHANNELS = 16,
    ITEM_PLACES = 64, /* positions per work item */
    /* cost of summing a vector's lanes, in vector products */
    FEW_SUM = 8
};

/* ---- weights ---- */

/* Packs filters {M, C, taps} in panels; `by_channel`: one filter each of several groups. */
static void pack(const struct tnd_conv *conv, const float *w, int64_t taps, bool by_channel,
                 float *out)
{
    const int64_t width = TND_CONV_PANEL;
    const int64_t panels = tnd_conv_panels(conv->filters);
    const int64_t channels = conv->channels;
    for (int64_t f = 0; f < conv->all_filters; f++) {
        const int64_t group = by_channel ? 0 : f / conv->filters;
        const int64_t in_group = by_channel ? f : f % conv->filters;
        float *panel = out + (group * panels + in_group / width) * taps * channels * width;
        for (int64_t t = 0; t < taps; t++) {
            for (int64_t c = 0; c < channels; c++) {
                panel[(t * channels + c) * width + in_group % width] =
                    w[(f * channels + c) * taps + t];
            }
        }
    }
}

/* Packs rows of taps, for few filters. */
static void pack_few(const struct tnd_conv *conv, const float *w, float *out)
{
    const int64_t inner = conv->run / conv->channels; /* taps that were merged */
    for (int64_t i = 0; i < conv->all_filters * conv->n_taps; i++) {
        float *row = out + i * tnd_conv_few_row(conv->run);
        const float *from = w + i / conv->n_taps * conv->channels * conv->n_taps * inner;
        for (int64_t k = 0; k < conv->run; k++) {
            const int64_t tap = i % conv->n_taps * inner + k / conv->channels;
            row[k] = from[k % conv->channels * conv->n_taps * inner + tap];
        }
    }
}

double tnd_conv_few_gain(const struct tnd_conv *conv)
{
    const int64_t products = conv->n_taps * tnd_conv_panels(conv->run);
    return (double)(conv->n_taps * conv->run * tnd_conv_panels(conv->filters)) /
           (double)(conv->filters * (products + FEW_SUM));
}

/* (A tile of few filters is one panel.) */
static bool has_few_filters(const struct tnd_conv *conv)
{
    return conv->filters <= TND_CONV_PANEL && tnd_conv_few_gain(conv) > 1;
}

static enum tandem_status pack_weights(struct tnd_lowering *l, struct tnd_conv *conv, int weights,
                                       bool by_channel, tandem_tensor **tensor)
{
    struct tnd_view w = tnd_lower_known(l, weights);
    int64_t taps = 1;
    for (int i = 2; i < w.shape.n; i++) {
        taps *= w.shape.dims[i];
    }
    const int64_t in_group = by_channel ? conv->all_filters : conv->filters;
    const int64_t n_panels = conv->all_filters / in_group * tnd_conv_panels(in_group);
    const struct tnd_dims packed = {
        1,
        {conv->is_few ? conv->all_filters * conv->n_taps * tnd_conv_few_row(conv->run)
                      : n_panels * TND_CONV_PANEL * taps * conv->channels}};
    const struct tnd_dims zeros = {1, {by_channel ? conv->all_channels : conv->run}};
    const int64_t how[] = {TND_CONV_DIRECT, in_group, by_channel, conv->is_few ? conv->run : 0};
    bool is_new;
    struct tnd_array *array =
        tnd_lower_shared(l, weights, &w, TANDEM_DTYPE_F32, &packed, how, sizeof(how), &is_new);
    struct tnd_array *nothing = array == NULL ? NULL : tnd_lower_array(l, TANDEM_DTYPE_F32, &zeros);
    struct tnd_array *plain =
        tnd_view_has_no_gaps(&w) || !is_new ? NULL : tnd_array_new(TANDEM_DTYPE_F32, &w.shape);
    w = tnd_lower_known(l, weights);
    if (nothing == NULL || (plain == NULL && is_new && !tnd_view_has_no_gaps(&w))) {
        tnd_array_free(plain);
        return tnd_lower_no_memory(l);
    }
    if (plain != NULL) {
        const struct tnd_kernel_call copy = {.in = &w, .n_in = 1, .out = plain, .error = l->error};
        (void)tnd_kernel_copy(&copy); /* cannot fail */
    }
    if (is_new) {
        const float *from = plain != NULL ? plain->data : w.data;
        if (conv->is_few) {
            pack_few(conv, from, array->data);
        } else {
            pack(conv, from, taps, by_channel, array->data);
        }
        tnd_lower_packed(array);
    }
    tnd_array_free(plain);
    conv->packed = array->data;
    conv->zeros = nothing->data;
    *tensor = l->options->for_device ? tnd_lower_weights(l, array) : NULL;
    return TANDEM_OK;
}

/* ---- padding ---- */

/* The innermost padding that windows read before and after a row. */
static void find_padding(const struct tnd_conv *conv, int64_t *front, int64_t *behind)
{
    const int last = conv->n - 1;
    const int64_t end = (conv->out[last] - 1) * conv->stride[last] - conv->begin[last] +
                        (conv->taps[last] - 1) * conv->dilation[last] + 1 - conv->in[last];
    *front = conv->begin[last] > 0 ? conv->begin[last] : 0;
    *behind = end > 0 ? end : 0;
}

/* With few channels a tap is too short for the loops over its values: rows are copied with their
 * padding, so that all taps of a row are one (merge_taps). The sums keep every bit. */
static enum tandem_status pad_rows(struct tnd_lowering *l, struct tnd_conv *conv,
                                   const struct tnd_dims *shape, tandem_tensor **x)
{
    const int last = conv->n - 1;
    int64_t front;
    int64_t behind;
    find_padding(conv, &front, &behind);
    if (conv->channels != conv->all_channels || conv->channels >= FEW_CHANNELS ||
        conv->taps[last] == 1 || conv->dilation[last] != 1 || front + behind == 0) {
        return TANDEM_OK;
    }
    struct tnd_work *job = tnd_lower_job(l, 0);
    struct tnd_work_rows *padded =
        tnd_arena_alloc(&l->out->arena, sizeof(*padded), _Alignof(struct tnd_work_rows));
    if (job == NULL || padded == NULL) {
        return tnd_lower_no_memory(l);
    }
    padded->row = conv->in[last] * conv->channels;
    padded->front = front * conv->channels;
    conv->in[last] += front + behind;
    conv->begin[last] -= front;
    padded->width = conv->in[last] * conv->channels;
    job->type = TANDEM_DTYPE_F32;
    job->shape = *shape;
    job->shape.dims[1 + conv->n] = conv->in[last];
    job->of.rows = padded;
    job->n_items = tnd_dims_values(shape) / padded->row;
    job->kind = TND_WORK_PAD_ROWS;
    return tnd_lower_emit(l, job, x, 1, x);
}

/* Merges adjacent taps, which are contiguous in memory, where there is no padding. */
static void merge_taps(struct tnd_conv *conv)
{
    const int last = conv->n - 1;
    int64_t front;
    int64_t behind;
    find_padding(conv, &front, &behind);
    if (conv->channels == conv->all_channels && front + behind == 0 && conv->dilation[last] == 1) {
        conv->run *= conv->taps[last];
        conv->n_taps /= conv->taps[last];
        conv->taps[last] = 1;
    }
}

/* ---- lowering ---- */

enum tandem_status tnd_conv_find_offsets(struct tnd_lowering *l, struct tnd_conv *conv)
{
    int64_t tap[TANDEM_NET_MAX_WINDOW] = {0};
    int64_t *out =
        tnd_arena_alloc(&l->out->arena, (size_t)conv->n_taps * sizeof(out[0]), _Alignof(int64_t));
    if (out == NULL) {
        return tnd_lower_no_memory(l);
    }
    for (int64_t t = 0; t < conv->n_taps; t++) {
        int64_t at = 0;
        for (int i = 0; i < conv->n; i++) {
            at = at * conv->in[i] + tap[i] * conv->dilation[i];
        }
        out[t] = at * conv->all_channels;
        for (int i = conv->n - 1; i >= 0 && ++tap[i] == conv->taps[i]; i--) {
            tap[i] = 0;
        }
    }
    conv->offsets = out;
    return TANDEM_OK;
}

bool tnd_conv_may_direct(const struct tnd_conv *conv, bool for_device)
{
    (void)conv;
    (void)for_device;
    return true;
}

/* May pad `x` and merge adjacent taps. */
enum tandem_status tnd_lower_conv_direct(struct tnd_lowering *l, struct tnd_conv *conv,
                                         const struct tnd_net_node *node, tandem_tensor *x,
                                         tandem_tensor **out)
{
    const bool by_channel = tnd_conv_is_depthwise(conv);
    struct tnd_work *job = tnd_lower_job(l, 0);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (!by_channel) {
        if (!l->options->for_device) {
            TND_TRY(pad_rows(l, conv, &tnd_net_value(l->net, node->inputs[0])->shape, &x));
        }
        merge_taps(conv);
        conv->is_few = !l->options->for_device && has_few_filters(conv);
    }
    TND_TRY(tnd_conv_find_offsets(l, conv));
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {x};
    TND_TRY(pack_weights(l, conv, node->inputs[1], by_channel, &tensors[1]));
    job->op = TND_NET_CONV;
    job->type = TANDEM_DTYPE_F32;
    job->shape = tnd_net_value(l->net, node->output)->shape;
    job->amount = (double)tnd_dims_values(&job->shape) * (double)conv->n_taps * (double)conv->run;
    job->of.conv = conv;
    job->kind = TND_WORK_CONV;
    const int64_t groups = by_channel ? 1 : conv->all_filters / conv->filters;
    job->n_items = (conv->n_pixels + ITEM_PLACES - 1) / ITEM_PLACES * groups *
                   (by_channel ? 1 : tnd_conv_panels(conv->filters));
    const bool has_text = tensors[1] != NULL;
    int n_tensors = has_text ? 2 : 1;
    conv->epilogue = tnd_lower_take_epilogue(l, tensors, &n_tensors, conv->all_filters);
    TND_TRY(tnd_lower_emit(l, job, tensors, n_tensors, out));
    if (has_text) {
        tnd_conv_print_sums(l, conv, by_channel, *out);
    }
    return TANDEM_OK;
}
