/* SPDX-License-Identifier: MIT
 * Mixtures of experts as Hugging Face writes them, one matrix an expert: Mixtral, Qwen2-MoE and
 * Qwen3-MoE. And what a GGUF file keeps of them. */
#include <stdio.h>
#include <string.h>

#include "tandem/formats.h"
#include "tests/support.h"
#include "tests/support_blob.h"

enum { DIM = 32, HIDDEN = 64, SHARED = 96, EXPERTS = 5, VOCABULARY = 8 };

/* Value `i` of a tensor, by its name: no two tensors are alike. */
static float value_of(const char *name, int64_t i)
{
    uint32_t sum = 7;
    for (const char *c = name; *c != '\0'; c++) {
        sum = sum * 31 + (uint8_t)*c;
    }
    return (float)((sum + (uint32_t)i * 97) % 1009) / 1009.0f - 0.5f;
}

/* A safetensors file that grows. */
struct file {
    struct tnd_blob header, data;
    int part, parts, n; /* tensors n with n % parts == part are in it */
    const char *left_out;
    struct tnd_blob *map; /* of an index; NULL: none */
};

/* N x K; a vector of K values with n = 0. */
static void put(struct file *f, const char *name, int64_t n, int64_t k)
{
    const size_t begin = f->data.n;
    char line[256];
    if (strcmp(name, f->left_out) == 0 || f->n++ % f->parts != f->part) {
        return;
    }
    for (int64_t i = 0; i < (n == 0 ? k : n * k); i++) {
        const float value = value_of(name, i);
        tnd_blob_add(&f->data, &value, sizeof(value));
    }
    snprintf(line, sizeof(line), "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
             f->header.n > 1 ? "," : "", name);
    tnd_blob_string(&f->header, line);
    snprintf(line, sizeof(line), n == 0 ? "%lld" : "%lld,%lld", (long long)(n == 0 ? k : n),
             (long long)k);
    tnd_blob_string(&f->header, line);
    snprintf(line, sizeof(line), "],\"data_offsets\":[%zu,%zu]}", begin, f->data.n);
    tnd_blob_string(&f->header, line);
    if (f->map != NULL) {
        snprintf(line, sizeof(line), "%s\"%s\":\"part-%d.safetensors\"", f->map->n > 15 ? "," : "",
                 name, f->part);
        tnd_blob_string(f->map, line);
    }
}

static void put_vector(struct file *f, const char *name, int64_t n)
{
    put(f, name, 0, n);
}

enum kind { MIXTRAL, QWEN2_MOE, QWEN3_MOE };

static const char *theirs(enum kind kind, int expert, int matrix, char out[96])
{
    static const char *const mixtral[] = {"w1", "w3", "w2"};
    static const char *const qwen[] = {"gate_proj", "up_proj", "down_proj"};
    snprintf(out, 96, "model.layers.0.%s.experts.%d.%s.weight",
             kind == MIXTRAL ? "block_sparse_moe" : "mlp", expert,
             kind == MIXTRAL ? mixtral[matrix] : qwen[matrix]);
    return out;
}

static void put_model(struct file *f, enum kind kind, int experts)
{
#define LAYER "model.layers.0."
    char name[96];
    put(f, "model.embed_tokens.weight", VOCABULARY, DIM);
    put(f, "lm_head.weight", VOCABULARY, DIM);
    put_vector(f, "model.norm.weight", DIM);
    put_vector(f, LAYER "input_layernorm.weight", DIM);
    put_vector(f, LAYER "post_attention_layernorm.weight", DIM);
    put(f, LAYER "self_attn.q_proj.weight", DIM, DIM);
    put(f, LAYER "self_attn.k_proj.weight", DIM, DIM);
    put(f, LAYER "self_attn.v_proj.weight", DIM, DIM);
    put(f, LAYER "self_attn.o_proj.weight", DIM, DIM);
    if (kind == QWEN2_MOE) {
        put_vector(f, LAYER "self_attn.q_proj.bias", DIM);
        put_vector(f, LAYER "self_attn.k_proj.bias", DIM);
        put_vector(f, LAYER "self_attn.v_proj.bias", DIM);
        put(f, LAYER "mlp.shared_expert.gate_proj.weight", SHARED, DIM);
        put(f, LAYER "mlp.shared_expert.up_proj.weight", SHARED, DIM);
        put(f, LAYER "mlp.shared_expert.down_proj.weight", DIM, SHARED);
        put(f, LAYER "mlp.shared_expert_gate.weight", 1, DIM);
    }
    if (kind == QWEN3_MOE) {
        put_vector(f, LAYER "self_attn.q_norm.weight", DIM / 4);
        put_vector(f, LAYER "self_attn.k_norm.weight", DIM / 4);
    }
    put(f, kind == MIXTRAL ? LAYER "block_sparse_moe.gate.weight" : LAYER "mlp.gate.weight",
        EXPERTS, DIM);
    for (int e = experts - 1; e >= 0; e--) {
        for (int matrix = 0; matrix < 3; matrix++) {
            put(f, theirs(kind, e, matrix, name), matrix == 2 ? DIM : HIDDEN,
                matrix == 2 ? HIDDEN : DIM);
        }
    }
#undef LAYER
}

static void write_config(enum kind kind, const char *more)
{
    static const char *const kinds[] = {
        "\"model_type\":\"mixtral\",\"num_local_experts\":5,\"num_experts_per_tok\":2,"
        "\"intermediate_size\":64,\"router_aux_loss_coef\":0.02,\"output_router_logits\":false,"
        "\"router_jitter_noise\":0.0",
        "\"model_type\":\"qwen2_moe\",\"num_experts\":5,\"num_experts_per_tok\":3,"
        "\"intermediate_size\":128,\"moe_intermediate_size\":64,\"qkv_bias\":true,"
        "\"shared_expert_intermediate_size\":96,\"decoder_sparse_step\":1,"
        "\"mlp_only_layers\":[],\"norm_topk_prob\":false,\"use_sliding_window\":false,"
        "\"max_window_layers\":21,\"sliding_window\":32",
        "\"model_type\":\"qwen3_moe\",\"num_local_experts\":5,\"num_experts_per_tok\":3,"
        "\"intermediate_size\":128,\"moe_intermediate_size\":64,\"norm_topk_prob\":true,"
        "\"head_dim\":8,\"mlp_only_layers\":[],\"decoder_sparse_step\":1"};
    char text[1200];
    snprintf(text, sizeof(text),
             "{%s,\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
             "\"num_key_value_heads\":4,\"vocab_size\":8,\"rms_norm_eps\":1e-5%s}",
             kinds[kind], more);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("config.json"), text, strlen(text)));
}

static void write_file(struct file *f, const char *name)
{
    struct tnd_blob file = {NULL, 0};
    tnd_blob_string(&f->header, "}");
    while (f->header.n % 8 != 0) {
        tnd_blob_string(&f->header, " ");
    }
    tnd_blob_number(&file, f->header.n, 8);
    tnd_blob_add(&file, f->header.bytes, f->header.n);
    tnd_blob_add(&file, f->data.bytes, f->data.n);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp(name), file.bytes, file.n));
    tnd_blob_free(&file);
    tnd_blob_free(&f->header);
    tnd_blob_free(&f->data);
}

static void write_whole(enum kind kind, int experts, const char *left_out)
{
    struct file f = {.parts = 1, .left_out = left_out};
    tnd_blob_string(&f.header, "{");
    put_model(&f, kind, experts);
    write_file(&f, "model.safetensors");
}

static void check_joined(const tandem_source *source, enum kind kind)
{
    static const char *const ours[] = {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight",
                                       "blk.0.ffn_down_exps.weight"};
    char name[96];
    for (int matrix = 0; matrix < 3; matrix++) {
        struct tandem_source_tensor t = {.name = ""};
        CU_ASSERT_TRUE_FATAL(tandem_source_find(source, ours[matrix], &t));
        check_int(t.n_dims, 3);
        check_int(t.ne[0], matrix == 2 ? HIDDEN : DIM);
        check_int(t.ne[1], matrix == 2 ? DIM : HIDDEN);
        check_int(t.ne[2], EXPERTS);
        int wrong = 0;
        for (int64_t i = 0; i < DIM * HIDDEN * EXPERTS; i++) {
            const float want =
                value_of(theirs(kind, (int)(i / (DIM * HIDDEN)), matrix, name), i % (DIM * HIDDEN));
            wrong += ((const float *)t.data)[i] != want;
        }
        check_int(wrong, 0);
    }
    CU_ASSERT_FALSE(tandem_source_find(source, "blk.0.ffn_gate.0.weight",
                                       &(struct tandem_source_tensor){.name = ""}));
}

static void check_numbers(const tandem_source *source, enum kind kind)
{
    struct tandem_hparams h = {.size = sizeof(h)};
    struct tandem_error error = {0};
    check_status(tandem_source_hparams(source, &h, &error), TANDEM_OK, NULL, &error);
    check_int(h.experts, EXPERTS);
    check_int(h.experts_used, kind == MIXTRAL ? 2 : 3);
    check_int(h.expert_hidden, HIDDEN);
    check_int(h.shared_hidden, kind == QWEN2_MOE ? SHARED : 0);
    check_int(h.has_normed_experts, kind != QWEN2_MOE);
    check_int(h.window, 0);
    check_string(h.architecture, kind == MIXTRAL     ? "llama"
                                 : kind == QWEN2_MOE ? "qwen2moe"
                                                     : "qwen3moe");
}

static void experts_of_a_layer_become_one_tensor(void)
{
    for (int kind = MIXTRAL; kind <= QWEN3_MOE; kind++) {
        tandem_source *source = NULL;
        struct tandem_error error = {0};
        write_config((enum kind)kind, "");
        write_whole((enum kind)kind, EXPERTS, "");
        check_status(tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error),
                     TANDEM_OK, NULL, &error);
        check_joined(source, (enum kind)kind);
        check_numbers(source, (enum kind)kind);
        tandem_source_close(source);
    }
    remove(tnd_test_temp("config.json"));
}

static void experts_may_lie_in_several_files(void)
{
    struct tnd_blob map = {NULL, 0};
    tandem_source *source = NULL;
    struct tandem_error error = {0};
    write_config(QWEN3_MOE, "");
    tnd_blob_string(&map, "{\"weight_map\":{");
    for (int part = 0; part < 3; part++) {
        struct file f = {.parts = 3, .part = part, .left_out = "", .map = &map};
        char name[32];
        tnd_blob_string(&f.header, "{");
        put_model(&f, QWEN3_MOE, EXPERTS);
        snprintf(name, sizeof(name), "part-%d.safetensors", part);
        write_file(&f, name);
    }
    tnd_blob_string(&map, "}}");
    const char *path = tnd_test_temp("model.safetensors.index.json");
    CU_ASSERT_TRUE(tnd_test_write_file(path, map.bytes, map.n));
    tnd_blob_free(&map);
    check_status(tandem_source_open(tnd_test_temp("model.safetensors.index.json"), &source, &error),
                 TANDEM_OK, NULL, &error);
    if (source != NULL) {
        check_joined(source, QWEN3_MOE);
        check_numbers(source, QWEN3_MOE);
    }
    tandem_source_close(source);
    remove(tnd_test_temp("config.json"));
}

/* Opens, and reads the numbers: one of both fails, and says `part`. */
static void check_refused(const char *part)
{
    tandem_source *source = NULL;
    struct tandem_hparams h = {.size = sizeof(h)};
    struct tandem_error error = {0};
    enum tandem_status status =
        tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error);
    if (status == TANDEM_OK) {
        status = tandem_source_hparams(source, &h, &error);
    }
    CU_ASSERT_NOT_EQUAL(status, TANDEM_OK);
    if (strstr(error.text, part) == NULL) {
        check_string(error.text, part);
    }
    tandem_source_close(source);
}

static void experts_that_are_missing_or_too_many_are_refused_by_name(void)
{
    write_config(QWEN3_MOE, "");
    write_whole(QWEN3_MOE, EXPERTS, "model.layers.0.mlp.experts.3.up_proj.weight");
    check_refused("no tensor blk.0.ffn_up.3.weight");
    write_whole(QWEN3_MOE, EXPERTS, "model.layers.0.mlp.experts.0.up_proj.weight");
    check_refused("no tensor blk.0.ffn_up_exps.weight");
    write_whole(QWEN3_MOE, EXPERTS + 1, "");
    check_refused("has a tensor blk.0.ffn_gate.5.weight");
    write_whole(QWEN3_MOE, EXPERTS, "model.layers.0.mlp.gate.weight");
    check_refused("no tensor blk.0.ffn_gate_inp.weight");
    write_whole(MIXTRAL, EXPERTS, "");
    write_config(MIXTRAL, ",\"num_local_experts\":9223372036854775807");
    check_refused("\"num_local_experts\" is no whole number below 2^62");
    write_config(MIXTRAL, ",\"num_local_experts\":4611686018427387904");
    check_refused("no tensor blk.0.ffn_");
    write_config(MIXTRAL, ",\"num_experts_per_tok\":6");
    check_refused("a token uses 6 of 5 experts");
    remove(tnd_test_temp("config.json"));
}

static void members_that_are_not_computed_are_refused_by_name(void)
{
    static const struct {
        enum kind kind;
        const char *more, *part;
    } cases[] = {
        {QWEN3_MOE, ",\"mlp_only_layers\":[0]", "\"mlp_only_layers\""},
        {QWEN3_MOE, ",\"decoder_sparse_step\":2", "\"decoder_sparse_step\""},
        {QWEN3_MOE, ",\"use_sliding_window\":true", "\"use_sliding_window\" is on"},
        {QWEN3_MOE, ",\"shared_expert_intermediate_size\":8",
         "\"shared_expert_intermediate_size\""},
        {QWEN3_MOE, ",\"qkv_bias\":true", "\"qkv_bias\" is on"},
        {QWEN2_MOE, ",\"num_local_experts\":8", "another number than num_local_experts"},
        {MIXTRAL, ",\"num_experts\":8", "another number than num_local_experts"},
        {MIXTRAL, ",\"norm_topk_prob\":true", "\"norm_topk_prob\" is on"},
        {MIXTRAL, ",\"no_such_experts\":8", "\"no_such_experts\" is not known"},
        {QWEN2_MOE, ",\"qkv_bias\":false", "has a tensor blk.0.attn_q.bias"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_config(cases[i].kind, cases[i].more);
        write_whole(cases[i].kind, EXPERTS, "");
        check_refused(cases[i].part);
    }
    remove(tnd_test_temp("config.json"));
}

static void a_gguf_file_keeps_experts_and_routers_stay_floats(void)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", tnd_test_temp("experts.gguf"));
    for (int kind = MIXTRAL; kind <= QWEN3_MOE; kind++) {
        tandem_source *source = NULL, *again = NULL;
        struct tandem_source_tensor t = {.name = ""};
        struct tandem_error error = {0};
        struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
        write_config((enum kind)kind, "");
        write_whole((enum kind)kind, EXPERTS, "");
        check_ok(tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error));
        check_status(tandem_source_save_gguf(source, path, &options, &error), TANDEM_OK, NULL,
                     &error);
        check_status(tandem_source_open(path, &again, &error), TANDEM_OK, NULL, &error);
        check_joined(again, (enum kind)kind);
        check_numbers(again, (enum kind)kind);
        tandem_source_close(again);
        options.converts = true;
        options.type = TANDEM_TYPE_Q8_0;
        check_status(tandem_source_save_gguf(source, path, &options, &error), TANDEM_OK, NULL,
                     &error);
        check_ok(tandem_source_open(path, &again, &error));
        check_numbers(again, (enum kind)kind);
        CU_ASSERT_TRUE(tandem_source_find(again, "blk.0.ffn_down_exps.weight", &t));
        check_int(t.type, TANDEM_TYPE_Q8_0);
        CU_ASSERT_TRUE(tandem_source_find(again, "blk.0.ffn_gate_inp.weight", &t));
        check_int(t.type, TANDEM_TYPE_F32);
        tandem_source_close(again);
        tandem_source_close(source);
    }
    remove(path);
    remove(tnd_test_temp("config.json"));
}

static void synthetic_experts_have_the_shape_asked_for(void)
{
    struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 2, 4, 2, 300, 64, 6, 2, 0};
    tandem_source *source = NULL;
    struct tandem_hparams h = {.size = sizeof(h)};
    struct tandem_source_tensor t = {.name = ""};
    struct tandem_error error = {0};
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_Q8_0, 1, &source, NULL));
    check_status(tandem_source_hparams(source, &h, &error), TANDEM_OK, NULL, &error);
    check_int(h.experts, 6);
    check_int(h.experts_used, 2);
    check_int(h.expert_hidden, 96);
    CU_ASSERT_TRUE(tandem_source_find(source, "blk.1.ffn_up_exps.weight", &t));
    check_int(t.type, TANDEM_TYPE_Q8_0);
    check_int(t.ne[2], 6);
    CU_ASSERT_TRUE(tandem_source_find(source, "blk.1.ffn_gate_inp.weight", &t));
    check_int(t.type, TANDEM_TYPE_F32);
    tandem_source_close(source);
    shape.experts_used = 7;
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error),
                 TANDEM_E_ARGUMENT, "a token uses 7 of 6 experts", &error);
    shape.experts = -1;
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error),
                 TANDEM_E_ARGUMENT, "number of experts is -1", &error);
}

static CU_TestInfo experts_tests[] = {
    {"experts_of_a_layer_become_one_tensor", experts_of_a_layer_become_one_tensor},
    {"experts_may_lie_in_several_files", experts_may_lie_in_several_files},
    {"experts_that_are_missing_or_too_many_are_refused_by_name",
     experts_that_are_missing_or_too_many_are_refused_by_name},
    {"members_that_are_not_computed_are_refused_by_name",
     members_that_are_not_computed_are_refused_by_name},
    {"a_gguf_file_keeps_experts_and_routers_stay_floats",
     a_gguf_file_keeps_experts_and_routers_stay_floats},
    {"synthetic_experts_have_the_shape_asked_for", synthetic_experts_have_the_shape_asked_for},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_experts[] = {
    {"experts", NULL, NULL, NULL, NULL, experts_tests},
    CU_SUITE_INFO_NULL,
};
