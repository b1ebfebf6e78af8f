/* SPDX-License-Identifier: MIT
 * A model on an OpenCL device whose calls fail: whichever call it is, the logits and the text come
 * out right, the log says once which device and call failed, the device is left alone from then on,
 * and nothing stays alive. The device alone, without a runtime: suite_opencl_faults.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/llama.h"
#include "tests/support.h"
#include "tests/support_shim.h"

enum { VOCABULARY = 64, FEEDS = 3, MAX_CALLS = 100000, TEXT_BYTES = 512, TEXT_STEPS = 12 };

/* ---- a runtime with the shim as its device ---- */

static char log_text[16384];
static int n_warnings; /* lines that tell of a failure */

static void collect_log(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    size_t used = strlen(log_text);
    (void)user;
    n_warnings += level <= TANDEM_LOG_WARN;
    snprintf(log_text + used, sizeof(log_text) - used, "      %s: %s\n", room, text);
}

static const char *device_profile = "opencl";

static tandem_runtime *open_runtime(const char *more)
{
    char settings[1600];
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    snprintf(settings, sizeof(settings), "opencl:device=0,library=%s,clblast=%s,cache=%s%s",
             tnd_test_shim_path(), tnd_test_shim_clblast(), tnd_test_temp("programs"),
             more != NULL ? more : "");
    options.n_threads = 2;
    options.table_path = "";
    options.backends = more != NULL ? "cpu,opencl" : "cpu";
    options.settings = more != NULL ? settings : NULL;
    options.profile = more != NULL ? device_profile : "cpu";
    options.log = collect_log;
    log_text[0] = '\0';
    n_warnings = 0;
    (void)check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

static int64_t calls_so_far(void)
{
    struct tnd_shim_report report;
    tnd_test_shim()->report(&report);
    return report.n_calls;
}

static bool has_failed_call(void)
{
    struct tnd_shim_report report;
    tnd_test_shim()->report(&report);
    return report.n_failed > 0;
}

/* ---- what is computed: three feeds of a tiny model, or a text ---- */

struct results {
    enum tandem_status status;
    struct tandem_error error;
    float logits[FEEDS][VOCABULARY];
    char text[TEXT_BYTES];
    int64_t calls_after_failure; /* in feeds behind the one whose failure was told */
    bool is_late;                /* nothing failed before all was computed */
};

struct task {
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer; /* NULL: feeds and logits */
};

/* A prompt of three tokens, then one at a time; what a failure leaves must do for the next. */
static void feed(const struct task *task, tandem_runtime *runtime, struct results *out)
{
    static const int32_t tokens[] = {1, 17, 42, 7, 60};
    const struct tandem_session_options options = {.size = sizeof(options), .context = 8};
    tandem_session *session = NULL;
    out->status = tandem_session_new(task->model, runtime, &options, &session, &out->error);
    for (int i = 0; i < FEEDS && out->status == TANDEM_OK; i++) {
        bool has_failed = n_warnings > 0; /* releases that fail do not show */
        int64_t before = calls_so_far();
        out->status = tandem_session_decode(session, i == 0 ? tokens : tokens + 2 + i,
                                            i == 0 ? 3 : 1, 0, &out->error);
        out->calls_after_failure += has_failed ? calls_so_far() - before : 0;
        if (out->status == TANDEM_OK) {
            memcpy(out->logits[i], tandem_session_logits(session, 0), sizeof(out->logits[i]));
        }
    }
    out->is_late = !has_failed_call();
    tandem_session_free(session);
}

static void write_text(const struct task *task, tandem_runtime *runtime, struct results *out)
{
    int32_t ids[64];
    size_t n = 0;
    size_t at = 0;
    bool more = true;
    const struct tandem_session_options options = {.size = sizeof(options), .context = TEXT_STEPS};
    tandem_session *session = NULL;
    tandem_sampler *sampler = NULL;
    tandem_generator *generator = NULL;
    const struct tandem_sampler_options greedy = {
        .size = sizeof(greedy), .vocabulary = tandem_model_hparams(task->model)->vocabulary};
    check_ok(tandem_tokenizer_encode(task->tokenizer, "Zoo", 3, true, ids, 64, &n, NULL));
    check_ok(tandem_sampler_new(&greedy, &sampler, NULL));
    out->status = tandem_session_new(task->model, runtime, &options, &session, &out->error);
    const struct tandem_generator_options wanted = {.size = sizeof(wanted),
                                                    .session = session,
                                                    .sampler = sampler,
                                                    .tokenizer = task->tokenizer,
                                                    .prompt = ids,
                                                    .n_prompt = (int64_t)n,
                                                    .steps = TEXT_STEPS};
    if (out->status == TANDEM_OK) {
        out->status = tandem_generator_new(&wanted, &generator, &out->error);
    }
    while (out->status == TANDEM_OK && more && at < TEXT_BYTES - 64) {
        size_t added = 0;
        out->status = tandem_generator_next(generator, out->text + at, TEXT_BYTES - 1 - at, &added,
                                            &more, &out->error);
        at += added;
    }
    out->is_late = !has_failed_call();
    tandem_generator_free(generator);
    out->text[at] = '\0';
    tandem_sampler_free(sampler);
    tandem_session_free(session);
}

/* One life of a runtime. `more`: settings of the device, NULL: the CPU alone. */
static void live(const struct task *task, const char *more, struct results *out)
{
    memset(out, 0, sizeof(*out));
    tandem_runtime *runtime = open_runtime(more);
    if (runtime == NULL) {
        out->status = TANDEM_E_STATE;
        return;
    }
    if (task->tokenizer != NULL) {
        write_text(task, runtime, out);
    } else {
        feed(task, runtime, out);
    }
    tandem_runtime_close(runtime);
}

/* ---- judging ---- */

static bool same_results(const struct results *got, const struct results *want)
{
    double difference = 0;
    double size = 0;
    for (int i = 0; i < FEEDS * VOCABULARY; i++) {
        double d = (double)(&got->logits[0][0])[i] - (double)(&want->logits[0][0])[i];
        difference += d * d;
        size += (double)(&want->logits[0][0])[i] * (double)(&want->logits[0][0])[i];
    }
    return strcmp(got->text, want->text) == 0 && difference <= 5e-4 * size;
}

/* "clFinish" and the like, "CLBlast..." */
static bool names_call(const char *line)
{
    for (const char *at = strstr(line, "cl"); at != NULL; at = strstr(at + 1, "cl")) {
        if (at > line && strchr(" (:", at[-1]) != NULL && at[2] >= 'A' && at[2] <= 'Z') {
            return true;
        }
    }
    return strstr(line, "CLBlast") != NULL;
}

/* Lines of the log that name a call of OpenCL or CLBlast, and whether they name the device; before
 * the list of devices is read there is only the backend to be named. */
static int lines_of_failure(const char *device, bool *out_name_device)
{
    int n = 0;
    *out_name_device = true;
    for (const char *line = log_text; *line != '\0'; line = strchr(line, '\n') + 1) {
        char text[600];
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
        if (names_call(text)) {
            bool is_listing = strstr(text, "left out: opencl") != NULL;
            n++;
            *out_name_device = *out_name_device && (is_listing || strstr(text, device) != NULL);
        }
    }
    return n;
}

/* Whether a failure of this call must be told. Others may change nothing: facts about devices that
 * are not used, programs kept on disk, releases, memory that is had in another way (and the reads
 * which find that out), pinned memory of downloads (clEnqueueMapBuffer): without it the driver
 * copies in its own way. */
static bool must_be_told(const char *call)
{
    static const char *const calls[] = {
        "clGetPlatformIDs", "clGetDeviceIDs", "clCreateContext",          "clCreateCommandQueue",
        "clCreateKernel",   "clSetKernelArg", "clEnqueueNDRangeKernel",   "clEnqueueWriteBuffer",
        "clWaitForEvents",  "CLBlastSgemm",   "clCreateProgramWithSource"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i], call) == 0) {
            return true;
        }
    }
    return false;
}

static bool judge(const struct results *got, const struct results *want, const char *device,
                  const char *what)
{
    struct tnd_shim_report report;
    bool names_device = true;
    tnd_test_shim()->report(&report);
    bool is_right = got->status == TANDEM_OK && same_results(got, want);
    int n_lines = lines_of_failure(device, &names_device);
    /* what a cache that is given up had on the device, nobody misses */
    bool is_needed = must_be_told(report.failed) && !got->is_late;
    bool is_told = n_lines <= 1 && (n_lines == 0 ? !is_needed : names_device);
    /* Too little memory is no reason to give a device up: what fits may go on there. */
    bool is_full = strstr(log_text, "no room") != NULL || strstr(log_text, "left out of") != NULL;
    bool is_left_alone = n_lines == 0 || is_full || got->calls_after_failure == 0;
    if (n_lines == 0 && report.n_failed > 0 && getenv("TND_FAULTS_VERBOSE") != NULL) {
        printf("not told: %s\n", report.failed);
    }
    if (!is_right || !is_told || !is_left_alone) {
        printf("\n    %s: %s failed: %s%s, %d lines of it, %lld calls afterwards; log:\n%s", what,
               report.failed, got->status == TANDEM_OK ? "" : got->error.text,
               is_right ? "right" : "WRONG", n_lines, (long long)got->calls_after_failure,
               log_text);
    }
    CU_ASSERT_TRUE(is_right);
    CU_ASSERT_TRUE(is_told);
    CU_ASSERT_TRUE(is_left_alone);
    return tnd_test_shim_clean(what) && is_right && is_told && is_left_alone;
}

/* Lives with a failure at call 1, 2, ... until one passes without. */
static void walk(const struct task *task, const char *more, bool is_lost,
                 const struct tnd_test_walk *steps)
{
    const struct tnd_shim *shim = tnd_test_shim();
    struct results *want = calloc(2, sizeof(*want));
    struct results *got = want + 1;
    char device[64] = "pthread";
    live(task, NULL, want);
    check_ok(want->status);
    shim->begin(NULL);
    live(task, more, got);
    int64_t n_calls = calls_so_far();
    int64_t n_lives = 0;
    bool is_over = !judge(got, want, device, "no failure");
    CU_ASSERT_TRUE(n_calls > 100); /* the device has taken part */
    check_int(n_warnings, 0);
    for (int64_t n = 1; !is_over && n < MAX_CALLS; n = tnd_test_walk_next(steps, n)) {
        struct tnd_shim_report report;
        struct tnd_shim_plan plan = {n, is_lost ? -2 : tnd_test_shim_code(n), is_lost, NULL};
        char what[64];
        snprintf(what, sizeof(what), "call %lld %s", (long long)n,
                 is_lost ? "loses the device" : "fails");
        shim->begin(&plan);
        live(task, more, got);
        shim->report(&report);
        is_over = report.n_failed == 0 || CU_get_number_of_failures() > 40;
        (void)judge(got, want, device, what);
        n_lives++;
    }
    printf("(%lld calls, %lld lives) ", (long long)n_calls, (long long)n_lives);
    shim->begin(NULL);
    free(want);
}

static bool make_tiny(struct task *task, int experts)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 32,
                                             .hidden = 64,
                                             .layers = 1,
                                             .heads = 2,
                                             .kv_heads = 1,
                                             .vocabulary = VOCABULARY,
                                             .context = 8,
                                             .experts = experts,
                                             .experts_used = experts / 2};
    memset(task, 0, sizeof(*task));
    return tnd_test_shim() != NULL &&
           check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_Q4_0, 3, &task->source, NULL)) &&
           check_ok(tandem_model_new(task->source, &task->model, NULL));
}

static void task_free(struct task *task)
{
    tandem_tokenizer_close(task->tokenizer);
    tandem_model_free(task->model);
    tandem_source_close(task->source);
}

/* All of the first calls (opening, programs, the first feed), some of the others. */
static struct tnd_test_walk steps_of(int64_t dense, int64_t stride, int64_t long_stride)
{
    const struct tnd_test_walk steps = {tnd_effort() >= 2 ? dense : dense / 4,
                                        tnd_effort() >= 2 ? stride : stride * 4, tnd_test_seed(),
                                        long_stride};
    return steps;
}

/* ---- tests ---- */

static const struct {
    const char *settings, *profile;
} variants[] = {
    {"", "opencl"},
    {",unified=off", "opencl"},
    {",unified=off", "opencl+stream"}, /* weights in flight */
};

static void a_call_that_fails_leaves_the_logits_right(void)
{
    const struct tnd_test_walk steps = steps_of(150, 17, 0);
    struct task task;
    bool is_made = make_tiny(&task, 0);
    for (size_t i = 0; is_made && i < sizeof(variants) / sizeof(variants[0]); i++) {
        device_profile = variants[i].profile;
        walk(&task, variants[i].settings, false, &steps);
    }
    device_profile = variants[0].profile;
    task_free(&task);
}

static void a_device_that_is_lost_leaves_the_logits_right(void)
{
    const struct tnd_test_walk steps = steps_of(60, 29, 0);
    struct task task;
    bool is_made = make_tiny(&task, 0);
    for (size_t i = 0; is_made && i < sizeof(variants) / sizeof(variants[0]); i++) {
        device_profile = variants[i].profile;
        walk(&task, variants[i].settings, true, &steps);
    }
    device_profile = variants[0].profile;
    task_free(&task);
}

/* Products of experts, and the router beside them. */
static void a_mixture_of_experts_survives_its_device(void)
{
    const struct tnd_test_walk steps = steps_of(4, 41, 0);
    struct task task;
    if (make_tiny(&task, 4)) {
        walk(&task, ",unified=off", true, &steps);
        walk(&task, "", false, &steps);
    }
    task_free(&task);
}

static void the_trained_model_writes_its_text_whatever_call_fails(void)
{
    const struct tnd_test_walk steps = steps_of(8, 211, 41);
    const char *checkpoint = tnd_test_data("llama/stories260K.bin");
    const char *words = tnd_test_data("llama/tok512.bin");
    struct task task = {NULL, NULL, NULL};
    if (checkpoint != NULL && words != NULL && tnd_test_shim() != NULL &&
        check_ok(tandem_source_open(checkpoint, &task.source, NULL)) &&
        check_ok(tandem_model_new(task.source, &task.model, NULL)) &&
        check_ok(tandem_tokenizer_open(words, 512, &task.tokenizer, NULL))) {
        walk(&task, "", false, &steps);
        walk(&task, ",unified=off", true, &steps);
    }
    task_free(&task);
}

static CU_TestInfo tests[] = {
    {"a call that fails leaves the logits right", a_call_that_fails_leaves_the_logits_right},
    {"a device that is lost leaves the logits right",
     a_device_that_is_lost_leaves_the_logits_right},
    {"a mixture of experts survives its device", a_mixture_of_experts_survives_its_device},
    {"the trained model writes its text whatever call fails",
     the_trained_model_writes_its_text_whatever_call_fails},
    CU_TEST_INFO_NULL,
};
static CU_SuiteInfo suites[] = {
    {"faults of devices", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites, NULL);
}
