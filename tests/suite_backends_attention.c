/* SPDX-License-Identifier: MIT
 * Attention on the CPU beyond what the list of operations covers: what a query's bits depend on,
 * values that are no number, the error of its exponential. For every instruction set of this
 * machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/ops/cpu_ops.h"
#include "base/cpu.h"
#include "base/rng.h"
#include "ggml-like/eval_ref.h"
#include "base/half.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_cpu_cases.h"

enum { N_LEVELS = 4, HEAD = 32, KV_HEADS = 2, GROUP = 3, HEADS = KV_HEADS * GROUP };

static bool kernels_of(int level, struct tnd_cpu_kernels *out)
{
    static const char *const names[N_LEVELS] = {"scalar", "avx2", "avx512", "neon"};
    tnd_cpu_kernels_for(tnd_cpu_mask(tnd_cpu_features_all(), names[level]), out);
    return strcmp(out->vec.isa, names[level]) == 0;
}

/* Keys, values and queries of one text of T tokens. */
struct text {
    tandem_context *context;
    tandem_tensor *q, *k, *v; /* {HEAD, heads, T} */
    int64_t t;
};

static void begin(struct text *text, int64_t t)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &text->context, NULL), TANDEM_OK);
    text->t = t;
    text->q = tnd_test_leaf(text->context, TANDEM_TYPE_F32, (int64_t[]){HEAD, HEADS, t, 1}, &rng);
    text->k =
        tnd_test_leaf(text->context, TANDEM_TYPE_F32, (int64_t[]){HEAD, KV_HEADS, t, 1}, &rng);
    text->v =
        tnd_test_leaf(text->context, TANDEM_TYPE_F32, (int64_t[]){HEAD, KV_HEADS, t, 1}, &rng);
}

/* Attention of tokens from .. from + m - 1, causal; orders of all tokens times `step`. */
static tandem_tensor *attention(struct text *text, int64_t from, int64_t m, int32_t step)
{
    tandem_context *c = text->context;
    const int64_t n = text->t + m;
    const int64_t ne[] = {HEAD, HEADS, m};
    tandem_tensor *orders = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n);
    for (int64_t i = 0; i < n; i++) {
        ((int32_t *)orders->data)[i] = (int32_t)(i < text->t ? i : from + i - text->t) * step;
    }
    tandem_tensor *q =
        tandem_view(c, text->q, 3, ne, text->q->nb + 1, (size_t)from * text->q->nb[2]);
    return tnd_test_node(c, tandem_attention_ordered(c, tandem_permute(c, q, 0, 2, 1, 3),
                                                     tandem_permute(c, text->k, 0, 2, 1, 3),
                                                     tandem_permute(c, text->v, 0, 2, 1, 3), orders,
                                                     0, 0.25f));
}

static void pieces_of_a_prompt_give_the_bits_of_the_whole(void)
{
    const int64_t cuts[] = {0, 21, 100, 106, 150};
    struct tnd_cpu_kernels kernels;
    for (int level = 0; level < N_LEVELS; level++) {
        if (!kernels_of(level, &kernels)) {
            continue;
        }
        struct text text;
        begin(&text, 150);
        tandem_tensor *whole = attention(&text, 0, 150, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, whole, 2, NULL));
        for (int i = 0; i + 1 < 5; i++) {
            tandem_tensor *piece = attention(&text, cuts[i], cuts[i + 1] - cuts[i], 1);
            CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
            (void)check_ok(tnd_cpu_run_in_turn(&kernels, piece, 3, NULL));
            (void)check_bits(piece->data, (char *)whole->data + (size_t)cuts[i] * whole->nb[2],
                             tandem_tensor_bytes(piece), kernels.vec.isa);
        }
        tandem_context_free(text.context);
    }
}

/* Tokens far apart in their texts go one by one, which rounds otherwise but means the same. */
static void queries_that_go_one_by_one_agree_with_panels(void)
{
    struct tnd_cpu_kernels kernels;
    for (int level = 0; level < N_LEVELS; level++) {
        if (!kernels_of(level, &kernels)) {
            continue;
        }
        struct text text;
        begin(&text, 90);
        tandem_tensor *near = attention(&text, 20, 70, 1);
        tandem_tensor *far = attention(&text, 20, 70, 1000);
        CU_ASSERT_TRUE_FATAL(near != NULL && far != NULL);
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, near, 2, NULL));
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, far, 2, NULL));
        check_nmse(far->data, near->data, tandem_tensor_elements(near), 1e-11, kernels.vec.isa);
        tandem_context_free(text.context);
    }
}

/* Texts of 1 to 64 keys, each in a block of cells of its own, in any order. 17, so that the last
 * token stands alone in a panel of 48 queries. */
enum { TEXTS = 17, BLOCK_OF_CELLS = 64, MANY_KV_HEADS = 6, SPAN = 1 << 20 };

/* The queries of n texts from `first` on, each the last token of its text. */
static tandem_tensor *ask_texts(tandem_context *c, tandem_tensor *q, tandem_tensor *k,
                                tandem_tensor *v, int64_t first, int64_t n)
{
    const int64_t cells = TEXTS * BLOCK_OF_CELLS;
    const int64_t n_orders = cells + n;
    const int64_t ne[] = {HEAD, MANY_KV_HEADS * GROUP, n};
    tandem_tensor *orders = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n_orders);
    int32_t *order = orders->data;
    for (int i = 0; i < TEXTS; i++) {
        const int length = i * 37 % BLOCK_OF_CELLS + 1;
        for (int j = 0; j < BLOCK_OF_CELLS; j++) {
            order[i * 5 % TEXTS * BLOCK_OF_CELLS + j] = j < length ? i * SPAN + j : INT32_MAX;
        }
        if (first <= i && i < first + n) {
            order[cells + i - first] = i * SPAN + length - 1;
        }
    }
    q = tandem_view(c, q, 3, ne, q->nb + 1, (size_t)first * q->nb[2]);
    return tnd_test_node(c, tandem_attention_ordered(c, tandem_permute(c, q, 0, 2, 1, 3),
                                                     tandem_permute(c, k, 0, 2, 1, 3),
                                                     tandem_permute(c, v, 0, 2, 1, 3), orders,
                                                     SPAN / 2, 0.25f));
}

static void check_texts(const struct tnd_cpu_kernels *kernels, enum tandem_type type, int workers)
{
    tandem_context *c;
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const int64_t kv[] = {HEAD, MANY_KV_HEADS, TEXTS * BLOCK_OF_CELLS, 1};
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &c, NULL), TANDEM_OK);
    tandem_tensor *q =
        tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){HEAD, MANY_KV_HEADS * GROUP, TEXTS, 1}, &rng);
    tandem_tensor *k = tnd_test_leaf(c, type, kv, &rng);
    tandem_tensor *v = tnd_test_leaf(c, type, kv, &rng);
    tandem_tensor *all = ask_texts(c, q, k, v, 0, TEXTS);
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    (void)check_ok(tnd_cpu_run_in_turn(kernels, all, workers, NULL));
    for (int64_t i = 0; i < TEXTS; i++) {
        tandem_tensor *one = ask_texts(c, q, k, v, i, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(one);
        (void)check_ok(tnd_cpu_run_in_turn(kernels, one, 1, NULL));
        (void)check_bits(one->data, (char *)all->data + (size_t)i * all->nb[2],
                         tandem_tensor_bytes(one), kernels->vec.isa);
    }
    tandem_context_free(c);
}

static void tokens_of_many_texts_get_the_bits_that_each_gets_alone(void)
{
    const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0,
                                      TANDEM_TYPE_Q4_0};
    struct tnd_cpu_kernels kernels;
    for (int level = 0; level < N_LEVELS; level++) {
        for (int i = 0; i < 4 && kernels_of(level, &kernels); i++) {
            check_texts(&kernels, types[i], 1);
            check_texts(&kernels, types[i], 5);
        }
    }
}

static bool is_spoiled(const tandem_tensor *node, int64_t m, int64_t head)
{
    const float *y =
        (const float *)(const void *)((const char *)node->data + (size_t)m * node->nb[2] +
                                      (size_t)head * node->nb[1]);
    int n_nan = 0;
    for (int i = 0; i < HEAD; i++) {
        n_nan += isnan(y[i]);
    }
    CU_ASSERT_TRUE(n_nan == 0 || n_nan == HEAD);
    return n_nan > 0;
}

static void a_key_that_is_no_number_spoils_those_that_see_it(void)
{
    enum { BAD = 70 }; /* in KV head 1 */
    struct tnd_cpu_kernels kernels;
    for (int level = 0; level < N_LEVELS; level++) {
        if (!kernels_of(level, &kernels)) {
            continue;
        }
        struct text text;
        int wrong = 0;
        begin(&text, 140);
        ((float *)text.k->data)[(BAD * KV_HEADS + 1) * HEAD + 5] = NAN;
        tandem_tensor *node = attention(&text, 0, 140, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(node);
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, node, 2, NULL));
        for (int64_t m = 0; m < 140; m++) {
            for (int64_t head = 0; head < HEADS; head++) {
                wrong += is_spoiled(node, m, head) != (m >= BAD && head >= GROUP);
            }
        }
        check_int(wrong, 0);
        tandem_context_free(text.context);
    }
}

/* Scores of +-3e38 and a mask of the least float: largest scores are subtracted first. */
static void large_scores_and_masks_do_not_overflow(void)
{
    enum { T = 20, M = 20 };
    struct tnd_cpu_kernels kernels;
    for (int level = 0; level < N_LEVELS; level++) {
        if (!kernels_of(level, &kernels)) {
            continue;
        }
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
        tandem_context *c = NULL;
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &c, NULL), TANDEM_OK);
        tandem_tensor *q = tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){1, M, 1, 1}, &rng);
        tandem_tensor *k = tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){1, T, 1, 1}, &rng);
        tandem_tensor *v = tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){8, T, 1, 1}, &rng);
        tandem_tensor *mask = tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){T, M, 1, 1}, &rng);
        for (int64_t i = 0; i < (int64_t)M * T; i++) {
            ((float *)q->data)[i % M] = 1.0f;
            ((float *)k->data)[i % T] = i % T == 3 ? 3e38f : -3e38f;
            ((float *)mask->data)[i] = i / T == 5 ? -3.4028235e38f : 0.0f;
        }
        tandem_tensor *node = tnd_test_node(c, tandem_attention(c, q, k, v, mask, 1.0f));
        CU_ASSERT_PTR_NOT_NULL_FATAL(node);
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, node, 1, NULL));
        for (int64_t m = 0; m < M; m++) { /* all see key 3 alone */
            (void)check_bits((char *)node->data + (size_t)m * node->nb[2],
                             (char *)v->data + 3 * v->nb[1], 8 * sizeof(float), kernels.vec.isa);
        }
        tandem_context_free(c);
    }
}

/* Two keys of head 1: one with score 0, one with score x, and values 0 and 1: sums are e^x. */
static void weights_are_right_to_six_units(void)
{
    enum { STRIDE = 16 };
    struct tnd_rng rng;
    struct tnd_cpu_kernels kernels;
    float keys[2 * TND_KEY_BLOCK] = {0};
    const float values[2 * STRIDE] = {[STRIDE] = 1.0f};
    float queries[TND_PANEL_QUERIES_MAX], scores[2 * TND_PANEL_QUERIES_MAX];
    float largest[TND_PANEL_QUERIES_MAX], weight[TND_PANEL_QUERIES_MAX],
        sums[TND_PANEL_QUERIES_MAX * STRIDE];
    tnd_rng_init(&rng, tnd_test_seed());
    keys[TND_KEY_BLOCK] = 1.0f;
    for (int level = 0; level < N_LEVELS; level++) {
        double worst[2] = {0.0, 0.0}; /* of small weights, of those that count */
        if (!kernels_of(level, &kernels)) {
            continue;
        }
        const int n = kernels.attention.queries;
        struct tnd_query_panel panel = {
            .n_queries = n, .n_keys = 2, .is_first = true, .head = 1, .value = 1};
        panel.queries = queries;
        panel.keys = keys;
        panel.values = values;
        panel.value_stride = STRIDE;
        panel.n_seen = 2;
        panel.scores = scores;
        panel.largest = largest;
        panel.weight = weight;
        panel.sums = sums;
        for (int round = 0; round < 3000 * tnd_effort(); round++) {
            for (int r = 0; r < n; r++) {
                queries[r] = -tnd_rng_float(&rng) * (round % 2 == 0 ? 80.0f : 5.0f);
                largest[r] = -INFINITY;
                weight[r] = 0.0f;
            }
            kernels.attention.attend(&panel);
            for (int r = 0; r < n; r++) {
                const double want = exp((double)queries[r]);
                int exponent;
                frexp(want, &exponent);
                const double error =
                    fabs((double)sums[r * STRIDE] - want) / ldexp(1, exponent - 24);
                worst[round % 2] = error > worst[round % 2] ? error : worst[round % 2];
            }
        }
        CU_ASSERT_TRUE(worst[0] <= 6.0 && worst[1] <= 2.5);
        if (worst[0] > 6.0 || worst[1] > 2.5) {
            printf("\n    weights of %s: %.2f, %.2f units\n", kernels.vec.isa, worst[0], worst[1]);
        }
    }
}

/* ---- a few queries ---- */

struct few_case {
    enum tandem_type type;
    int64_t head, value, group, m, t;
};

/* How queries see keys, in turn. */
enum few_mask { SEES_ALL, SEES_PAST, SEES_WINDOW, SEES_SOME, SEES_NONE, FEW_MASKS };

static tandem_tensor *few_mask(tandem_context *c, const struct few_case *one, enum few_mask kind,
                               struct tnd_test_rng *rng)
{
    if (kind == SEES_ALL) {
        return NULL;
    }
    if (kind == SEES_PAST || kind == SEES_WINDOW) {
        const int64_t n = one->t + one->m;
        tandem_tensor *orders = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n);
        for (int64_t i = 0; i < n; i++) {
            ((int32_t *)orders->data)[i] = (int32_t)(i < one->t ? i : i - one->m);
        }
        return orders;
    }
    tandem_tensor *mask = tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){one->t, one->m, 1, 1}, rng);
    for (int64_t i = 0; i < one->t * one->m;
         i++) { /* whole tiles and whole chunks are unseen, too */
        const int64_t key = i % one->t;
        if (kind == SEES_NONE || key % 3 == 1 || (key >= 64 && key < 192) || key / 256 == 1) {
            ((float *)mask->data)[i] = -INFINITY;
        }
    }
    return mask;
}

static tandem_tensor *few_node(tandem_context *c, const struct few_case *one, enum few_mask kind)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tandem_tensor *q = tnd_test_leaf(
        c, TANDEM_TYPE_F32, (int64_t[]){one->head, KV_HEADS * one->group, one->m, 1}, &rng);
    tandem_tensor *k =
        tnd_test_leaf(c, one->type, (int64_t[]){one->head, KV_HEADS, one->t, 1}, &rng);
    tandem_tensor *v =
        tnd_test_leaf(c, one->type, (int64_t[]){one->value, KV_HEADS, one->t, 1}, &rng);
    tandem_tensor *mask = few_mask(c, one, kind, &rng);
    q = tandem_permute(c, q, 0, 2, 1, 3);
    k = tandem_permute(c, k, 0, 2, 1, 3);
    v = tandem_permute(c, v, 0, 2, 1, 3);
    const bool is_odd = (one->t + one->m + one->group) % 2 != 0; /* caps and sinks take turns */
    const int64_t heads = KV_HEADS * one->group;
    const struct tandem_attention_options options = {
        .size = sizeof(options),
        .scale = 0.3f,
        .cap = is_odd ? 0.5f : 0.0f,
        .mask = mask,
        .window = kind == SEES_WINDOW ? 70 : 0,
        .sinks = one->group % 2 == 0
                     ? tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){heads, 1, 1, 1}, &rng)
                     : NULL};
    return tnd_test_node(c, tandem_attention_with(c, q, k, v, &options));
}

/* Threads share the keys: the bits of one worker that has them all. */
static void check_split(tandem_backend *backend, tandem_tensor *node, const char *what)
{
    const size_t bytes = tandem_tensor_bytes(node);
    const size_t workspace = tnd_backend_workspace(backend, node, TANDEM_TASK_NODE);
    void *whole = malloc(bytes);
    CU_ASSERT_TRUE_FATAL(workspace > 0 && whole != NULL);
    for (int workers = 1; workers <= 3; workers++) {
        struct tnd_test_stage stage = {.backend = backend,
                                       .node = node,
                                       .task = TANDEM_TASK_NODE,
                                       .n_workers = workers,
                                       .workspace = tnd_guarded_alloc(workspace, 64),
                                       .workspace_bytes = workspace};
        tnd_test_spoil(node);
        (void)check_status(tnd_test_run_stage(&stage, NULL), TANDEM_OK, NULL, NULL);
        if (workers == 1) {
            memcpy(whole, node->data, bytes);
        }
        (void)check_bits(node->data, whole, bytes, what);
        tnd_guarded_free(stage.workspace);
    }
    free(whole);
}

static void check_few(tandem_backend *backend, const struct few_case *one, enum few_mask kind)
{
    tandem_context *c = NULL;
    struct tnd_cpu_kernels kernels;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &c, NULL), TANDEM_OK);
    tandem_tensor *node = few_node(c, one, kind);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    const size_t bytes = tandem_tensor_bytes(node);
    const int64_t n = tandem_tensor_elements(node);
    float *want = malloc(bytes);
    float *first = malloc(bytes);
    char what[128];
    snprintf(what, sizeof(what), "%s, head %d, value %d, %d a KV head, %d of %d, mask %d",
             tandem_type_name(one->type), (int)one->head, (int)one->value, (int)one->group,
             (int)one->m, (int)one->t, (int)kind);
    CU_ASSERT_TRUE_FATAL(want != NULL && first != NULL);
    (void)check_ok(tnd_ref_attention(node, NULL));
    memcpy(want, node->data, bytes);
    for (int level = 0; level < N_LEVELS; level++) {
        for (int workers = 1; workers <= 3 && kernels_of(level, &kernels); workers += 2) {
            tnd_test_spoil(node);
            (void)check_ok(tnd_cpu_run_in_turn(&kernels, node, workers, NULL));
            if (workers == 1) {
                (void)check_nmse(node->data, want, n, 1e-11, what);
                memcpy(first, node->data, bytes);
            }
            (void)check_bits(node->data, first, bytes, what);
        }
    }
    if (one->t > TND_FEW_KEYS) {
        check_split(backend, node, what);
    }
    free(want);
    free(first);
    tandem_context_free(c);
}

static void few_queries_match_the_double_reference_however_keys_are_split(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_BF16,
                                             TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q4_0};
    static const int64_t heads[] = {40, 64, 80, 96, 128, 256};
    static const int64_t keys[] = {1, 3, 64, 255, 257, 700};
    struct tandem_backend_options options = {.size = sizeof(options), .n_threads_max = 3};
    tandem_backend *backend = NULL;
    int turn = 0;
    CU_ASSERT_EQUAL_FATAL(tnd_backend_cpu.open(&options, &backend, NULL), TANDEM_OK);
    for (int type = 0; type < 5; type++) {
        for (int64_t group = 1; group <= 50; group += group < 9 ? 1 : group < 17 ? 8 : 33) {
            for (int i = 0; i < 6; i++, turn++) {
                const bool is_fine = heads[i] % tandem_type_block_values(types[type]) == 0;
                const struct few_case one = {.type = types[type],
                                             .head = is_fine ? heads[i] : 32,
                                             .value = is_fine ? heads[(i + 1) % 6] / 32 * 32 : 64,
                                             .group = group,
                                             .m = turn % 7 == 3 && group < 8 ? 2 : 1,
                                             .t = keys[turn * 5 / 3 % 6]};
                check_few(backend, &one, (enum few_mask)(turn % FEW_MASKS));
            }
        }
    }
    tnd_backend_cpu.close(backend);
}

/* Parts that see nothing, or scores that are no number or infinite, come in any order. */
static void parts_of_keys_keep_what_is_no_number(void)
{
    const struct few_case one = {TANDEM_TYPE_F32, 64, 64, 5, 1, 700};
    struct tandem_backend_options options = {.size = sizeof(options), .n_threads_max = 3};
    tandem_backend *backend = NULL;
    CU_ASSERT_EQUAL_FATAL(tnd_backend_cpu.open(&options, &backend, NULL), TANDEM_OK);
    for (int64_t bad = 10; bad < 700; bad += 300) {
        tandem_context *c = NULL;
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &c, NULL), TANDEM_OK);
        tandem_tensor *node = few_node(c, &one, SEES_ALL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(node);
        float *key = (float *)node->src[1]->data + bad * KV_HEADS * 64; /* of KV head 0 */
        const float *y = node->data;
        key[9] = NAN;
        check_split(backend, node, "a key that is no number");
        CU_ASSERT_TRUE(isnan(y[0]) && isnan(y[5 * 64 - 1]));
        CU_ASSERT_TRUE(!isnan(y[5 * 64]) && !isnan(y[10 * 64 - 1]));
        key[9] = 3e38f; /* scores beyond all floats, of both signs */
        for (int64_t i = 0; i < 64; i++) {
            key[64 + i] = 1e36f;
        }
        check_split(backend, node, "an infinite score");
        tandem_context_free(c);
    }
    tnd_backend_cpu.close(backend);
}

/* ---- words of 16 bits ---- */

/* Rows of zeros, rows a thousand times larger or smaller, single large values. */
static void spoil_rows(tandem_tensor *a)
{
    uint16_t *x = a->data;
    for (int64_t j = 0; a->type == TANDEM_TYPE_F16 && j < a->ne[1] * a->ne[2]; j++) {
        uint16_t *row = x + j * a->ne[0];
        for (int64_t i = 0; i < a->ne[0]; i++) {
            const float factor = j % 7 == 1 ? 0.0f : j % 7 == 3 ? 1e-4f : j % 7 == 5 ? 3.0f : 1.0f;
            row[i] = tnd_f32_to_f16(tnd_f16_to_f32(row[i]) * factor);
        }
        row[j % a->ne[0]] = j % 11 == 2 ? tnd_f32_to_f16(9.0f) : row[j % a->ne[0]];
    }
}

/* A tenth of what half floats lose when keys are stored in them, for heads of 64; heads of 256 four
 * times that. */
static void words_lose_less_than_half_floats_do(void)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_F16, TANDEM_TYPE_BF16, TANDEM_TYPE_Q8_0,
                                             TANDEM_TYPE_Q4_0};
    static const int64_t heads[] = {64, 128, 32, 256, 96};
    struct tnd_cpu_kernels kernels;
    tnd_cpu_kernels_for(tnd_cpu_features_all(), &kernels);
    for (int i = 0; i < 60 && kernels.attention.words.attend != NULL; i++) {
        const struct few_case one = {types[i % 4], heads[i % 5], heads[i * 2 % 5],
                                     1 + i % 9,    17 + i,       30 + i * 13};
        tandem_context *c = NULL;
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &c, NULL), TANDEM_OK);
        tandem_tensor *node = few_node(c, &one, (enum few_mask)(i % FEW_MASKS));
        CU_ASSERT_PTR_NOT_NULL_FATAL(node);
        if (i % 8 >= 4) {
            spoil_rows(node->src[1]);
            spoil_rows(node->src[2]);
        }
        float *want = malloc(tandem_tensor_bytes(node));
        CU_ASSERT_PTR_NOT_NULL_FATAL(want);
        (void)check_ok(tnd_ref_attention(node, NULL));
        memcpy(want, node->data, tandem_tensor_bytes(node));
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, node, 1, NULL));
        check_nmse(node->data, want, tandem_tensor_elements(node), 5e-8,
                   tandem_type_name(one.type));
        memcpy(want, node->data, tandem_tensor_bytes(node));
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, node, 3, NULL));
        (void)check_bits(node->data, want, tandem_tensor_bytes(node), "3 workers");
        free(want);
        tandem_context_free(c);
    }
}

enum { CHANNEL = 3 }; /* of what is spoiled, in every fourth row */

enum spoil {
    KEYS_LARGE,    /* beside queries of 0 */
    QUERIES_LARGE, /* beside keys of 0 */
    VALUES_LARGE,
    KEYS_INFINITE, /* scores of -infinity */
    VALUES_INFINITE,
    VALUES_NAN,
    KEYS_TINY, /* queries and keys: whole rows */
    VALUES_TINY,
    SPOILS
};

static float read_number(const tandem_tensor *a, int64_t i)
{
    const uint16_t *x = a->data;
    return a->type == TANDEM_TYPE_F32   ? ((const float *)a->data)[i]
           : a->type == TANDEM_TYPE_F16 ? tnd_f16_to_f32(x[i])
                                        : tnd_bf16_to_f32(x[i]);
}

static void write_number(tandem_tensor *a, int64_t i, float number)
{
    uint16_t *x = a->data;
    if (a->type == TANDEM_TYPE_F32) {
        ((float *)a->data)[i] = number;
    } else {
        x[i] = a->type == TANDEM_TYPE_F16 ? tnd_f32_to_f16(number) : tnd_f32_to_bf16(number);
    }
}

/* Numbers of one channel in each `every`th row, of `a` {head, rows, heads} in any order. */
static void spoil_channel(tandem_tensor *a, int64_t every, float number)
{
    for (int64_t j = 0; j < tandem_tensor_elements(a) / a->ne[0]; j += every) {
        write_number(a, j * a->ne[0] + CHANNEL, number);
    }
}

static void shrink_rows(tandem_tensor *a, int64_t every, float factor)
{
    for (int64_t i = 0; i < tandem_tensor_elements(a); i++) {
        if (i / a->ne[0] % every == 0) {
            write_number(a, i, read_number(a, i) * factor);
        }
    }
}

static void spoil(tandem_tensor *node, enum spoil how)
{
    tandem_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const float large = k->type == TANDEM_TYPE_F16 ? 6e4f : 1e36f; /* so that sums are finite */
    switch (how) {
    case KEYS_LARGE:
        spoil_channel(k, 4, large);
        spoil_channel(q, 1, 0.0f);
        break;
    case QUERIES_LARGE:
        spoil_channel(k, 1, 0.0f);
        spoil_channel(q, 4, 3e38f);
        break;
    case KEYS_INFINITE:
        spoil_channel(k, 4, -INFINITY);
        spoil_channel(q, 1, 0.5f);
        break;
    case VALUES_LARGE:
    case VALUES_INFINITE:
    case VALUES_NAN:
        spoil_channel(v, 4, how == VALUES_LARGE ? large : how == VALUES_NAN ? NAN : INFINITY);
        break;
    case KEYS_TINY:
        shrink_rows(k, 4, 1e-6f);
        shrink_rows(q, 4, 1e-30f);
        break;
    case VALUES_TINY:
    case SPOILS:
        shrink_rows(v, 1, k->type == TANDEM_TYPE_F16 ? 1e-6f : 1e-30f);
    }
}

/* Channels beside the spoiled one keep their error, and that one is as the reference has it. */
static void check_channels(const tandem_tensor *node, float *want, const char *what)
{
    float *got = malloc(tandem_tensor_bytes(node));
    int wrong = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    memcpy(got, node->data, tandem_tensor_bytes(node));
    for (int64_t i = CHANNEL; i < tandem_tensor_elements(node); i += node->ne[0]) {
        const bool is_near = fabsf(got[i] - want[i]) <= 1e-3f * fabsf(want[i]) + 1e-3f;
        wrong += isfinite(want[i]) ? !is_near : memcmp(&got[i], &want[i], 4) != 0 && !isnan(got[i]);
        got[i] = want[i] = 0.0f;
    }
    check_int(wrong, 0);
    check_nmse(got, want, tandem_tensor_elements(node), 5e-8, what);
    free(got);
}

static void outliers_cost_other_numbers_nothing(void)
{
    struct tnd_cpu_kernels kernels;
    tnd_cpu_kernels_for(tnd_cpu_features_all(), &kernels);
    for (int i = 0; i < 6 * SPOILS && kernels.attention.words.attend != NULL; i++) {
        const struct few_case one = {i % 2 ? TANDEM_TYPE_BF16 : TANDEM_TYPE_F16,
                                     i % 3 ? 64 : 128,
                                     i % 3 ? 64 : 80,
                                     1 + i % 5,
                                     17 + i,
                                     30 + i * 13};
        const enum spoil how = (enum spoil)(i / 6);
        tandem_context *c = NULL;
        char what[64];
        CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &c, NULL), TANDEM_OK);
        tandem_tensor *node = few_node(c, &one, (enum few_mask)(i % FEW_MASKS));
        CU_ASSERT_PTR_NOT_NULL_FATAL(node);
        spoil(node, how);
        float *want = malloc(tandem_tensor_bytes(node));
        CU_ASSERT_PTR_NOT_NULL_FATAL(want);
        (void)check_ok(tnd_ref_attention(node, NULL));
        memcpy(want, node->data, tandem_tensor_bytes(node));
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, node, 1, NULL));
        snprintf(what, sizeof(what), "%s, spoiled by %d", tandem_type_name(one.type), (int)how);
        check_channels(node, want, what);
        free(want);
        tandem_context_free(c);
    }
}

/* A prompt in pieces has the bits of the whole; keys and values of NaN make NaN of those that see
 * them, and of no others. */
static void words_of_a_query_depend_on_what_it_sees_alone(void)
{
    enum { T = 150, BAD = 70 };
    const int64_t cuts[] = {0, 21, 100, 109, T};
    struct tnd_cpu_kernels kernels;
    tnd_cpu_kernels_for(tnd_cpu_features_all(), &kernels);
    for (int bad = 0; bad < 3 && kernels.attention.words.attend != NULL; bad++) {
        struct text text;
        int wrong = 0;
        begin(&text, T);
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
        const int64_t ne[] = {HEAD, KV_HEADS, T, 1};
        text.k = tnd_test_leaf(text.context, TANDEM_TYPE_F16, ne, &rng);
        text.v = tnd_test_leaf(text.context, TANDEM_TYPE_F16, ne, &rng);
        uint16_t *row = (uint16_t *)(bad == 2 ? text.v : text.k)->data;
        row += (BAD * KV_HEADS + 1) * HEAD;
        for (int i = 0; i < HEAD && bad > 0; i++) {
            row[i] = 0x7e00; /* NaN */
        }
        tandem_tensor *whole = attention(&text, 0, T, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
        (void)check_ok(tnd_cpu_run_in_turn(&kernels, whole, 2, NULL));
        for (int64_t i = 0; i < (int64_t)T * HEADS; i++) {
            wrong += is_spoiled(whole, i / HEADS, i % HEADS) !=
                     (bad > 0 && i / HEADS >= BAD && i % HEADS >= GROUP);
        }
        check_int(wrong, 0);
        for (int i = 0; i + 1 < 5 && bad == 0; i++) {
            tandem_tensor *piece = attention(&text, cuts[i], cuts[i + 1] - cuts[i], 1);
            CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
            (void)check_ok(tnd_cpu_run_in_turn(&kernels, piece, 3, NULL));
            (void)check_bits(piece->data, (char *)whole->data + (size_t)cuts[i] * whole->nb[2],
                             tandem_tensor_bytes(piece), "words");
        }
        tandem_context_free(text.context);
    }
}

CU_TestInfo tnd_tests_attention[] = {
    {"words_lose_less_than_half_floats_do", words_lose_less_than_half_floats_do},
    {"outliers_cost_other_numbers_nothing", outliers_cost_other_numbers_nothing},
    {"words_of_a_query_depend_on_what_it_sees_alone",
     words_of_a_query_depend_on_what_it_sees_alone},
    {"pieces_of_a_prompt_give_the_bits_of_the_whole",
     pieces_of_a_prompt_give_the_bits_of_the_whole},
    {"queries_that_go_one_by_one_agree_with_panels", queries_that_go_one_by_one_agree_with_panels},
    {"tokens_of_many_texts_get_the_bits_that_each_gets_alone",
     tokens_of_many_texts_get_the_bits_that_each_gets_alone},
    {"a_key_that_is_no_number_spoils_those_that_see_it",
     a_key_that_is_no_number_spoils_those_that_see_it},
    {"large_scores_and_masks_do_not_overflow", large_scores_and_masks_do_not_overflow},
    {"weights_are_right_to_six_units", weights_are_right_to_six_units},
    {"few_queries_match_the_double_reference_however_keys_are_split",
     few_queries_match_the_double_reference_however_keys_are_split},
    {"parts_of_keys_keep_what_is_no_number", parts_of_keys_keep_what_is_no_number},
    CU_TEST_INFO_NULL,
};
