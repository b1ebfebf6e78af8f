/* SPDX-License-Identifier: MIT
 * A GPU backend over a driver: settings, choice of the device, and the functions of the vtable.
 * Implemented by gpu_matmul.c (matrix products), gpu_ops.c (all other operations), gpu_memory.c and
 * gpu_weights.c. */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_bcml1.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_indices.h"
#include "backends/gpu/gpu_matmul.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_ops.h"
#include "backends/gpu/gpu_profiles.h"
#include "backends/gpu/gpu_program.h"
#include "backends/gpu/gpu_stream.h"
#include "backends/gpu/gpu_times.h"
#include "backends/gpu/gpu_backend.h"
#include "backends/settings.h"
#include "base/alloc.h"
#include "base/environment.h"
#include "base/file.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/backend.h"
#include "tandem/log.h"

struct gpu {
    tandem_backend base;
    struct tnd_gpu_device *device;
    char name[16];                                       /* "opencl1" */
    int (*log)(void *user, int level, const char *text); /* NULL: silent */
    void *log_user;
};

struct tnd_gpu_device *tnd_gpu_device_of(tandem_backend *backend)
{
    return ((struct gpu *)backend)->device;
}

/* ---- settings ---- */

enum { MAX_TEXT = 256 };

struct settings {
    struct tnd_gpu_options options; /* its texts point to the members below */
    char device[MAX_TEXT];
    char library[MAX_TEXT];
    char blas[MAX_TEXT];
    char cache[MAX_TEXT];
};

static bool copy_text(const struct tnd_setting *setting, const char *key, char *to,
                      const char **out_option)
{
    if (!tnd_setting_is(setting, key) || setting->value_n == 0 || setting->value_n >= MAX_TEXT) {
        return false;
    }
    memcpy(to, setting->value, setting->value_n);
    to[setting->value_n] = '\0';
    *out_option = to;
    return true;
}

static bool read_switch(const struct tnd_setting *setting, const char *key, const char *value,
                        bool *out)
{
    if (tnd_setting_is(setting, key) && tnd_setting_value_is(setting, value)) {
        *out = true;
        return true;
    }
    return false;
}

static enum tandem_status read_setting(const struct tnd_setting *setting,
                                       const struct tnd_gpu_driver *driver,
                                       const struct tandem_backend_api *api, const char *name,
                                       struct settings *out, struct tandem_error *error)
{
    struct tnd_gpu_options *options = &out->options;
    if (tnd_setting_is(setting, "budget")) {
        double mib = 0;
        TND_TRY(tnd_setting_number(setting, name, &mib, error));
        /* 0 means that nothing may be resident; in `options` it would mean the default */
        options->budget_bytes = mib < 1e12 ? (uint64_t)(mib * 1048576.0) : UINT64_MAX;
        options->budget_bytes += options->budget_bytes == 0;
        return TANDEM_OK;
    }
    if (copy_text(setting, "device", out->device, &options->device) ||
        copy_text(setting, "library", out->library, &options->libraries.driver) ||
        copy_text(setting, driver->blas_setting, out->blas, &options->libraries.blas) ||
        copy_text(setting, "cache", out->cache, &options->cache) ||
        read_switch(setting, "fp16", "off", &options->without_fp16) ||
        read_switch(setting, "fp64", "off", &options->without_fp64) ||
        read_switch(setting, "subgroups", "off", &options->without_subgroups) ||
        read_switch(setting, "unified", "off", &options->without_unified) ||
        read_switch(setting, "profile", "on", &options->with_profiling)) {
        return TANDEM_OK;
    }
    bool is_on = false;
    bool is_off = false;
    if (read_switch(setting, "graphs", "on", &is_on) ||
        read_switch(setting, "graphs", "off", &is_off)) {
        options->graphs = is_on ? TND_GPU_GRAPHS_ON : TND_GPU_GRAPHS_OFF;
        return TANDEM_OK;
    }
    return tnd_setting_refuse_by(setting, api, name, error);
}

/* ---- which device ---- */

/* Part `which` of "first,second"; "" if there are not so many. */
static void nth_part(const char *text, int which, char *out, size_t bytes)
{
    for (; which > 0; which--) {
        text += strcspn(text, ",");
        text += *text == ',';
    }
    snprintf(out, bytes, "%.*s", (int)strcspn(text, ","), text);
}

/* Whether there is a device file of a GPU or accelerator. Checked first, because loading OpenCL
 * with all its drivers takes long, only to find a CPU. */
static bool has_device_node(void)
{
    static const char *const files[] = {"/dev/nvidiactl",      "/dev/nvidia0",    "/dev/kfd",
                                        "/dev/dri/renderD128", "/dev/dxg",        "/dev/mali0",
                                        "/dev/kgsl-3d0",       "/dev/nvhost-gpu", "/dev/pvr_sync"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (tnd_file_exists(files[i])) {
            return true;
        }
    }
    return false;
}

static enum tandem_status refuse(const char *name, const char *why, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, name, 0, 0, "backend %s: %s", name,
                         why);
}

/* The setting takes precedence over the environment. Without either, GPUs are tried, and CPUs too
 * if the program has named the backend. */
static enum tandem_status choose(const char *name, int which, bool is_asked_for,
                                 struct settings *settings, struct tandem_error *error)
{
    struct tnd_gpu_options *options = &settings->options;
    const char *environment = tnd_environment(TND_ENVIRONMENT_DEVICE);
    if (options->device == NULL && environment != NULL) {
        bool is_none = strcmp(environment, "none") == 0;
        nth_part(environment, is_none ? 0 : which, settings->device, sizeof(settings->device));
        if (settings->device[0] == '\0') {
            return refuse(name, "TANDEM_DEVICE names no device for it", error);
        }
        options->device = settings->device;
    }
    if (options->device != NULL) {
        return strcmp(options->device, "none") == 0
                   ? refuse(name, "no device is wanted (device=none or TANDEM_DEVICE=none)", error)
                   : TANDEM_OK;
    }
    options->skip = which;
    options->with_cpu = is_asked_for;
    if (!is_asked_for && options->libraries.driver == NULL && !has_device_node()) {
        return refuse(name,
                      "this machine has no GPU; a CPU as a device is used only when it is "
                      "asked for",
                      error);
    }
    return TANDEM_OK;
}

/* ---- opening ---- */

/* Warns a user who has named a library that products do not use it. */
static void tell_blas(const struct gpu *self, const char *asked)
{
    const struct tnd_gpu_context *context = self->device->context;
    if (self->log != NULL && !context->has_blas && (asked == NULL || strcmp(asked, "off") != 0)) {
        char line[256];
        snprintf(line, sizeof(line), "%s: %s", self->name, context->blas_reason);
        self->log(self->log_user, asked != NULL ? TANDEM_LOG_WARN : TANDEM_LOG_INFO, line);
    }
}

enum tandem_status tnd_gpu_backend_open(const struct tnd_gpu_driver *driver,
                                        const struct tandem_backend_api *api,
                                        const struct tandem_backend_options *options,
                                        tandem_backend **out_backend, struct tandem_error *error)
{
    const char *name = options->name != NULL ? options->name : api->name;
    struct settings settings;
    memset(&settings, 0, sizeof(settings));
    const char *text = options->settings;
    struct tnd_setting setting;
    while (tnd_settings_next(&text, &setting)) {
        TND_TRY(read_setting(&setting, driver, api, name, &settings, error));
    }
    TND_TRY(choose(name, options->device, options->is_asked_for, &settings, error));
    struct gpu *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)sizeof(*self), 0,
                             "backend %s: no memory", name);
    }
    enum tandem_status status =
        tnd_gpu_device_open(driver, &settings.options, &self->device, error);
    if (status != TANDEM_OK) {
        tnd_free(self);
        return status;
    }
    self->base.api = api;
    snprintf(self->name, sizeof(self->name), "%s", name);
    self->log = options->log;
    self->log_user = options->log_user;
    const char *refused = tnd_gpu_programs_refused(self->device);
    if (self->log != NULL && refused[0] != '\0') {
        self->log(self->log_user, TANDEM_LOG_WARN, refused);
    }
    tell_blas(self, settings.options.libraries.blas);
    *out_backend = &self->base;
    return TANDEM_OK;
}

/* Costs of starting (a second start should compile nothing), and device memory in use. */
size_t tnd_gpu_backend_report(tandem_backend *backend, char *out, size_t capacity)
{
    const struct gpu *self = (const struct gpu *)backend;
    struct tnd_gpu_statistics s;
    tnd_gpu_statistics_get(self->device, &s);
    const int n = snprintf(
        out, capacity,
        "%s: %lld programs compiled, %lld loaded from the cache, in %.3f s; %lld launches%s, "
        "%.1f MB up, %.1f MB down; small constants: %.1f KiB in %lld buffers before pooling, "
        "%.1f KiB in %lld after",
        self->name, (long long)s.programs_compiled, (long long)s.programs_loaded,
        (double)s.build_ns * 1e-9, (long long)s.launches,
        self->device->uses_graphs ? " in graphs" : "", (double)s.uploaded_bytes * 1e-6,
        (double)s.downloaded_bytes * 1e-6, (double)s.constant_bytes / 1024.0,
        (long long)s.constant_count, (double)s.shared_bytes / 1024.0, (long long)s.shared_count);
    return n > 0 ? (size_t)n : 0;
}

void tnd_gpu_backend_close(tandem_backend *backend)
{
    const struct gpu *self = (const struct gpu *)backend;
    if (self->log != NULL) {
        char line[400];
        (void)tnd_gpu_backend_report(backend, line, sizeof(line));
        self->log(self->log_user, TANDEM_LOG_INFO, line);
    }
    tnd_gpu_device_close(tnd_gpu_device_of(backend));
    tnd_free(backend);
}

const char *tnd_gpu_backend_describe(tandem_backend *backend)
{
    return tnd_gpu_device_of(backend)->text;
}

/* The library of products is part of the identity, because times depend on it. */
bool tnd_gpu_backend_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out)
{
    const struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    const struct tandem_backend_fact facts[] = {
        {"device", device->identity},
        {"driver", device->driver_text},
    };
    bool exists = i >= 0 && (size_t)i < sizeof(facts) / sizeof(facts[0]);
    *out = exists ? facts[i] : *out;
    return exists;
}

/* ---- work ---- */

/* Plain products, and all their stages, are handled by gpu_matmul.c. */
static bool is_matmul(const tandem_tensor *node, uint32_t task)
{
    return task != TANDEM_TASK_NODE ||
           (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node));
}

enum tandem_status tnd_gpu_backend_supports(tandem_backend *backend, const tandem_tensor *node,
                                            uint32_t task, struct tandem_error *error)
{
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    if (!is_matmul(node, task)) {
        return tnd_gpu_ops_supports(device, node, error);
    }
    if (node->op != TANDEM_OP_MUL_MAT) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, backend->api->name, task, 0,
                             "backend %s: %s is a task of matrix products", backend->api->name,
                             tandem_task_name((enum tandem_task)task));
    }
    return tnd_gpu_matmul_supports(device, node, (enum tandem_task)task, error);
}

size_t tnd_gpu_backend_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    return node->op == TANDEM_OP_MUL_MAT && is_matmul(node, task)
               ? tnd_gpu_matmul_workspace(tnd_gpu_device_of(backend), node, (enum tandem_task)task)
               : 0;
}

enum tandem_status tnd_gpu_backend_submit(tandem_backend *backend, const struct tandem_work *work,
                                          uint64_t *out_ticket, struct tandem_error *error)
{
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    pthread_mutex_lock(&device->submit_lock);
    enum tandem_status status = tnd_gpu_stream_begin_work(device, work, error);
    struct tnd_gpu_event *begin = tnd_gpu_times_begin(device);
    if (status == TANDEM_OK) {
        status = is_matmul(work->node, work->task) ? tnd_gpu_matmul_submit(device, work, error)
                                                   : tnd_gpu_ops_submit(device, work, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_stream_end_work(device, work, error);
    }
    const uint64_t ticket = tnd_gpu_ticket(device);
    tnd_gpu_times_end(device, begin, ticket);
    pthread_mutex_unlock(&device->submit_lock);
    TND_TRY(status);
    *out_ticket = ticket;
    return TANDEM_OK;
}

bool tnd_gpu_backend_took(tandem_backend *backend, uint64_t ticket, int64_t *out_ns)
{
    return tnd_gpu_took(tnd_gpu_device_of(backend), ticket, out_ns);
}

enum tandem_status tnd_gpu_backend_sync(tandem_backend *backend, uint64_t ticket,
                                        struct tandem_error *error)
{
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    TND_TRY(tnd_gpu_sync(device, ticket, error));
    return tnd_gpu_indices_check(device, error);
}

bool tnd_gpu_backend_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over)
{
    return tnd_gpu_poll(tnd_gpu_device_of(backend), ticket, out_is_over);
}

/* ---- memory ---- */

enum tandem_status tnd_gpu_backend_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                           void **out_handle, struct tandem_error *error)
{
    struct tnd_gpu_device *device = tnd_gpu_device_of(backend);
    struct tnd_gpu_block *block = NULL;
    TND_TRY(tnd_gpu_prepare(device, weight, &block, error));
    enum tandem_status status = tnd_gpu_bcml1_prepare(device, weight, block, error);
    if (status != TANDEM_OK) {
        tnd_gpu_give_back(device, block);
        return status;
    }
    *out_handle = block;
    return TANDEM_OK;
}

void tnd_gpu_backend_give_back(tandem_backend *backend, void *handle)
{
    tnd_gpu_give_back(tnd_gpu_device_of(backend), handle);
}

enum tandem_status tnd_gpu_backend_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                       struct tandem_error *error)
{
    struct tnd_gpu_block *block = NULL;
    TND_TRY(tnd_gpu_map(tnd_gpu_device_of(backend), bytes, &block, error));
    *out_handle = block;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_backend_upload(tandem_backend *backend, struct tandem_place to,
                                          const void *from, size_t bytes,
                                          struct tandem_error *error)
{
    return tnd_gpu_upload(tnd_gpu_device_of(backend), to, from, bytes, error);
}

enum tandem_status tnd_gpu_backend_stream(tandem_backend *backend, struct tandem_place to,
                                          const void *from, size_t bytes,
                                          struct tandem_error *error)
{
    return tnd_gpu_stream(tnd_gpu_device_of(backend), to, from, bytes, error);
}

enum tandem_status tnd_gpu_backend_download(tandem_backend *backend, struct tandem_place from,
                                            void *to, size_t bytes, uint64_t *out_ticket,
                                            struct tandem_error *error)
{
    return tnd_gpu_download(tnd_gpu_device_of(backend), from, to, bytes, out_ticket, error);
}

size_t tnd_gpu_backend_prepared_bytes(tandem_backend *backend)
{
    struct tnd_gpu_statistics statistics;
    tnd_gpu_statistics_get(tnd_gpu_device_of(backend), &statistics);
    return (size_t)statistics.resident_bytes;
}

uint64_t tnd_gpu_backend_weight_budget(tandem_backend *backend)
{
    struct tnd_gpu_statistics statistics;
    tnd_gpu_statistics_get(tnd_gpu_device_of(backend), &statistics);
    return (uint64_t)statistics.budget_bytes;
}
