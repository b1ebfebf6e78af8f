/* SPDX-License-Identifier: MIT
 * Fused attention: keys and values pass once, a tile at a time, by the queries that share a KV
 * head; each query keeps its running maximum, sum and weighted values (online soft_max, Milakov and
 * Gimelshein 2018). This file divides the work among workers; attention_panels.c and, for few
 * queries, attention_rows.c compute it. */
#include "backends/cpu/attention/attention_parts.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

/* Least queries of a KV head (of more than one token) for which panels are faster. Decided by the
 * node, not by the worker's share, so that results do not depend on the threads. */
enum { PANEL_ROWS = 16 };

/* ---- operands ---- */

void tnd_attention_convert(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *a,
                           int64_t t, int64_t kv_head, float *y)
{
    kernels->dequantize[a->type](tnd_row_at(a, t, kv_head, 0), y, a->ne[0]);
}

const int32_t *tnd_attention_orders(const struct tandem_tensor *node)
{
    const struct tandem_tensor *mask = tnd_attention_mask_of(node);
    return mask != NULL && mask->type == TANDEM_TYPE_I32 ? mask->data : NULL;
}

int32_t tnd_attention_first(const struct tandem_tensor *node, int32_t last)
{
    const int64_t window = node->params.attention.window;
    return window > (int64_t)last - INT32_MIN ? INT32_MIN : (int32_t)(last - window + 1);
}

const float *tnd_attention_mask(const struct tandem_tensor *node, int64_t m)
{
    const struct tandem_tensor *mask = tnd_attention_mask_of(node);
    return mask == NULL || mask->type == TANDEM_TYPE_I32
               ? NULL
               : (const float *)(void *)tnd_row_at(mask, m, 0, 0);
}

/* ---- shares ---- */

size_t tnd_cpu_attention_scratch(const struct tandem_tensor *node)
{
    const size_t rows = tnd_attend_rows_scratch(node);
    const size_t panels = tnd_attend_panels_scratch(node);
    return rows > panels ? rows : panels;
}

/* How the work of few queries is divided into shares: tokens, chunks of visible keys, KV heads,
 * rows of a token. */
struct few {
    int64_t group, kv_heads;
    int64_t row_step, row_parts, head_step, head_parts, chunks;
};

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

static int64_t parts_of(int64_t n, int64_t step)
{
    return (n + step - 1) / step;
}

/* Divides the work of few queries. If chunks are divided too, a share has adjacent KV heads as long
 * as that leaves a few shares for each worker. */
static struct few cut_few(const struct tnd_attention *attention, int64_t kv_heads, int workers)
{
    struct few few = {.group = attention->group, .kv_heads = kv_heads};
    const int64_t tokens = attention->node->ne[2];
    few.chunks = attention->parts != NULL ? tnd_attend_chunks(attention->node) : 1;
    few.row_step = clamp(tokens * few.group * kv_heads * few.chunks / workers, 1,
                         few.group < TND_FEW_ROWS ? few.group : TND_FEW_ROWS);
    few.row_parts = parts_of(few.group, few.row_step);
    const int64_t shares = tokens * few.row_parts * kv_heads * few.chunks;
    few.head_step = clamp(workers > 1 ? shares / (4 * (int64_t)workers) : TND_ROW_HEADS, 1,
                          kv_heads < TND_ROW_HEADS ? kv_heads : TND_ROW_HEADS);
    few.head_parts = parts_of(kv_heads, few.head_step);
    return few;
}

static void run_few(const struct tnd_attention *attention, const struct few *few, int64_t i)
{
    const int64_t first = i % few->row_parts * few->row_step;
    const int64_t kv_head = i / few->row_parts % few->head_parts * few->head_step;
    const int64_t chunk = i / few->row_parts / few->head_parts % few->chunks;
    const int64_t token = i / few->row_parts / few->head_parts / few->chunks;
    const int64_t n = few->group - first;
    const int64_t n_heads = few->kv_heads - kv_head;
    const struct tnd_attention_rows rows = {
        .kv_head = kv_head,
        .first = token * few->group + first,
        .chunk = chunk,
        .n_chunks = attention->parts != NULL ? 1 : tnd_attend_chunks(attention->node),
        .n_heads = (int)(n_heads < few->head_step ? n_heads : few->head_step),
        .n = (int)(n < few->row_step ? n : few->row_step)};
    tnd_attend_rows(attention, &rows);
}

static void run_rows(const struct tnd_attention *attention, int64_t rows, int64_t kv_heads,
                     struct tandem_worker *worker)
{
    const struct few few = cut_few(attention, kv_heads, worker->count);
    const int64_t shares = attention->node->ne[2] * few.row_parts * few.head_parts * few.chunks;
    int64_t begin, end;
    while (worker->next(worker, shares, 1, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            run_few(attention, &few, i);
        }
    }
    if (attention->parts == NULL) {
        return;
    }
    worker->barrier(worker);
    while (worker->next(worker, rows * kv_heads, 1, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            tnd_attend_join(attention, i / rows, i % rows);
        }
    }
}

/* The i-th share of the work. The last panels of each KV head come first: in a prompt they see the
 * most keys, and the short ones balance the end. KV heads follow one after the other, so that their
 * keys stay in the cache. */
static struct tnd_query_panels share_of(int64_t i, int64_t panels, int64_t step)
{
    const int64_t shares = (panels + step - 1) / step;
    const int64_t first = (shares - 1 - i % shares) * step;
    TND_ASSERT(0 <= i && 0 <= first && first < panels);
    return (struct tnd_query_panels){i / shares, first,
                                     (int)(panels - first < step ? panels - first : step)};
}

/* Shares of panels whose queries are far apart: a share is about one token's queries of some
 * adjacent KV heads. */
struct apart {
    int64_t panels, kv_heads;
    int64_t n_rows, n_heads;       /* most of a share */
    int64_t row_parts, head_parts; /* parts of a panel */
    int64_t n;                     /* number of shares */
};

static struct apart split_apart(const struct tnd_attention *attention, int64_t panels,
                                int64_t kv_heads, int workers)
{
    struct apart apart = {.panels = panels, .kv_heads = kv_heads, .n_rows = attention->group};
    const int64_t queries = attention->kernels->attention.queries;
    const int64_t most = kv_heads < TND_ROW_HEADS ? kv_heads : TND_ROW_HEADS;
    apart.n_rows = apart.n_rows < queries ? apart.n_rows : queries;
    apart.row_parts = (queries - 1) / apart.n_rows + 1;
    /* a few shares for each worker, limited by the heads that fit into the scratch memory */
    apart.n_heads = panels * apart.row_parts * kv_heads / (4 * (int64_t)workers);
    apart.n_heads = apart.n_heads < 1 ? 1 : apart.n_heads > most ? most : apart.n_heads;
    apart.head_parts = (kv_heads - 1) / apart.n_heads + 1;
    const bool is_any = tnd_attention_orders(attention->node) != NULL;
    apart.n = is_any ? panels * apart.row_parts * apart.head_parts : 0;
    return apart;
}

static void run_apart(const struct tnd_attention *attention, const struct apart *apart, int64_t i)
{
    const int64_t queries = attention->kernels->attention.queries;
    const int64_t panel = i / apart->head_parts / apart->row_parts;
    const int64_t first = i / apart->head_parts % apart->row_parts * apart->n_rows;
    const int64_t kv_head = i % apart->head_parts * apart->n_heads;
    const int64_t all = attention->node->ne[2] * attention->group - panel * queries;
    const int64_t rest = (all < queries ? all : queries) - first;
    const int64_t heads = apart->kv_heads - kv_head;
    const int64_t begin = panel * queries + first;
    const int64_t end = begin + (rest < apart->n_rows ? rest : apart->n_rows);
    if (rest <= 0 || !tnd_attention_is_far_apart(attention, panel)) {
        return;
    }
    struct tnd_attention_rows rows = {.kv_head = kv_head,
                                      .first = begin,
                                      .n_chunks = tnd_attend_chunks(attention->node),
                                      .n_heads =
                                          (int)(heads < apart->n_heads ? heads : apart->n_heads)};
    for (; rows.first < end; rows.first += rows.n) { /* one token at a time */
        const int64_t next = (rows.first / attention->group + 1) * attention->group;
        rows.n = (int)((next < end ? next : end) - rows.first);
        tnd_attend_rows(attention, &rows);
    }
}

static void run_panels(const struct tnd_attention *attention, int64_t rows, int64_t kv_heads,
                       struct tandem_worker *worker)
{
    const int64_t panels = (rows - 1) / attention->kernels->attention.queries + 1;
    const struct apart apart = split_apart(attention, panels, kv_heads, worker->count);
    /* Keys are converted once per share, so shares are as large as keeps all workers busy to the
     * end. */
    int64_t step = panels * kv_heads / (4 * (int64_t)worker->count);
    int64_t begin, end;
    step = step < 1 ? 1 : step > TND_QUERY_PANELS ? TND_QUERY_PANELS : step;
    const int64_t shares = (panels + step - 1) / step * kv_heads;
    while (worker->next(worker, shares + apart.n, 1, &begin, &end)) {
        for (int64_t i = begin; i < end && i < shares; i++) {
            /* prefetch guess: each of the other workers takes one share meanwhile */
            const int64_t guess = i + worker->count < shares ? i + worker->count : i;
            const struct tnd_query_panels now = share_of(i, panels, step);
            const struct tnd_query_panels next = share_of(guess, panels, step);
            tnd_attend_panels(attention, &now, &next);
        }
        for (int64_t i = begin > shares ? begin : shares; i < end; i++) {
            run_apart(attention, &apart, i - shares);
        }
    }
}

static bool is_few(const struct tandem_tensor *node)
{
    const int64_t kv_heads = node->src[1]->ne[2];
    const int64_t rows = kv_heads > 0 ? node->ne[2] * (node->ne[1] / kv_heads) : 0;
    /* without keys all scores are 0 */
    return rows < PANEL_ROWS || node->ne[2] == 1 || node->src[1]->ne[0] == 0;
}

size_t tnd_cpu_attention_workspace(const struct tandem_tensor *node)
{
    const size_t rows = (size_t)(node->ne[1] * node->ne[2]);
    const int64_t chunks = tnd_attend_chunks(node);
    return is_few(node) && chunks > 1 ? rows * (size_t)chunks * tnd_attend_part_bytes(node) : 0;
}

static enum tandem_status run(const struct tnd_cpu_kernels *kernels,
                              const struct tandem_tensor *node, void *parts,
                              struct tandem_worker *worker)
{
    const int64_t kv_heads = node->src[1]->ne[2];
    TND_ASSERT(kv_heads > 0 && node->ne[1] % kv_heads == 0);
    const size_t scratch = tnd_cpu_attention_scratch(node);
    if (worker->scratch_bytes < scratch) {
        return tnd_error_set(worker->error, TANDEM_E_ARGUMENT, node->name,
                             (int64_t)worker->scratch_bytes, (int64_t)scratch,
                             "cpu attention: %zu bytes of scratch, needs %zu",
                             worker->scratch_bytes, scratch);
    }
    if (tandem_tensor_elements(node) == 0) {
        return TANDEM_OK;
    }
    const struct tnd_attention attention = {.kernels = kernels,
                                            .node = node,
                                            .group = node->ne[1] / kv_heads,
                                            .scratch = worker->scratch,
                                            .parts = worker->count > 1 ? parts : NULL};
    const int64_t rows = node->ne[2] * attention.group; /* of one KV head */
    if (is_few(node)) {
        run_rows(&attention, rows, kv_heads, worker);
    } else {
        run_panels(&attention, rows, kv_heads, worker);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_cpu_attention(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, struct tandem_worker *worker)
{
    return run(kernels, node, NULL, worker);
}

enum tandem_status tnd_cpu_attention_split(const struct tnd_cpu_kernels *kernels,
                                           const struct tandem_work *work,
                                           struct tandem_worker *worker)
{
    const bool has_room = work->workspace != NULL &&
                          work->workspace_bytes >= tnd_cpu_attention_workspace(work->node) &&
                          tnd_cpu_attention_workspace(work->node) > 0;
    return run(kernels, work->node, has_room ? work->workspace : NULL, worker);
}
