/* SPDX-License-Identifier: MIT
 * The page of architectures is that of the rows, and a row costs few lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/hf_config.h"
#include "formats/hf_parts.h"
#include "formats/llama_tensors.h"
#include "tests/architectures-judged-list.h"
#include "tests/support.h"

/* An architecture that needs no new operation. */
enum { MOST_LINES = 60 };

static bool has(const struct tnd_llama_architecture *a, uint64_t groups)
{
    return (a->has & groups) != 0;
}

/* Lines of the row in `file` whose member is `value`: from `{.member = "value"` to the next row, or
 * the end of the list. */
static int lines_of(const char *file, const char *member, const char *value)
{
    char begin[96];
    char *text = tnd_test_read_file(file, NULL);
    int n = 0;
    snprintf(begin, sizeof(begin), "{.%s = \"%s\"", member, value);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    const char *at = strstr(text, begin);
    CU_ASSERT_PTR_NOT_NULL(at);
    while (at != NULL && *at != '\0' && strncmp(at, "\n    {.", 7) != 0 &&
           strncmp(at, "\n};", 3) != 0) {
        n += *at++ == '\n';
    }
    free(text);
    return n + 1;
}

static void add_norms(struct tnd_text *page, const struct tnd_llama_architecture *a)
{
    tnd_text_add(page, a->norm == TANDEM_LLAMA_LAYER_NORM ? "LayerNorm" : "RMS");
    tnd_text_add(page, has(a, TND_HAS(NORM_BIAS)) ? " with bias" : "");
    tnd_text_add(page, has(a, TND_HAS(SUM_NORM))              ? ", of x and what each block adds"
                       : (a->lacks & TND_HAS(ATTN_NORM)) != 0 ? ", behind each block only"
                       : has(a, TND_HAS(POST_NORM))           ? ", before and behind each block"
                                                              : "");
    tnd_text_add(page, has(a, TND_HAS(HEAD_NORM)) || (a->may & TND_HAS(HEAD_NORM)) != 0
                           ? "; of each head"
                           : "");
    tnd_text_add(page, (a->may & TND_HAS(HEAD_NORMS)) != 0 ? "; of each head, its own" : "");
    tnd_text_add(page, has(a, TND_HAS(WIDE_NORM)) ? "; of all heads" : "");
    tnd_text_add(page, a->norms_after_rope ? " behind rope" : "");
    tnd_text_add(page, a->is_first_bare ? ", none before the first attention" : "");
}

static void add_positions(struct tnd_text *page, const struct tnd_llama_architecture *a)
{
    if (has(a, TND_HAS(POSITIONS))) {
        tnd_text_add(page, has(a, TND_HAS(TOKEN_TYPES)) ? "learned, and of two texts" : "learned");
        return;
    }
    tnd_text_add(page, a->pairs == TANDEM_ROPE_HALVES ? "halves" : "adjacent");
    if (a->is_rotated_in_windows) {
        tnd_text_add(page, ", in layers with a window");
    }
    if (a->rope_period > 0) {
        tnd_text_printf(page, ", in %d of %d layers", a->rope_period - 1, a->rope_period);
    }
    if (a->window_freq_base > 0.0f) {
        tnd_text_printf(page, "; base %g where a layer has a window", (double)a->window_freq_base);
    }
    tnd_text_add(page, a->has_plain_windows ? "; not scaled where a layer has a window" : "");
}

static void add_attention(struct tnd_text *page, const struct tnd_llama_architecture *a)
{
    const size_t begin = page->n;
    const struct {
        bool is_so;
        const char *text;
    } rows[] = {
        {has(a, TND_HAS(FUSED_QKV)), "q, k, v in one matrix"},
        {has(a, TND_HAS(QKV_BIAS) | TND_HAS(FUSED_QKV_BIAS)), "biases"},
        {has(a, TND_HAS(SINKS)), "sinks"},
        {tnd_llama_lists(a->keys, "attn_logit_softcapping"), "capped scores"},
        {a->is_parallel, "beside the feed-forward network"},
        {a->is_encoder, "of tokens behind, too (an encoder)"},
        {a->is_latent, "keys and values of a latent vector"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_so) {
            tnd_text_printf(page, "%s%s", page->n > begin ? ", " : "", rows[i].text);
        }
    }
    if (a->window_period > 0) {
        tnd_text_printf(page, "%sa window %sin %d of %d layers", page->n > begin ? ", " : "",
                        a->is_encoder ? "on both sides " : "", a->window_period - 1,
                        a->window_period);
    }
}

static void add_feed_forward(struct tnd_text *page, const struct tnd_llama_architecture *a)
{
    static const char *const names[] = {
        [TANDEM_ACTIVATION_SILU] = "silu",           [TANDEM_ACTIVATION_GELU] = "gelu",
        [TANDEM_ACTIVATION_GELU_TANH] = "gelu_tanh", [TANDEM_ACTIVATION_CLAMPED] = "clamped silu",
        [TANDEM_ACTIVATION_RELU2] = "relu squared",
    };
    tnd_text_add(page, names[a->activation]);
    tnd_text_add(page, has(a, TND_HAS(FUSED_FFN))          ? ", W1 and W3 in one matrix"
                       : (a->lacks & TND_HAS(FFN_W1)) != 0 ? ", no W1"
                                                           : "");
    if (a->must_have_experts || a->may_have_experts) {
        tnd_text_printf(page, "; %sexperts by %s", a->may_have_experts ? "or " : "",
                        a->may_have_sigmoid                  ? "softmax or sigmoid, in groups"
                        : a->router == TANDEM_ROUTER_SIGMOID ? "sigmoid"
                                                             : "softmax");
        tnd_text_add(page, has(a, TND_HAS(SHARED)) ? ", a shared one" : "");
        tnd_text_add(page, has(a, TND_HAS(EXPERT_BIAS)) ? " with biases" : "");
    }
}

static void add_scales(struct tnd_text *page, const struct tnd_llama_architecture *a)
{
    const size_t begin = page->n;
    static const char *const keys[] = {"embedding_scale", "residual_scale", "attention.scale",
                                       "logit_scale", "final_logit_softcapping"};
    tnd_text_add(page, a->scales_embedding ? "embedding by sqrt(dim)" : "");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (tnd_llama_lists(a->keys, keys[i])) {
            tnd_text_printf(page, "%s`%s`", page->n > begin ? ", " : "", keys[i]);
        }
    }
}

static void add_judged(struct tnd_text *page)
{
    static const struct {
        const char *name;
        int equal, configurations, equal_tensors, tensors, equal_members, members, silent;
    } rows[] = {
#define JUDGED(...) {__VA_ARGS__},
        TND_JUDGED(JUDGED)
#undef JUDGED
    };
    int total[7] = {0};
    tnd_text_add(
        page, "\n## Judged by transformers\n\n"
              "`make judges JOBS=models` compares small random models with transformers in F32: "
              "random configurations\n"
              "(logits within 2e-4, and the likeliest text), every tensor removed, added and "
              "reshaped once, every member of\n"
              "config.json changed once. What is not equal is refused by name, or by transformers "
              "alone; silent is what\n"
              "differs without a word. " TND_JUDGED_WITH ":\n\n"
              "| `model_type` | configurations equal | changed tensors equal | changed members "
              "equal | silent |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tnd_text_printf(page, "| `%s` | %d of %d | %d of %d | %d of %d | %d |\n", rows[i].name,
                        rows[i].equal, rows[i].configurations, rows[i].equal_tensors,
                        rows[i].tensors, rows[i].equal_members, rows[i].members, rows[i].silent);
        const int row[7] = {rows[i].equal,   rows[i].configurations, rows[i].equal_tensors,
                            rows[i].tensors, rows[i].equal_members,  rows[i].members,
                            rows[i].silent};
        for (int k = 0; k < 7; k++) {
            total[k] += row[k];
        }
        CU_ASSERT_TRUE(tnd_hf_family_of(rows[i].name) != NULL ||
                       tnd_hf_whole_of(rows[i].name) != NULL);
    }
    tnd_text_printf(page, "| all | %d of %d | %d of %d | %d of %d | %d |\n", total[0], total[1],
                    total[2], total[3], total[4], total[5], total[6]);
}

/* docs/architectures.md is made from the rows; TANDEM_TEST_UPDATE=1 writes it anew. */
static void the_page_of_architectures_is_that_of_the_rows(void)
{
    static const char path[] = "docs/architectures.md";
    const char *update = getenv("TANDEM_TEST_UPDATE");
    struct tnd_text page = TND_TEXT_INIT;
    tnd_text_add(
        &page, "# Architectures\n\n"
               "The models that Tandem computes, for users who look for theirs and engineers who "
               "add one. One forward\n"
               "pass (llama/forward.c) serves all; an architecture is a row of "
               "formats/llama_architectures.c, and a\n"
               "`model_type` of Hugging Face a row of formats/hf_families.c. This page is made "
               "from the rows, with the\n"
               "lines that each costs. A model of another architecture, or one with a key, "
               "member or tensor that its\n"
               "row does not allow, is refused by name.\n\n"
               "`general.architecture` is the name in GGUF files. Rope turns halves of a head or "
               "adjacent values of it,\n"
               "as GGUF files have their rows.\n\n"
               "| architecture | norms | positions | attention | feed-forward network | scales and "
               "caps | lines |\n|---|---|---|---|---|---|---|\n");
    for (int i = 0; tnd_llama_architecture_at(i) != NULL; i++) {
        const struct tnd_llama_architecture *a = tnd_llama_architecture_at(i);
        const int n = lines_of("formats/llama_architectures.c", "name", a->name);
        CU_ASSERT_TRUE(n <= MOST_LINES);
        tnd_text_printf(&page, "| `%s` | ", a->name);
        add_norms(&page, a);
        tnd_text_add(&page, " | ");
        add_positions(&page, a);
        tnd_text_add(&page, " | ");
        add_attention(&page, a);
        tnd_text_add(&page, " | ");
        add_feed_forward(&page, a);
        tnd_text_add(&page, " | ");
        add_scales(&page, a);
        tnd_text_printf(&page, " | %d |\n", n);
    }
    tnd_text_add(&page,
                 "\nFrom safetensors or PyTorch files beside a config.json:\n\n"
                 "| `model_type` | becomes | changed on the way | lines |\n|---|---|---|---|\n");
    for (int i = 0; tnd_hf_family_at(i) != NULL; i++) {
        const struct tnd_hf_family *f = tnd_hf_family_at(i);
        const struct tnd_llama_architecture *a = tnd_llama_architecture_of(f->architecture);
        const int n = lines_of("formats/hf_families.c", "model_type", f->model_type);
        CU_ASSERT_PTR_NOT_NULL_FATAL(a);
        CU_ASSERT_TRUE(n + lines_of("formats/llama_architectures.c", "name", a->name) <=
                       MOST_LINES);
        tnd_text_printf(&page, "| `%s` | `%s` | %s%s%s%s%s%s | %d |\n", f->model_type,
                        f->architecture, f->adds_one ? "1 is added to the weights of norms" : "",
                        f->transposes != NULL ? "matrices are transposed" : "",
                        f->parts_experts ? "experts are parted and transposed" : "",
                        f->groups_qkv ? "rows of q, k, v are put in order" : "",
                        f->is_latent ? "what keys and values are made by is parted" : "",
                        f->pads_positions ? "positions that are never used are left out" : "", n);
    }
    tnd_text_add(&page, "\nRefused by name: Mamba, Bamba and other models with a state in place of "
                        "attention, Qwen3-Next,\n"
                        "and models of more than text but those whose text is read:\n\n"
                        "| `model_type` | `model_type` of its text |\n|---|---|\n");
    for (int i = 0; tnd_hf_whole_at(i) != NULL; i++) {
        const struct tnd_hf_whole *whole = tnd_hf_whole_at(i);
        tnd_text_printf(&page, "| `%s` | `%s`%s |\n", whole->model_type, whole->text,
                        whole->has_one_text ? "" : ", or another of a decoder above");
    }
    tnd_text_add(&page,
                 "\nTheir tensors of images are left out, and a note of the tools says so.\n");
    add_judged(&page);
    if (update != NULL && strcmp(update, "1") == 0) {
        CU_ASSERT_TRUE(tnd_test_write_file(path, page.bytes, page.n));
    }
    char *got = tnd_test_read_file(path, NULL);
    check_string(got, tnd_text_string(&page));
    free(got);
    tnd_text_fini(&page);
}

static CU_TestInfo architecture_tests[] = {
    {"the_page_of_architectures_is_that_of_the_rows",
     the_page_of_architectures_is_that_of_the_rows},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_architectures[] = {
    {"architectures", NULL, NULL, NULL, NULL, architecture_tests},
    CU_SUITE_INFO_NULL,
};
