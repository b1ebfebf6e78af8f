/* SPDX-License-Identifier: MIT
 * Advice for another program: what bytes, the table's times and the program's own times lead to;
 * its benchmark's lines, which may hold anything; and running it, whatever it does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support_tune.h"
#include "tools/report/advise.h"
#include "tools/report/llama_bench.h"
#include "tools/run_program.c"

static const int64_t MIB = 1 << 20;

static struct tnd_advise_model model;
static struct tnd_advice advice;
static tandem_table *table;

/* 4 layers of 64 MiB, logits of 64 MiB; with experts 8 of 128 MiB together in each layer. */
static void begin(int experts)
{
    memset(&model, 0, sizeof(model));
    snprintf(model.name, sizeof(model.name), "m.gguf");
    model.n_layers = 4;
    model.output_bytes = 64 * MIB;
    model.experts = experts;
    model.experts_used = experts / 4;
    model.bytes = 320 * MIB;
    for (int i = 0; i < model.n_layers; i++) {
        model.layers[i].dense_bytes = 64 * MIB;
        model.layers[i].expert_bytes = experts > 0 ? 128 * MIB : 0;
        model.layers[i].kv_values = 1024;
        model.bytes += model.layers[i].expert_bytes;
    }
    model.weights = 2 * model.bytes;
    table = tune_new();
    table->fingerprint.n_cpus = 4;
    table->fingerprint.l3_bytes = 32 << 20; /* not this machine's, which may hold the model */
}

static void end(void)
{
    tandem_table_free(table);
}

static void advise(double device_mib, int64_t context)
{
    const struct tnd_advise_request request = {table, &model, device_mib * (double)MIB, context};
    tnd_advise(&request, &advice);
}

static bool says(bool is_unknown, const char *part)
{
    for (int i = 0; i < advice.n_reasons; i++) {
        if (advice.reasons[i].is_unknown == is_unknown &&
            strstr(advice.reasons[i].text, part) != NULL) {
            return true;
        }
    }
    return false;
}

/* Its own time of the model. */
static struct tnd_program_time own_time(bool generates, int threads, double tps)
{
    struct tnd_program_time time;
    memset(&time, 0, sizeof(time));
    time.when = 100;
    snprintf(time.program, sizeof(time.program), "llama.cpp");
    snprintf(time.version, sizeof(time.version), "7321 (c0ffee1)");
    snprintf(time.backends, sizeof(time.backends), "CPU");
    snprintf(time.device, sizeof(time.device), "none");
    snprintf(time.cache, sizeof(time.cache), "f16");
    time.bytes = model.bytes;
    time.weights = model.weights;
    time.prompt = generates ? 0 : 512;
    time.generated = generates ? 32 : 0;
    time.threads = threads;
    time.ubatch = 512;
    time.repack = true;
    time.median_us = 1e6 * (generates ? 32 : 512) / tps;
    time.count = 3;
    return time;
}

static void add_time(struct tnd_program_time time)
{
    check_ok(tnd_record_add(table, TND_RECORD_PROGRAMS, &time));
}

static void add_threads(void)
{
    add_time(own_time(true, 1, 20));
    add_time(own_time(true, 2, 30));
    add_time(own_time(true, 4, 30.3));
    add_time(own_time(false, 1, 100));
    add_time(own_time(false, 2, 200));
    add_time(own_time(false, 4, 300));
}

/* ---- placement ---- */

static void whole_layers_fill_a_device_from_the_logits_down(void)
{
    begin(0);
    advise(1000 * 4. / 3, 16); /* a quarter stays free: 1000 MiB */
    check_int(advice.layers, 5);
    advise(200 * 4. / 3, 16); /* logits and two layers */
    check_int(advice.layers, 3);
    check_int(advice.expert_layers, 0);
    CU_ASSERT_TRUE(says(false, "the logits and the last 2 of 4 layers"));
    advise(10, 16);
    check_int(advice.layers, 0);
    advise(0, 16);
    check_int(advice.layers, -1);
    CU_ASSERT_TRUE(says(true, "--device-memory"));
    end();
}

static void experts_leave_the_device_before_anything_else_does(void)
{
    begin(8);
    advise(1000 * 4. / 3, 16); /* all: 320 + 512 */
    check_int(advice.layers, 5);
    check_int(advice.expert_layers, 0);
    advise(600 * 4. / 3, 16); /* 320, and experts of two layers */
    check_int(advice.layers, 5);
    check_int(advice.expert_layers, 2);
    advise(300 * 4. / 3, 16); /* not even the rest of all layers */
    check_int(advice.layers, 4);
    check_int(advice.expert_layers, 4);
    end();
}

/* 1,024 values of 2 bytes a token and layer. */
static void smaller_keys_and_values_are_advised_where_they_bring_more_onto_the_device(void)
{
    begin(0);
    advise(400 * 4. / 3, 8192); /* 320 and 64 */
    CU_ASSERT_EQUAL(advice.cache, TANDEM_TYPE_F16);
    advise(400 * 4. / 3, 16384); /* 320 and 128, or 68 */
    CU_ASSERT_EQUAL(advice.cache, TANDEM_TYPE_Q8_0);
    check_int(advice.layers, 5);
    CU_ASSERT_TRUE(says(false, "-ctk q8_0"));
    end();
}

/* ---- times ---- */

static void without_its_own_times_the_advice_says_what_it_cannot_tell(void)
{
    begin(0);
    const struct tnd_peak peak = {"read", 4, 50, 9, 100};
    check_ok(tnd_table_add_peak(table, &peak));
    advise(0, 16);
    check_int(advice.ubatch, 0);
    CU_ASSERT_FALSE(advice.knows_repack);
    CU_ASSERT_TRUE(advice.prompt_tps == 0 && advice.generation_tps == 0);
    CU_ASSERT_DOUBLE_EQUAL(advice.generation_range[1], 50e9 / (320.0 * (double)MIB), 1e-6);
    CU_ASSERT_TRUE(says(true, "-ub"));
    CU_ASSERT_TRUE(says(true, "--no-repack"));
    CU_ASSERT_TRUE(says(true, "--measure"));
    CU_ASSERT_TRUE(says(true, "mulmat-tune bench"));
    end();
}

static void its_own_times_choose_threads_and_predict_the_speed(void)
{
    begin(0);
    add_threads();
    advise(0, 16);
    check_int(advice.threads, 2); /* 4 are within 2 % of it */
    check_int(advice.batch_threads, 4);
    check_int(advice.ubatch, 512);
    CU_ASSERT_DOUBLE_EQUAL(advice.generation_tps, 30, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(advice.prompt_tps, 300, 1e-9);
    CU_ASSERT_TRUE(advice.prompt_range[0] < 300 && advice.prompt_range[1] > 300);
    check_string(advice.version, "llama.cpp 7321 (c0ffee1), CPU");
    end();
}

static void a_batch_or_weights_as_they_are_must_be_clearly_faster(void)
{
    begin(0);
    add_threads();
    struct tnd_program_time time = own_time(false, 4, 304);
    time.ubatch = 128;
    add_time(time);
    time = own_time(false, 4, 305);
    time.repack = false;
    add_time(time);
    time = own_time(true, 2, 30);
    time.repack = false;
    add_time(time);
    advise(0, 16);
    check_int(advice.ubatch, 512);
    CU_ASSERT_TRUE(advice.knows_repack && advice.repack);
    time = own_time(false, 4, 400);
    time.ubatch = 2048;
    add_time(time);
    time = own_time(true, 2, 40);
    time.repack = false;
    time.when = 101;
    add_time(time);
    advise(0, 16);
    check_int(advice.ubatch, 2048);
    CU_ASSERT_TRUE(advice.knows_repack && !advice.repack);
    end();
}

static void a_device_that_does_not_pay_is_not_advised(void)
{
    begin(0);
    add_threads();
    advise(2000, 16);
    check_int(advice.layers, 5);
    CU_ASSERT_TRUE(says(true, "whether the device pays"));
    struct tnd_program_time time = own_time(true, 2, 5);
    time.layers = 5;
    add_time(time);
    time = own_time(false, 2, 310);
    time.layers = 5;
    add_time(time);
    advise(2000, 16);
    check_int(advice.layers, 0);
    CU_ASSERT_DOUBLE_EQUAL(advice.generation_tps, 30, 1e-9);
    end();
}

static void times_of_an_older_version_do_not_count_beside_newer_ones(void)
{
    begin(0);
    add_threads();
    struct tnd_program_time time = own_time(true, 1, 25);
    snprintf(time.version, sizeof(time.version), "7400 (beef)");
    time.when = 200;
    add_time(time);
    advise(0, 16);
    check_int(advice.threads, 1);
    CU_ASSERT_DOUBLE_EQUAL(advice.generation_tps, 25, 1e-9);
    CU_ASSERT_TRUE(advice.prompt_tps == 0);
    end();
}

static void times_of_another_model_are_scaled_and_said_to_be(void)
{
    begin(0);
    add_threads();
    model.bytes *= 2;
    model.weights *= 2;
    model.output_bytes *= 2;
    for (int i = 0; i < model.n_layers; i++) {
        model.layers[i].dense_bytes *= 2;
    }
    advise(0, 16);
    CU_ASSERT_FALSE(advice.has_times);
    CU_ASSERT_DOUBLE_EQUAL(advice.generation_tps, 0.5 * 30.3, 1e-6);
    CU_ASSERT_TRUE(says(false, "another model"));
    check_int(advice.ubatch, 0);
    end();
}

#ifdef TND_HAVE_CJSON

/* A table of a machine with a device; the shapes are those of the 7B model. */
static void weights_move_to_a_device_from_the_tokens_on_that_the_table_says(void)
{
    struct tandem_error error = {0};
    begin(0);
    tandem_table_free(table);
    check_ok(tandem_table_load("bench-data/server-a100-computed/table.json", &table, &error));
    check_ok(tnd_shapes_count(&model.dense, TANDEM_TYPE_Q4_0, 4096, 4096, 4, &error));
    const int64_t m = tnd_advise_offload_m(table, &model, 8, 4096);
    CU_ASSERT_TRUE(m > 1);
    advise(200 * 4. / 3, 16);
    CU_ASSERT_TRUE(advice.offload_m > 0);
    struct tnd_text command = TND_TEXT_INIT;
    const struct tnd_advise_request request = {table, &model, 1e8, 16};
    tnd_advise_command(&request, &advice, &command);
    check_contains(tnd_text_string(&command), "GGML_OP_OFFLOAD_MIN_BATCH=");
    tnd_text_fini(&command);
    end();
}

#endif

/* ---- what is printed ---- */

static void the_command_line_quotes_names_for_a_shell(void)
{
    struct tnd_text text = TND_TEXT_INIT;
    begin(0);
    snprintf(model.name, sizeof(model.name), "a b'c.gguf");
    add_threads();
    advise(2000, 16);
    const struct tnd_advise_request request = {table, &model, 0, 16};
    tnd_advise_command(&request, &advice, &text);
    check_string(tnd_text_string(&text), "llama-cli -m 'a b'\\''c.gguf' -c 16 -t 2 -tb 4 -ngl 5");
    tnd_text_clear(&text);
    tnd_advise_json(&request, &advice, "", &text);
    check_contains(tnd_text_string(&text), "\"gpu_layers\": 5");
    check_contains(tnd_text_string(&text), "\"prompt_tps\": null");
    tnd_text_clear(&text);
    tnd_advise_text(&request, &advice, &text);
    check_contains(tnd_text_string(&text), "What this cannot tell:");
    tnd_text_fini(&text);
    end();
}

/* ---- the model ---- */

static void a_models_bytes_are_counted_by_what_they_are(void)
{
    struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 2, 4, 2, 100, 32, 0, 0, 0};
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_Q4_0, 1, &source, NULL));
    check_ok(tnd_advise_model_read(source, "tiny", &model, NULL));
    check_int(model.n_layers, 2);
    check_int(model.layers[1].kv_values, 2 * 2 * 16);
    check_int(model.context, 32);
    check_int(model.experts, 0);
    int64_t bytes = model.embedding_bytes + model.output_bytes;
    for (int i = 0; i < model.n_layers; i++) {
        bytes += model.layers[i].dense_bytes;
    }
    check_int(bytes, model.bytes);
    CU_ASSERT_TRUE(model.dense.count >= 4);
    tandem_source_close(source);
}

/* ---- llama-bench's lines ---- */

#ifdef TND_HAVE_CJSON

#define LINE(more)                                                                                 \
    "{\"build_commit\": \"c0ffee1\", \"build_number\": 7321, \"backends\": \"CPU\", "              \
    "\"gpu_info\": \"\", \"type_k\": \"f16\", \"model_size\": 4096, \"model_n_params\": 8192, "    \
    "\"n_threads\": 2, \"n_ubatch\": 512, \"n_gpu_layers\": 0, " more "}"

static enum tandem_status read_line(const char *line, struct tnd_program_time *out,
                                    struct tandem_error *error)
{
    return tnd_llama_bench_read(line, strlen(line), 100, out, error);
}

static void a_line_of_llama_bench_becomes_a_record(void)
{
    struct tnd_program_time time;
    check_ok(read_line(LINE("\"n_prompt\": 512, \"n_gen\": 0, \"samples_ns\": [1000, 5000, 2000]"),
                       &time, NULL));
    check_string(time.version, "7321 (c0ffee1)");
    check_string(time.device, "none");
    check_int(time.prompt, 512);
    check_int(time.count, 3);
    CU_ASSERT_TRUE(time.median_us == 2 && time.spread_us == 1);
    CU_ASSERT_TRUE(time.repack && !time.no_op_offload);
    check_ok(read_line(LINE("\"n_prompt\": 0, \"n_gen\": 32, \"samples_ns\": [1000, 3000], "
                            "\"repack\": false, \"no_op_offload\": 1, \"n_cpu_moe\": 3"),
                       &time, NULL));
    CU_ASSERT_TRUE(time.median_us == 2 && !time.repack && time.no_op_offload);
    check_int(time.expert_layers, 3);
}

static void lines_that_no_llama_bench_prints_are_refused_with_the_reason(void)
{
    static const char *const lines[][2] = {
        {"", "llama-bench"},
        {"[]", "llama-bench"},
        {"{\"n_prompt\": 1}", "backends"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 32, \"samples_ns\": [1]"), "n_prompt"},
        {LINE("\"n_prompt\": 0, \"n_gen\": 0, \"samples_ns\": [1]"), "n_prompt"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 0, \"n_depth\": 8, \"samples_ns\": [1]"), "n_prompt"},
        {LINE("\"n_prompt\": -1, \"n_gen\": 0, \"samples_ns\": [1]"), "n_prompt"},
        {LINE("\"n_prompt\": 1e300, \"n_gen\": 0, \"samples_ns\": [1]"), "n_prompt"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 0, \"samples_ns\": []"), "samples_ns"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 0, \"samples_ns\": [0]"), "samples_ns"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 0, \"samples_ns\": [1, \"2\"]"), "samples_ns"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 0, \"samples_ns\": 5"), "samples_ns"},
        {LINE("\"n_prompt\": 512, \"n_gen\": 0, \"repack\": 2, \"samples_ns\": [1]"), "repack"},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct tandem_error error = {0};
        struct tnd_program_time time = {.threads = 77};
        CU_ASSERT_TRUE(read_line(lines[i][0], &time, &error) != TANDEM_OK);
        check_contains(error.text, lines[i][1]);
        check_int(time.threads, 77);
    }
    char *many = malloc(70000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(many);
    memset(many, ' ', 70000);
    struct tandem_error error = {0};
    struct tnd_program_time time;
    check_status(tnd_llama_bench_read(many, 70000, 1, &time, &error), TANDEM_E_LIMIT, "line",
                 &error);
    free(many);
}

/* A GPU's name may be longer than what a record holds; it is cut between characters. */
static void long_names_are_cut(void)
{
    struct tnd_program_time time;
    char line[1024];
    char name[200] = "";
    for (int i = 0; i < 40; i++) {
        strcat(name, "\xc3\xa4");
    }
    snprintf(line, sizeof(line),
             "{\"backends\": \"CUDA,BLAS,Vulkan,Metal,SYCL,OpenCL,RPC\", \"gpu_info\": \"x%s\", "
             "\"type_k\": \"f16\", \"model_size\": 1, \"model_n_params\": 1, \"n_threads\": 1, "
             "\"n_ubatch\": 1, \"n_gpu_layers\": 99, \"n_prompt\": 1, \"n_gen\": 0, "
             "\"samples_ns\": [1]}",
             name);
    check_ok(read_line(line, &time, NULL));
    check_int(strlen(time.device), 63);
    check_int(strlen(time.backends), 31);
    check_string(time.version, "0 (unknown)");
}

#endif

/* ---- running it ---- */

static void run(const char *script, double seconds, struct tnd_run_result *result)
{
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char *)(size_t)script, NULL};
    check_ok(tnd_run_program(argv, seconds, result, NULL));
}

static void a_programs_output_and_status_come_back(void)
{
    struct tnd_run_result result;
    run("echo one; printf 'an\\033[31m error\\n' >&2; cat; exit 3", 30, &result);
    check_string(tnd_text_string(&result.out), "one\n");
    check_string(result.said, "an [31m error ");
    check_int(result.code, 3);
    CU_ASSERT_FALSE(result.is_late || result.is_long);
    tnd_run_fini(&result);
}

static void a_program_that_hangs_is_killed_with_all_that_it_started(void)
{
    struct tnd_run_result result;
    run("trap '' TERM; echo before; sleep 600 & sleep 600", 0.2, &result);
    CU_ASSERT_TRUE(result.is_late);
    check_int(result.code, -1);
    check_string(tnd_text_string(&result.out), "before\n");
    tnd_run_fini(&result);
}

static void endless_output_is_cut(void)
{
    struct tnd_run_result result;
    run("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; "
        "done",
        60, &result);
    CU_ASSERT_TRUE(result.is_long);
    CU_ASSERT_TRUE(result.out.n <= TND_RUN_OUTPUT);
    check_int(result.code, -1);
    tnd_run_fini(&result);
}

static void a_program_that_is_not_there_is_an_error(void)
{
    struct tnd_run_result result;
    struct tandem_error error = {0};
    char *const argv[] = {(char[]){"/nowhere/llama-bench"}, NULL};
    check_status(tnd_run_program(argv, 1, &result, &error), TANDEM_E_FILE, "/nowhere/llama-bench",
                 &error);
}

static CU_TestInfo placing[] = {
    {"whole_layers_fill_a_device_from_the_logits_down",
     whole_layers_fill_a_device_from_the_logits_down},
    {"experts_leave_the_device_before_anything_else_does",
     experts_leave_the_device_before_anything_else_does},
    {"smaller_keys_and_values_are_advised_where_they_bring_more_onto_the_device",
     smaller_keys_and_values_are_advised_where_they_bring_more_onto_the_device},
    {"a_models_bytes_are_counted_by_what_they_are", a_models_bytes_are_counted_by_what_they_are},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo timing[] = {
    {"without_its_own_times_the_advice_says_what_it_cannot_tell",
     without_its_own_times_the_advice_says_what_it_cannot_tell},
    {"its_own_times_choose_threads_and_predict_the_speed",
     its_own_times_choose_threads_and_predict_the_speed},
    {"a_batch_or_weights_as_they_are_must_be_clearly_faster",
     a_batch_or_weights_as_they_are_must_be_clearly_faster},
    {"a_device_that_does_not_pay_is_not_advised", a_device_that_does_not_pay_is_not_advised},
    {"times_of_an_older_version_do_not_count_beside_newer_ones",
     times_of_an_older_version_do_not_count_beside_newer_ones},
    {"times_of_another_model_are_scaled_and_said_to_be",
     times_of_another_model_are_scaled_and_said_to_be},
#ifdef TND_HAVE_CJSON
    {"weights_move_to_a_device_from_the_tokens_on_that_the_table_says",
     weights_move_to_a_device_from_the_tokens_on_that_the_table_says},
#endif
    {"the_command_line_quotes_names_for_a_shell", the_command_line_quotes_names_for_a_shell},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo peers[] = {
#ifdef TND_HAVE_CJSON
    {"a_line_of_llama_bench_becomes_a_record", a_line_of_llama_bench_becomes_a_record},
    {"lines_that_no_llama_bench_prints_are_refused_with_the_reason",
     lines_that_no_llama_bench_prints_are_refused_with_the_reason},
    {"long_names_are_cut", long_names_are_cut},
#endif
    {"a_programs_output_and_status_come_back", a_programs_output_and_status_come_back},
    {"a_program_that_hangs_is_killed_with_all_that_it_started",
     a_program_that_hangs_is_killed_with_all_that_it_started},
    {"endless_output_is_cut", endless_output_is_cut},
    {"a_program_that_is_not_there_is_an_error", a_program_that_is_not_there_is_an_error},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_advise[];
CU_SuiteInfo suites_report_advise[] = {
    {"advice: placement", NULL, NULL, NULL, NULL, placing},
    {"advice: times", NULL, NULL, NULL, NULL, timing},
    {"advice: llama-bench", NULL, NULL, NULL, NULL, peers},
    CU_SUITE_INFO_NULL,
};
