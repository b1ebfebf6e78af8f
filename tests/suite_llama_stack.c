/* SPDX-License-Identifier: MIT
 * Public calls on small stacks: programs call us from threads of Go, Rust, Java and musl, whose
 * stacks are a few dozen KiB. Each call runs on a stack of its own that was filled with a pattern;
 * what is left of the pattern tells how much it took. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tandem/llama.h"
#include "tandem/tandem.h"
#include "tests/suite_llama.h"
#include "tests/support.h"
#include "tests/support_models.h"

enum { STACK_BYTES = 2 << 20, PATTERN = 0x5c, MOST_BYTES = 64 << 10 };

/* Debug builds and sanitizers have frames of their own. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FRAMES_ARE_PLAIN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef FRAMES_ARE_PLAIN
#endif
#endif

/* What the calls work on; each makes something for those behind it. */
static struct {
    tandem_runtime *runtime;
    tandem_source *source, *small;
    tandem_model *model;
    tandem_session *session;
    tandem_tokenizer *tokenizer;
    tandem_sampler *sampler;
    tandem_chat *chat;
    tandem_generator *generator;
    tandem_table *table, *other;
    tandem_context *context;
    tandem_graph *graph;
    tandem_plan *plan;
    const char *gguf, *safetensors, *torch, *llama2c, *tokens, *json, *state, *plan_file;
} on;

static int swallow(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return 0;
}

static bool swallow_answer(void *user, const char *text, size_t n)
{
    (void)user;
    (void)text;
    (void)n;
    return true;
}

/* ---- the calls; a status that is not OK is told ---- */

typedef enum tandem_status call_fn(void);

static enum tandem_status open_runtime(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 2;
    options.backends = "cpu,openblas,sim";
    options.table_path = on.json;
    return tandem_runtime_open(&options, &on.runtime, NULL);
}

static enum tandem_status save_table(void)
{
    enum tandem_status status = tandem_table_new(&on.table, NULL);
    return status == TANDEM_OK ? tandem_table_save(on.table, on.json, TANDEM_TABLE_JSON, NULL)
                               : status;
}

static enum tandem_status load_table(void)
{
    return tandem_table_load("bench-data/epyc-zen5-2-cores/table.json", &on.other, NULL);
}

static enum tandem_status merge_tables(void)
{
    tandem_table *copy = NULL;
    enum tandem_status status = tandem_table_copy(on.other, &copy, NULL);
    if (status == TANDEM_OK) {
        status = tandem_table_merge(copy, on.other, NULL);
        (void)tandem_table_check(copy, NULL);
        tandem_table_free(copy);
    }
    return status;
}

static enum tandem_status print_table(void)
{
    return tandem_table_print(on.other, TANDEM_TABLE_JSON, swallow, NULL, NULL);
}

static enum tandem_status set_table(void)
{
    return tandem_runtime_set_table(on.runtime, on.other, NULL);
}

static enum tandem_status build_graph(void)
{
    enum tandem_status status = tandem_context_new(NULL, &on.context, NULL);
    if (status != TANDEM_OK) {
        return status;
    }
    tandem_tensor *w = tandem_tensor_new_2d(on.context, TANDEM_TYPE_Q4_0, 256, 352);
    tandem_tensor *x = tandem_tensor_new_2d(on.context, TANDEM_TYPE_F32, 256, 8);
    memset(tandem_tensor_data(w), 0, tandem_tensor_bytes(w));
    memset(tandem_tensor_data(x), 0, tandem_tensor_bytes(x));
    on.graph = tandem_graph_new(on.context);
    tandem_graph_add(on.graph, tandem_silu(on.context, tandem_mul_mat(on.context, w, x)));
    return tandem_graph_finish(on.graph, NULL);
}

static enum tandem_status make_plan(void)
{
    return tandem_runtime_plan(on.runtime, on.graph, &on.plan, NULL);
}

static enum tandem_status compute(void)
{
    return tandem_runtime_compute(on.runtime, on.graph, on.plan, NULL, NULL);
}

static enum tandem_status compute_profiles(void)
{
    struct tandem_profile_info profiles[64];
    int n = tandem_runtime_profiles(on.runtime, profiles, 64);
    for (int i = 0; i < n; i++) {
        if (profiles[i].available) {
            (void)tandem_runtime_force_profile(on.runtime, profiles[i].name, NULL);
            (void)tandem_runtime_compute(on.runtime, on.graph, NULL, NULL, NULL);
        }
    }
    return tandem_runtime_force_profile(on.runtime, NULL, NULL);
}

static enum tandem_status print_plan(void)
{
    return tandem_runtime_print_plan(on.runtime, on.graph, on.plan, swallow, NULL);
}

static enum tandem_status explain(void)
{
    return tandem_runtime_explain(on.runtime, on.graph, NULL, swallow, NULL);
}

static enum tandem_status save_plan(void)
{
    return tandem_runtime_save_plan(on.runtime, on.graph, on.plan, on.plan_file, NULL);
}

static enum tandem_status load_plan(void)
{
    tandem_plan *plan = NULL;
    enum tandem_status status =
        tandem_runtime_load_plan(on.runtime, on.graph, on.plan_file, &plan, NULL);
    tandem_plan_free(plan);
    return status;
}

static enum tandem_status tune(void)
{
    struct tandem_tune_options options = TANDEM_TUNE_OPTIONS_INIT;
    options.budget_s = 0.05;
    /* Not the one of before, which was measured on another machine. */
    const enum tandem_status status = tandem_runtime_set_table(on.runtime, on.table, NULL);
    return status != TANDEM_OK ? status : tandem_tune_graph(on.runtime, on.graph, &options, NULL);
}

static enum tandem_status save_drift(void)
{
    return tandem_runtime_save_drift(on.runtime, on.json, NULL);
}

static enum tandem_status save_gguf(void)
{
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    options.converts = true;
    options.type = TANDEM_TYPE_Q4_0;
    return tandem_source_save_gguf(on.small, on.gguf, &options, NULL);
}

static enum tandem_status open_all_formats(void)
{
    const char *paths[] = {on.gguf, on.safetensors, on.torch, on.llama2c};
    for (int i = 0; i < 4; i++) {
        tandem_source *source = NULL;
        enum tandem_status status = tandem_source_open(paths[i], &source, NULL);
        if (status != TANDEM_OK) {
            printf("%s\n", paths[i]);
            return status;
        }
        tandem_source_close(source);
    }
    return tandem_source_open(on.gguf, &on.source, NULL);
}

static enum tandem_status convert(void)
{
    tandem_source *copy = NULL;
    enum tandem_status status = tandem_source_convert(on.small, TANDEM_TYPE_Q4_K, &copy, NULL);
    tandem_source_close(copy);
    return status;
}

static enum tandem_status open_model(void)
{
    return tandem_model_new(on.source, &on.model, NULL);
}

static enum tandem_status open_session(void)
{
    return tandem_session_new(on.model, on.runtime, NULL, &on.session, NULL);
}

static enum tandem_status decode(void)
{
    static const int32_t tokens[] = {1, 5, 9, 13, 7, 7, 7};
    return tandem_session_decode(on.session, tokens, 7, 0, NULL);
}

static enum tandem_status shift(void)
{
    return tandem_session_shift(on.session, 0, 1, 2, NULL);
}

static enum tandem_status save_session(void)
{
    return tandem_session_save(on.session, on.state, NULL);
}

static enum tandem_status load_session(void)
{
    return tandem_session_load(on.session, on.state, NULL);
}

static enum tandem_status open_tokenizer(void)
{
    return tandem_tokenizer_open(on.tokens, 0, &on.tokenizer, NULL);
}

static enum tandem_status encode(void)
{
    int32_t ids[64];
    size_t n = 0;
    char text[64];
    static const char words[] = "abc de fgh \xc3\xa4\xe2\x82\xac";
    enum tandem_status status =
        tandem_tokenizer_encode(on.tokenizer, words, strlen(words), true, ids, 64, &n, NULL);
    for (size_t i = 0; i < n && i < 64; i++) {
        (void)tandem_tokenizer_decode(on.tokenizer, -1, ids[i], text, sizeof(text));
    }
    return status;
}

static enum tandem_status sample(void)
{
    struct tandem_sampler_options options = {.size = sizeof(options),
                                             .vocabulary = 300,
                                             .temperature = 0.8F,
                                             .top_k = 40,
                                             .top_p = 0.9F,
                                             .min_p = 0.01F,
                                             .repeat_penalty = 1.1F,
                                             .seed = 1};
    enum tandem_status status = tandem_sampler_new(&options, &on.sampler, NULL);
    if (status == TANDEM_OK) {
        (void)tandem_sampler_keep_utf8(on.sampler, on.tokenizer, NULL);
        (void)tandem_sampler_sample(on.sampler, tandem_session_logits(on.session, 0));
    }
    return status;
}

static enum tandem_status chat(void)
{
    struct tandem_chat_options options = TANDEM_CHAT_OPTIONS_INIT;
    (void)tandem_session_rollback(on.session, 0, 0);
    options.session = on.session;
    options.sampler = on.sampler;
    options.tokenizer = on.tokenizer;
    options.max_answer = 4;
    options.emit = swallow_answer;
    enum tandem_status status = tandem_chat_new(&options, &on.chat, NULL);
    return status == TANDEM_OK ? tandem_chat_say(on.chat, "abc", 3, NULL) : status;
}

static enum tandem_status generate(void)
{
    static const int32_t prompt[] = {1, 5};
    struct tandem_generator_options options = TANDEM_GENERATOR_OPTIONS_INIT;
    char text[256];
    size_t n = 0;
    bool more = true;
    (void)tandem_session_rollback(on.session, 0, 0);
    options.session = on.session;
    options.sampler = on.sampler;
    options.tokenizer = on.tokenizer;
    options.prompt = prompt;
    options.n_prompt = 2;
    options.steps = 6;
    enum tandem_status status = tandem_generator_new(&options, &on.generator, NULL);
    while (status == TANDEM_OK && more) {
        status = tandem_generator_next(on.generator, text, sizeof(text), &n, &more, NULL);
    }
    return status;
}

static enum tandem_status close_all(void)
{
    tandem_generator_free(on.generator);
    tandem_chat_free(on.chat);
    tandem_sampler_free(on.sampler);
    tandem_tokenizer_close(on.tokenizer);
    tandem_session_free(on.session);
    tandem_model_free(on.model);
    tandem_source_close(on.source);
    tandem_source_close(on.small);
    tandem_plan_free(on.plan);
    tandem_runtime_close(on.runtime);
    tandem_context_free(on.context);
    tandem_table_free(on.table);
    tandem_table_free(on.other);
    return TANDEM_OK;
}

/* In an order in which each finds what it needs. */
static const struct {
    const char *name;
    call_fn *fn;
} calls[] = {
    {"table_save", save_table},
    {"runtime_open", open_runtime},
    {"table_load", load_table},
    {"table_merge", merge_tables},
    {"table_print", print_table},
    {"set_table", set_table},
    {"graph", build_graph},
    {"plan", make_plan},
    {"compute", compute},
    {"compute by each profile", compute_profiles},
    {"print_plan", print_plan},
    {"explain", explain},
    {"save_plan", save_plan},
    {"load_plan", load_plan},
    {"tune_graph", tune},
    {"save_drift", save_drift},
    {"save_gguf", save_gguf},
    {"source_open", open_all_formats},
    {"source_convert", convert},
    {"model_new", open_model},
    {"session_new", open_session},
    {"session_decode", decode},
    {"session_shift", shift},
    {"session_save", save_session},
    {"session_load", load_session},
    {"tokenizer_open", open_tokenizer},
    {"encode and decode", encode},
    {"sampler", sample},
    {"chat", chat},
    {"generator", generate},
    {"free and close", close_all},
};
enum { N_CALLS = sizeof(calls) / sizeof(calls[0]) };

/* ---- measuring ---- */

static enum tandem_status result;

static void *run_call(void *user)
{
    result = calls[*(const int *)user].fn();
    return NULL;
}

/* Bytes of stack that a call takes, those of a thread that does nothing included. */
static size_t stack_of(int i)
{
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned char *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t untouched = 0;
    CU_ASSERT_TRUE(stack != MAP_FAILED);
    memset(stack, PATTERN, STACK_BYTES);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    check_int(pthread_create(&thread, &attributes, run_call, &i), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    while (untouched < STACK_BYTES && stack[untouched] == PATTERN) {
        untouched++;
    }
    munmap(stack, STACK_BYTES);
    return STACK_BYTES - untouched;
}

static const char *path_of(const char *name)
{
    return strdup(tnd_test_temp(name));
}

static void prepare(void)
{
    on.small = tnd_small_llama(TANDEM_TYPE_F32, 128);
    on.gguf = path_of("stack.gguf");
    on.safetensors = path_of("stack.safetensors");
    on.torch = path_of("stack.pt");
    on.llama2c = path_of("stack.bin");
    on.tokens = path_of("stack-tokens.bin");
    on.json = path_of("stack-table.json");
    on.state = path_of("stack.state");
    on.plan_file = path_of("stack.plan");
    CU_ASSERT_TRUE(tnd_model_write_safetensors(on.small, on.safetensors, 0, 1));
    CU_ASSERT_TRUE(tnd_model_write_config(on.small, tnd_test_temp("config.json"), ""));
    CU_ASSERT_TRUE(tnd_model_write_torch_llama(on.small, on.torch, true));
    CU_ASSERT_TRUE(tnd_model_write_llama2c(on.small, on.llama2c));
    CU_ASSERT_TRUE(tnd_model_write_tokenizer(on.tokens, 300));
}

static void public_calls_run_on_64_kib_of_stack(void)
{
    const char *all = getenv("TANDEM_TEST_STACK"); /* tells every call's figure */
    prepare();
    for (int i = 0; i < N_CALLS; i++) {
        size_t bytes = stack_of(i);
        if (all != NULL) {
            printf("%-24s %7zu bytes of stack\n", calls[i].name, bytes);
        }
        if (result != TANDEM_OK) {
            printf("%s: %s\n", calls[i].name, tandem_status_name(result));
            CU_FAIL("a call failed");
        }
#if defined(FRAMES_ARE_PLAIN)
        if (bytes > MOST_BYTES) {
            printf("%s takes %zu bytes of stack\n", calls[i].name, bytes);
            CU_FAIL("a call takes more than 64 KiB of stack");
        }
#endif
    }
    const char *paths[] = {on.gguf,   on.safetensors, on.torch, on.llama2c,
                           on.tokens, on.json,        on.state, on.plan_file};
    for (int i = 0; i < 8; i++) {
        free((char *)paths[i]);
    }
}

static CU_TestInfo tests[] = {
    {"public_calls_run_on_64_kib_of_stack", public_calls_run_on_64_kib_of_stack},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_stack[];
CU_SuiteInfo suites_llama_stack[] = {
    {"stack", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
