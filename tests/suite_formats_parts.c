/* SPDX-License-Identifier: MIT
 * Models of more than text: their text is read as a file of the text alone is, whatever else the
 * files hold; what cannot be read so is refused by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/source.h"
#include "tests/support.h"
#include "tests/support_models.h"

#define MODEL  tnd_test_temp("model.safetensors")
#define CONFIG tnd_test_temp("config.json")
#define IMAGES ",\"vision_config\":{\"hidden_size\":9}"

/* Every `from` in place becomes `to`. */
static char *replaced(const char *text, const char *from, const char *to)
{
    char *out = calloc(1, 4 * strlen(text) + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    for (const char *found; (found = strstr(text, from)) != NULL; text = found + strlen(from)) {
        strncat(out, text, (size_t)(found - text));
        strcat(out, to);
    }
    return strcat(out, text);
}

/* Names of the file's tensors with other beginnings, and one more tensor, of no bytes. */
static void rename_tensors(const char *model, const char *head, const char *more)
{
    size_t n = 0;
    uint64_t n_header = 0;
    uint8_t *bytes = tnd_test_read_file(MODEL, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    memcpy(&n_header, bytes, sizeof(n_header));
    char *header = calloc(1, (size_t)n_header + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(header);
    memcpy(header, bytes + 8, (size_t)n_header);
    char *once = replaced(header, "\"model.", model);
    char *twice = replaced(once, "\"lm_head.", head);
    struct tnd_blob file = {NULL, 0};
    char line[128];
    snprintf(line, sizeof(line),
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},", more);
    const size_t length = strlen(line) + strlen(twice) - 1;
    tnd_blob_number(&file, length, 8);
    tnd_blob_string(&file, line);
    tnd_blob_string(&file, twice + 1);
    tnd_blob_add(&file, bytes + 8 + n_header, n - 8 - (size_t)n_header);
    CU_ASSERT_TRUE(tnd_test_write_file(MODEL, file.bytes, file.n));
    tnd_blob_free(&file);
    free(twice);
    free(once);
    free(header);
    free(bytes);
}

static void write_config(const tandem_source *made, const char *type, const char *inside,
                         const char *beside)
{
    char *whole = calloc(1, 4096);
    CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
    CU_ASSERT_TRUE(tnd_model_write_config(made, CONFIG, inside));
    char *text = tnd_test_read_file(CONFIG, NULL);
    snprintf(whole, 4096, "{\"model_type\":\"%s\",\"text_config\":%s%s}", type, text, beside);
    CU_ASSERT_TRUE(tnd_test_write_file(CONFIG, whole, strlen(whole)));
    free(text);
    free(whole);
}

static enum tandem_status open_it(tandem_source **out, struct tandem_error *error)
{
    struct tandem_hparams h;
    const enum tandem_status status = tandem_source_open(MODEL, out, error);
    return status == TANDEM_OK ? tandem_source_hparams(*out, &h, error) : status;
}

/* `part` NULL: the text's tensors are those of `made`. */
static void check_text(const tandem_source *made, const char *part)
{
    struct tandem_error error = {.text = ""};
    tandem_source *source = NULL;
    const char *whole = "";
    const enum tandem_status status = open_it(&source, &error);
    check_contains(error.text, part != NULL ? part : "");
    CU_ASSERT_EQUAL(status == TANDEM_OK, part == NULL);
    if (status == TANDEM_OK) {
        check_int(tandem_source_tensor_count(source), tandem_source_tensor_count(made));
        CU_ASSERT_TRUE(tandem_source_text(source, "general.text_of", &whole));
    }
    tandem_source_close(source);
}

static tandem_source *make(void)
{
    const struct tandem_llama_shape shape = {sizeof(shape), 16, 24, 1, 4, 2, 8, 16, 0, 0, 0};
    tandem_source *made = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &made, NULL));
    CU_ASSERT_TRUE(tnd_model_write_safetensors(made, MODEL, 0, 1));
    return made;
}

static void the_text_of_a_model_of_more_is_read(void)
{
    static const struct {
        const char *model, *head, *more;
    } names[] = {
        {"\"language_model.model.", "\"language_model.lm_head.", "vision_tower.a.weight"},
        {"\"model.language_model.", "\"lm_head.", "model.vision_tower.a.weight"},
        {"\"model.language_model.", "\"lm_head.", "model.multi_modal_projector.a.bias"},
        {"\"model.text_model.", "\"lm_head.", "model.connector.a"},
        {"\"language_model.model.", "\"language_model.lm_head.", "image_newline"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tandem_source *made = make();
        rename_tensors(names[i].model, names[i].head, names[i].more);
        write_config(made, "llava", "",
                     IMAGES
                     ",\"vocab_size\":7,\"eos_token_id\":[1,5],\"tie_word_embeddings\":false");
        check_text(made, NULL);
        tandem_source_close(made);
    }
    remove(CONFIG);
}

/* Whoever says null leaves it to the text. */
static void tokens_beside_the_text_count_unless_they_are_null(void)
{
    static const struct {
        const char *beside;
        int32_t bos, end;
    } cases[] = {
        {IMAGES, 3, 4},
        {IMAGES ",\"eos_token_id\":null,\"bos_token_id\": null", 3, 4},
        {IMAGES ",\"eos_token_id\":[6],\"bos_token_id\":5", 5, 6},
    };
    tandem_source *made = make();
    rename_tensors("\"language_model.model.", "\"language_model.lm_head.", "vision_tower.a");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {.text = ""};
        tandem_source *source = NULL;
        int64_t bos = -1, end = -1;
        write_config(made, "llava", "\"bos_token_id\":3,\"eos_token_id\":4", cases[i].beside);
        check_status(open_it(&source, &error), TANDEM_OK, NULL, &error);
        CU_ASSERT_TRUE(tandem_source_integer(source, "tokenizer.ggml.bos_token_id", &bos));
        CU_ASSERT_TRUE(tandem_source_integer(source, "tokenizer.ggml.eos_token_id", &end));
        check_int(bos, cases[i].bos);
        check_int(end, cases[i].end);
        tandem_source_close(source);
    }
    tandem_source_close(made);
    remove(CONFIG);
}

static void what_is_not_its_text_is_refused_by_name(void)
{
    static const struct {
        const char *type, *inside, *beside, *part;
    } cases[] = {
        {"llava", "\"use_cache\":true", IMAGES, NULL},
        {"llava", "\"model_type\":\"ministral3\"", IMAGES,
         "llava of more than text (text_config is of ministral3)"},
        {"llava", "\"model_type\":\"bert\"", IMAGES, "text_config is of bert"},
        {"gemma3", "", IMAGES, "gemma3 of more than text (text_config is of llama)"},
        {"qwen2_vl", "", IMAGES, "qwen2_vl of more than text (text_config is of llama)"},
        {"llava", "\"no_such_member\":1", IMAGES, "\"no_such_member\" is not known"},
        {"llava", "", IMAGES ",\"no_such_member\":1", "\"no_such_member\" is not known"},
        {"llava", "", IMAGES ",\"hidden_size\":8", "\"hidden_size\""},
        {"llava", "", IMAGES ",\"rope_scaling\":{\"type\":\"linear\"}", "\"rope_scaling\""},
        {"llava", "\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":3}", IMAGES,
         "quantised by gptq in 3 bits"},
        {"llava", "", IMAGES ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":3}",
         "quantised by gptq in 3 bits"},
        {"llava", "\"model_type\":\"granite\",\"logits_scaling\":8", IMAGES, "\"logit_scale\""},
        {"llava", "\"model_type\":\"gemma2\"", IMAGES, "\"final_logit_softcapping\""},
    };
    tandem_source *made = make();
    rename_tensors("\"language_model.model.", "\"language_model.lm_head.", "vision_tower.a");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_config(made, cases[i].type, cases[i].inside, cases[i].beside);
        check_text(made, cases[i].part);
    }
    tandem_source_close(made);
    made = make(); /* names of a model of text alone, which transformers would not find */
    write_config(made, "llava", "", IMAGES);
    check_text(made, "no tensor token_embd.weight");
    rename_tensors("\"language_model.model.", "\"language_model.lm_head.", "audio_tower.a");
    check_text(made, "audio_tower.a");
    tandem_source_close(made);
    remove(CONFIG);
}

static CU_TestInfo parts_tests[] = {
    {"the_text_of_a_model_of_more_is_read", the_text_of_a_model_of_more_is_read},
    {"tokens_beside_the_text_count_unless_they_are_null",
     tokens_beside_the_text_count_unless_they_are_null},
    {"what_is_not_its_text_is_refused_by_name", what_is_not_its_text_is_refused_by_name},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_parts[] = {
    {"models of more than text", NULL, NULL, NULL, NULL, parts_tests},
    CU_SUITE_INFO_NULL,
};
