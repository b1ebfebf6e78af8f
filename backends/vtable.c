/* SPDX-License-Identifier: MIT
 * The only place that calls a backend's function pointers: defaults for optional ones, checks of
 * arguments and results, and a message for every failure. Knows no particular backend. */
#include "backends/registry.h"

#include <stddef.h>

#include "backends/task.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"

#define TASK_COLUMNS(name, text, columns, what) columns,
const uint16_t tnd_task_columns[UINT8_MAX + 1] = {TANDEM_TASK_LIST(TASK_COLUMNS)};
#undef TASK_COLUMNS

const char *tandem_task_name(enum tandem_task task)
{
#define TASK_NAME(name, text, columns, what) text,
    static const char *const names[TANDEM_TASK_COUNT] = {TANDEM_TASK_LIST(TASK_NAME)};
#undef TASK_NAME
    return (unsigned)task < TANDEM_TASK_COUNT ? names[task] : "unknown";
}

/* Converts a backend's failure for the caller: always a valid status and always a message. `told`
 * is what the backend wrote into a fresh struct. */
static enum tandem_status fail_call(const tandem_backend *backend, const char *function,
                                    enum tandem_status status, const struct tandem_error *told,
                                    struct tandem_error *error)
{
    bool known = false;
    switch (status) {
#define STATUS_CASE(name, number, text) case TANDEM_E_##name:
        TANDEM_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
        known = true;
        break;
    default:
        break;
    }
    if (!known) {
        return tnd_error_set(error, TANDEM_E_DEVICE, backend->api->name, (int64_t)status, 0,
                             "backend %s: %s returned %d, which is no status", backend->api->name,
                             function, (int)status);
    }
    if (told->status != status) {
        return tnd_error_set(error, status, backend->api->name, (int64_t)status, 0,
                             "backend %s: %s failed: %s", backend->api->name, function,
                             tandem_status_text(status));
    }
    if (error != NULL) {
        *error = *told;
    }
    return status;
}

/* A struct for the backend's error. Only its status is set, so it is cheap to make for each
 * call. */
#define FRESH_ERROR(told)                                                                          \
    struct tandem_error told;                                                                      \
    told.status = TANDEM_OK

enum tandem_backend_kind tnd_backend_kind(const tandem_backend *backend)
{
    return (enum tandem_backend_kind)backend->api->kind;
}

const char *tnd_backend_describe(tandem_backend *backend)
{
    const char *text = NULL;
    if (backend->api->describe != NULL) {
        text = backend->api->describe(backend);
    }
    return text != NULL ? text : backend->api->name;
}

bool tnd_backend_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out)
{
    return backend->api->identity != NULL && backend->api->identity(backend, i, out);
}

bool tnd_backend_is_async(const tandem_backend *backend)
{
    return backend->api->run == NULL;
}

enum tandem_status tnd_backend_supports(tandem_backend *backend, const tandem_tensor *node,
                                        enum tandem_task task, struct tandem_error *error)
{
    if (task == TANDEM_TASK_NONE || task >= TANDEM_TASK_COUNT) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, backend->api->name, (int64_t)task,
                             TANDEM_TASK_COUNT - 1,
                             "backend %s: task %s is nothing that can be run", backend->api->name,
                             tandem_task_name(task));
    }
    if (tnd_task_is(task, TND_TASK_STREAMS_W) &&
        (!tnd_backend_is_own(backend) || node->op != TANDEM_OP_MUL_MAT)) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, backend->api->name, (int64_t)task,
                             0,
                             "backend %s: task %s is for products on devices with memory of "
                             "their own",
                             backend->api->name, tandem_task_name(task));
    }
    task = tnd_task_told(task);
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->supports(backend, node, (uint32_t)task, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "supports", status, &told, error);
}

size_t tnd_backend_workspace(tandem_backend *backend, const tandem_tensor *node,
                             enum tandem_task task)
{
    if (backend->api->workspace == NULL) {
        return 0;
    }
    return backend->api->workspace(backend, node, (uint32_t)tnd_task_told(task));
}

size_t tnd_backend_scratch(tandem_backend *backend, const tandem_tensor *node,
                           enum tandem_task task)
{
    if (backend->api->scratch == NULL) {
        return 0;
    }
    return backend->api->scratch(backend, node, (uint32_t)tnd_task_told(task));
}

enum tandem_status tnd_backend_run(tandem_backend *backend, const struct tandem_work *work,
                                   struct tandem_worker *worker)
{
    if (backend->api->run == NULL) {
        return tnd_error_set(worker->error, TANDEM_E_STATE, backend->api->name, 0, 0,
                             "backend %s: an asynchronous device takes work by submit, not by run",
                             backend->api->name);
    }
    struct tandem_error *error = worker->error;
    FRESH_ERROR(told);
    worker->error = &told;
    enum tandem_status status = backend->api->run(backend, work, worker);
    worker->error = error;
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "run", status, &told, error);
}

enum tandem_status tnd_backend_submit(tandem_backend *backend, const struct tandem_work *work,
                                      uint64_t *out_ticket, struct tandem_error *error)
{
    if (backend->api->submit == NULL) {
        return tnd_error_set(error, TANDEM_E_STATE, backend->api->name, 0, 0,
                             "backend %s: is no asynchronous device, its work is run by workers",
                             backend->api->name);
    }
    FRESH_ERROR(told);
    uint64_t ticket = 0;
    enum tandem_status status = backend->api->submit(backend, work, &ticket, &told);
    if (status != TANDEM_OK) {
        return fail_call(backend, "submit", status, &told, error);
    }
    *out_ticket = ticket;
    return TANDEM_OK;
}

bool tnd_backend_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over)
{
    return backend->api->poll != NULL && backend->api->poll(backend, ticket, out_is_over);
}

bool tnd_backend_took(tandem_backend *backend, uint64_t ticket, int64_t *out_ns)
{
    return backend->api->took != NULL && backend->api->took(backend, ticket, out_ns);
}

enum tandem_status tnd_backend_sync(tandem_backend *backend, uint64_t ticket,
                                    struct tandem_error *error)
{
    if (backend->api->sync == NULL) {
        return tnd_error_set(error, TANDEM_E_STATE, backend->api->name, 0, 0,
                             "backend %s: is no asynchronous device, there is nothing to wait for",
                             backend->api->name);
    }
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->sync(backend, ticket, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "sync", status, &told, error);
}

enum tandem_status tnd_backend_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                       void **out_handle, struct tandem_error *error)
{
    *out_handle = NULL;
    if (backend->api->prepare == NULL) {
        return TANDEM_OK;
    }
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->prepare(backend, weight, out_handle, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "prepare", status, &told, error);
}

void tnd_backend_forget(tandem_backend *backend, void *handle)
{
    if (backend->api->forget != NULL && handle != NULL) {
        backend->api->forget(backend, handle);
    }
}

size_t tnd_backend_prepared_bytes(tandem_backend *backend)
{
    return backend->api->prepared_bytes != NULL ? backend->api->prepared_bytes(backend) : 0;
}

void tnd_backend_finish(tandem_backend *backend, void *handle, int64_t row, int64_t n_rows,
                        int node)
{
    if (backend->api->finish != NULL && handle != NULL) {
        backend->api->finish(backend, handle, row, n_rows, node);
    }
}

enum tandem_status tnd_backend_keep(tandem_backend *backend, struct tandem_error *error)
{
    if (backend->api->keep == NULL) {
        return TANDEM_OK;
    }
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->keep(backend, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "keep", status, &told, error);
}

size_t tnd_backend_report(tandem_backend *backend, char *out, size_t capacity)
{
    out[0] = '\0';
    return backend->api->report != NULL ? backend->api->report(backend, out, capacity) : 0;
}

uint64_t tnd_backend_weight_budget(tandem_backend *backend)
{
    return backend->api->weight_budget != NULL ? backend->api->weight_budget(backend) : 0;
}

bool tnd_backend_is_same_work(tandem_backend *backend, const tandem_tensor *a,
                              const tandem_tensor *b, enum tandem_task task)
{
    return backend->api->is_same_work != NULL &&
           backend->api->is_same_work(backend, a, b, (uint32_t)task);
}

bool tnd_backend_fuses(tandem_backend *backend, const tandem_tensor *const *nodes, int n_nodes)
{
    return backend->api->fuses != NULL && backend->api->fuses(backend, nodes, n_nodes);
}

/* ---- memory of the backend's own ---- */

bool tnd_backend_is_own(const tandem_backend *backend)
{
    return backend->api->memory == TANDEM_MEMORY_OWN;
}

static enum tandem_status refuse_host(const tandem_backend *backend, const char *function,
                                      struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_STATE, backend->api->name, 0, 0,
                         "backend %s: works in host memory, %s is for devices with their own",
                         backend->api->name, function);
}

enum tandem_status tnd_backend_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                   struct tandem_error *error)
{
    if (!tnd_backend_is_own(backend)) {
        return refuse_host(backend, "map", error);
    }
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->map(backend, bytes, out_handle, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "map", status, &told, error);
}

void tnd_backend_unmap(tandem_backend *backend, void *handle)
{
    if (tnd_backend_is_own(backend) && handle != NULL) {
        backend->api->unmap(backend, handle);
    }
}

enum tandem_status tnd_backend_upload(tandem_backend *backend, struct tandem_place to,
                                      const void *from, size_t bytes, struct tandem_error *error)
{
    if (!tnd_backend_is_own(backend)) {
        return refuse_host(backend, "upload", error);
    }
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->upload(backend, to, from, bytes, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "upload", status, &told, error);
}

enum tandem_status tnd_backend_stream(tandem_backend *backend, struct tandem_place to,
                                      const void *from, size_t bytes, struct tandem_error *error)
{
    if (!tnd_backend_is_own(backend) || backend->api->stream == NULL) {
        return tnd_backend_upload(backend, to, from, bytes, error);
    }
    FRESH_ERROR(told);
    enum tandem_status status = backend->api->stream(backend, to, from, bytes, &told);
    return status == TANDEM_OK ? TANDEM_OK : fail_call(backend, "stream", status, &told, error);
}

enum tandem_status tnd_backend_download(tandem_backend *backend, struct tandem_place from, void *to,
                                        size_t bytes, uint64_t *out_ticket,
                                        struct tandem_error *error)
{
    if (!tnd_backend_is_own(backend)) {
        return refuse_host(backend, "download", error);
    }
    FRESH_ERROR(told);
    uint64_t ticket = 0;
    enum tandem_status status = backend->api->download(backend, from, to, bytes, &ticket, &told);
    if (status != TANDEM_OK) {
        return fail_call(backend, "download", status, &told, error);
    }
    *out_ticket = ticket;
    return TANDEM_OK;
}
