/* SPDX-License-Identifier: MIT
 * Layers that predict ahead: what one gives is what a model of its own gives that is made of the
 * same numbers; where it agrees with its model, all drafts are right; files that lack a part are
 * refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/source.h"
#include "llama/draft_heads.h"
#include "tests/suite_llama.h"
#include "tests/suite_llama_nextn.h"

enum { DIM = 32, HIDDEN = 48, HEADS = 2, KV_HEADS = 1, HEAD = 16, EXPERTS = 4, WIDTH = 24 };

/* Value i of a tensor, by its name: no two tensors are alike. */
static float value_of(const char *name, int64_t i)
{
    uint32_t sum = 7;
    for (const char *c = name; *c != '\0'; c++) {
        sum = sum * 31 + (uint8_t)*c;
    }
    sum = (sum + (uint32_t)i * 2654435761u) * 2246822519u;
    sum = (sum ^ sum >> 15) * 3266489917u;
    return (float)((sum >> 8) % 20011) / 10005.5f - 1.0f;
}

/* Whether a tensor ends a block: zeros there make it add nothing. */
static bool ends_block(const char *name)
{
    return strstr(name, "attn_output") != NULL || strstr(name, "ffn_down") != NULL;
}

static float fill(const struct nextn_spec *spec, const char *name, int64_t i)
{
    const float value = value_of(name, i);
    if (strstr(name, "norm.weight") != NULL) {
        return spec->agrees ? 1.0f : 1.0f + 0.25f * value;
    }
    if (spec->agrees && strstr(name, "eh_proj") != NULL) { /* the embedding as it is */
        return i % (2 * DIM) == i / (2 * DIM) ? 1.0f : 0.0f;
    }
    if ((spec->is_idle && ends_block(name) && strncmp(name, "blk.0.", 6) == 0) ||
        (spec->agrees && ends_block(name))) {
        return 0.0f;
    }
    return value / sqrtf((float)DIM);
}

static void put(tandem_source *source, const struct nextn_spec *spec, const char *name, int64_t ne0,
                int64_t ne1, int64_t ne2)
{
    const int64_t ne[] = {ne0, ne1 > 0 ? ne1 : 1, ne2 > 0 ? ne2 : 1, 1};
    const int64_t n = ne[0] * ne[1] * ne[2];
    void *memory = NULL;
    if (spec->left_out != NULL && strcmp(name, spec->left_out) == 0) {
        return;
    }
    check_ok(
        tnd_source_alloc(source, name, (size_t)n * sizeof(float), (size_t)1 << 26, &memory, NULL));
    for (int64_t i = 0; i < n; i++) {
        ((float *)memory)[i] = fill(spec, name, i);
    }
    check_ok(tnd_source_add(source, name, TANDEM_TYPE_F32,
                            ne2 > 0   ? 3
                            : ne1 > 0 ? 2
                                      : 1,
                            ne, memory, (size_t)n * sizeof(float), NULL));
}

static void put_layer(tandem_source *source, const struct nextn_spec *spec, int layer,
                      bool has_experts)
{
    const struct {
        const char *name;
        int64_t ne[3];
        int kind; /* 0: all; 1: without experts; 2: with them */
    } rows[] = {
        {"attn_norm.weight", {DIM}, 0},
        {"post_attention_norm.weight", {DIM}, 0},
        {"attn_q.weight", {DIM, HEADS * HEAD}, 0},
        {"attn_k.weight", {DIM, KV_HEADS * HEAD}, 0},
        {"attn_v.weight", {DIM, KV_HEADS * HEAD}, 0},
        {"attn_output.weight", {HEADS * HEAD, DIM}, 0},
        {"ffn_gate.weight", {DIM, HIDDEN}, 1},
        {"ffn_up.weight", {DIM, HIDDEN}, 1},
        {"ffn_down.weight", {HIDDEN, DIM}, 1},
        {"ffn_gate_inp.weight", {DIM, EXPERTS}, 2},
        {"exp_probs_b.bias", {EXPERTS}, 2},
        {"ffn_gate_exps.weight", {DIM, WIDTH, EXPERTS}, 2},
        {"ffn_up_exps.weight", {DIM, WIDTH, EXPERTS}, 2},
        {"ffn_down_exps.weight", {WIDTH, DIM, EXPERTS}, 2},
        {"ffn_gate_shexp.weight", {DIM, WIDTH}, 2},
        {"ffn_up_shexp.weight", {DIM, WIDTH}, 2},
        {"ffn_down_shexp.weight", {WIDTH, DIM}, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64];
        if (rows[i].kind == 0 || rows[i].kind == (has_experts ? 2 : 1)) {
            snprintf(name, sizeof(name), "blk.%d.%s", layer, rows[i].name);
            put(source, spec, name, rows[i].ne[0], rows[i].ne[1], rows[i].ne[2]);
        }
    }
}

static void put_nextn(tandem_source *source, const struct nextn_spec *spec, int layer)
{
    const struct {
        const char *name;
        int64_t ne0, ne1;
    } rows[] = {{"eh_proj", 2 * DIM, DIM},
                {"enorm", DIM, 0},
                {"hnorm", DIM, 0},
                {"shared_head_norm", DIM, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%d.nextn.%s.weight", layer, rows[i].name);
        put(source, spec, name, rows[i].ne0, rows[i].ne1, 0);
    }
    put_layer(source, spec, layer, true);
}

static void set(tandem_source *source, const char *name, int64_t value)
{
    char key[96];
    snprintf(key, sizeof(key), "glm4moe.%s", name);
    check_ok(tnd_source_set_integer(source, key, value, NULL));
}

/* A layer without experts, and one that predicts ahead; or the latter alone, as a model. */
tandem_source *nextn_source(const struct nextn_spec *spec)
{
    tandem_source *source = NULL;
    check_ok(tnd_source_new("made", &source, NULL));
    check_ok(tnd_source_set_text(source, "general.architecture", "glm4moe", NULL));
    set(source, "embedding_length", DIM);
    set(source, "feed_forward_length", HIDDEN);
    set(source, "block_count", spec->is_alone ? 1 : 2);
    set(source, "attention.head_count", HEADS);
    set(source, "attention.head_count_kv", KV_HEADS);
    set(source, "attention.key_length", HEAD);
    set(source, "context_length", spec->context);
    set(source, "vocab_size", spec->vocabulary);
    set(source, "rope.dimension_count", HEAD / 2);
    set(source, "expert_count", EXPERTS);
    set(source, "expert_used_count", 2);
    set(source, "expert_feed_forward_length", WIDTH);
    set(source, "expert_shared_count", 1);
    set(source, "expert_gating_func", 2);
    set(source, "leading_dense_block_count", spec->is_alone ? 0 : 1);
    if (!spec->is_alone) {
        set(source, "nextn_predict_layers", spec->n_ahead > 0 ? spec->n_ahead : 1);
    }
    check_ok(tnd_source_set_number(source, "glm4moe.attention.layer_norm_rms_epsilon", 1e-6, NULL));
    check_ok(tnd_source_set_number(source, "glm4moe.rope.freq_base", 10000.0, NULL));
    put(source, spec, "token_embd.weight", DIM, spec->vocabulary, 0);
    put(source, spec, "output_norm.weight", DIM, 0, 0);
    put(source, spec, "output.weight", DIM, spec->vocabulary, 0);
    if (spec->is_alone) {
        put_layer(source, spec, 0, true);
    } else {
        put_layer(source, spec, 0, false);
        put_nextn(source, spec, 1);
    }
    tnd_source_index(source);
    return source;
}

/* ---- what the layer gives ---- */

enum { FEW = 6, TEXT = 14 };

static const float *tensor(const tandem_source *source, const char *name)
{
    struct tandem_source_tensor found;
    CU_ASSERT_TRUE_FATAL(tandem_source_find(source, name, &found));
    return found.data;
}

static void norm(const double *x, const float *g, double *y)
{
    double sum = 0.0;
    for (int i = 0; i < DIM; i++) {
        sum += x[i] * x[i];
    }
    for (int i = 0; i < DIM; i++) {
        y[i] = x[i] / sqrt(sum / DIM + 1e-6) * (double)g[i];
    }
}

/* The state of a token of a model whose layer adds nothing. */
static void state_of(const tandem_source *source, int token, double *y)
{
    double x[DIM];
    for (int i = 0; i < DIM; i++) {
        x[i] = (double)tensor(source, "token_embd.weight")[token * DIM + i];
    }
    norm(x, tensor(source, "output_norm.weight"), y);
}

/* Numbers of `of` in place of those of `to`, a model whose tokens are pairs: that of a state and
 * the next one. */
static void become(tandem_source *to, const tandem_source *of)
{
    float *embedding = (float *)(uintptr_t)tensor(to, "token_embd.weight");
    float *output = (float *)(uintptr_t)tensor(to, "output.weight");
    const float *eh_proj = tensor(of, "blk.1.nextn.eh_proj.weight");
    for (int pair = 0; pair < FEW * FEW; pair++) {
        double x[DIM], both[2 * DIM], state[DIM];
        for (int i = 0; i < DIM; i++) {
            x[i] = (double)tensor(of, "token_embd.weight")[pair % FEW * DIM + i];
        }
        norm(x, tensor(of, "blk.1.nextn.enorm.weight"), both);
        state_of(of, pair / FEW, state);
        norm(state, tensor(of, "blk.1.nextn.hnorm.weight"), both + DIM);
        for (int n = 0; n < DIM; n++) {
            double sum = 0.0;
            for (int i = 0; i < 2 * DIM; i++) {
                sum += both[i] * (double)eh_proj[n * 2 * DIM + i];
            }
            embedding[pair * DIM + n] = (float)sum;
        }
    }
    memcpy((void *)(uintptr_t)tensor(to, "output_norm.weight"),
           tensor(of, "blk.1.nextn.shared_head_norm.weight"), DIM * sizeof(float));
    memcpy(output, tensor(of, "output.weight"), FEW * DIM * sizeof(float));
    for (int i = 0; tandem_source_tensor_count(of) > i; i++) {
        struct tandem_source_tensor t;
        char name[64];
        (void)tandem_source_tensor_at(of, i, &t);
        if (strncmp(t.name, "blk.1.", 6) == 0 && strstr(t.name, "nextn") == NULL) {
            snprintf(name, sizeof(name), "blk.0.%s", t.name + 6);
            memcpy((void *)(uintptr_t)tensor(to, name), t.data, t.bytes);
        }
    }
}

static int likeliest(const float *logits)
{
    int best = 0;
    for (int i = 1; i < FEW; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

static void a_layer_gives_what_a_model_of_its_numbers_gives(void)
{
    const struct nextn_spec spec = {.vocabulary = FEW, .context = 64, .is_idle = true};
    const struct nextn_spec alone = {.vocabulary = FEW * FEW, .context = 64, .is_alone = true};
    tandem_source *sources[] = {nextn_source(&spec), nextn_source(&alone)};
    tandem_model *models[2];
    tandem_session *sessions[2];
    tandem_runtime *runtime = tnd_test_runtime(2, NULL);
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    become(sources[1], sources[0]);
    for (int i = 0; i < 2; i++) {
        check_ok(tandem_model_new(sources[i], &models[i], NULL));
        check_ok(tandem_session_new(models[i], runtime, NULL, &sessions[i], NULL));
    }
    for (int round = 0; round < 12; round++) {
        struct tnd_draft_heads *heads = NULL;
        int32_t text[TEXT], pairs[TEXT];
        int32_t out[2] = {-1, -1};
        check_ok(tnd_draft_heads_new(sessions[0], &heads, NULL));
        (void)tandem_session_rollback(sessions[1], 0, 0);
        for (int i = 0; i < TEXT; i++) {
            text[i] = (int32_t)tnd_test_rng_int(&rng, 0, FEW - 1);
            pairs[i] = i > 0 ? text[i - 1] * FEW + text[i] : 0;
        }
        for (int n = 2; n <= TEXT; n++) { /* the last of n tokens is not decoded yet */
            double state[DIM];
            float floats[DIM];
            for (int i = n == 2 ? 0 : n - 2; i < n - 1; i++) {
                state_of(sources[0], text[i], state);
                for (int k = 0; k < DIM; k++) {
                    floats[k] = (float)state[k];
                }
                tnd_draft_heads_note(heads, 0, i, floats);
            }
            check_ok(tandem_session_decode(sessions[1], pairs + n - 1, 1, 0, NULL));
            check_int(tnd_draft_heads_ask(heads, 0, text, n, n % 2 + 1, out), n % 2 + 1);
            check_int(out[0], likeliest(tandem_session_logits(sessions[1], 0)));
        }
        tnd_draft_heads_free(heads);
    }
    for (int i = 0; i < 2; i++) {
        tandem_session_free(sessions[i]);
        tandem_model_free(models[i]);
        tandem_source_close(sources[i]);
    }
    tandem_runtime_close(runtime);
}

/* ---- what is refused ---- */

static void check_model(const struct nextn_spec *spec, enum tandem_status want, const char *part)
{
    tandem_source *source = nextn_source(spec);
    tandem_model *model = NULL;
    struct tandem_error error = {.text = ""};
    check_status(tandem_model_new(source, &model, &error), want, part, &error);
    tandem_model_free(model);
    tandem_source_close(source);
}

static void layers_that_lack_a_part_are_refused(void)
{
    struct nextn_spec spec = {.vocabulary = FEW, .context = 8};
    check_model(&spec, TANDEM_OK, NULL);
    spec.left_out = "blk.1.nextn.eh_proj.weight";
    check_model(&spec, TANDEM_E_NOT_FOUND, "no tensor blk.1.nextn.eh_proj.weight");
    spec.left_out = "blk.1.nextn.hnorm.weight";
    check_model(&spec, TANDEM_E_NOT_FOUND, "no tensor blk.1.nextn.hnorm.weight");
    spec.left_out = "blk.1.attn_norm.weight"; /* by which it is seen that there are any */
    check_model(&spec, TANDEM_E_UNSUPPORTED_BUILD, "blk.1.");
    spec.left_out = "blk.1.ffn_up_exps.weight";
    check_model(&spec, TANDEM_E_NOT_FOUND, "no tensor blk.1.ffn_up_exps.weight");
    spec.left_out = NULL;
    spec.n_ahead = 2;
    check_model(&spec, TANDEM_E_FORMAT, "less than block_count");
    spec.n_ahead = -1; /* none: then the last layer is none, too */
    spec.n_ahead = 0;
    check_model(&spec, TANDEM_OK, NULL);
}

static void a_model_without_such_layers_is_told_so(void)
{
    const struct nextn_spec alone = {.vocabulary = FEW, .context = 8, .is_alone = true};
    const struct tandem_draft_options by_heads = {.size = sizeof(by_heads), .by_heads = true};
    tandem_source *source = nextn_source(&alone);
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    tandem_model *model = NULL;
    tandem_session *session = NULL;
    struct tandem_error error = {.text = ""};
    check_ok(tandem_model_new(source, &model, NULL));
    check_ok(tandem_session_new(model, runtime, NULL, &session, NULL));
    check_status(tandem_session_set_draft(session, &by_heads, &error), TANDEM_E_NOT_FOUND,
                 "no layers that predict ahead", &error);
    struct tandem_draft_info info;
    CU_ASSERT_FALSE(tandem_session_draft_info(session, &info));
    tandem_session_free(session);
    tandem_model_free(model);
    tandem_runtime_close(runtime);
    tandem_source_close(source);
}

static CU_TestInfo tests[] = {
    {"a_layer_gives_what_a_model_of_its_numbers_gives",
     a_layer_gives_what_a_model_of_its_numbers_gives},
    {"layers_that_lack_a_part_are_refused", layers_that_lack_a_part_are_refused},
    {"a_model_without_such_layers_is_told_so", a_model_without_such_layers_is_told_so},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_nextn[] = {
    {"layers that predict ahead", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
