/* SPDX-License-Identifier: MIT
 * Tensor parallelism (Shoeybi et al. 2019, arXiv:1909.08053): queries, keys, values, gate and up
 * are divided by rows of W, so that a rank has whole heads; output and down by columns, so that
 * their products are summed over ranks; the vocabulary by rows. Rows of a mapped file are used in
 * place; columns are copied. Division by layers: shard_layers.c. */
#include "llama/shard.h"

#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/model.h"
#include "tandem/mapped.h"

enum {
    ROWS = 32,  /* of the feed-forward network per unit: whole tiles of kernels */
    TOKENS = 64 /* of the vocabulary per unit */
};

/* ---- ranges ---- */

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t least_multiple(int64_t a, int64_t b)
{
    return a / greatest_divisor(a, b) * b;
}

/* First of a rank's n items, which are divided in blocks of `unit`. */
static int64_t begin_of(int rank, const double *shares, int count, int64_t n, int64_t unit)
{
    double all = 0, before = 0;
    for (int i = 0; i < count; i++) {
        all += shares[i];
        before += i < rank ? shares[i] : 0;
    }
    const int64_t units = (n + unit - 1) / unit;
    const int64_t begin = (int64_t)((double)units * before / all + 0.5) * unit;
    return rank == count || begin > n ? n : begin;
}

static struct tnd_llama_range range_of(int rank, const double *shares, int count, int64_t n,
                                       int64_t unit)
{
    return (struct tnd_llama_range){begin_of(rank, shares, count, n, unit),
                                    begin_of(rank + 1, shares, count, n, unit)};
}

static int64_t length(struct tnd_llama_range range)
{
    return range.end - range.begin;
}

/* Least multiple of `at_least` that is whole blocks of w's type. */
static int64_t block_of(const tandem_tensor *w, int64_t at_least)
{
    return w == NULL ? at_least
                     : least_multiple(at_least, tandem_type_block_values(tandem_tensor_type(w)));
}

static void find_ranges(const tandem_model *whole, const double *shares, bool has_whole_experts,
                        struct tnd_llama_shard *shard)
{
    const struct tandem_hparams *h = &whole->hparams;
    int64_t heads = 1, hidden = ROWS, expert_hidden = ROWS, shared_hidden = ROWS;
    for (int64_t l = 0; l < h->layers; l++) {
        const struct tnd_llama_layer *w = &whole->layers[l];
        heads = block_of(w->wo, heads);
        hidden = block_of(w->w2, hidden);
        expert_hidden = block_of(w->down_exps, expert_hidden);
        shared_hidden = block_of(w->down_shexp, shared_hidden);
    }
    const int64_t columns = h->q_dim / h->kv_heads; /* columns of wo per head of keys */
    const int64_t together = heads / greatest_divisor(heads, columns);
    const int rank = shard->rank, count = shard->count;
    shard->hidden = range_of(rank, shares, count, h->hidden, hidden);
    shard->experts = (struct tnd_llama_range){0, h->experts};
    shard->expert_hidden = range_of(rank, shares, count, h->expert_hidden, expert_hidden);
    if (has_whole_experts && h->experts > 0) {
        shard->experts = range_of(rank, shares, count, h->experts, 1);
        shard->expert_hidden = (struct tnd_llama_range){0, h->expert_hidden};
    }
    shard->shared_hidden = range_of(rank, shares, count, h->shared_hidden, shared_hidden);
    shard->vocabulary = range_of(rank, shares, count, h->vocabulary, TOKENS);
    for (int i = 0; i < count; i++) {
        shard->logit_bytes[i] =
            (size_t)length(range_of(i, shares, count, h->vocabulary, TOKENS)) * sizeof(float);
        shard->layers[i] = (struct tnd_llama_range){0, h->layers};
        shard->heads[i] = range_of(i, shares, count, h->kv_heads, together);
    }
    shard->kv_heads = shard->heads[rank];
    shard->is_alone = shares[0] > 0;
    for (int i = 1; i < count; i++) {
        shard->is_alone = shard->is_alone && shares[i] == 0;
    }
}

/* ---- parts of weights ---- */

/* Strided values of a tensor: `times` runs of `bytes`. */
struct strip {
    const char *data;
    size_t bytes, stride;
    int64_t times;
};

/* n values of dimension `dim` from `begin` on, in every row, matrix or list of matrices. */
static struct strip strip_of(const tandem_tensor *whole, int dim, int64_t begin, int64_t n)
{
    const size_t *nb = tandem_tensor_nb(whole);
    const int64_t *ne = tandem_tensor_ne(whole);
    const enum tandem_type type = tandem_tensor_type(whole);
    const size_t skip = dim == 0 ? tandem_type_row_bytes(type, begin) : (size_t)begin * nb[dim];
    struct strip strip = {
        .data = (const char *)tandem_tensor_data(whole) + skip,
        .bytes = dim == 0 ? tandem_type_row_bytes(type, n) : (size_t)n * nb[dim],
        .stride = dim == 0 ? nb[1] : nb[dim + 1],
        .times = 1,
    };
    for (int i = dim + 1; i < TANDEM_MAX_DIMS; i++) {
        strip.times *= ne[i];
    }
    return strip;
}

static void copy_strip(const struct strip *strip, tandem_tensor *part,
                       struct tnd_llama_shard *shard)
{
    struct tandem_error why = {.status = TANDEM_OK};
    for (int64_t i = 0; i < strip->times && why.status == TANDEM_OK; i++) {
        const char *from = strip->data + (size_t)i * strip->stride;
        (void)tandem_mapped_check(from, strip->bytes, &why);
        memcpy((char *)tandem_tensor_data(part) + (size_t)i * strip->bytes, from, strip->bytes);
    }
    if (why.status != TANDEM_OK && shard->fault.status == TANDEM_OK) {
        (void)tnd_llama_fail(&shard->fault, why.status, tandem_tensor_name(part), why.got,
                             why.limit, "'%.64s' in %.180s", tandem_tensor_name(part), why.text);
    }
}

/* Copies strided values to a new tensor. With shard->tell set, only reports them and returns NULL.
 */
static tandem_tensor *copy_of(tandem_model *model, const tandem_tensor *whole,
                              const struct strip *strip, const int64_t *ne)
{
    struct tnd_llama_shard *shard = model->shard;
    if (shard->tell != NULL) {
        shard->tell(shard->tell_user, strip->data, strip->bytes, strip->stride, strip->times);
        return NULL;
    }
    tandem_tensor *part =
        tandem_tensor_new(model->context, tandem_tensor_type(whole), TANDEM_MAX_DIMS, ne);
    if (part != NULL) {
        tandem_tensor_set_name(part, tandem_tensor_name(whole));
        copy_strip(strip, part, shard);
        tandem_tensor_set_role(part, TANDEM_ROLE_CONSTANT);
        shard->copied_bytes += (int64_t)tandem_tensor_bytes(part);
    }
    return part;
}

/* Values begin .. end - 1 of dimension `dim`. NULL for an empty range or a NULL tensor. */
static tandem_tensor *part_of(tandem_model *model, tandem_tensor *whole, int dim,
                              struct tnd_llama_range range)
{
    int64_t ne[TANDEM_MAX_DIMS];
    if (whole == NULL || length(range) == 0) {
        return NULL;
    }
    memcpy(ne, tandem_tensor_ne(whole), sizeof(ne));
    LLAMA_ASSERT(range.begin >= 0 && range.end <= ne[dim]);
    const struct strip strip = strip_of(whole, dim, range.begin, length(range));
    const bool is_adjacent = strip.times == 1 || ne[dim] == length(range);
    ne[dim] = length(range);
    tandem_tensor *part =
        !is_adjacent
            ? copy_of(model, whole, &strip, ne)
            : tandem_tensor_borrow_const(model->context, tandem_tensor_type(whole), TANDEM_MAX_DIMS,
                                         ne, strip.data, strip.bytes * (size_t)strip.times);
    model->shard->bytes += part != NULL ? (int64_t)tandem_tensor_bytes(part) : 0;
    return tandem_tensor_set_name(part, tandem_tensor_name(whole));
}

static struct tnd_llama_range times(struct tnd_llama_range range, int64_t n, int64_t from)
{
    return (struct tnd_llama_range){from + range.begin * n, from + range.end * n};
}

/* ---- layers ---- */

/* Norms per head are divided like the heads; a norm over all heads would need a sum over ranks. */
static enum tandem_status divide_norm(tandem_model *model, tandem_tensor *whole, int64_t heads,
                                      struct tnd_llama_range range, tandem_tensor **out,
                                      struct tandem_error *error)
{
    const int64_t head_size = model->hparams.head_size;
    *out = whole;
    if (whole == NULL || (tandem_tensor_ne(whole)[0] == head_size && heads == 1)) {
        return TANDEM_OK;
    }
    if (tandem_tensor_ne(whole)[0] != head_size) {
        return tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, "cluster", 0, 0,
                              "llama: architecture %s norms all heads together, which several "
                              "ranks cannot do yet",
                              model->hparams.architecture);
    }
    if (tandem_tensor_ne(whole)[1] == heads) {
        *out = part_of(model, whole, 1, range);
    }
    return TANDEM_OK;
}

static enum tandem_status divide_attention(tandem_model *model, const struct tandem_hparams *h,
                                           const struct tnd_llama_layer *w,
                                           struct tnd_llama_layer *out, struct tandem_error *error)
{
    const struct tnd_llama_range kv = model->shard->kv_heads;
    const struct tnd_llama_range heads = times(kv, h->heads / h->kv_heads, 0);
    const struct tnd_llama_range q = times(heads, h->head_size, 0);
    const struct tnd_llama_range k = times(kv, h->head_size, 0);
    if (w->wqkv != NULL) {
        const struct tnd_llama_range k_at = times(kv, h->head_size, h->q_dim);
        const struct tnd_llama_range v_at = times(kv, h->head_size, h->q_dim + h->kv_dim);
        out->wq = part_of(model, w->wqkv, 1, q);
        out->wk = part_of(model, w->wqkv, 1, k_at);
        out->wv = part_of(model, w->wqkv, 1, v_at);
        out->bq = part_of(model, w->bqkv, 0, q);
        out->bk = part_of(model, w->bqkv, 0, k_at);
        out->bv = part_of(model, w->bqkv, 0, v_at);
        out->wqkv = out->bqkv = NULL;
    } else {
        out->wq = part_of(model, w->wq, 1, q);
        out->wk = part_of(model, w->wk, 1, k);
        out->wv = part_of(model, w->wv, 1, k);
        out->bq = part_of(model, w->bq, 0, q);
        out->bk = part_of(model, w->bk, 0, k);
        out->bv = part_of(model, w->bv, 0, k);
    }
    out->wo = part_of(model, w->wo, 0, q);
    out->sinks = part_of(model, w->sinks, 0, heads);
    LLAMA_TRY(divide_norm(model, w->attn_q_norm, h->heads, heads, &out->attn_q_norm, error));
    return divide_norm(model, w->attn_k_norm, h->kv_heads, kv, &out->attn_k_norm, error);
}

static void divide_block(tandem_model *model, const struct tandem_hparams *h,
                         const struct tnd_llama_layer *w, struct tnd_llama_layer *out)
{
    const struct tnd_llama_range hidden = model->shard->hidden;
    const struct tnd_llama_range up = times(hidden, 1, h->hidden);
    const bool is_fused = w->w1 == NULL && w->w3 != NULL &&
                          tandem_tensor_ne(w->w3)[1] == 2 * h->hidden; /* gate, then up */
    out->w1 = part_of(model, is_fused ? w->w3 : w->w1, 1, hidden);
    out->b1 = part_of(model, w->b1, 0, hidden);
    out->w3 = part_of(model, w->w3, 1, is_fused ? up : hidden);
    out->b3 = part_of(model, w->b3, 0, hidden);
    out->w2 = part_of(model, w->w2, 0, hidden);
}

/* The bias after the sum over experts is added once: on the first rank that has experts. */
static void divide_experts(tandem_model *model, const struct tnd_llama_layer *w,
                           struct tnd_llama_layer *out)
{
    const struct tnd_llama_range hidden = model->shard->expert_hidden;
    const struct tnd_llama_range experts = model->shard->experts;
    const struct tnd_llama_range shared = model->shard->shared_hidden;
    const bool is_first = hidden.begin == 0 && experts.begin == 0;
    if (model->own_experts != NULL) {
        out->gate_exps = part_of(model, w->gate_exps, 2, experts);
        out->up_exps = part_of(model, w->up_exps, 2, experts);
        out->down_exps = part_of(model, w->down_exps, 2, experts);
    } else {
        out->gate_exps = part_of(model, w->gate_exps, 1, hidden);
        out->up_exps = part_of(model, w->up_exps, 1, hidden);
        out->down_exps = part_of(model, w->down_exps, 0, hidden);
        out->b1_exps = part_of(model, w->b1_exps, 0, hidden);
        out->b3_exps = part_of(model, w->b3_exps, 0, hidden);
    }
    out->b2_exps = is_first && length(hidden) > 0 && length(experts) > 0 ? w->b2_exps : NULL;
    out->gate_shexp = part_of(model, w->gate_shexp, 1, shared);
    out->up_shexp = part_of(model, w->up_shexp, 1, shared);
    out->down_shexp = part_of(model, w->down_shexp, 0, shared);
}

/* Renumbers a rank's experts for its own weights. */
static void number_experts(tandem_model *model)
{
    const struct tnd_llama_range own = model->shard->experts;
    const int64_t n = model->hparams.experts;
    const int64_t ne[] = {1, n};
    if (length(own) == n) {
        return;
    }
    model->own_experts = tandem_tensor_new(model->context, TANDEM_TYPE_I32, 2, ne);
    for (int64_t i = 0; model->own_experts != NULL && i < n; i++) {
        const bool has = i >= own.begin && i < own.end;
        ((int32_t *)tandem_tensor_data(model->own_experts))[i] =
            has ? (int32_t)(i - own.begin) : -1;
    }
    tandem_tensor_set_role(model->own_experts, TANDEM_ROLE_CONSTANT);
}

static enum tandem_status divide(tandem_model *model, const tandem_model *whole,
                                 struct tandem_error *error)
{
    const struct tandem_hparams *h = &whole->hparams;
    const struct tnd_llama_shard *shard = model->shard;
    number_experts(model);
    for (int64_t l = 0; l < h->layers; l++) {
        LLAMA_TRY(divide_attention(model, h, &whole->layers[l], &model->layers[l], error));
        divide_block(model, h, &whole->layers[l], &model->layers[l]);
        divide_experts(model, &whole->layers[l], &model->layers[l]);
    }
    model->output = part_of(model, whole->output, 1, shard->vocabulary);
    model->output_b = part_of(model, whole->output_b, 0, shard->vocabulary);
    model->hparams.kv_heads = length(shard->kv_heads);
    model->hparams.heads = h->heads / h->kv_heads * length(shard->kv_heads);
    model->hparams.q_dim = model->hparams.heads * h->head_size;
    model->hparams.kv_dim = model->hparams.kv_heads * h->head_size;
    model->hparams.hidden = length(shard->hidden);
    if (shard->fault.status != TANDEM_OK) {
        return tnd_llama_fail(error, shard->fault.status, shard->fault.where, shard->fault.got,
                              shard->fault.limit, "%s", shard->fault.text);
    }
    return tandem_context_status(model->context, error);
}

/* ---- the model ---- */

static enum tandem_status check_shares(const double *shares, int count, struct tandem_error *error)
{
    double all = 0;
    bool is_right = true;
    for (int i = 0; i < count; i++) {
        is_right = is_right && shares[i] >= 0 && shares[i] < 1e9;
        all += shares[i];
    }
    return is_right && all > 0
               ? TANDEM_OK
               : tnd_llama_fail(error, TANDEM_E_ARGUMENT, "cluster", 0, count,
                                "llama: shares of ranks: expected %d numbers, none below 0, and "
                                "not all 0",
                                count);
}

/* Encoders are refused: their texts stay whole, and their vectors are pooled. */
static enum tandem_status check_division(const tandem_model *whole, enum tandem_division division,
                                         struct tandem_error *error)
{
    const bool is_latent = whole->hparams.layers > 0 && whole->layers[0].kv_a != NULL;
    if (division != TANDEM_DIVIDE_ROWS && division != TANDEM_DIVIDE_LAYERS) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "cluster", division, TANDEM_DIVIDE_MIXED,
                              "llama: division %d of a model among ranks; expected rows (0), "
                              "layers (1) or mixed (2)",
                              (int)division);
    }
    if (whole->hparams.is_encoder) {
        return tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, "cluster", 0, 0,
                              "llama: architecture %s is an encoder, which several ranks cannot "
                              "compute yet",
                              whole->hparams.architecture);
    }
    return !is_latent || division == TANDEM_DIVIDE_LAYERS
               ? TANDEM_OK
               : tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, "cluster", 0, 0,
                                "llama: architecture %s has latent attention, which several ranks "
                                "cannot compute by rows yet, but by layers",
                                whole->hparams.architecture);
}

static enum tandem_status divide_as(enum tandem_division division, tandem_model *model,
                                    const tandem_model *whole, bool has_whole_experts,
                                    const double *shares, struct tandem_error *error)
{
    struct tnd_llama_shard *shard = model->shard;
    const size_t layer = sizeof(model->layers[0]);
    LLAMA_TRY(check_shares(shares, shard->count, error));
    memcpy(model->layers, whole->layers, (size_t)whole->hparams.layers * layer);
    shard->division = division;
    shard->all_kv_heads = whole->hparams.kv_heads;
    for (int i = 0; i < shard->count; i++) {
        shard->peers[i] = (struct tnd_llama_peer){shard, i};
    }
    if (division == TANDEM_DIVIDE_LAYERS) {
        tnd_llama_find_layers(whole, shares, shard);
        return TANDEM_OK;
    }
    find_ranges(whole, shares, has_whole_experts, shard);
    return divide(model, whole, error);
}

/* `tell`: if set, copies are only reported to it (tnd_llama_shard_reads). */
static enum tandem_status shard_new(const tandem_model *whole, tandem_communicator *communicator,
                                    enum tandem_division division, bool has_whole_experts,
                                    const double *shares, tnd_llama_reads_fn tell, void *tell_user,
                                    tandem_model **out_model, struct tandem_error *error)
{
    LLAMA_TRY(check_division(whole, division, error));
    const int count = tandem_communicator_count(communicator);
    tandem_model *model = calloc(1, sizeof(*model));
    struct tnd_llama_shard *shard = calloc(1, sizeof(*shard));
    double *equal = calloc((size_t)count, sizeof(equal[0]));
    enum tandem_status status = tnd_llama_fail(error, TANDEM_E_MEMORY, "cluster", count, 0,
                                               "llama: no memory for a part of a model");
    if (model == NULL || shard == NULL || equal == NULL) {
        free(model);
        free(shard);
        free(equal);
        return status;
    }
    *model = *whole; /* undivided tensors are shared */
    model->own_source = NULL;
    model->context = NULL;
    model->nextn = NULL; /* owned by the whole model; several ranks do not draft */
    model->shard = shard;
    model->layers = calloc((size_t)whole->hparams.layers, sizeof(model->layers[0]));
    shard->tell = tell;
    shard->tell_user = tell_user;
    shard->communicator = communicator;
    shard->rank = tandem_communicator_rank(communicator);
    shard->count = count;
    shard->logit_bytes = calloc((size_t)count, sizeof(shard->logit_bytes[0]));
    shard->layers = calloc((size_t)count, sizeof(shard->layers[0]));
    shard->heads = calloc((size_t)count, sizeof(shard->heads[0]));
    shard->peers = calloc((size_t)count, sizeof(shard->peers[0]));
    for (int i = 0; i < count; i++) {
        equal[i] = shares != NULL ? shares[i] : 1;
    }
    if (model->layers != NULL && shard->logit_bytes != NULL && shard->layers != NULL &&
        shard->heads != NULL && shard->peers != NULL) {
        status = tandem_context_new(NULL, &model->context, error);
    }
    status = status == TANDEM_OK
                 ? divide_as(division, model, whole, has_whole_experts, equal, error)
                 : status;
    free(equal);
    if (status != TANDEM_OK) {
        tandem_model_free(model);
        return status;
    }
    *out_model = model;
    return TANDEM_OK;
}

enum tandem_status tnd_llama_shard_new(const tandem_model *whole, tandem_communicator *communicator,
                                       enum tandem_division division, bool has_whole_experts,
                                       const double *shares, tandem_model **out_model,
                                       struct tandem_error *error)
{
    return shard_new(whole, communicator, division, has_whole_experts, shares, NULL, NULL,
                     out_model, error);
}

/* ---- the bytes that a rank reads ---- */

static void tell_tensor(const tandem_model *part, const tandem_tensor *tensor)
{
    if (tensor != NULL) {
        const size_t bytes = tandem_tensor_bytes(tensor);
        part->shard->tell(part->shard->tell_user, tandem_tensor_data(tensor), bytes, bytes, 1);
    }
}

/* Reports weights outside of layers: the embedding's on the rank of the first layer, the
 * classifier's on its own rank. */
static void tell_ends(const tandem_model *part)
{
    const struct tnd_llama_shard *shard = part->shard;
    const struct tnd_llama_range own = tnd_llama_own_layers(part);
    const bool by_layers = tnd_llama_by_layers(part);
    const bool is_first = !by_layers || (shard->before < 0 && own.end > own.begin);
    const bool is_head = !by_layers || shard->rank == shard->head;
    const tandem_tensor *const first[] = {part->token_embedding, part->positions, part->token_types,
                                          part->embedding_norm, part->embedding_norm_b};
    const tandem_tensor *const head[] = {part->output_norm, part->output_norm_b, part->output,
                                         part->output_b};
    for (size_t i = 0; is_first && i < sizeof(first) / sizeof(first[0]); i++) {
        tell_tensor(part, first[i]);
    }
    for (size_t i = 0; is_head && i < sizeof(head) / sizeof(head[0]); i++) {
        tell_tensor(part, head[i]);
    }
    tell_tensor(part, part->rope_factors);
    tell_tensor(part, part->rope_long);
}

static enum tandem_status tell_reads(const tandem_model *whole,
                                     const struct tandem_session_options *options,
                                     enum tandem_division division, const double *shares,
                                     tnd_llama_reads_fn tell, void *user,
                                     struct tandem_error *error)
{
    enum { TENSORS = sizeof(struct tnd_llama_layer) / sizeof(tandem_tensor *) };
    tandem_model *part;
    LLAMA_TRY(shard_new(whole, options->communicator, division, options->has_whole_experts, shares,
                        tell, user, &part, error));
    const struct tnd_llama_range own = tnd_llama_own_layers(part);
    tandem_tensor *const *all = (tandem_tensor *const *)(const void *)part->layers;
    const bool takes_part = tnd_llama_takes_part(part);
    for (int64_t i = own.begin * TENSORS; takes_part && i < own.end * TENSORS; i++) {
        tell_tensor(part, all[i]);
    }
    if (takes_part) {
        tell_ends(part);
    }
    tandem_model_free(part);
    return TANDEM_OK;
}

enum tandem_status tnd_llama_shard_reads(const tandem_model *whole,
                                         const struct tandem_session_options *options,
                                         tnd_llama_reads_fn tell, void *user,
                                         struct tandem_error *error)
{
    const bool is_mixed = options->division == TANDEM_DIVIDE_MIXED;
    const double *of_layers =
        is_mixed && options->layer_shares != NULL ? options->layer_shares : options->shares;
    struct tandem_source_tensor tensor;
    for (int i = 0; tandem_source_tensor_at(whole->source, i, &tensor); i++) {
        tell(user, tensor.data,
             tensor.bytes < TND_LLAMA_COMPARED ? tensor.bytes : TND_LLAMA_COMPARED, 0, 1);
    }
    if (is_mixed || options->division == TANDEM_DIVIDE_ROWS) {
        LLAMA_TRY(
            tell_reads(whole, options, TANDEM_DIVIDE_ROWS, options->shares, tell, user, error));
    }
    return is_mixed || options->division == TANDEM_DIVIDE_LAYERS
               ? tell_reads(whole, options, TANDEM_DIVIDE_LAYERS, of_layers, tell, user, error)
               : TANDEM_OK;
}

void tnd_llama_shard_free(struct tnd_llama_shard *shard)
{
    if (shard != NULL) {
        free(shard->logit_bytes);
        free(shard->layers);
        free(shard->heads);
        free(shard->peers);
        free(shard);
    }
}

bool tnd_llama_takes_part(const tandem_model *model)
{
    return model->shard == NULL || !model->shard->is_alone || model->shard->rank == 0;
}

bool tnd_llama_by_rows(const tandem_model *model)
{
    return model->shard != NULL && model->shard->division == TANDEM_DIVIDE_ROWS &&
           !model->shard->is_alone;
}

bool tnd_llama_by_layers(const tandem_model *model)
{
    return model->shard != NULL && model->shard->division == TANDEM_DIVIDE_LAYERS;
}

struct tnd_llama_range tnd_llama_own_layers(const tandem_model *model)
{
    return model->shard != NULL ? model->shard->layers[model->shard->rank]
                                : (struct tnd_llama_range){0, model->hparams.layers};
}

/* ---- nodes ---- */

static enum tandem_status sum_node(void *user, const tandem_tensor *node, int64_t begin,
                                   int64_t end)
{
    const struct tnd_llama_shard *shard = user;
    const size_t bytes = tandem_tensor_bytes(node);
    LLAMA_ASSERT(begin == 0 && end == 1);
    (void)begin;
    (void)end;
    memcpy(tandem_tensor_data(node), tandem_tensor_data(tandem_tensor_src(node, 0)), bytes);
    return tandem_communicator_all_reduce(shard->communicator, tandem_tensor_data(node),
                                          bytes / sizeof(float), NULL);
}

tandem_tensor *tnd_llama_rank_node(tandem_context *context, tandem_tensor *y, int64_t n,
                                   tandem_custom_fn fn, const void *user, const char *name)
{
    if (y == NULL) {
        return NULL;
    }
    const int64_t ne[] = {n, tandem_tensor_ne(y)[1]};
    return tandem_tensor_set_name(
        tandem_custom(context, 2, ne, &y, 1, 1, fn, (void *)(uintptr_t)user), name);
}

tandem_tensor *tnd_llama_sum_ranks(const tandem_model *model, tandem_context *context,
                                   tandem_tensor *y)
{
    if (!tnd_llama_by_rows(model) || y == NULL) {
        return y;
    }
    const size_t bytes = (size_t)tandem_tensor_elements(y) * sizeof(float);
    (void)tandem_communicator_reserve(model->shard->communicator, bytes, NULL);
    return tnd_llama_rank_node(context, y, tandem_tensor_ne(y)[0], sum_node, model->shard, "sum");
}

tandem_tensor *tnd_llama_zeros(tandem_context *context, int64_t n, int64_t m)
{
    const int64_t ne[] = {n, m};
    tandem_tensor *zeros = tandem_tensor_new(context, TANDEM_TYPE_F32, 2, ne);
    if (zeros != NULL) {
        memset(tandem_tensor_data(zeros), 0, tandem_tensor_bytes(zeros));
    }
    return zeros;
}
