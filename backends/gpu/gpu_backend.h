/* SPDX-License-Identifier: MIT
 * A GPU backend over a driver: functions for the vtable in the driver's folder; access to an open
 * backend's device for tests and tools. */
#ifndef TND_GPU_BACKEND_H
#define TND_GPU_BACKEND_H

#include "backends/gpu/driver.h"
#include "backends/tuner.h"
#include "tandem/backend.h"

struct tnd_gpu_device;

/** The device of a GPU backend, valid as long as the backend. */
struct tnd_gpu_device *tnd_gpu_device_of(tandem_backend *backend);

/** Implements `open` of a vtable for a driver. */
enum tandem_status tnd_gpu_backend_open(const struct tnd_gpu_driver *driver,
                                        const struct tandem_backend_api *api,
                                        const struct tandem_backend_options *options,
                                        tandem_backend **out_backend, struct tandem_error *error);

/* Functions for a driver's struct tnd_tuner. */
bool tnd_gpu_backend_present(tandem_backend *backend, const char *names, char out[TND_NUMBERS_MAX]);
enum tandem_status tnd_gpu_backend_use(tandem_backend *backend, const char *numbers,
                                       struct tandem_error *error);
enum tandem_status tnd_gpu_backend_tune(tandem_backend *backend,
                                        const struct tnd_tuner_options *options,
                                        struct tandem_error *error);
/** Its `launches`. */
enum tandem_status tnd_gpu_backend_launches(tandem_backend *backend,
                                            const struct tnd_tuner_options *options,
                                            struct tandem_error *error);

/* The functions of the vtable, for the macro below. */
void tnd_gpu_backend_close(tandem_backend *backend);
const char *tnd_gpu_backend_describe(tandem_backend *backend);
bool tnd_gpu_backend_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out);
enum tandem_status tnd_gpu_backend_supports(tandem_backend *backend, const tandem_tensor *node,
                                            uint32_t task, struct tandem_error *error);
size_t tnd_gpu_backend_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task);
enum tandem_status tnd_gpu_backend_submit(tandem_backend *backend, const struct tandem_work *work,
                                          uint64_t *out_ticket, struct tandem_error *error);
enum tandem_status tnd_gpu_backend_sync(tandem_backend *backend, uint64_t ticket,
                                        struct tandem_error *error);
bool tnd_gpu_backend_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over);
bool tnd_gpu_backend_took(tandem_backend *backend, uint64_t ticket, int64_t *out_ns);
enum tandem_status tnd_gpu_backend_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                           void **out_handle, struct tandem_error *error);
void tnd_gpu_backend_give_back(tandem_backend *backend, void *handle);
enum tandem_status tnd_gpu_backend_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                       struct tandem_error *error);
enum tandem_status tnd_gpu_backend_upload(tandem_backend *backend, struct tandem_place to,
                                          const void *from, size_t bytes,
                                          struct tandem_error *error);
enum tandem_status tnd_gpu_backend_stream(tandem_backend *backend, struct tandem_place to,
                                          const void *from, size_t bytes,
                                          struct tandem_error *error);
enum tandem_status tnd_gpu_backend_download(tandem_backend *backend, struct tandem_place from,
                                            void *to, size_t bytes, uint64_t *out_ticket,
                                            struct tandem_error *error);
size_t tnd_gpu_backend_prepared_bytes(tandem_backend *backend);
uint64_t tnd_gpu_backend_weight_budget(tandem_backend *backend);
size_t tnd_gpu_backend_report(tandem_backend *backend, char *out, size_t capacity);

/** The members that are equal in all these vtables: all but name, kind, open, devices, profile and
 * setting. */
#define TND_GPU_BACKEND_MEMBERS                                                                    \
    .abi = TANDEM_ABI, .size = sizeof(struct tandem_backend_api), .close = tnd_gpu_backend_close,  \
    .describe = tnd_gpu_backend_describe, .supports = tnd_gpu_backend_supports,                    \
    .workspace = tnd_gpu_backend_workspace, .submit = tnd_gpu_backend_submit,                      \
    .sync = tnd_gpu_backend_sync, .poll = tnd_gpu_backend_poll,                                    \
    .prepare = tnd_gpu_backend_prepare, .forget = tnd_gpu_backend_give_back,                       \
    .memory = TANDEM_MEMORY_OWN, .map = tnd_gpu_backend_map, .unmap = tnd_gpu_backend_give_back,   \
    .upload = tnd_gpu_backend_upload, .download = tnd_gpu_backend_download,                        \
    .prepared_bytes = tnd_gpu_backend_prepared_bytes, .identity = tnd_gpu_backend_identity,        \
    .stream = tnd_gpu_backend_stream, .weight_budget = tnd_gpu_backend_weight_budget,              \
    .report = tnd_gpu_backend_report, .took = tnd_gpu_backend_took

#endif
