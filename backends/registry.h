/* SPDX-License-Identifier: MIT
 * The backends of one runtime: which are open, under which slot. Slot 0 is "none", slot 1 the
 * CPU. Backends that this machine lacks are remembered with their reason. Also the wrappers
 * through which every function of a backend is called: the place of defaults for optional
 * functions. */
#ifndef TND_REGISTRY_H
#define TND_REGISTRY_H

#include "backends/kinds.h"
#include "base/tnd_log.h"
#include "tandem/backend.h"

struct tnd_registry;

/** TANDEM_MAX_BACKENDS of tandem/profile.h, a header of sched; slot 0 included. */
#define TND_MAX_SLOTS 16

struct tnd_registry_options {
    const char *backends; /* comma-separated names of devices to open; NULL: all that are here */
    const char *settings; /* "sim:key=value;openblas:key=value" or NULL */
    int n_threads_max;
    struct tnd_log log;
};

/** Opens the CPU backend and every other one that is asked for and present. A missing optional
 *  backend is no error: it is logged once and its reason kept. Errors: MEMORY, NOT_FOUND (unknown
 *  name). */
enum tandem_status tnd_registry_open(const struct tnd_registry_options *options,
                                     struct tnd_registry **out_registry,
                                     struct tandem_error *error);
/** A registry of these backends alone, open already, the CPU's (or what stands for it) first: for
 *  machines that are not here. Owns them from success on. Errors: MEMORY, LIMIT, ABI. */
enum tandem_status tnd_registry_hold(tandem_backend *const *backends, int n, int n_threads_max,
                                     struct tnd_registry **out_registry,
                                     struct tandem_error *error);
void tnd_registry_close(struct tnd_registry *registry);

/** Adds a backend from outside the tree after checking its ABI, size and functions: its first
 *  device, and all others that open with the same settings. `api` stays valid as long as the
 *  registry. Any thread, while others use the registry. Errors: ABI, ARGUMENT, EXISTS, LIMIT,
 *  those of opening. */
enum tandem_status tnd_registry_add(struct tnd_registry *registry,
                                    const struct tandem_backend_api *api, const char *settings,
                                    struct tandem_error *error);

/** Loads shared libraries and adds the backends that they tell. `plugins` is "FILE.so" or
 *  "FILE.so:key=value,..", with ';' between two; NULL: none. The libraries are never unloaded.
 *  Errors: UNSUPPORTED_MACHINE (no such file, or no symbol TANDEM_PLUGIN_SYMBOL in it), LIMIT,
 *  those of tnd_registry_add. */
enum tandem_status tnd_registry_add_plugins(struct tnd_registry *registry, const char *plugins,
                                            struct tandem_error *error);

int tnd_registry_count(const struct tnd_registry *registry); /* slots in use, slot 0 included */
/** Open backend in a slot; NULL for slot 0 and beyond the last. */
tandem_backend *tnd_registry_backend(const struct tnd_registry *registry, int slot);
/** "none" for slot 0, NULL beyond the last. */
const char *tnd_registry_name(const struct tnd_registry *registry, int slot);
/** Slot of a backend by name, or -1; `out_reason` (may be NULL) then says why it is not there or
 *  out of service. */
int tnd_registry_find(const struct tnd_registry *registry, const char *name,
                      const char **out_reason);
/** Profiles of the first device of each kind and of every other device that is open or was asked
 *  for. NULL: those of the build. Profiles are only ever added. */
const struct tnd_profiles *tnd_registry_profiles(const struct tnd_registry *registry);
/** Bit a slot: backends with memory of their own. */
uint32_t tnd_registry_own_slots(const struct tnd_registry *registry);

/* ---- quarantine: a device that has failed is not used again while the registry lives ---- */

/** Backends, bit a slot, that tnd_registry_close shall not close: closing would wait for a device
 *  that stalls. NULL is allowed. */
void tnd_registry_leave_open(struct tnd_registry *registry, uint32_t slots);
/** Takes a backend out of service, with one line in the log. From now on it supports nothing and
 *  is not found by name; work in flight ends as it may. False when nothing changes: the CPU is
 *  never taken out, and the first reason stays. Any thread. */
bool tnd_registry_quarantine(struct tnd_registry *registry, int slot, const char *reason);
/** Bit a slot: backends out of service. Any thread. */
uint32_t tnd_registry_quarantined(const struct tnd_registry *registry);
/** tnd_backend_supports of the backend in a slot that is in service. */
enum tandem_status tnd_registry_supports(const struct tnd_registry *registry, int slot,
                                         const tandem_tensor *node, enum tandem_task task,
                                         struct tandem_error *error);

/* ---- wrappers of the vtable; `backend` may not be NULL ---- */

enum tandem_backend_kind tnd_backend_kind(const tandem_backend *backend);
const char *tnd_backend_describe(tandem_backend *backend);
/** The i-th fact of the backend's identity; false beyond the last. */
bool tnd_backend_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out);
/** Whether the task is run by workers (run) or by submit and sync. */
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
/** Whether it can tell without waiting that a ticket is over; of ticket 0, whether it ever can. */
bool tnd_backend_poll(tandem_backend *backend, uint64_t ticket, bool *out_is_over);
bool tnd_backend_took(tandem_backend *backend, uint64_t ticket, int64_t *out_ns);
/** `*out_handle` is NULL where the backend keeps nothing. */
enum tandem_status tnd_backend_prepare(tandem_backend *backend, const tandem_tensor *weight,
                                       void **out_handle, struct tandem_error *error);
/** NULL is allowed. */
void tnd_backend_forget(tandem_backend *backend, void *handle);
size_t tnd_backend_prepared_bytes(tandem_backend *backend);
/** Rows of a prepared weight are made ready; nothing where there is nothing to do. */
void tnd_backend_finish(tandem_backend *backend, void *handle, int64_t row, int64_t n_rows,
                        int node);
enum tandem_status tnd_backend_keep(tandem_backend *backend, struct tandem_error *error);
/** The most bytes of prepared weights; 0: not known. */
uint64_t tnd_backend_weight_budget(tandem_backend *backend);
/** The vtable's function of this name; an empty line and 0 where there is none. */
size_t tnd_backend_report(tandem_backend *backend, char *out, size_t capacity);
/** Whether the task, run for node `a`, serves node `b` as well. */
bool tnd_backend_is_same_work(tandem_backend *backend, const tandem_tensor *a,
                              const tandem_tensor *b, enum tandem_task task);
/** Whether the chain of nodes can be run as one work. */
bool tnd_backend_fuses(tandem_backend *backend, const tandem_tensor *const *nodes, int n_nodes);
/** Whether it has memory of its own; the four functions below are for such backends alone. */
bool tnd_backend_is_own(const tandem_backend *backend);
enum tandem_status tnd_backend_map(tandem_backend *backend, size_t bytes, void **out_handle,
                                   struct tandem_error *error);
/** NULL is allowed. */
void tnd_backend_unmap(tandem_backend *backend, void *handle);
enum tandem_status tnd_backend_upload(tandem_backend *backend, struct tandem_place to,
                                      const void *from, size_t bytes, struct tandem_error *error);
/** An upload that overtakes works which do not use the handle; by `upload` where a backend has no
 *  such function. */
enum tandem_status tnd_backend_stream(tandem_backend *backend, struct tandem_place to,
                                      const void *from, size_t bytes, struct tandem_error *error);
enum tandem_status tnd_backend_download(tandem_backend *backend, struct tandem_place from, void *to,
                                        size_t bytes, uint64_t *out_ticket,
                                        struct tandem_error *error);

#endif
