/* SPDX-License-Identifier: MIT
 * What a source says of a llama, and the one place that checks it: hostile numbers by every door,
 * tensors that are missing, unknown or of another shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/llama2c.h"
#include "formats/source.h"
#include "tests/support.h"
#include "tests/support_models.h"

enum { DIM = 4, HIDDEN = 6, HEADS = 2, KV_HEADS = 1, HEAD = 4, VOCABULARY = 3 };

static const float zeros[64];

static void add(tandem_source *source, const char *name, int64_t k, int64_t n, const float *values)
{
    const int64_t ne[] = {k, n};
    check_ok(tnd_source_add(source, name, TANDEM_TYPE_F32, n == 1 ? 1 : 2, ne,
                            values == NULL ? zeros : values, (size_t)(k * n) * sizeof(float),
                            NULL));
}

static void set(tandem_source *source, const char *key, int64_t value)
{
    check_ok(tnd_source_set_integer(source, key, value, NULL));
}

#define EPSILON "llama.attention.layer_norm_rms_epsilon"

/* The numbers of a llama of one layer, without `left_out` (NULL: all of them). */
static tandem_source *numbers(const char *left_out)
{
    static const struct {
        const char *key;
        int64_t value;
    } rows[] = {{"llama.embedding_length", DIM},
                {"llama.feed_forward_length", HIDDEN},
                {"llama.block_count", 1},
                {"llama.attention.head_count", HEADS},
                {"llama.attention.head_count_kv", KV_HEADS},
                {"llama.attention.key_length", HEAD},
                {"llama.context_length", 8},
                {"llama.vocab_size", VOCABULARY}};
    tandem_source *source = NULL;
    check_ok(tnd_source_new("made", &source, NULL));
    check_ok(tnd_source_set_text(source, "general.architecture", "llama", NULL));
    check_ok(tnd_source_set_text(source, "tandem.rope.pairs", "halves", NULL));
    if (left_out == NULL || strcmp(left_out, EPSILON) != 0) {
        check_ok(tnd_source_set_number(source, EPSILON, 1e-5, NULL));
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (left_out == NULL || strcmp(left_out, rows[i].key) != 0) {
            set(source, rows[i].key, rows[i].value);
        }
    }
    return source;
}

static const struct tensor {
    const char *name;
    int64_t k, n;
} tensors[] = {
    {"token_embd.weight", DIM, VOCABULARY},
    {"blk.0.attn_norm.weight", DIM, 1},
    {"blk.0.attn_q.weight", DIM, HEADS *HEAD},
    {"blk.0.attn_k.weight", DIM, KV_HEADS *HEAD},
    {"blk.0.attn_v.weight", DIM, KV_HEADS *HEAD},
    {"blk.0.attn_output.weight", HEADS *HEAD, DIM},
    {"blk.0.ffn_norm.weight", DIM, 1},
    {"blk.0.ffn_gate.weight", DIM, HIDDEN},
    {"blk.0.ffn_down.weight", HIDDEN, DIM},
    {"blk.0.ffn_up.weight", DIM, HIDDEN},
    {"output_norm.weight", DIM, 1},
};
enum { N_TENSORS = sizeof(tensors) / sizeof(tensors[0]) };

/* `values`: of attn_q, attn_k and attn_v; NULL: zeros. */
static void add_tensors(tandem_source *source, const float *values)
{
    for (int i = 0; i < N_TENSORS; i++) {
        add(source, tensors[i].name, tensors[i].k, tensors[i].n, i >= 2 && i <= 4 ? values : NULL);
    }
}

/* Neither its numbers nor a file made of it may be had. */
static void check_refused(tandem_source *source, const char *part)
{
    struct tandem_hparams h = {.dim = 77};
    struct tandem_error error = {0};
    const char *path = tnd_test_temp("refused.gguf");
    CU_ASSERT_NOT_EQUAL(tandem_source_hparams(source, &h, &error), TANDEM_OK);
    check_contains(error.text, part);
    check_int(h.dim, 77);
    CU_ASSERT_NOT_EQUAL(tandem_source_save_gguf(source, path, NULL, &error), TANDEM_OK);
    check_contains(error.text, part);
    CU_ASSERT_PTR_NULL(tnd_test_read_file(path, NULL));
    tandem_source_close(source);
}

/* From any file: SIGSEGV, SIGFPE, and with enough rows the process's memory in the output. */
static void head_counts_that_do_not_fit_the_rows_are_refused(void)
{
    static const struct {
        const char *key;
        int64_t value;
        const char *part;
    } cases[] = {
        {"llama.attention.head_count", -1, "llama.attention.head_count is -1"},
        {"llama.attention.head_count", 0, "llama.attention.head_count is 0"},
        {"llama.attention.head_count", INT64_MIN, "is -9223372036854775808"},
        {"llama.attention.head_count", INT64_MAX, "is 9223372036854775807"},
        {"llama.attention.head_count", INT32_MAX, "more than 2147483647"},
        {"llama.attention.head_count", 3, "attn_q.weight is 4 x 8, expected 4 x 12"},
        {"llama.attention.head_count", 4, "attn_q.weight is 4 x 8, expected 4 x 16"},
        {"llama.attention.head_count_kv", -1, "llama.attention.head_count_kv is -1"},
        {"llama.attention.head_count_kv", 0, "llama.attention.head_count_kv is 0"},
        {"llama.attention.head_count_kv", INT64_MIN, "is -9223372036854775808"},
        {"llama.attention.head_count_kv", INT64_MAX, "is 9223372036854775807"},
        {"llama.attention.head_count_kv", 2, "attn_k.weight is 4 x 4, expected 4 x 8"},
        {"llama.attention.head_count_kv", 4, "expected a divisor of the number of heads"},
        {"llama.attention.key_length", 3, "head size is 3, expected an even number"},
        {"llama.attention.key_length", -4, "llama.attention.key_length is -4"},
        {"llama.attention.key_length", 2, "attn_q.weight is 4 x 8, expected 4 x 4"},
        {"llama.attention.key_length", 65538, "head size is 65538"},
        {"llama.rope.dimension_count", 6, "6 values of a head are rotated"},
        {"llama.rope.dimension_count", 3, "3 values of a head are rotated"},
        {"llama.rope.dimension_count", INT64_MIN, "rope.dimension_count is -9"},
        {"llama.embedding_length", 0, "llama.embedding_length is 0"},
        {"llama.embedding_length", 1 << 30, "token_embd.weight is 4 x 3"},
        {"llama.feed_forward_length", -6, "llama.feed_forward_length is -6"},
        {"llama.feed_forward_length", 7, "ffn_gate.weight is 4 x 6, expected 4 x 7"},
        {"llama.block_count", INT64_MAX, "llama.block_count is"},
        {"llama.block_count", INT32_MAX, "no tensor blk.1.attn_norm.weight"},
        {"llama.context_length", 0, "llama.context_length is 0"},
        {"llama.vocab_size", 4, "token_embd.weight is 4 x 3, expected 4 x 4"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tandem_source *source = numbers(cases[i].key);
        set(source, cases[i].key, cases[i].value);
        add_tensors(source, NULL);
        tnd_source_index(source);
        check_refused(source, cases[i].part);
    }
}

static void tensors_that_are_missing_unknown_or_of_another_shape_are_refused(void)
{
    for (int i = 0; i < N_TENSORS; i++) {
        for (int change = 0; change < 3; change++) {
            tandem_source *source = numbers(NULL);
            for (int j = 0; j < N_TENSORS; j++) {
                const int64_t n = tensors[j].n;
                if (i != j) {
                    add(source, tensors[j].name, tensors[j].k, n, NULL);
                } else if (change > 0) { /* two rows more, or turned round */
                    add(source, tensors[j].name, change == 1 ? tensors[j].k : n + 1,
                        change == 1 ? n + 2 : tensors[j].k, NULL);
                }
            }
            check_refused(source, tensors[i].name);
        }
    }
    static const char *const names[] = {"blk.1.attn_q.weight",
                                        "blk.0.attn_q.weights",
                                        "blk.00.attn_q.weight",
                                        "blk.0.attn_q_norm.weight",
                                        "blk.0.ffn_gate_inp.weight",
                                        "blk.0.attn_q.scale",
                                        "output.bias",
                                        "rope_factors_long.weight",
                                        "blk.-1.attn_q.weight"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tandem_source *source = numbers(NULL);
        add_tensors(source, NULL);
        add(source, names[i], DIM, 2, NULL);
        check_refused(source, names[i]);
    }
}

static void rotated_rows_in_halves_come_out_in_adjacent_pairs(void)
{
    const float wanted[] = {0, 2, 1, 3}; /* rows of a head */
    float values[HEADS * HEAD * DIM];
    struct tandem_source_tensor q, k, v;
    const char *pairs;
    tandem_source *again = NULL;
    tandem_source *source = numbers(NULL);
    for (int i = 0; i < HEADS * HEAD * DIM; i++) {
        values[i] = (float)(i / DIM);
    }
    add_tensors(source, values);
    check_ok(tandem_source_save_gguf(source, tnd_test_temp("halves.gguf"), NULL, NULL));
    check_ok(tandem_source_open(tnd_test_temp("halves.gguf"), &again, NULL));
    CU_ASSERT_FATAL(tandem_source_find(again, "blk.0.attn_q.weight", &q));
    CU_ASSERT_FATAL(tandem_source_find(again, "blk.0.attn_k.weight", &k));
    CU_ASSERT_FATAL(tandem_source_find(again, "blk.0.attn_v.weight", &v));
    for (int row = 0; row < HEADS * HEAD; row++) {
        const float from = (float)(row / HEAD * HEAD) + wanted[row % HEAD];
        for (int i = 0; i < DIM; i++) {
            CU_ASSERT_EQUAL(((const float *)q.data)[row * DIM + i], from);
            if (row < KV_HEADS * HEAD) {
                CU_ASSERT_EQUAL(((const float *)k.data)[row * DIM + i], from);
                CU_ASSERT_EQUAL(((const float *)v.data)[row * DIM + i], (float)row);
            }
        }
    }
    CU_ASSERT_FALSE(tandem_source_text(again, "tandem.rope.pairs", &pairs));
    tandem_source_close(again);
    tandem_source_close(source);
}

/* The same numbers through config.json, params.json and the header of llama2.c. */
static void impossible_numbers_are_refused_whatever_the_file(void)
{
    static const char *const counts[] = {
        "-1",    "0",  "-9223372036854775808", "9223372036854775807", "3", "1e300", "-0.5",
        "\"4\"", "[4]"};
    const struct tandem_llama_shape shape = {sizeof(shape), 16, 24, 1, 4, 2, 8, 16, 0, 0, 0};
    tandem_source *made = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &made, NULL));
    CU_ASSERT_TRUE(tnd_model_write_torch_llama(made, tnd_test_temp("consolidated.00.pth"), false));
    CU_ASSERT_TRUE(tnd_model_write_safetensors(made, tnd_test_temp("model.safetensors"), 0, 1));
    for (int file = 0; file < 2; file++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            for (int is_kv = 0; is_kv < 2; is_kv++) {
                char text[256];
                struct tandem_error error = {0};
                struct tandem_hparams h;
                tandem_source *source = NULL;
                snprintf(text, sizeof(text), "\"%s\":%s",
                         file == 0 ? (is_kv ? "num_key_value_heads" : "num_attention_heads")
                                   : (is_kv ? "n_kv_heads" : "n_heads"),
                         counts[i]);
                if (file == 0) {
                    CU_ASSERT_TRUE(
                        tnd_model_write_config(made, tnd_test_temp("config.json"), text));
                } else {
                    char all[300];
                    const int n = snprintf(all, sizeof(all), "{\"dim\":16,\"n_heads\":4,%s}", text);
                    CU_ASSERT_TRUE(
                        tnd_test_write_file(tnd_test_temp("params.json"), all, (size_t)n));
                }
                enum tandem_status status = tandem_source_open(
                    tnd_test_temp(file == 0 ? "model.safetensors" : "consolidated.00.pth"), &source,
                    &error);
                if (status == TANDEM_OK) {
                    status = tandem_source_hparams(source, &h, &error);
                }
                if (status == TANDEM_OK) {
                    printf("  accepted: %s\n", text);
                }
                CU_ASSERT_NOT_EQUAL(status, TANDEM_OK);
                tandem_source_close(source);
            }
        }
        remove(tnd_test_temp("config.json"));
    }
    tandem_source_close(made);
}

/* Opens a folder's model with more members in its config.json. `part` NULL: it is computed. */
static void check_member(const tandem_source *made, const char *member, const char *part)
{
    struct tandem_error error = {0};
    struct tandem_hparams h;
    tandem_source *source = NULL;
    CU_ASSERT_TRUE(tnd_model_write_config(made, tnd_test_temp("config.json"), member));
    enum tandem_status status =
        tandem_source_open(tnd_test_temp("model.safetensors"), &source, &error);
    if (status == TANDEM_OK) {
        status = tandem_source_hparams(source, &h, &error);
    }
    CU_ASSERT_EQUAL(status == TANDEM_OK, part == NULL);
    if (part != NULL) {
        check_contains(error.text, part);
    } else if (status != TANDEM_OK) {
        printf("  %s: %s\n", member, error.text);
    }
    tandem_source_close(source);
}

static void members_of_config_json_are_used_harmless_or_refused_by_name(void)
{
    static const struct {
        const char *member, *part;
    } cases[] = {
        {"\"use_cache\":true,\"attention_dropout\":0.1,\"no_such_member\":null", NULL},
        {"\"partial_rotary_factor\":1.0,\"pruned_heads\":{},\"is_encoder_decoder\":false", NULL},
        {"\"attention_bias\":false,\"mlp_bias\":false,\"hidden_act\":\"gelu\"", NULL},
        {"\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2,\"attention_factor\":2}", NULL},
        {"\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5}", NULL},
        {"\"layer_types\":[\"full_attention\"],\"quantization_config\":null", NULL},
        {"\"attention_bias\":true", "no tensor blk.0.attn_q.bias"},
        {"\"mlp_bias\":true", "no tensor blk.0.ffn_gate.bias"},
        {"\"head_dim\":8", "attn_q.weight is 16 x 16, expected 16 x 32"},
        {"\"tie_word_embeddings\":true,\"hidden_act\":\"mish\"", "\"hidden_act\" is mish"},
        {"\"is_llama_config\":true,\"rope_interleaved\":false,\"rope_traditional\":false", NULL},
        {"\"transformers.js_config\":{\"dtype\":\"q4\"},\"neuron\":{\"batch_size\":1}", NULL},
        {"\"rope_traditional\":true", "\"rope_traditional\""},
        {"\"partial_rotary_factor\":0.5", NULL}, /* as transformers: whole heads are rotated */
        {"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"partial_rotary_factor\":0.5",
         "rotate whole heads"},
        {"\"rope_scaling\":{\"rope_type\":\"default\",\"type\":\"yarn\"}", NULL},
        {"\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8}", NULL},
        {"\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,\"truncate\":false}", NULL},
        {"\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,\"truncate\":3}", "\"truncate\""},
        {"\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,\"beta_fast\":-1}",
         "beta_fast is -1"},
        {"\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1,1],\"long_factor\":[2,9]"
         "}",
         NULL},
        {"\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1],\"long_factor\":[2,9]}",
         "short_factor has 1 and long_factor 2 numbers, expected 2"},
        {"\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1,0]}", "no divisor"},
        {"\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":2}", "is no list"},
        {"\"rope_scaling\":{\"rope_type\":\"su\",\"factor\":8}", "'su' is not known"},
        {"\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":1,\"alpha\":3}", "\"alpha\" is on"},
        {"\"num_local_experts\":8", "\"num_local_experts\""},
        {"\"sliding_window\":4", "\"sliding_window\" is on"},
        {"\"layer_types\":[\"sliding_attention\"]", "\"layer_types\" has sliding_attention"},
        {"\"layer_types\":[\"chunked_attention\"]", "\"layer_types\" has chunked_attention"},
        {"\"layer_types\":[\"full_attention\",\"full_attention\"]", "another number of layers"},
        {"\"layer_types\":3", "\"layer_types\" is no list"},
        {"\"no_such_member\":false", "\"no_such_member\" is not known"},
        {"\"no_such_member\":{\"a\":[1,2]}", "\"no_such_member\" is not known"},
        {"\"hidden_size\":null", "\"hidden_size\" is missing"},
        {"\"rms_norm_eps\":null", "\"rms_norm_eps\" is missing"},
        {"\"rope_scaling\":{\"rope_type\":\"linear\"}", "the member factor is missing"},
        {"\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}", "are not all said"},
        {"\"rope_scaling\":{\"full_attention\":{\"factor\":8}}", "\"full_attention\" is not known"},
        {"\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"rope_parameters\":{\"factor\":3}",
         "\"rope_parameters\" says once more"},
        {"\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}",
         "quantised by gptq in 4 bits"},
        {"\"quantization_config\":{\"load_in_4bit\":true,\"quant_method\":\"bitsandbytes\"}",
         "quantised by bitsandbytes, load_in_4bit"},
        {"\"quantization\":{\"group_size\":64,\"bits\":4}", "does not name in 4 bits"},
        {"\"model_type\":\"mamba\"", "architecture is mamba"},
        {"\"model_type\":\"gemma3n\",\"text_config\":{\"model_type\":\"gemma3n_text\"}",
         "architecture is gemma3n of more than text (text_config is of gemma3n_text)"},
        {"\"model_type\":\"qwen3\",\"head_dim\":4", "no tensor blk.0.attn_q_norm.weight"},
        {"\"model_type\":\"qwen2\"", "no tensor blk.0.attn_q.bias"},
        {"\"model_type\":\"qwen2\",\"attention_bias\":true", "\"attention_bias\" is on"},
        {"\"model_type\":\"mistral\",\"sliding_window\":0", "\"sliding_window\" is less than 1"},
    };
    const struct tandem_llama_shape shape = {sizeof(shape), 16, 24, 1, 4, 2, 8, 16, 0, 0, 0};
    tandem_source *made = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &made, NULL));
    CU_ASSERT_TRUE(tnd_model_write_safetensors(made, tnd_test_temp("model.safetensors"), 0, 1));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_member(made, cases[i].member, cases[i].part);
    }
    remove(tnd_test_temp("config.json"));
    tandem_source_close(made);
}

static void keys_of_a_gguf_file_are_used_harmless_or_refused_by_name(void)
{
    static const struct {
        const char *key;
        int64_t value;
        const char *part; /* NULL: it is computed */
    } cases[] = {
        {"llama.expert_count", 0, NULL},
        {"llama.attention.causal", 1, NULL},
        {"llama.attention.value_length", HEAD, NULL},
        {"general.file_type", 7, NULL},
        {"quantize.imatrix.chunks_count", 7, NULL},
        {"qwen2.no_such_key", 7, NULL},
        {"llama.expert_count", 8, "no llama.expert_used_count"},
        {"llama.expert_gating_func", 2, "key llama.expert_gating_func asks"},
        {"llama.attention.causal", 0, "key llama.attention.causal"},
        {"llama.attention.value_length", 6, "key llama.attention.value_length"},
        {"llama.no_such_key", 0, "key llama.no_such_key is not known"},
        {"llama.rope.scaling.type", 1, "key llama.rope.scaling.type has a value of another kind"},
        {"llama.attention.sliding_window_pattern", 2, "has a value of another kind"},
        {"llama.classifier.pooling_type", 1, NULL},
        {"tandem.scores_of_mean", 1, NULL},
        {"llama.classifier.pooling_type", 3, "llama.classifier.pooling_type is 3"},
        {"llama.hidden_activation", 1, "key llama.hidden_activation has a value of another kind"},
        {"tandem.no_such_key", 1, "key tandem.no_such_key"},
        {"tandem.has.output", 1, "no tensor output.weight"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_hparams h;
        struct tandem_error error = {0};
        tandem_source *source = numbers(NULL);
        set(source, cases[i].key, cases[i].value);
        add_tensors(source, NULL);
        if (cases[i].part != NULL) {
            check_refused(source, cases[i].part);
            continue;
        }
        check_status(tandem_source_hparams(source, &h, &error), TANDEM_OK, NULL, &error);
        const bool is_of_mean = strcmp(cases[i].key, "llama.classifier.pooling_type") == 0 ||
                                strcmp(cases[i].key, "tandem.scores_of_mean") == 0;
        check_int(h.scores_mean, is_of_mean);
        tandem_source_close(source);
    }
}

static CU_TestInfo llama_tests[] = {
    {"members_of_config_json_are_used_harmless_or_refused_by_name",
     members_of_config_json_are_used_harmless_or_refused_by_name},
    {"keys_of_a_gguf_file_are_used_harmless_or_refused_by_name",
     keys_of_a_gguf_file_are_used_harmless_or_refused_by_name},
    {"head_counts_that_do_not_fit_the_rows_are_refused",
     head_counts_that_do_not_fit_the_rows_are_refused},
    {"tensors_that_are_missing_unknown_or_of_another_shape_are_refused",
     tensors_that_are_missing_unknown_or_of_another_shape_are_refused},
    {"rotated rows in halves come out in adjacent pairs",
     rotated_rows_in_halves_come_out_in_adjacent_pairs},
    {"impossible_numbers_are_refused_whatever_the_file",
     impossible_numbers_are_refused_whatever_the_file},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_llama[] = {
    {"llama", NULL, NULL, NULL, NULL, llama_tests},
    CU_SUITE_INFO_NULL,
};
