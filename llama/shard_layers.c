/* SPDX-License-Identifier: MIT
 * Division by layers, a pipeline (Huang et al. 2019, arXiv:1811.06965): each rank has some adjacent
 * whole layers. The first rank looks up the embedding; each sends the state {dim, M} to the next. A
 * batch is divided into micro-batches: while a rank computes one, the rank before it computes the
 * next one.
 *
 * Rank 0 samples, so it has the classifier: a state of dim values is sent to it instead of a logit
 * per token of the vocabulary. If rank 0 has no layers, the last rank has the classifier.
 *
 * To avoid deadlock, no rank waits for the classifier before it has sent all micro-batches:
 * forward.c puts the messages of a graph in that order. */
#include <string.h>

#include "llama/llama_error.h"
#include "llama/model.h"
#include "llama/shard.h"

void tnd_llama_find_layers(const tandem_model *whole, const double *shares,
                           struct tnd_llama_shard *shard)
{
    const double n = (double)whole->hparams.layers;
    double all = 0, before = 0;
    int64_t begin = 0;
    shard->before = shard->behind = -1;
    for (int i = 0; i < shard->count; i++) {
        all += shares[i];
    }
    for (int i = 0; i < shard->count; i++) {
        before += shares[i];
        const int64_t end = (int64_t)(n * before / all + 0.5);
        const bool has_any = end > begin;
        shard->layers[i] =
            has_any ? (struct tnd_llama_range){begin, end}
                    : (struct tnd_llama_range){whole->hparams.layers, whole->hparams.layers};
        shard->last = has_any ? i : shard->last;
        shard->before = has_any && i < shard->rank ? i : shard->before;
        shard->behind = has_any && i > shard->rank && shard->behind < 0 ? i : shard->behind;
        begin = end;
    }
    shard->head = shard->layers[0].begin < shard->layers[0].end ? 0 : shard->last;
    shard->kv_heads = (struct tnd_llama_range){0, whole->hparams.kv_heads};
}

int tnd_llama_layer_ranks(const struct tnd_llama_shard *shard)
{
    int n = 0;
    for (int i = 0; i < shard->count; i++) {
        n += shard->layers[i].end > shard->layers[i].begin;
    }
    return n;
}

int tnd_llama_layers_cut(const struct tnd_llama_shard *shard, int64_t m, int wanted)
{
    int64_t n = wanted > 0 ? wanted : m / TANDEM_MICRO_BATCH_TOKENS;
    n = n < m ? n : m;
    n = n < TND_LLAMA_MICRO_BATCHES ? n : TND_LLAMA_MICRO_BATCHES;
    return tnd_llama_layer_ranks(shard) < 2 || n < 1 ? 1 : (int)n;
}

/* ---- messages ---- */

/* A rank waits as long as the ranks before it compute: only one that gives no sign of life counts
 * as lost. */
static enum tandem_status exchange(const struct tnd_llama_peer *peer, bool is_sent,
                                   const tandem_tensor *x)
{
    tandem_communicator *communicator = peer->shard->communicator;
    const double limit_s = tandem_communicator_limit(communicator);
    const size_t bytes = tandem_tensor_bytes(x);
    tandem_communicator_set_limit(communicator, limit_s > 0 ? -limit_s : limit_s);
    const enum tandem_status status =
        is_sent
            ? tandem_communicator_post(communicator, peer->rank, tandem_tensor_data(x), bytes, NULL)
            : tandem_communicator_receive(communicator, peer->rank, tandem_tensor_data(x), bytes,
                                          NULL);
    tandem_communicator_set_limit(communicator, limit_s);
    return status;
}

static enum tandem_status receive_node(void *user, const tandem_tensor *node, int64_t begin,
                                       int64_t end)
{
    LLAMA_ASSERT(begin == 0 && end == 1);
    (void)begin;
    (void)end;
    return exchange(user, false, node);
}

static enum tandem_status send_node(void *user, const tandem_tensor *node, int64_t begin,
                                    int64_t end)
{
    LLAMA_ASSERT(begin == 0 && end == 1);
    (void)begin;
    (void)end;
    *(float *)tandem_tensor_data(node) = 0;
    return exchange(user, true, tandem_tensor_src(node, 0));
}

/* A single item, so that only the caller's thread communicates. */
tandem_tensor *tnd_llama_receive(const tandem_model *model, tandem_context *context, int rank,
                                 int64_t n, int64_t m, tandem_tensor **io_after)
{
    const int64_t ne[] = {n, m};
    *io_after = tandem_tensor_set_name(
        tandem_custom(context, 2, ne, io_after, 1, 1, receive_node, &model->shard->peers[rank]),
        "receive");
    return *io_after;
}

tandem_tensor *tnd_llama_send(const tandem_model *model, tandem_context *context, int rank,
                              tandem_tensor *x, tandem_tensor **io_after)
{
    const int64_t one = 1;
    tandem_tensor *src[] = {x, *io_after};
    *io_after = tandem_tensor_set_name(
        tandem_custom(context, 1, &one, src, 2, 1, send_node, &model->shard->peers[rank]), "send");
    return *io_after;
}
