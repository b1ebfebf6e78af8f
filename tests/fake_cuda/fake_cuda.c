/* SPDX-License-Identifier: MIT
 * A library that stands in for libcuda: the entry points that a driver of ours may call, with the
 * names, numbers and rules of CUDA's driver interface (its reference, version 12). Each call is
 * counted and can be made to fail. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_entry.h"
#include "tests/fake_cuda/fake_launch.h"
#include "tests/fake_cuda/fake_state.h"

enum { VERSION = 12090 };

typedef uint64_t deviceptr;
typedef struct tnd_fake_stream *stream_handle;
typedef struct tnd_fake_event *event_handle;
typedef struct context *context_handle;

/* A device's primary context. */
static struct context {
    int device, n_references;
} contexts[TND_FAKE_MAX_DEVICES];
static _Thread_local context_handle current;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below, and contexts */
static struct tnd_fake_plan plan;
static struct tnd_fake_report counts;
static int64_t n_counted;
static int sticky; /* what all calls give from now on */
static bool is_open, has_environment;

const void *tnd_fake_current(void)
{
    return current;
}

/* ---- control ---- */

void tnd_fake_live(enum tnd_fake_kind kind, int change)
{
    pthread_mutex_lock(&lock);
    counts.n_live[kind] += change;
    pthread_mutex_unlock(&lock);
}

void tnd_fake_count_graph(void)
{
    pthread_mutex_lock(&lock);
    counts.n_graphs++;
    pthread_mutex_unlock(&lock);
}

void tnd_fake_wrong(const char *what, int code)
{
    pthread_mutex_lock(&lock);
    if (counts.n_wrong++ == 0) {
        snprintf(counts.wrong, sizeof(counts.wrong), "%s", what);
    }
    if (getenv("TANDEM_FAKE_CUDA_LOUD") != NULL) {
        fprintf(stderr, "fake libcuda: %s\n", what);
    }
    sticky = sticky == CUDA_SUCCESS ? code : sticky;
    pthread_mutex_unlock(&lock);
}

EXPORT void tnd_fake_begin(const struct tnd_fake_plan *new_plan);
EXPORT void tnd_fake_begin(const struct tnd_fake_plan *new_plan)
{
    pthread_mutex_lock(&lock);
    const struct tnd_fake_report old = counts;
    counts = (struct tnd_fake_report){0};
    memcpy(counts.n_live, old.n_live, sizeof(counts.n_live));
    plan = new_plan != NULL ? *new_plan : (struct tnd_fake_plan){0};
    n_counted = 0;
    sticky = CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
}

EXPORT void tnd_fake_report(struct tnd_fake_report *out_report);
EXPORT void tnd_fake_report(struct tnd_fake_report *out_report)
{
    pthread_mutex_lock(&lock);
    *out_report = counts;
    pthread_mutex_unlock(&lock);
}

void tnd_fake_set_memory(uint64_t bytes);

/* "NAME:NUMBER:CODE" or "NUMBER:CODE", with ":lost" or not. */
static void read_environment(void)
{
    const char *fail = getenv("TANDEM_FAKE_CUDA_FAIL");
    const char *memory = getenv("TANDEM_FAKE_CUDA_MEMORY");
    if (memory != NULL) {
        tnd_fake_set_memory(strtoull(memory, NULL, 10));
    }
    if (fail == NULL) {
        return;
    }
    struct tnd_fake_plan read = {0};
    if (fail[0] < '0' || fail[0] > '9') {
        const size_t n = strcspn(fail, ":");
        snprintf(read.name, sizeof(read.name), "%.*s", (int)n, fail);
        fail += n + (fail[n] == ':');
    }
    char *end = NULL;
    read.first = strtoll(fail, &end, 10);
    read.code = *end == ':' ? (int32_t)strtol(end + 1, &end, 10) : CUDA_ERROR_UNKNOWN;
    read.is_lost = strcmp(end, ":lost") == 0;
    tnd_fake_begin(&read);
}

/* What a call gives before it does anything; `is_free`: it works without cuInit. */
int tnd_fake_enter_call(const char *name, bool is_free)
{
    int code = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    counts.n_calls++;
    const bool is_counted = plan.name[0] == '\0' || strcmp(plan.name, name) == 0;
    n_counted += is_counted;
    if (plan.first > 0 && is_counted && n_counted == plan.first) {
        counts.n_failed++;
        code = plan.code;
        sticky = plan.is_lost ? plan.code : sticky;
    } else if (sticky != CUDA_SUCCESS) {
        code = sticky;
    } else if (!is_open && !is_free) {
        code = CUDA_ERROR_NOT_INITIALIZED;
    }
    pthread_mutex_unlock(&lock);
    return code;
}
/* The same for what needs a context. */
#define ENTER_CONTEXT()                                                                            \
    do {                                                                                           \
        ENTER();                                                                                   \
        if (current == NULL) {                                                                     \
            tnd_fake_wrong("a call without a context", 0);                                         \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
        }                                                                                          \
    } while (0)
#define CHECK_STREAM(stream) CHECK(tnd_fake_is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
#define CHECK_EVENT(event)   CHECK(tnd_fake_is_event(event), CUDA_ERROR_INVALID_HANDLE)

/* ---- the library ---- */

EXPORT int cuInit(unsigned flags)
{
    if (!has_environment) {
        has_environment = true;
        read_environment();
    }
    const int code = tnd_fake_enter_call(__func__, true);
    CHECK(code == CUDA_SUCCESS, code);
    CHECK(flags == 0, CUDA_ERROR_INVALID_VALUE);
    pthread_mutex_lock(&lock);
    is_open = true;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EXPORT int cuDriverGetVersion(int *out)
{
    const char *version = getenv("TANDEM_FAKE_CUDA_VERSION");
    const int code = tnd_fake_enter_call(__func__, true);
    CHECK(code == CUDA_SUCCESS, code);
    *out = version != NULL ? atoi(version) : VERSION;
    return CUDA_SUCCESS;
}

static const struct {
    int number;
    const char *name, *text;
} results[] = {
#define RESULT_ROW(name, number, text) {number, "CUDA_" #name, text},
    TND_FAKE_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
};

static int text_of(int number, bool is_name, const char **out)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        if (results[i].number == number) {
            *out = is_name ? results[i].name : results[i].text;
            return CUDA_SUCCESS;
        }
    }
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT int cuGetErrorName(int number, const char **out)
{
    return text_of(number, true, out);
}

EXPORT int cuGetErrorString(int number, const char **out)
{
    return text_of(number, false, out);
}

/* ---- contexts ---- */

EXPORT int cuDevicePrimaryCtxRetain(context_handle *out, int device)
{
    ENTER();
    CHECK(device >= 0 && device < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    pthread_mutex_lock(&lock);
    contexts[device].device = device;
    contexts[device].n_references++;
    counts.n_live[TND_FAKE_CONTEXT]++;
    pthread_mutex_unlock(&lock);
    *out = &contexts[device];
    return CUDA_SUCCESS;
}

/* Works on a lost device too: what is given back is not counted as lost. */
EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK(device >= 0 && device < TND_FAKE_MAX_DEVICES, CUDA_ERROR_INVALID_DEVICE);
    pthread_mutex_lock(&lock);
    const bool is_there = contexts[device].n_references > 0;
    contexts[device].n_references -= is_there;
    counts.n_live[TND_FAKE_CONTEXT] -= is_there;
    pthread_mutex_unlock(&lock);
    return is_there ? code : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    ENTER();
    (void)flags;
    CHECK(device >= 0 && device < tnd_fake_devices(), CUDA_ERROR_INVALID_DEVICE);
    return CUDA_SUCCESS;
}

EXPORT int cuCtxSetCurrent(context_handle context)
{
    ENTER();
    CHECK(context == NULL || context->n_references > 0, CUDA_ERROR_INVALID_CONTEXT);
    current = context;
    return CUDA_SUCCESS;
}

EXPORT int cuCtxGetCurrent(context_handle *out)
{
    ENTER();
    *out = current;
    return CUDA_SUCCESS;
}

static _Thread_local context_handle pushed[16];
static _Thread_local int n_pushed;

EXPORT int cuCtxPushCurrent_v2(context_handle context)
{
    ENTER();
    CHECK(context != NULL && context->n_references > 0 && n_pushed < 16,
          CUDA_ERROR_INVALID_CONTEXT);
    pushed[n_pushed++] = current;
    current = context;
    return CUDA_SUCCESS;
}

/* (on a lost device too, so that pushes and pops stay even) */
EXPORT int cuCtxPopCurrent_v2(context_handle *out)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK(n_pushed > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (out != NULL) {
        *out = current;
    }
    current = pushed[--n_pushed];
    return code;
}

EXPORT int cuCtxGetDevice(int *out)
{
    ENTER_CONTEXT();
    *out = current->device;
    return CUDA_SUCCESS;
}

static int sticky_now(void)
{
    pthread_mutex_lock(&lock);
    const int code = sticky;
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int cuCtxSynchronize(void)
{
    ENTER_CONTEXT();
    tnd_fake_wait_all();
    return sticky_now();
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER_CONTEXT();
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -2;
    }
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

EXPORT int cuMemGetInfo_v2(size_t *out_free, size_t *out_total)
{
    uint64_t free_bytes = 0, total = 0;
    ENTER_CONTEXT();
    tnd_fake_memory_info(&free_bytes, &total);
    *out_free = (size_t)free_bytes;
    *out_total = (size_t)total;
    return CUDA_SUCCESS;
}

EXPORT int cuMemAlloc_v2(deviceptr *out, size_t bytes)
{
    ENTER_CONTEXT();
    return tnd_fake_allocate(bytes, out);
}

/* Frees work on a lost device too, as far as they give nothing back but memory. */
EXPORT int cuMemFree_v2(deviceptr address)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK(address != 0, code);
    tnd_fake_wait_all();
    const int freed = tnd_fake_free(address);
    return code != CUDA_SUCCESS ? code : freed;
}

EXPORT int cuMemAllocHost_v2(void **out, size_t bytes)
{
    ENTER_CONTEXT();
    return tnd_fake_allocate_pinned(bytes, out);
}

EXPORT int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTER_CONTEXT();
    CHECK(flags <= 7, CUDA_ERROR_INVALID_VALUE);
    return tnd_fake_allocate_pinned(bytes, out);
}

EXPORT int cuMemFreeHost(void *address)
{
    const int code = tnd_fake_enter_call(__func__, false);
    tnd_fake_wait_all();
    const int freed = tnd_fake_free_pinned(address);
    return code != CUDA_SUCCESS ? code : freed;
}

EXPORT int cuMemHostGetDevicePointer_v2(deviceptr *out, void *address, unsigned flags)
{
    ENTER_CONTEXT();
    CHECK(flags == 0 && tnd_fake_is_pinned(address), CUDA_ERROR_INVALID_VALUE);
    *out = (deviceptr)(uintptr_t)address;
    return CUDA_SUCCESS;
}

struct copy {
    char *to;
    const char *from;
    size_t bytes;
    int value;                        /* for filling; -1: a copy */
    void *staged;                     /* freed afterwards */
    deviceptr to_device, from_device; /* 0: of the host */
};

static void run_copy(void *data)
{
    struct copy *copy = data;
    const char *read = tnd_fake_copy_touches(copy->from_device, copy->bytes, false);
    const char *written = tnd_fake_copy_touches(copy->to_device, copy->bytes, true);
    if (read != NULL || written != NULL) {
        char text[160];
        snprintf(text, sizeof(text), "a copy %s", read != NULL ? read : written);
        tnd_fake_wrong(text, 0);
    }
    if (copy->value >= 0) {
        memset(copy->to, copy->value, copy->bytes);
    } else {
        memmove(copy->to, copy->from, copy->bytes);
    }
    free(copy->staged);
    free(copy);
}

static int push_copy(struct copy what, stream_handle stream)
{
    struct copy *copy = malloc(sizeof(*copy));
    CHECK(copy != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    *copy = what;
    tnd_fake_push(stream, run_copy, copy);
    return CUDA_SUCCESS;
}

static int wrong_range(const char *what)
{
    tnd_fake_wrong(what, 0);
    return CUDA_ERROR_INVALID_VALUE;
}

/* What is not pinned is staged before the call returns. */
static int upload(deviceptr to, const void *from, size_t bytes, stream_handle stream)
{
    char *view = tnd_fake_view(to, bytes, true);
    CHECK_STREAM(stream);
    CHECK(view != NULL && !tnd_fake_is_device(from), wrong_range("an upload out of range"));
    CHECK(bytes > 0, CUDA_SUCCESS);
    if (tnd_fake_is_pinned(from)) {
        return push_copy((struct copy){view, from, bytes, -1, NULL, to, 0}, stream);
    }
    char *staged = malloc(bytes);
    CHECK(staged != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    memcpy(staged, from, bytes);
    return push_copy((struct copy){view, staged, bytes, -1, staged, to, 0}, stream);
}

/* To what is not pinned the bytes have come when the call returns. */
static int download(void *to, deviceptr from, size_t bytes, stream_handle stream)
{
    const char *view = tnd_fake_view(from, bytes, false);
    CHECK_STREAM(stream);
    CHECK(view != NULL && !tnd_fake_is_device(to), wrong_range("a download out of range"));
    CHECK(bytes > 0, CUDA_SUCCESS);
    const int code = push_copy((struct copy){to, view, bytes, -1, NULL, 0, from}, stream);
    if (!tnd_fake_is_pinned(to)) {
        tnd_fake_wait(stream);
    }
    return code;
}

static int move(deviceptr to, deviceptr from, size_t bytes, stream_handle stream)
{
    char *to_view = tnd_fake_view(to, bytes, true);
    const char *from_view = tnd_fake_view(from, bytes, false);
    CHECK_STREAM(stream);
    CHECK(to_view != NULL && from_view != NULL, wrong_range("a copy out of range"));
    return push_copy((struct copy){to_view, from_view, bytes, -1, NULL, to, from}, stream);
}

static int fill(deviceptr to, int value, size_t bytes, stream_handle stream)
{
    char *view = tnd_fake_view(to, bytes, true);
    CHECK_STREAM(stream);
    CHECK(view != NULL, wrong_range("a fill out of range"));
    return push_copy((struct copy){view, NULL, bytes, value & 255, NULL, to, 0}, stream);
}

EXPORT int cuMemcpyHtoD_v2(deviceptr to, const void *from, size_t bytes)
{
    ENTER_CONTEXT();
    return upload(to, from, bytes, NULL);
}
EXPORT int cuMemcpyDtoH_v2(void *to, deviceptr from, size_t bytes)
{
    ENTER_CONTEXT();
    return download(to, from, bytes, NULL);
}
EXPORT int cuMemcpyDtoD_v2(deviceptr to, deviceptr from, size_t bytes)
{
    ENTER_CONTEXT();
    return move(to, from, bytes, NULL);
}
EXPORT int cuMemcpyHtoDAsync_v2(deviceptr to, const void *from, size_t bytes, stream_handle stream)
{
    ENTER_CONTEXT();
    return upload(to, from, bytes, stream);
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, deviceptr from, size_t bytes, stream_handle stream)
{
    ENTER_CONTEXT();
    return download(to, from, bytes, stream);
}
EXPORT int cuMemcpyDtoDAsync_v2(deviceptr to, deviceptr from, size_t bytes, stream_handle stream)
{
    ENTER_CONTEXT();
    return move(to, from, bytes, stream);
}
EXPORT int cuMemsetD8_v2(deviceptr to, unsigned char value, size_t bytes)
{
    ENTER_CONTEXT();
    return fill(to, value, bytes, NULL);
}
EXPORT int cuMemsetD8Async(deviceptr to, unsigned char value, size_t bytes, stream_handle stream)
{
    ENTER_CONTEXT();
    return fill(to, value, bytes, stream);
}

/* ---- streams and events ---- */

EXPORT int cuStreamCreate(stream_handle *out, unsigned flags)
{
    ENTER_CONTEXT();
    *out = tnd_fake_stream_new((flags & 1) == 0);
    CHECK(*out != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    tnd_fake_live(TND_FAKE_STREAM, 1);
    return CUDA_SUCCESS;
}

EXPORT int cuStreamCreateWithPriority(stream_handle *out, unsigned flags, int priority)
{
    ENTER_CONTEXT();
    (void)priority;
    *out = tnd_fake_stream_new((flags & 1) == 0);
    CHECK(*out != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    tnd_fake_live(TND_FAKE_STREAM, 1);
    return CUDA_SUCCESS;
}

EXPORT int cuStreamDestroy_v2(stream_handle stream)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK(stream != NULL && tnd_fake_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);
    tnd_fake_stream_free(stream);
    tnd_fake_live(TND_FAKE_STREAM, -1);
    return code;
}

EXPORT int cuStreamSynchronize(stream_handle stream)
{
    ENTER_CONTEXT();
    CHECK_STREAM(stream);
    tnd_fake_wait(stream);
    return sticky_now();
}

EXPORT int cuStreamQuery(stream_handle stream)
{
    ENTER_CONTEXT();
    CHECK_STREAM(stream);
    return tnd_fake_is_done(stream) ? sticky_now() : CUDA_ERROR_NOT_READY;
}

EXPORT int cuStreamWaitEvent(stream_handle stream, event_handle event, unsigned flags)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK(code != TND_FAKE_FORGET, CUDA_SUCCESS); /* a fault of the caller's that tests plant */
    CHECK(code == CUDA_SUCCESS, code);
    (void)flags;
    CHECK_STREAM(stream);
    CHECK_EVENT(event);
    tnd_fake_event_hold(event, stream);
    return CUDA_SUCCESS;
}

struct call {
    void (*function)(void *data);
    void *data;
};

static void run_call(void *data)
{
    struct call *call = data;
    call->function(call->data);
    free(call);
}

EXPORT int cuLaunchHostFunc(stream_handle stream, void (*function)(void *data), void *data)
{
    ENTER_CONTEXT();
    CHECK_STREAM(stream);
    struct call *call = malloc(sizeof(*call));
    CHECK(call != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    *call = (struct call){function, data};
    tnd_fake_push(stream, run_call, call);
    return CUDA_SUCCESS;
}

EXPORT int cuEventCreate(event_handle *out, unsigned flags)
{
    ENTER_CONTEXT();
    (void)flags;
    *out = tnd_fake_event_new();
    CHECK(*out != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    tnd_fake_live(TND_FAKE_EVENT, 1);
    return CUDA_SUCCESS;
}

EXPORT int cuEventDestroy_v2(event_handle event)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK_EVENT(event);
    tnd_fake_event_free(event);
    tnd_fake_live(TND_FAKE_EVENT, -1);
    return code;
}

EXPORT int cuEventRecord(event_handle event, stream_handle stream)
{
    ENTER_CONTEXT();
    CHECK_STREAM(stream);
    CHECK_EVENT(event);
    tnd_fake_event_record(event, stream);
    return CUDA_SUCCESS;
}

EXPORT int cuEventSynchronize(event_handle event)
{
    ENTER_CONTEXT();
    CHECK_EVENT(event);
    tnd_fake_event_wait(event);
    return sticky_now();
}

EXPORT int cuEventQuery(event_handle event)
{
    ENTER_CONTEXT();
    CHECK_EVENT(event);
    return tnd_fake_event_is_done(event) ? sticky_now() : CUDA_ERROR_NOT_READY;
}

EXPORT int cuEventElapsedTime(float *out_ms, event_handle from, event_handle to)
{
    ENTER_CONTEXT();
    CHECK_EVENT(from);
    CHECK_EVENT(to);
    return tnd_fake_event_times(from, to, out_ms) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- modules and launches ---- */

EXPORT int cuModuleLoadData(struct tnd_fake_module **out, const void *image)
{
    ENTER_CONTEXT();
    return tnd_fake_module_load(image, out);
}

EXPORT int cuModuleLoadDataEx(struct tnd_fake_module **out, const void *image, unsigned n,
                              int *options, void **values)
{
    ENTER_CONTEXT();
    (void)n;
    (void)options;
    (void)values;
    return tnd_fake_module_load(image, out);
}

EXPORT int cuModuleUnload(struct tnd_fake_module *module)
{
    const int code = tnd_fake_enter_call(__func__, false);
    CHECK(module != NULL, CUDA_ERROR_INVALID_HANDLE);
    tnd_fake_wait_all();
    tnd_fake_module_free(module);
    return code;
}

EXPORT int cuModuleGetFunction(struct tnd_fake_function **out, struct tnd_fake_module *module,
                               const char *name)
{
    ENTER_CONTEXT();
    *out = tnd_fake_module_find(module, name);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* By the numbers of CUfunction_attribute. */
EXPORT int cuFuncGetAttribute(int *out, int attribute, struct tnd_fake_function *function)
{
    ENTER_CONTEXT();
    *out = attribute == 0   ? 1024
           : attribute == 1 ? (int)tnd_fake_function_local_bytes(function)
           : attribute == 4 ? 64
                            : 0;
    return CUDA_SUCCESS;
}

EXPORT int cuFuncSetAttribute(struct tnd_fake_function *function, int attribute, int value)
{
    ENTER_CONTEXT();
    (void)function;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}

EXPORT int cuLaunchKernel(struct tnd_fake_function *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, stream_handle stream, void **arguments,
                          void **extra)
{
    ENTER_CONTEXT();
    CHECK(function != NULL, CUDA_ERROR_INVALID_HANDLE);
    CHECK_STREAM(stream);
    CHECK(extra == NULL, CUDA_ERROR_NOT_SUPPORTED);
    pthread_mutex_lock(&lock);
    counts.n_launches++;
    pthread_mutex_unlock(&lock);
    return tnd_fake_launch_push(function, (unsigned[3]){grid_x, grid_y, grid_z},
                                (unsigned[3]){block_x, block_y, block_z}, shared_bytes, stream,
                                arguments);
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, struct tnd_fake_function *function,
                                                       int block, size_t shared_bytes)
{
    ENTER_CONTEXT();
    (void)function;
    (void)shared_bytes;
    *out = block > 0 ? 2048 / block : 0;
    return CUDA_SUCCESS;
}
