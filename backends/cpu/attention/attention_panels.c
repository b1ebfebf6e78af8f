/* SPDX-License-Identifier: MIT
 * Attention of many queries: several panels (attention_panel.h) process the tiles of keys and
 * values together. A tile is converted once for all of them. Of a tile on the diagonal a panel
 * computes only the keys that it sees, of one after it nothing. */
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention_parts.h"

enum {
    /* Queries whose positions are farther apart are assumed to belong to different texts, which
     * have few keys in common: they are computed one by one. */
    FAR_APART = 256,
    SOON_MAX = 96,    /* cache lines that are prefetched while a panel processes a tile */
    LINE = 16,        /* floats in a cache line */
    WORDS_HEAD = 256, /* longest head for which words are more exact than F16 */
    KEY_STEP =
        4 /* a panel's range of keys is a multiple of this: half of what kernels process at once */
};

/* Iterates over the rows of a KV head, of queries or results (divisions would be slower). */
struct cursor {
    char *token; /* the token's first row of this KV head */
    size_t token_bytes, head_bytes;
    int64_t head, group;
};

struct panel {
    struct tnd_query_panel job;
    int64_t row;    /* the first */
    int begin, end; /* keys of the tile that it needs */
    int n_seen;     /* keys from `begin` on that all of its queries see */
    int32_t first[TND_PANEL_QUERIES_MAX],
        last[TND_PANEL_QUERIES_MAX]; /* positions that each query sees */
    int32_t first_of_any, first_of_all, last_of_any, last_of_all;
    float largest[TND_PANEL_QUERIES_MAX], weight[TND_PANEL_QUERIES_MAX];
    int32_t *query_words;
    float *query_steps;
};

struct run {
    const struct tnd_attention *a;
    int64_t kv_head;
    const int32_t *orders; /* of the keys, or NULL */
    struct panel panels[TND_QUERY_PANELS];
    int n;
    /* rows to be prefetched: results of these panels, then queries of the next ones */
    struct cursor results, queries;
    int64_t n_results, n_queries;
    const void *soon[SOON_MAX]; /* cache lines of the next of these rows */
    /* scratch */
    float *keys;          /* {TND_KEY_BLOCK, TND_KEYS, blocks of the head} */
    float *values;        /* {value, TND_KEYS} */
    float *scores;        /* {TND_PANEL_QUERIES_MAX, TND_KEYS} */
    float *mask;          /* {TND_PANEL_QUERIES_MAX, TND_KEYS} */
    float *row;           /* {the longer of head and value} */
    bool is_words;        /* the arrays below are used too, and keys are {padded head, TND_KEYS} */
    int32_t *key_words;   /* {pairs of the padded head, TND_KEYS} */
    int32_t *value_words; /* {value, TND_KEYS / 2} */
    float *key_steps, *value_steps;
    float *weights; /* {TND_PANEL_QUERIES_MAX, TND_KEYS} */
};

/* Whether to compute with words: only keys and values that were rounded when they were stored. */
static bool meets_words(const struct tnd_attention *a)
{
    const struct tandem_tensor *k = a->node->src[1];
    return a->kernels->attention.words.attend != NULL && k->type != TANDEM_TYPE_F32 &&
           a->node->src[2]->type != TANDEM_TYPE_F32 && k->ne[0] <= WORDS_HEAD;
}

static size_t key_blocks(const struct tandem_tensor *node)
{
    return ((size_t)node->src[1]->ne[0] + TND_KEY_BLOCK - 1) / TND_KEY_BLOCK;
}

size_t tnd_attend_panels_scratch(const struct tandem_tensor *node)
{
    const size_t key = key_blocks(node) * TND_KEY_BLOCK;
    const size_t value = tnd_attention_padded(node->src[2]->ne[0]);
    const size_t rows = TND_QUERY_PANELS * TND_PANEL_QUERIES_MAX;
    return (TND_KEYS * (key + value + 2 * TND_PANEL_QUERIES_MAX) + (key > value ? key : value) +
            rows * (key + value) +
            /* words */
            TND_KEYS * ((key + value + 4) / 2 + TND_PANEL_QUERIES_MAX) + rows * (key / 2 + 1)) *
           sizeof(float);
}

static void lay_out(struct run *run)
{
    const struct tandem_tensor *node = run->a->node;
    const size_t key = key_blocks(node) * TND_KEY_BLOCK;
    const size_t value = tnd_attention_padded(node->src[2]->ne[0]);
    run->keys = run->a->scratch;
    run->values = run->keys + TND_KEYS * key;
    run->scores = run->values + TND_KEYS * value;
    run->mask = run->scores + TND_KEYS * TND_PANEL_QUERIES_MAX;
    run->row = run->mask + TND_KEYS * TND_PANEL_QUERIES_MAX;
    float *rest = run->row + (key > value ? key : value);
    for (int s = 0; s < TND_QUERY_PANELS; s++) {
        run->panels[s].job.queries = rest;
        run->panels[s].job.sums = rest + TND_PANEL_QUERIES_MAX * key;
        rest += TND_PANEL_QUERIES_MAX * (key + value);
    }
    run->is_words = meets_words(run->a);
    run->key_words = (int32_t *)(void *)rest;
    run->value_words = run->key_words + TND_KEYS * key / 2;
    run->key_steps = (float *)(void *)(run->value_words + TND_KEYS * value / 2);
    run->value_steps = run->key_steps + TND_KEYS;
    run->weights = run->value_steps + TND_KEYS;
    rest = run->weights + TND_KEYS * TND_PANEL_QUERIES_MAX;
    for (int s = 0; s < TND_QUERY_PANELS && run->is_words; s++) {
        run->panels[s].query_words = (int32_t *)(void *)rest;
        run->panels[s].query_steps = rest + TND_PANEL_QUERIES_MAX * key / 2;
        rest = run->panels[s].query_steps + TND_PANEL_QUERIES_MAX;
    }
}

/* ---- rows ---- */

static struct cursor queries_at(const struct tnd_attention *a, int64_t kv_head, int64_t row)
{
    const struct tandem_tensor *q = a->node->src[0];
    return (struct cursor){tnd_row_at(q, row / a->group, kv_head * a->group, 0), q->nb[1], q->nb[2],
                           row % a->group, a->group};
}

static struct cursor results_at(const struct tnd_attention *a, int64_t kv_head, int64_t row)
{
    const struct tandem_tensor *y = a->node;
    return (struct cursor){tnd_row_at(y, kv_head * a->group, row / a->group, 0), y->nb[2], y->nb[1],
                           row % a->group, a->group};
}

static float *next_row(struct cursor *cursor)
{
    char *row = cursor->token + (size_t)cursor->head * cursor->head_bytes;
    if (++cursor->head == cursor->group) {
        cursor->head = 0;
        cursor->token += cursor->token_bytes;
    }
    return (float *)(void *)row;
}

/* ---- panels ---- */

/* Sets the positions that each query sees, and those that any and all of them see. */
static void set_places(const struct run *run, struct panel *panel)
{
    const struct tandem_tensor *node = run->a->node;
    const int32_t *token = run->orders + node->src[1]->ne[1] + panel->row / run->a->group;
    int64_t end = run->a->group - panel->row % run->a->group; /* end of the token's rows */
    panel->last_of_any = panel->last_of_all = *token;
    for (int64_t r = 0; r < TND_PANEL_QUERIES_MAX; token++, end += run->a->group) {
        const int32_t place = *token;
        const int32_t first = tnd_attention_first(node, place);
        const bool is_last = end >= panel->job.n_queries; /* unused lanes get its values */
        for (; r < TND_PANEL_QUERIES_MAX && (is_last || r < end); r++) {
            panel->last[r] = place;
            panel->first[r] = first;
        }
        panel->last_of_any = place > panel->last_of_any ? place : panel->last_of_any;
        panel->last_of_all = place < panel->last_of_all ? place : panel->last_of_all;
    }
    panel->first_of_any = tnd_attention_first(node, panel->last_of_all);
    panel->first_of_all = tnd_attention_first(node, panel->last_of_any);
}

static int n_queries(const struct tnd_attention *a, int64_t row)
{
    const int64_t rest = a->node->ne[2] * a->group - row;
    const int queries = a->kernels->attention.queries;
    return rest < queries ? (int)rest : queries;
}

/* Sets a panel's rows and what they see. */
static void place_panel(const struct run *run, struct panel *panel, int64_t row)
{
    panel->row = row;
    panel->job.n_queries = n_queries(run->a, row);
    if (run->orders != NULL) {
        set_places(run, panel);
    }
}

static int64_t distance(const int32_t *places, int64_t a, int64_t b)
{
    const int64_t d = (int64_t)places[a] - places[b];
    return d < 0 ? -d : d;
}

bool tnd_attention_is_far_apart(const struct tnd_attention *attention, int64_t panel)
{
    const int32_t *orders = tnd_attention_orders(attention->node);
    const int64_t row = panel * attention->kernels->attention.queries;
    if (orders == NULL) {
        return false;
    }
    const int32_t *places = orders + attention->node->src[1]->ne[1];
    const int64_t last = (row + n_queries(attention, row) - 1) / attention->group;
    int32_t low = places[row / attention->group];
    int32_t high = low;
    for (int64_t m = row / attention->group + 1; m <= last; m++) {
        low = places[m] < low ? places[m] : low;
        high = places[m] > high ? places[m] : high;
    }
    const int64_t m = row / attention->group;
    if (m == last) { /* a panel of a single token: compare it with its neighbours */
        const int64_t n = attention->node->ne[2];
        const bool is_far_before = m == 0 || distance(places, m, m - 1) > FAR_APART;
        return is_far_before && (m + 1 == n || distance(places, m, m + 1) > FAR_APART);
    }
    return (int64_t)high - low > FAR_APART;
}

static void begin_panel(const struct run *run, struct panel *panel)
{
    const struct tandem_tensor *node = run->a->node;
    const struct tnd_attention_kernels *kernels = &run->a->kernels->attention;
    const float *rows[TND_PANEL_QUERIES_MAX];
    struct cursor queries = queries_at(run->a, run->kv_head, panel->row);
    struct tnd_query_panel *job = &panel->job;
    for (int r = 0; r < TND_PANEL_QUERIES_MAX; r++) { /* beyond n_queries: unused lanes */
        panel->largest[r] = -INFINITY;
        panel->weight[r] = 0.0f;
    }
    job->head = node->src[1]->ne[0];
    job->value = node->src[2]->ne[0];
    job->value_stride = (int64_t)tnd_attention_padded(job->value);
    job->largest = panel->largest;
    job->weight = panel->weight;
    job->first = panel->first;
    job->last = panel->last;
    job->scores = run->scores;
    job->is_first = true;
    for (int r = 0; r < job->n_queries; r++) {
        rows[r] = next_row(&queries);
    }
    job->cap = node->params.attention.cap;
    kernels->transpose(rows, job->n_queries, job->head,
                       job->cap > 0.0f ? node->params.attention.scale / job->cap
                                       : node->params.attention.scale,
                       job->queries);
    if (run->is_words) {
        kernels->words.lay_queries(job->queries, job->head, panel->query_words, panel->query_steps);
    }
}

static void finish_panel(const struct run *run, struct panel *panel)
{
    float *rows[TND_PANEL_QUERIES_MAX];
    struct cursor results = results_at(run->a, run->kv_head, panel->row);
    const bool has_sinks = tnd_attention_sinks_of(run->a->node) != NULL;
    if (panel->job.is_first) { /* it has seen no keys */
        memset(panel->job.sums, 0,
               (size_t)(panel->job.n_queries * panel->job.value_stride) * sizeof(float));
    }
    for (int r = 0; r < panel->job.n_queries; r++) {
        if (has_sinks && panel->weight[r] != 0.0f) {
            panel->weight[r] +=
                expf(tnd_attention_sink(run->a, run->kv_head, panel->row + r) - panel->largest[r]);
        }
        rows[r] = next_row(&results);
    }
    run->a->kernels->attention.finish(&panel->job, rows);
}

/* ---- visible keys of a tile ---- */

/* Sets the keys of a tile that a panel needs. `least` and `most`: of the tile's positions. */
static void see_orders(struct panel *panel, const int32_t *orders, int n, int32_t least,
                       int32_t most)
{
    int begin = 0;
    int end = n;
    const bool is_masked = least < panel->first_of_all || most > panel->last_of_all;
    if (is_masked) {
        while (end > 0 &&
               (orders[end - 1] < panel->first_of_any || orders[end - 1] > panel->last_of_any)) {
            end--;
        }
        while (begin < end &&
               (orders[begin] < panel->first_of_any || orders[begin] > panel->last_of_any)) {
            begin++;
        }
        end = (end + KEY_STEP - 1) / KEY_STEP * KEY_STEP;
    }
    panel->begin = begin / KEY_STEP * KEY_STEP;
    panel->end = end < n ? end : n;
    panel->n_seen = is_masked ? 0 : n;
    for (int j = panel->begin; is_masked && j < panel->end && orders[j] >= panel->first_of_all &&
                               orders[j] <= panel->last_of_all;
         j++) {
        panel->n_seen++;
    }
}

/* A panel needs the whole tile if any of its queries sees a key of it. */
static void see_mask(const struct run *run, struct panel *panel, int64_t t, int n)
{
    const int64_t last = (panel->row + panel->job.n_queries - 1) / run->a->group;
    panel->begin = panel->end = panel->n_seen = 0;
    for (int64_t m = panel->row / run->a->group; m <= last && panel->end == 0; m++) {
        const float *mask = tnd_attention_mask(run->a->node, m) + t;
        for (int j = 0; j < n && panel->end == 0; j++) {
            panel->end = mask[j] != -INFINITY ? n : 0;
        }
    }
}

/* Sets the keys of a tile that each panel needs, and the range of keys that any of them needs. */
static void see(struct run *run, int64_t t, int n, int *out_begin, int *out_end)
{
    const int32_t *orders = run->orders != NULL ? run->orders + t : NULL;
    int32_t least = orders != NULL ? orders[0] : 0;
    int32_t most = least;
    for (int j = 1; j < n && orders != NULL; j++) {
        least = orders[j] < least ? orders[j] : least;
        most = orders[j] > most ? orders[j] : most;
    }
    *out_begin = n;
    *out_end = 0;
    for (int s = 0; s < run->n; s++) {
        struct panel *panel = &run->panels[s];
        if (orders != NULL) {
            see_orders(panel, orders, n, least, most);
        } else if (tnd_attention_mask(run->a->node, 0) != NULL) {
            see_mask(run, panel, t, n);
        } else {
            panel->begin = 0;
            panel->end = panel->n_seen = n;
        }
        if (panel->begin < panel->end) {
            *out_begin = panel->begin < *out_begin ? panel->begin : *out_begin;
            *out_end = panel->end > *out_end ? panel->end : *out_end;
        }
    }
}

/* ---- tiles ---- */

/* Converts `n` values, from value i on, of rows t .. t + n_rows - 1 of a KV head to floats. */
static void convert_rows(const struct run *run, const struct tandem_tensor *a, int64_t i, int64_t n,
                         int64_t t, int n_rows, float *y, int64_t stride)
{
    const struct tnd_few_kernels *few = &run->a->kernels->few;
    const bool is_whole = a->type == TANDEM_TYPE_F32 || n % few->whole == 0;
    if (is_whole && few->floats[a->type] != NULL) {
        const char *row = tnd_row_at(a, t, run->kv_head, 0) + tandem_type_row_bytes(a->type, i);
        few->floats[a->type](row, a->nb[1], n_rows, n, y, stride);
        return;
    }
    for (int j = 0; j < n_rows;
         j++) { /* converts whole rows: parts may not consist of whole blocks */
        tnd_attention_convert(run->a->kernels, a, t + j, run->kv_head, run->row);
        memcpy(y + j * stride, run->row + i, (size_t)n * sizeof(float));
        memset(y + j * stride + n, 0, (tnd_attention_padded(n) - (size_t)n) * sizeof(float));
    }
}

/* Converts keys and values t + begin .. t + begin + n - 1 to words. */
static void convert_to_words(const struct run *run, int64_t t, int begin, int n)
{
    const struct tnd_attention_words *words = &run->a->kernels->attention.words;
    const struct tandem_tensor *k = run->a->node->src[1];
    const struct tandem_tensor *v = run->a->node->src[2];
    const int64_t key = (int64_t)tnd_attention_padded(k->ne[0]);
    const int64_t value = (int64_t)tnd_attention_padded(v->ne[0]);
    float *keys = run->keys + begin * key;
    float *values = run->values + begin * value;
    convert_rows(run, k, 0, k->ne[0], t + begin, n, keys, key);
    words->lay_keys(keys, n, key, run->key_words + begin * key / 2, run->key_steps + begin);
    convert_rows(run, v, 0, v->ne[0], t + begin, n, values, value);
    words->lay_values(values, n, value, run->value_words + begin * value / 2,
                      run->value_steps + begin);
}

/* Converts keys and values t + begin .. t + end - 1 to the layout of the kernels. */
static void convert(const struct run *run, int64_t t, int begin, int end)
{
    const struct tandem_tensor *k = run->a->node->src[1];
    const struct tandem_tensor *v = run->a->node->src[2];
    const int64_t stride = (int64_t)tnd_attention_padded(v->ne[0]);
    if (run->is_words) {
        convert_to_words(run, t, begin, end - begin);
        return;
    }
    for (int64_t i = 0; i < k->ne[0]; i += TND_KEY_BLOCK) {
        const int64_t n = k->ne[0] - i < TND_KEY_BLOCK ? k->ne[0] - i : TND_KEY_BLOCK;
        convert_rows(run, k, i, n, t + begin, end - begin,
                     run->keys + i * TND_KEYS + begin * TND_KEY_BLOCK, TND_KEY_BLOCK);
    }
    convert_rows(run, v, 0, v->ne[0], t + begin, end - begin, run->values + begin * stride, stride);
}

/* Adds the next row's cache lines to those to be prefetched. False: there is no room. */
static bool bring_row(struct run *run, struct tnd_query_panel *job, struct cursor *rows, int64_t n)
{
    if (job->n_soon + n / LINE >= SOON_MAX) {
        return false;
    }
    const float *row = next_row(rows);
    for (int64_t i = 0; i < n; i += LINE) {
        run->soon[job->n_soon++] = row + i;
    }
    return true;
}

static int64_t rows_of(const struct tnd_attention *a, const struct tnd_query_panels *panels)
{
    const int64_t queries = a->kernels->attention.queries;
    const int64_t rest = a->node->ne[2] * a->group - panels->first * queries;
    return rest < panels->n * queries ? rest : panels->n * queries;
}

/* Lists what a panel prefetches while it processes a tile: results of these panels, then queries of
 * the next ones. Their rows are too far apart for the hardware prefetcher. (Prefetching keys and
 * values of the next tile gains nothing.) */
static void bring(struct run *run, struct tnd_query_panel *job)
{
    job->soon = run->soon;
    job->n_soon = 0;
    while (run->n_results > 0 && bring_row(run, job, &run->results, job->value)) {
        run->n_results--;
    }
    while (run->n_results == 0 && run->n_queries > 0 &&
           bring_row(run, job, &run->queries, job->head)) {
        run->n_queries--;
    }
}

/* Transposes the mask of a panel's queries into lanes. */
static void transpose_mask(const struct run *run, const struct panel *panel, int64_t t)
{
    const float *rows[TND_PANEL_QUERIES_MAX];
    for (int r = 0; r < panel->job.n_queries; r++) {
        rows[r] = tnd_attention_mask(run->a->node, (panel->row + r) / run->a->group) + t;
    }
    run->a->kernels->attention.transpose(rows, panel->job.n_queries, panel->job.n_keys, 1.0f,
                                         run->mask);
}

static struct tnd_panel_words words_of(const struct run *run, const struct panel *panel)
{
    const int64_t stride = (int64_t)tnd_attention_padded(panel->job.head) / 2;
    return (struct tnd_panel_words){.queries = panel->query_words,
                                    .keys = run->key_words + panel->begin * stride,
                                    .key_stride = stride,
                                    .values = run->value_words +
                                              panel->begin * panel->job.value_stride / 2,
                                    .query_steps = panel->query_steps,
                                    .key_steps = run->key_steps + panel->begin,
                                    .value_steps = run->value_steps + panel->begin,
                                    .weights = run->weights};
}

static void meet(struct run *run, struct panel *panel, int64_t t)
{
    struct tnd_query_panel *job = &panel->job;
    const int64_t first = t + panel->begin;
    job->n_keys = panel->end - panel->begin;
    job->keys = run->keys + panel->begin * TND_KEY_BLOCK;
    job->n_seen = panel->n_seen;
    job->values = run->values + panel->begin * job->value_stride;
    job->mask = NULL;
    job->orders = NULL;
    if (job->n_seen < job->n_keys && run->orders != NULL) {
        job->orders = run->orders + first;
    } else if (job->n_seen < job->n_keys) {
        transpose_mask(run, panel, first);
        job->mask = run->mask;
    }
    bring(run, job);
    if (run->is_words) {
        job->words = words_of(run, panel);
        job->keys = run->keys + panel->begin * 2 * job->words.key_stride;
        run->a->kernels->attention.words.attend(job);
    } else {
        run->a->kernels->attention.attend(job);
    }
    job->is_first = false;
}

void tnd_attend_panels(const struct tnd_attention *attention, const struct tnd_query_panels *panels,
                       const struct tnd_query_panels *next)
{
    const int64_t n_keys = attention->node->src[1]->ne[1];
    const int queries = attention->kernels->attention.queries;
    struct run run;
    run.a = attention;
    run.kv_head = panels->kv_head;
    run.orders = tnd_attention_orders(attention->node);
    run.n = 0;
    run.results = results_at(attention, panels->kv_head, panels->first * queries);
    run.queries = queries_at(attention, next->kv_head, next->first * queries);
    run.n_results = rows_of(attention, panels);
    run.n_queries = rows_of(attention, next);
    lay_out(&run);
    for (int s = 0; s < panels->n; s++) {
        if (!tnd_attention_is_far_apart(attention, panels->first + s)) {
            place_panel(&run, &run.panels[run.n++], (panels->first + s) * queries);
        }
    }
    for (int s = 0; s < run.n; s++) {
        begin_panel(&run, &run.panels[s]);
    }
    for (int64_t t = 0; t < n_keys; t += TND_KEYS) {
        int begin, end;
        see(&run, t, n_keys - t < TND_KEYS ? (int)(n_keys - t) : TND_KEYS, &begin, &end);
        if (begin < end) {
            convert(&run, t, begin, end);
        }
        for (int s = 0; s < run.n; s++) {
            if (run.panels[s].begin < run.panels[s].end) {
                meet(&run, &run.panels[s], t);
            }
        }
    }
    for (int s = 0; s < run.n; s++) {
        finish_panel(&run, &run.panels[s]);
    }
}
