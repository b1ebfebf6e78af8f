/* SPDX-License-Identifier: MIT
 * The backends of one runtime: which are open, in which slot. Slot 0 is "none", slot 1 the CPU.
 * Keeps the reason for each backend that is missing. Also declares the wrappers that all calls of a
 * backend's functions go through, with defaults for optional functions. */
#ifndef TND_REGISTRY_H
#define TND_REGISTRY_H

#include "backends/kinds.h"
#include "base/tnd_log.h"
#include "tandem/backend.h"

struct tnd_registry;

/** TANDEM_MAX_BACKENDS of tandem/profile.h; includes slot 0. */
#define TND_MAX_SLOTS 16

struct tnd_registry_options {
    const char *backends; /* comma-separated names of devices to open; NULL: all available ones */
    const char *settings; /* "sim:key=value;openblas:key=value" or NULL */
    int n_threads_max;
    struct tnd_log log;
};

/** Opens the CPU backend and all others that are requested and available. A missing optional
 * backend is no error: it is logged once, and the reason is kept. Errors: MEMORY, NOT_FOUND
 * (unknown name). */
enum tandem_status tnd_registry_open(const struct tnd_registry_options *options,
                                     struct tnd_registry **out_registry,
                                     struct tandem_error *error);
/** A registry of the given backends only, which are open already, the CPU's (or a substitute)
 * first: for simulated machines. Takes ownership of them on success. Errors: MEMORY, LIMIT, ABI. */
enum tandem_status tnd_registry_hold(tandem_backend *const *backends, int n, int n_threads_max,
                                     struct tnd_registry **out_registry,
                                     struct tandem_error *error);
void tnd_registry_close(struct tnd_registry *registry);

/** Adds a backend that is not part of this build, after checking its ABI, size and functions: its
 * first device, and all others that open with the same settings. `api` must stay valid as long as
 * the registry. Any thread, even while others use the registry. Errors: ABI, ARGUMENT, EXISTS,
 * LIMIT, those of opening. */
enum tandem_status tnd_registry_add(struct tnd_registry *registry,
                                    const struct tandem_backend_api *api, const char *settings,
                                    struct tandem_error *error);

/** Loads shared libraries and adds their backends. `plugins` is "FILE.so" or
 * "FILE.so:key=value,..", separated by ';'; NULL: none. The libraries are never unloaded. Errors:
 * UNSUPPORTED_MACHINE (no such file, or no symbol TANDEM_PLUGIN_SYMBOL in it), LIMIT, those of
 * tnd_registry_add. */
enum tandem_status tnd_registry_add_plugins(struct tnd_registry *registry, const char *plugins,
                                            struct tandem_error *error);

int tnd_registry_count(const struct tnd_registry *registry); /* including slot 0 */
/** The open backend in a slot; NULL for slot 0 and beyond the last. */
tandem_backend *tnd_registry_backend(const struct tnd_registry *registry, int slot);
/** "none" for slot 0, NULL beyond the last. */
const char *tnd_registry_name(const struct tnd_registry *registry, int slot);
/** Slot of a backend by name, or -1: then `out_reason` (may be NULL) receives why it is missing or
 * out of service. */
int tnd_registry_find(const struct tnd_registry *registry, const char *name,
                      const char **out_reason);
/** Profiles of the first device of each kind and of every other device that is open or was
 * requested. NULL: those of the build. Profiles are only ever added. */
const struct tnd_profiles *tnd_registry_profiles(const struct tnd_registry *registry);
/** Backends with memory of their own, one bit per slot. */
uint32_t tnd_registry_own_slots(const struct tnd_registry *registry);

/* ---- quarantine: a device that has failed is not used again while the registry lives ---- */

/** Backends, one bit per slot, that tnd_registry_close must not close, because closing would wait
 * for a device that stalls. NULL is allowed. */
void tnd_registry_leave_open(struct tnd_registry *registry, uint32_t slots);
/** Takes a backend out of service, with a line in the log. From then on it supports nothing and is
 * not found by name; work in flight is not cancelled. False if nothing changes: the CPU always
 * stays in service, and the first reason is kept. Any thread. */
bool tnd_registry_quarantine(struct tnd_registry *registry, int slot, const char *reason);
/** Backends that are out of service, one bit per slot. Any thread. */
uint32_t tnd_registry_quarantined(const struct tnd_registry *registry);
/** tnd_backend_supports of the backend in a slot; fails if it is out of service. */
enum tandem_status tnd_registry_supports(const struct tnd_registry *registry, int slot,
                                         const tandem_tensor *node, enum tandem_task task,
                                         struct tandem_error *error);

/* ---- wrappers of the vtable; `backend` may not be NULL ---- */

enum tandem_backend_kind tnd_backend_kind(const tandem_backend *backend);
const char *tnd_backend_describe(tandem_backend *backend);
/** The i-th fact of the backend's identity; false beyond the last. */
bool tnd_backend_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out);
/** Whether the backend runs tasks by submit and sync, not by workers (run). */
bool tnd_backend_is_async(const tandem_backend *backend);
enum tandem_status tnd_backend_supports(tandem_backend *backend, const tandem_tensor *node,
                                        enum tandem_task task, struct tandem_error *error);
size_t tnd_backend_workspace(tandem_backend *backend, const tandem_tensor *node,
                             enum tandem_task task);
size_t tnd_backend_scratch(tandem_backend *backend, const tandem_tensor *node,
                           enum tandem_task task);
enum tandem_status tnd_backend_run(tandem_backend *backend, const struct tandem_work *work,
                                   struct tandem_worker *worker);
enum tandem_status tnd_backend_submit(tandem_backend *backend, const struct tandem_work *work,
                                      uint64_t *out_ticket, struct tandem_error *error);
enum tandem_status tnd_backend_sync(tandem_backend *backend, uint64_t ticket,
                                    struct tandem_error *error);
/** Whether a ticket is over, without waiting; returns false if the backend cannot tell. Ticket 0:
 * whether it ever can. */
bool tnd_backend_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over);
bool tnd_backend_took(tandem_backend *backend, uint64_t ticket, int64_t *out_ns);
/** `*out_handle` is NULL if the backend keeps nothing. */
enum tandem_status tnd_backend_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                       void **out_handle, struct tandem_error *error);
/** NULL is allowed. */
void tnd_backend_forget(tandem_backend *backend, void *handle);
size_t tnd_backend_prepared_bytes(tandem_backend *backend);
/** Completes rows of a prepared weight, if there is anything to do. */
void tnd_backend_finish(tandem_backend *backend, void *handle, int64_t row, int64_t n_rows,
                        int node);
enum tandem_status tnd_backend_keep(tandem_backend *backend, struct tandem_error *error);
/** Limit in bytes for prepared weights; 0: unknown. */
uint64_t tnd_backend_weight_budget(tandem_backend *backend);
/** The vtable's function of this name; without it, an empty text and 0. */
size_t tnd_backend_report(tandem_backend *backend, char *out, size_t capacity);
/** Whether the result of the task for node `a` can be used for node `b`, too. */
bool tnd_backend_is_same_work(tandem_backend *backend, const tandem_tensor *a,
                              const tandem_tensor *b, enum tandem_task task);
/** Whether the backend can run the chain of nodes as one. */
bool tnd_backend_fuses(tandem_backend *backend, const tandem_tensor *const *nodes, int n_nodes);
/** Whether it has memory of its own; the functions below are only for such backends. */
bool tnd_backend_is_own(const tandem_backend *backend);
enum tandem_status tnd_backend_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                   struct tandem_error *error);
/** NULL is allowed. */
void tnd_backend_unmap(tandem_backend *backend, void *handle);
enum tandem_status tnd_backend_upload(tandem_backend *backend, struct tandem_place to,
                                      const void *from, size_t bytes, struct tandem_error *error);
/** An upload that may overtake tasks that do not use the handle; `upload` if the backend has no
 * such function. */
enum tandem_status tnd_backend_stream(tandem_backend *backend, struct tandem_place to,
                                      const void *from, size_t bytes, struct tandem_error *error);
enum tandem_status tnd_backend_download(tandem_backend *backend, struct tandem_place from, void *to,
                                        size_t bytes, uint64_t *out_ticket,
                                        struct tandem_error *error);

#endif
