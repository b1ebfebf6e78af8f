/* SPDX-License-Identifier: MIT
 * A device whose every call fails once, and one that is lost at every call: the backend alone, from
 * open to close. Whatever fails, the status is clean and names device and call, nothing that was
 * made stays, and results that are said to be right are right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_bcml1.h"
#include "backends/opencl/cl_library.h"
#include "backends/gpu/gpu_backend.h"
#include "backends/registry.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_opencl.h"
#include "tests/support.h"
#include "tests/support_shim.h"

extern const struct tandem_backend_api tnd_backend_opencl;

enum { K = 64, N = 48, N2 = 32, N3 = 24, M = 5, MAX_CALLS = 20000 };

/* ---- a small job: products with plain and quantised weights, and other nodes between ---- */

struct job {
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor *w[3];
    tandem_tensor *x;
    void *buffer;    /* all nodes but the last, which is a result with memory of its own */
    void *workspace; /* dequantised weights */
    size_t workspace_bytes;
    float *want;
};

static tandem_tensor *leaf(tandem_context *context, enum tandem_type type, int64_t ne0, int64_t ne1,
                           uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    float values[K * N];
    tnd_test_fill(&rng, values, ne0 * ne1);
    tandem_tensor *tensor = tandem_tensor_new(context, type, 2, (const int64_t[]){ne0, ne1});
    CU_ASSERT_EQUAL_FATAL(tandem_quantize(type, values, tensor->data, ne0 * ne1), TANDEM_OK);
    return tensor;
}

static tandem_tensor *last_node(const struct job *job)
{
    return job->graph->nodes[job->graph->n_nodes - 1];
}

static void job_make(struct job *job)
{
    *job = (struct job){0};
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &job->context, NULL), TANDEM_OK);
    tandem_context *context = job->context;
    job->w[0] = leaf(context, TANDEM_TYPE_Q4_0, K, N, 1);
    job->w[1] = leaf(context, TANDEM_TYPE_F32, N, N2, 2);
    job->w[2] = leaf(context, TANDEM_TYPE_Q8_0, N2, N3, 3);
    for (int i = 0; i < 3; i++) {
        tandem_tensor_set_role(job->w[i], TANDEM_ROLE_CONSTANT);
    }
    job->x = leaf(context, TANDEM_TYPE_F32, K, M, 4);
    tandem_tensor *y = tandem_mul_mat(context, job->w[0], job->x);
    y = tandem_mul_mat(context, job->w[1], tandem_rms_norm(context, y, 1e-5f));
    y = tandem_mul_mat(context, job->w[2], tandem_silu(context, y));
    job->graph = tandem_graph_new(context);
    tandem_graph_add(job->graph, y);
    CU_ASSERT_EQUAL_FATAL(tandem_graph_finish(job->graph, NULL), TANDEM_OK);
    job->buffer = tnd_guarded_alloc(job->graph->planned_bytes, 64);
    job->workspace_bytes = (size_t)N3 * N2 * sizeof(float);
    job->workspace = tnd_guarded_alloc(job->workspace_bytes, 64);
    tnd_graph_bind(job->graph, job->buffer);
    CU_ASSERT_EQUAL_FATAL(tnd_eval_ref_graph(job->graph, NULL), TANDEM_OK);
    job->want = malloc((size_t)N3 * M * sizeof(float));
    memcpy(job->want, last_node(job)->data, (size_t)N3 * M * sizeof(float));
}

static void job_free(struct job *job)
{
    free(job->want);
    tnd_guarded_free(job->workspace);
    tnd_guarded_free(job->buffer);
    tandem_context_free(job->context);
}

static enum tandem_status submit(tandem_backend *backend, struct job *job, tandem_tensor *node,
                                 enum tandem_task task, struct tandem_error *error)
{
    struct tandem_work work = {.node = node,
                               .task = (uint32_t)task,
                               .row_begin = 0,
                               .row_end = node->op == TANDEM_OP_MUL_MAT ? node->ne[0]
                                                                        : tnd_tensor_rows(node),
                               .workspace = job->workspace,
                               .workspace_bytes = job->workspace_bytes};
    const struct tandem_places places = tnd_test_cl_places(tnd_gpu_device_of(backend), &work);
    uint64_t ticket;
    work.places = &places;
    enum tandem_status status = tnd_backend_supports(backend, node, task, error);
    return status != TANDEM_OK ? status : tnd_backend_submit(backend, &work, &ticket, error);
}

static enum tandem_status submit_all(tandem_backend *backend, struct job *job,
                                     struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < job->graph->n_nodes && status == TANDEM_OK; i++) {
        tandem_tensor *node = job->graph->nodes[i];
        bool is_staged = node->op == TANDEM_OP_MUL_MAT && node->src[0] != job->w[0];
        if (is_staged && node->src[0] == job->w[2]) {
            status = submit(backend, job, node, TANDEM_TASK_DEQUANTIZE_W, error);
        }
        if (status == TANDEM_OK) {
            status = submit(backend, job, node,
                            is_staged ? TANDEM_TASK_MUL_MAT_F32 : TANDEM_TASK_NODE, error);
        }
    }
    return status;
}

/* The whole life of the work on an open backend, up to the result in host memory. */
static enum tandem_status job_run(tandem_backend *backend, struct job *job,
                                  struct tandem_error *error)
{
    tandem_tensor *y = last_node(job);
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    for (int i = 0; i < 3; i++) {
        TND_TRY(tnd_test_cl_prepare(device, job->w[i], error));
        TND_TRY(tnd_gpu_bcml1_prepare(device, job->w[i],
                                      tnd_test_cl_place(device, job->w[i]->data).handle, error));
    }
    TND_TRY(tnd_test_cl_map(device, job->x->data, K * M * sizeof(float), error));
    TND_TRY(tnd_test_cl_map(device, job->buffer, job->graph->planned_bytes, error));
    TND_TRY(tnd_test_cl_map(device, y->data, N3 * M * sizeof(float), error));
    TND_TRY(tnd_test_cl_map(device, job->workspace, job->workspace_bytes, error));
    TND_TRY(tnd_test_cl_upload(device, job->x->data, K * M * sizeof(float), error));
    TND_TRY(submit_all(backend, job, error));
    uint64_t ticket;
    TND_TRY(tnd_test_cl_download(device, y->data, N3 * M * sizeof(float), &ticket, error));
    return tnd_backend_sync(backend, ticket, error);
}

/* Gives back what job_run has taken, however far it came. */
static void job_leave(tandem_backend *backend, struct job *job)
{
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    tnd_test_cl_give_back(device, job->x->data);
    tnd_test_cl_give_back(device, job->buffer);
    tnd_test_cl_give_back(device, last_node(job)->data);
    tnd_test_cl_give_back(device, job->workspace);
    for (int i = 0; i < 3; i++) {
        tnd_test_cl_give_back(device, job->w[i]->data);
    }
}

/* ---- one life of the backend ---- */

/* Settings: the shim as both libraries, the programs of this process, `more` behind them. */
static const char *settings(const char *more)
{
    static char text[1400];
    snprintf(text, sizeof(text), "device=0,library=%s,clblast=%s,%s", tnd_test_shim_path(),
             tnd_test_shim_clblast(), more);
    return text;
}

struct life {
    enum tandem_status status; /* the first failure */
    struct tandem_error error;
    bool was_open;
    char described[256];
};

static struct life live(struct job *job, const char *more)
{
    struct life life = {0};
    struct tandem_backend_options options = {
        .size = sizeof(options), .n_threads_max = 2, .settings = settings(more)};
    tandem_backend *backend = NULL;
    memset(last_node(job)->data, 0x7B, N3 * M * sizeof(float));
    life.status = tnd_backend_opencl.open(&options, &backend, &life.error);
    if (life.status != TANDEM_OK) {
        CU_ASSERT_PTR_NULL(backend);
        return life;
    }
    life.was_open = true;
    snprintf(life.described, sizeof(life.described), "%s", tnd_backend_describe(backend));
    life.status = job_run(backend, job, &life.error);
    job_leave(backend, job);
    backend->api->close(backend);
    return life;
}

/* Mean squared error against the reference, as a share; not-a-number stays so. */
static double error_of(const struct job *job)
{
    const float *got = last_node(job)->data;
    double difference = 0;
    double size = 0;
    for (int i = 0; i < N3 * M; i++) {
        difference += ((double)got[i] - job->want[i]) * ((double)got[i] - job->want[i]);
        size += (double)job->want[i] * job->want[i];
    }
    return difference / size;
}

/* Whether a message names the call that failed; when everything fails from then on, any call. */
static bool names_call(const char *text, const char *failed, bool is_lost)
{
    return strstr(text, failed) != NULL ||
           (is_lost && (strstr(text, " cl") != NULL || strstr(text, " CLBlast") != NULL));
}

/* Judges one life with one failure: either all is well, or the failure is told. */
static void judge(const struct job *job, const struct life *life, const char *device, bool is_lost,
                  const char *what)
{
    const struct tnd_shim *shim = tnd_test_shim();
    struct tnd_shim_report report;
    shim->report(&report);
    bool is_told = true;
    if (life->status == TANDEM_OK) {
        is_told = error_of(job) <= 5e-4;
    } else {
        is_told = life->error.status == life->status &&
                  names_call(life->error.text, report.failed, is_lost) &&
                  (!life->was_open || strstr(life->error.text, device) != NULL);
    }
    if (!is_told) {
        printf("\n    %s: %s failed: status %s, \"%s\", error of the result %g\n", what,
               report.failed, tandem_status_name(life->status), life->error.text, error_of(job));
    }
    CU_ASSERT_TRUE(is_told);
    (void)tnd_test_shim_clean(what);
}

/* The device's name as messages have it: the first words of describe, up to a comma. */
static void name_of(const struct life *life, char *out, size_t bytes)
{
    snprintf(out, bytes, "%.*s", (int)strcspn(life->described, ",:("), life->described);
    size_t n = strlen(out);
    while (n > 0 && out[n - 1] == ' ') {
        out[--n] = '\0';
    }
}

/* A life in which nothing fails: how many calls it has, and the device's name. */
static bool live_well(struct job *job, const char *more, char *out_device, size_t bytes,
                      int64_t *out_calls)
{
    const struct tnd_shim *shim = tnd_test_shim();
    struct tnd_shim_report report;
    shim->begin(NULL);
    struct life life = live(job, more);
    shim->report(&report);
    bool is_well = check_status(life.status, TANDEM_OK, NULL, &life.error) &&
                   check_nmse(last_node(job)->data, job->want, N3 * M, 5e-4, "no failure");
    is_well = tnd_test_shim_clean("no failure") && is_well;
    name_of(&life, out_device, bytes);
    *out_calls = report.n_calls;
    return is_well;
}

/* Lives with failure at call 1, 2, ... until one passes without. */
static void walk(const char *more, const char *function, bool is_lost, int32_t code)
{
    if (tnd_test_shim() == NULL) {
        return;
    }
    const struct tnd_shim *shim = tnd_test_shim();
    const struct tnd_test_walk steps = {tnd_effort() >= 2 ? 400 : 60, tnd_effort() >= 2 ? 3 : 17,
                                        tnd_test_seed(), 0};
    struct job job;
    char device[128];
    int64_t n_calls = 0;
    int64_t n_lives = 0;
    job_make(&job);
    bool is_over = !live_well(&job, more, device, sizeof(device), &n_calls);
    int64_t n = is_over ? 0 : 1;
    while (!is_over && n < MAX_CALLS) {
        struct tnd_shim_plan plan = {n, code != 0 ? code : tnd_test_shim_code(n), is_lost,
                                     function};
        char what[96];
        struct tnd_shim_report report;
        snprintf(what, sizeof(what), "%s call %lld %s", function != NULL ? function : "any",
                 (long long)n, is_lost ? "loses the device" : "fails");
        shim->begin(&plan);
        struct life life = live(&job, more);
        shim->report(&report);
        is_over = report.n_failed == 0;
        judge(&job, &life, device, is_lost, what);
        n_lives++;
        n = tnd_test_walk_next(&steps, n);
    }
    printf("(%lld calls, %lld lives) ", (long long)n_calls, (long long)n_lives);
    shim->begin(NULL);
    job_free(&job);
}

/* Settings with the programs of this process's own folder, and `more`. */
static const char *with_cache(const char *more)
{
    static char text[512];
    snprintf(text, sizeof(text), "cache=%s%s", tnd_test_temp("programs"), more);
    return text;
}

/* ---- tests ---- */

/* Host pointers, staging, our own product instead of CLBlast, measured launches. */
static const char *const variants[] = {"", ",unified=off", ",clblast=off", ",profile=on"};
enum { N_VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static void one_failing_call_anywhere_is_told_and_leaves_nothing(void)
{
    for (int i = 0; i < N_VARIANTS; i++) {
        walk(with_cache(variants[i]), NULL, false, 0);
    }
}

static void a_device_lost_at_any_call_is_told_and_leaves_nothing(void)
{
    for (int i = 0; i < N_VARIANTS; i++) {
        walk(with_cache(variants[i]), NULL, true, -2); /* CL_DEVICE_NOT_AVAILABLE */
    }
}

static void a_program_that_does_not_build_is_told_and_leaves_nothing(void)
{
    walk("cache=off", "clBuildProgram", false, -11); /* CL_BUILD_PROGRAM_FAILURE */
}

static void waits_that_fail_are_told_and_their_results_are_not_used(void)
{
    for (int i = 0; i < 2; i++) {
        /* CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST */
        walk(with_cache(variants[i]), "clWaitForEvents", false, -14);
        walk(with_cache(variants[i]), "clFinish", false, -5);
    }
}

/* The judge himself: a leak, a release too many, a call that fails, poison behind a failed wait. */
static void the_shim_sees_leaks_and_fails_what_it_is_told_to(void)
{
    const struct tnd_shim *shim = tnd_test_shim();
    const struct tnd_cl_library *library = NULL;
    struct tnd_shim_report report;
    if (shim == NULL || !check_ok(tnd_cl_library_get(tnd_test_shim_path(), &library, NULL))) {
        return;
    }
    const struct tnd_cl_functions *cl = &library->cl;
    cl_platform_id platform = NULL;
    cl_device_id id = NULL;
    cl_int code = -1;
    shim->begin(&(struct tnd_shim_plan){2, -5, false, "clCreateBuffer"});
    check_int(cl->GetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    check_int(cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL), CL_SUCCESS);
    cl_context context = cl->CreateContext(NULL, 1, &id, NULL, NULL, &code);
    cl_command_queue queue = cl->CreateCommandQueue(context, id, 0, &code);
    cl_mem kept = cl->CreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &code);
    check_int(code, CL_SUCCESS);
    CU_ASSERT_PTR_NULL(cl->CreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &code));
    check_int(code, -5);
    shim->report(&report);
    check_int(report.n_calls, 6);
    check_int(report.n_failed, 1);
    check_string(report.failed, "clCreateBuffer");
    check_int(report.n_live[TND_SHIM_BUFFER], 1);
    check_contains(report.leaks, "buffer of clCreateBuffer (call ");
    unsigned char bytes[64] = {0};
    shim->begin(&(struct tnd_shim_plan){1, -36, true, "clFinish"});
    check_int(cl->EnqueueReadBuffer(queue, kept, CL_FALSE, 0, 64, bytes, 0, NULL, NULL), 0);
    check_int(cl->Finish(queue), -36);
    check_int(bytes[63], 0xFF); /* whatever was read */
    check_int(cl->Flush(queue), -36);
    check_int(cl->ReleaseMemObject(kept), -36); /* lost, yet given up */
    shim->begin(NULL);
    check_int(cl->ReleaseMemObject(kept), CL_INVALID_MEM_OBJECT);
    check_int(cl->ReleaseCommandQueue(queue), CL_SUCCESS);
    check_int(cl->ReleaseContext(context), CL_SUCCESS);
    shim->report(&report);
    check_int(report.n_stray, 1);
    shim->begin(NULL);
    (void)tnd_test_shim_clean("after all releases");
}

CU_TestInfo tnd_tests_opencl_faults[] = {
    {"the shim sees leaks and fails what it is told to",
     the_shim_sees_leaks_and_fails_what_it_is_told_to},
    {"one failing call anywhere is told and leaves nothing",
     one_failing_call_anywhere_is_told_and_leaves_nothing},
    {"a device lost at any call is told and leaves nothing",
     a_device_lost_at_any_call_is_told_and_leaves_nothing},
    {"a program that does not build is told and leaves nothing",
     a_program_that_does_not_build_is_told_and_leaves_nothing},
    {"waits that fail are told and their results are not used",
     waits_that_fail_are_told_and_their_results_are_not_used},
    CU_TEST_INFO_NULL,
};
