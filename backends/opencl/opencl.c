/* SPDX-License-Identifier: MIT
 * The OpenCL backend: settings, which device, and the table of functions. The work is done by
 * cl_matmul.c (matrix products), cl_ops.c (all other operations), cl_memory.c and cl_weights.c. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/cl_bcml1.h"
#include "backends/opencl/cl_device.h"
#include "backends/opencl/cl_indices.h"
#include "backends/opencl/cl_matmul.h"
#include "backends/opencl/cl_memory.h"
#include "backends/opencl/cl_ops.h"
#include "backends/opencl/cl_profiles.h"
#include "backends/opencl/cl_program.h"
#include "backends/opencl/cl_stream.h"
#include "backends/opencl/opencl.h"
#include "backends/settings.h"
#include "base/alloc.h"
#include "base/environment.h"
#include "base/file.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/backend.h"
#include "tandem/log.h"

extern const struct tandem_backend_api tnd_backend_opencl;

struct opencl {
    tandem_backend base;
    struct tnd_cl_device *device;
    char name[16];                                       /* "opencl1" */
    int (*log)(void *user, int level, const char *text); /* NULL: silent */
    void *log_user;
};

struct tnd_cl_device *tnd_opencl_device(tandem_backend *backend)
{
    return ((struct opencl *)backend)->device;
}

/* ---- settings ---- */

enum { MAX_TEXT = 256 };

struct settings {
    struct tnd_cl_options options; /* texts point to the members below */
    char device[MAX_TEXT];
    char library[MAX_TEXT];
    char clblast[MAX_TEXT];
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

static enum tandem_status read_setting(const struct tnd_setting *setting, const char *name,
                                       struct settings *out, struct tandem_error *error)
{
    struct tnd_cl_options *options = &out->options;
    if (tnd_setting_is(setting, "budget")) {
        double mib = 0;
        TND_TRY(tnd_setting_number(setting, name, &mib, error));
        /* 0 means nothing may be resident, not the default. */
        options->budget_bytes = mib < 1e12 ? (uint64_t)(mib * 1048576.0) : UINT64_MAX;
        options->budget_bytes += options->budget_bytes == 0;
        return TANDEM_OK;
    }
    if (copy_text(setting, "device", out->device, &options->device) ||
        copy_text(setting, "library", out->library, &options->library) ||
        copy_text(setting, "clblast", out->clblast, &options->clblast) ||
        copy_text(setting, "cache", out->cache, &options->cache) ||
        read_switch(setting, "fp16", "off", &options->without_fp16) ||
        read_switch(setting, "fp64", "off", &options->without_fp64) ||
        read_switch(setting, "subgroups", "off", &options->without_subgroups) ||
        read_switch(setting, "unified", "off", &options->without_unified) ||
        read_switch(setting, "profile", "on", &options->with_profiling)) {
        return TANDEM_OK;
    }
    return tnd_setting_refuse_by(setting, &tnd_backend_opencl, name, error);
}

/* ---- which device ---- */

/* Part `which` of "first,second"; "" when there are not as many. */
static void nth_part(const char *text, int which, char *out, size_t bytes)
{
    for (; which > 0; which--) {
        text += strcspn(text, ",");
        text += *text == ',';
    }
    snprintf(out, bytes, "%.*s", (int)strcspn(text, ","), text);
}

/* Drivers of GPUs and accelerators have one of these. Looking here first keeps a machine without
 * them from loading OpenCL and all its drivers, which takes long, only to find a CPU. */
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

/* The setting counts before the environment. Without both GPUs are tried, and CPUs too when the
 * program has named the backend. */
static enum tandem_status choose(const char *name, int which, bool is_asked_for,
                                 struct settings *settings, struct tandem_error *error)
{
    struct tnd_cl_options *options = &settings->options;
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
    if (!is_asked_for && options->library == NULL && !has_device_node()) {
        return refuse(name,
                      "this machine has no GPU; a CPU as OpenCL device is used only when it "
                      "is asked for",
                      error);
    }
    return TANDEM_OK;
}

/* ---- opening ---- */

static enum tandem_status opencl_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    const char *name = options->name != NULL ? options->name : tnd_backend_opencl.name;
    struct settings settings;
    memset(&settings, 0, sizeof(settings));
    const char *text = options->settings;
    struct tnd_setting setting;
    while (tnd_settings_next(&text, &setting)) {
        TND_TRY(read_setting(&setting, name, &settings, error));
    }
    TND_TRY(choose(name, options->device, options->is_asked_for, &settings, error));
    struct opencl *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)sizeof(*self), 0,
                             "backend %s: no memory", name);
    }
    enum tandem_status status = tnd_cl_device_open(&settings.options, &self->device, error);
    if (status != TANDEM_OK) {
        tnd_free(self);
        return status;
    }
    self->base.api = &tnd_backend_opencl;
    snprintf(self->name, sizeof(self->name), "%s", name);
    self->log = options->log;
    self->log_user = options->log_user;
    const char *refused = tnd_cl_programs_refused(self->device);
    if (self->log != NULL && refused[0] != '\0') {
        self->log(self->log_user, TANDEM_LOG_WARN, refused);
    }
    *out_backend = &self->base;
    return TANDEM_OK;
}

/* What starting has cost: the second start should compile nothing. */
static void log_statistics(const struct opencl *self)
{
    struct tnd_cl_statistics statistics;
    char line[256];
    tnd_cl_statistics_get(self->device, &statistics);
    snprintf(line, sizeof(line),
             "%s: %lld programs compiled, %lld loaded from the cache, in %.3f s; %lld launches, "
             "%.1f MB up, %.1f MB down",
             self->name, (long long)statistics.programs_compiled,
             (long long)statistics.programs_loaded, (double)statistics.build_ns * 1e-9,
             (long long)statistics.launches, (double)statistics.uploaded_bytes * 1e-6,
             (double)statistics.downloaded_bytes * 1e-6);
    self->log(self->log_user, TANDEM_LOG_INFO, line);
}

static void opencl_close(tandem_backend *backend)
{
    const struct opencl *self = (const struct opencl *)backend;
    if (self->log != NULL) {
        log_statistics(self);
    }
    tnd_cl_device_close(tnd_opencl_device(backend));
    tnd_free(backend);
}

static const char *opencl_describe(tandem_backend *backend)
{
    return tnd_opencl_device(backend)->text;
}

/* CLBlast takes part in the device's times. */
static bool opencl_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out)
{
    const struct tnd_cl_device *device = tnd_opencl_device(backend);
    const struct tandem_backend_fact facts[] = {
        {"device", device->identity},
        {"driver", device->driver},
    };
    bool exists = i >= 0 && (size_t)i < sizeof(facts) / sizeof(facts[0]);
    *out = exists ? facts[i] : *out;
    return exists;
}

/* ---- work ---- */

/* Plain products, and all stages of them, belong to cl_matmul.c. */
static bool is_matmul(const tandem_tensor *node, uint32_t task)
{
    return task != TANDEM_TASK_NODE ||
           (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node));
}

static enum tandem_status opencl_supports(tandem_backend *backend, const tandem_tensor *node,
                                          uint32_t task, struct tandem_error *error)
{
    struct tnd_cl_device *device = tnd_opencl_device(backend);
    if (!is_matmul(node, task)) {
        return tnd_cl_ops_supports(device, node, error);
    }
    if (node->op != TANDEM_OP_MUL_MAT) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, backend->api->name, task, 0,
                             "backend %s: %s is a task of matrix products", backend->api->name,
                             tandem_task_name((enum tandem_task)task));
    }
    return tnd_cl_matmul_supports(device, node, (enum tandem_task)task, error);
}

static size_t opencl_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    return node->op == TANDEM_OP_MUL_MAT && is_matmul(node, task)
               ? tnd_cl_matmul_workspace(tnd_opencl_device(backend), node, (enum tandem_task)task)
               : 0;
}

static enum tandem_status opencl_submit(tandem_backend *backend, const struct tandem_work *work,
                                        uint64_t *out_ticket, struct tandem_error *error)
{
    struct tnd_cl_device *device = tnd_opencl_device(backend);
    pthread_mutex_lock(&device->submit_lock);
    enum tandem_status status = tnd_cl_stream_begin_work(device, work, error);
    if (status == TANDEM_OK) {
        status = is_matmul(work->node, work->task) ? tnd_cl_matmul_submit(device, work, error)
                                                   : tnd_cl_ops_submit(device, work, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_cl_stream_end_work(device, work, error);
    }
    pthread_mutex_unlock(&device->submit_lock);
    TND_TRY(status);
    *out_ticket = tnd_cl_ticket(device);
    return TANDEM_OK;
}

static enum tandem_status opencl_sync(tandem_backend *backend, uint64_t ticket,
                                      struct tandem_error *error)
{
    struct tnd_cl_device *device = tnd_opencl_device(backend);
    TND_TRY(tnd_cl_sync(device, ticket, error));
    return tnd_cl_indices_check(device, error);
}

static bool opencl_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over)
{
    return tnd_cl_poll(tnd_opencl_device(backend), ticket, out_is_over);
}

/* ---- memory ---- */

static enum tandem_status opencl_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                         void **out_handle, struct tandem_error *error)
{
    struct tnd_cl_device *device = tnd_opencl_device(backend);
    struct tnd_cl_block *block = NULL;
    TND_TRY(tnd_cl_prepare(device, weight, &block, error));
    enum tandem_status status = tnd_cl_bcml1_prepare(device, weight, block, error);
    if (status != TANDEM_OK) {
        tnd_cl_give_back(device, block);
        return status;
    }
    *out_handle = block;
    return TANDEM_OK;
}

static void opencl_give_back(tandem_backend *backend, void *handle)
{
    tnd_cl_give_back(tnd_opencl_device(backend), handle);
}

static enum tandem_status opencl_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                     struct tandem_error *error)
{
    struct tnd_cl_block *block = NULL;
    TND_TRY(tnd_cl_map(tnd_opencl_device(backend), bytes, &block, error));
    *out_handle = block;
    return TANDEM_OK;
}

static enum tandem_status opencl_upload(tandem_backend *backend, struct tandem_place to,
                                        const void *from, size_t bytes, struct tandem_error *error)
{
    return tnd_cl_upload(tnd_opencl_device(backend), to, from, bytes, error);
}

static enum tandem_status opencl_stream(tandem_backend *backend, struct tandem_place to,
                                        const void *from, size_t bytes, struct tandem_error *error)
{
    return tnd_cl_stream(tnd_opencl_device(backend), to, from, bytes, error);
}

static enum tandem_status opencl_download(tandem_backend *backend, struct tandem_place from,
                                          void *to, size_t bytes, uint64_t *out_ticket,
                                          struct tandem_error *error)
{
    return tnd_cl_download(tnd_opencl_device(backend), from, to, bytes, out_ticket, error);
}

static size_t opencl_prepared_bytes(tandem_backend *backend)
{
    struct tnd_cl_statistics statistics;
    tnd_cl_statistics_get(tnd_opencl_device(backend), &statistics);
    return (size_t)statistics.resident_bytes;
}

static uint64_t opencl_weight_budget(tandem_backend *backend)
{
    struct tnd_cl_statistics statistics;
    tnd_cl_statistics_get(tnd_opencl_device(backend), &statistics);
    return (uint64_t)statistics.budget_bytes;
}

const struct tandem_backend_api tnd_backend_opencl = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "opencl",
    .kind = TANDEM_KIND_OPENCL,
    .open = opencl_open,
    .close = opencl_close,
    .describe = opencl_describe,
    .supports = opencl_supports,
    .workspace = opencl_workspace,
    .submit = opencl_submit,
    .sync = opencl_sync,
    .poll = opencl_poll,
    .prepare = opencl_prepare,
    .forget = opencl_give_back,
    .memory = TANDEM_MEMORY_OWN,
    .map = opencl_map,
    .unmap = opencl_give_back,
    .upload = opencl_upload,
    .download = opencl_download,
    .prepared_bytes = opencl_prepared_bytes,
    .identity = opencl_identity,
    .devices = tnd_cl_devices,
    .profile = tnd_cl_profile,
    .setting = tnd_cl_setting,
    .stream = opencl_stream,
    .weight_budget = opencl_weight_budget,
};
