/* SPDX-License-Identifier: MIT
 * The backends of one runtime: opens those of the list and those from outside the tree, keeps
 * the reason of each one that is missing. Calls open and close of a backend; its other functions
 * are called by backend.c. */
#include "backends/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/backend-list.h"
#include "backends/settings.h"
#include "base/alloc.h"
#include "base/tnd_status.h"

#define EXTERN_API(name, kind, by_default)                                                         \
    extern const struct tandem_backend_api tnd_backend_##name;
TND_BACKEND_LIST(EXTERN_API)
#undef EXTERN_API

static const struct built_in {
    const struct tandem_backend_api *api;
    const char *name;
    bool by_default;
} built_ins[] = {
#define BUILT_IN(name, kind, by_default) {&tnd_backend_##name, #name, by_default},
    TND_BACKEND_LIST(BUILT_IN)
#undef BUILT_IN
};

enum {
    N_BUILT_INS = sizeof(built_ins) / sizeof(built_ins[0]),
    MAX_SLOTS = TND_MAX_SLOTS,
    MAX_SETTINGS = 512,
    MAX_NAME = 16 /* as in timing tables, the zero byte included */
};

struct slot {
    const char *name;
    tandem_backend *backend;
    char quarantine[256]; /* why it is out of service; written before its bit is set */
};

struct tnd_registry {
    int n_slots; /* slot 0 included */
    struct slot slots[MAX_SLOTS];
    char missing[N_BUILT_INS][256]; /* why a built-in backend is not open; "" when it is */
    int n_threads_max;
    uint32_t own_slots;           /* bit a slot */
    pthread_mutex_t lock;         /* one quarantine at a time */
    _Atomic uint32_t quarantined; /* bit a slot */
    struct tnd_log log;
};

/* ---- names and settings ---- */

static bool is_known(const char *name, size_t n)
{
    for (int i = 0; i < N_BUILT_INS; i++) {
        if (strlen(built_ins[i].name) == n && memcmp(built_ins[i].name, name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes the next name of a comma-separated list. */
static bool next_name(const char **cursor, const char **out_name, size_t *out_n)
{
    const char *at = *cursor + strspn(*cursor, ", \t");
    *out_n = strcspn(at, ", \t");
    *out_name = at;
    *cursor = at + *out_n;
    return *out_n > 0;
}

static enum tandem_status check_names(const char *list, struct tandem_error *error)
{
    const char *name = NULL;
    size_t n = 0;
    for (const char *at = list; at != NULL && next_name(&at, &name, &n);) {
        if (!is_known(name, n)) {
            return tnd_error_set(error, TANDEM_E_NOT_FOUND, "", 0, 0,
                                 "backends: '%.*s' is no backend of this build", (int)n, name);
        }
    }
    return TANDEM_OK;
}

/* A part of the settings that names no backend is a slip of the pen, better said than ignored. */
static enum tandem_status check_settings(const char *all, struct tandem_error *error)
{
    for (const char *at = all; at != NULL && *at != '\0';) {
        at += strspn(at, "; \t");
        size_t n = strcspn(at, ";");
        size_t name_n = strcspn(at, ":;");
        if (n > 0 && !is_known(at, name_n)) {
            return tnd_error_set(
                error, TANDEM_E_NOT_FOUND, "", 0, 0,
                "backend settings: '%.*s' does not begin with the name of a backend "
                "of this build and ':'",
                (int)n, at);
        }
        at += n;
    }
    return TANDEM_OK;
}

static bool is_wanted(const struct built_in *built_in, const char *list)
{
    if (built_in->api->kind == TANDEM_KIND_CPU) {
        return true;
    }
    if (list == NULL) {
        return built_in->by_default;
    }
    const char *name = NULL;
    size_t n = 0;
    for (const char *at = list; next_name(&at, &name, &n);) {
        if (strlen(built_in->name) == n && memcmp(built_in->name, name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- opening ---- */

static int log_line(void *user, int level, const char *text)
{
    tnd_log_line(user, (enum tandem_log_level)level, "backends", "%s", text);
    return 0;
}

/* A device with memory of its own needs all that moves bytes. */
static bool is_complete(const struct tandem_backend_api *api)
{
    return api->memory != TANDEM_MEMORY_OWN ||
           (api->run == NULL && api->submit != NULL && api->sync != NULL && api->map != NULL &&
            api->unmap != NULL && api->upload != NULL && api->download != NULL);
}

/* Puts an open backend into the next slot; on failure it stays the caller's. */
static enum tandem_status put_slot(struct tnd_registry *registry, tandem_backend *backend,
                                   const char *name, struct tandem_error *error)
{
    if (registry->n_slots >= MAX_SLOTS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, registry->n_slots, MAX_SLOTS - 1,
                             "backend %s: all %d slots are taken", name, MAX_SLOTS - 1);
    }
    if (!is_complete(backend->api)) {
        return tnd_error_set(error, TANDEM_E_ABI, name, 0, 0,
                             "backend %s: has memory of its own, but not all of submit, sync, map, "
                             "unmap, upload and download (and no run)",
                             name);
    }
    if (tnd_backend_is_own(backend)) {
        registry->own_slots |= UINT32_C(1) << registry->n_slots;
    }
    registry->slots[registry->n_slots++] = (struct slot){name, backend, ""};
    return TANDEM_OK;
}

/* Opens a backend into the next slot. */
static enum tandem_status open_slot(struct tnd_registry *registry,
                                    const struct tandem_backend_api *api, const char *settings,
                                    bool is_asked_for, struct tandem_error *error)
{
    struct tandem_backend_options options = {
        sizeof(options), registry->n_threads_max, settings, log_line, &registry->log, is_asked_for};
    tandem_backend *backend = NULL;
    struct tandem_error told = {0};
    enum tandem_status status = api->open(&options, &backend, &told);
    if (status == TANDEM_OK && (backend == NULL || backend->api == NULL)) {
        return tnd_error_set(error, TANDEM_E_DEVICE, api->name, 0, 0,
                             "backend %s: opened without an object or without its functions",
                             api->name);
    }
    if (status != TANDEM_OK) {
        if (told.status != status) {
            return tnd_error_set(error, status, api->name, 0, 0, "backend %s: %s", api->name,
                                 tandem_status_text(status));
        }
        if (error != NULL) {
            *error = told;
        }
        return status;
    }
    status = put_slot(registry, backend, api->name, error);
    if (status != TANDEM_OK) {
        backend->api->close(backend);
    }
    return status;
}

static enum tandem_status open_built_in(struct tnd_registry *registry, int which,
                                        const struct tnd_registry_options *all,
                                        struct tandem_error *error)
{
    const struct built_in *built_in = &built_ins[which];
    char settings[MAX_SETTINGS] = "";
    const char *begin = NULL;
    size_t n = 0;
    if (tnd_settings_of(all->settings, built_in->name, &begin, &n)) {
        if (n >= sizeof(settings)) {
            return tnd_error_set(error, TANDEM_E_LIMIT, built_in->name, (int64_t)n,
                                 MAX_SETTINGS - 1, "settings of %s are longer than %d bytes",
                                 built_in->name, MAX_SETTINGS - 1);
        }
        memcpy(settings, begin, n);
        settings[n] = '\0';
    }
    struct tandem_error told = {0};
    enum tandem_status status = open_slot(registry, built_in->api, begin != NULL ? settings : NULL,
                                          all->backends != NULL, &told);
    if (status == TANDEM_OK) {
        return TANDEM_OK;
    }
    snprintf(registry->missing[which], sizeof(registry->missing[which]), "%s", told.text);
    /* What the machine lacks may be missing; wrong settings and a missing CPU may not. */
    bool is_absent = status == TANDEM_E_UNSUPPORTED_MACHINE ||
                     status == TANDEM_E_UNSUPPORTED_BUILD || status == TANDEM_E_DEVICE ||
                     status == TANDEM_E_DEVICE_LOST || status == TANDEM_E_DEVICE_MEMORY ||
                     status == TANDEM_E_DEVICE_TIMEOUT;
    if (built_in->api->kind == TANDEM_KIND_CPU || !is_absent) {
        if (error != NULL) {
            *error = told;
        }
        return status;
    }
    /* A device that fails, or a backend that the program has named, is missed. */
    bool is_missed = all->backends != NULL || (status != TANDEM_E_UNSUPPORTED_MACHINE &&
                                               status != TANDEM_E_UNSUPPORTED_BUILD);
    tnd_log_line(&registry->log, is_missed ? TANDEM_LOG_WARN : TANDEM_LOG_INFO, "backends",
                 "left out: %s", told.text);
    return TANDEM_OK;
}

static enum tandem_status new_registry(int n_threads_max, struct tnd_log log,
                                       struct tnd_registry **out_registry,
                                       struct tandem_error *error)
{
    struct tnd_registry *registry = tnd_calloc(1, sizeof(*registry));
    if (registry == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "", (int64_t)sizeof(*registry), 0,
                             "backends: no memory for the list");
    }
    pthread_mutex_init(&registry->lock, NULL);
    registry->n_slots = 1;
    registry->slots[0].name = "none";
    registry->n_threads_max = n_threads_max > 0 ? n_threads_max : 1;
    registry->log = log;
    *out_registry = registry;
    return TANDEM_OK;
}

enum tandem_status tnd_registry_open(const struct tnd_registry_options *options,
                                     struct tnd_registry **out_registry, struct tandem_error *error)
{
    TND_TRY(check_names(options->backends, error));
    TND_TRY(check_settings(options->settings, error));
    struct tnd_registry *registry = NULL;
    TND_TRY(new_registry(options->n_threads_max, options->log, &registry, error));
    for (int i = 0; i < N_BUILT_INS; i++) {
        if (!is_wanted(&built_ins[i], options->backends)) {
            snprintf(registry->missing[i], sizeof(registry->missing[i]),
                     "backend %s: was not asked for", built_ins[i].name);
            continue;
        }
        enum tandem_status status = open_built_in(registry, i, options, error);
        if (status != TANDEM_OK) {
            tnd_registry_close(registry);
            return status;
        }
    }
    *out_registry = registry;
    return TANDEM_OK;
}

enum tandem_status tnd_registry_hold(tandem_backend *const *backends, int n, int n_threads_max,
                                     struct tnd_registry **out_registry, struct tandem_error *error)
{
    struct tnd_registry *registry = NULL;
    TND_TRY(new_registry(n_threads_max, (struct tnd_log){0}, &registry, error));
    for (int i = 0; i < n; i++) {
        enum tandem_status status =
            put_slot(registry, backends[i], backends[i]->api->name, error);
        if (status != TANDEM_OK) {
            registry->n_slots = 1; /* those that were put are still the caller's */
            tnd_registry_close(registry);
            return status;
        }
    }
    *out_registry = registry;
    return TANDEM_OK;
}

void tnd_registry_close(struct tnd_registry *registry)
{
    if (registry == NULL) {
        return;
    }
    for (int i = registry->n_slots - 1; i > 0; i--) {
        tandem_backend *backend = registry->slots[i].backend;
        backend->api->close(backend);
    }
    pthread_mutex_destroy(&registry->lock);
    tnd_free(registry);
}

/* Slot of a name, in service or not; -1. */
static int slot_of(const struct tnd_registry *registry, const char *name)
{
    for (int i = 0; i < registry->n_slots; i++) {
        if (strcmp(registry->slots[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_out(const struct tnd_registry *registry, int slot)
{
    return (tnd_registry_quarantined(registry) >> slot & 1) != 0;
}

/* ---- backends from outside the tree ---- */

static enum tandem_status check_api(const struct tandem_backend_api *api,
                                    struct tandem_error *error)
{
    if (api->abi != TANDEM_ABI) {
        return tnd_error_set(error, TANDEM_E_ABI, "", api->abi, TANDEM_ABI,
                             "backend: built for interface %u, this library has interface %u",
                             (unsigned)api->abi, (unsigned)TANDEM_ABI);
    }
    /* Members are only ever added at the end: a longer struct is a newer one whose tail is not
     * used. */
    if (api->size < sizeof(*api)) {
        return tnd_error_set(error, TANDEM_E_ABI, "", api->size, (int64_t)sizeof(*api),
                             "backend: its table of functions has %u bytes, expected %zu or more",
                             (unsigned)api->size, sizeof(*api));
    }
    if (api->name == NULL || api->name[0] == '\0' || strlen(api->name) >= MAX_NAME ||
        strpbrk(api->name, ":;,= \t\r\n+") != NULL || strcmp(api->name, "none") == 0) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "", 0, MAX_NAME - 1,
            "backend: its name must have 1 to %d characters, none of ':;,=+' or blank",
            MAX_NAME - 1);
    }
    bool runs = api->run != NULL || (api->submit != NULL && api->sync != NULL);
    if (api->open == NULL || api->close == NULL || api->supports == NULL || !runs) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, api->name, 0, 0,
            "backend %s: lacks one of open, close, supports, and run or submit with "
            "sync",
            api->name);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_registry_add(struct tnd_registry *registry,
                                    const struct tandem_backend_api *api, const char *settings,
                                    struct tandem_error *error)
{
    TND_TRY(check_api(api, error));
    if (slot_of(registry, api->name) >= 0) {
        return tnd_error_set(error, TANDEM_E_EXISTS, api->name, 0, 0,
                             "backend %s: one of that name is open already", api->name);
    }
    return open_slot(registry, api, settings, true, error);
}

/* ---- looking ---- */

int tnd_registry_count(const struct tnd_registry *registry)
{
    return registry->n_slots;
}

tandem_backend *tnd_registry_backend(const struct tnd_registry *registry, int slot)
{
    return slot > 0 && slot < registry->n_slots ? registry->slots[slot].backend : NULL;
}

const char *tnd_registry_name(const struct tnd_registry *registry, int slot)
{
    return slot >= 0 && slot < registry->n_slots ? registry->slots[slot].name : NULL;
}

uint32_t tnd_registry_own_slots(const struct tnd_registry *registry)
{
    return registry->own_slots;
}

int tnd_registry_find(const struct tnd_registry *registry, const char *name,
                      const char **out_reason)
{
    int slot = slot_of(registry, name);
    const char *reason = "no backend of that name is known";
    if (slot >= 0) {
        if (!is_out(registry, slot)) {
            return slot;
        }
        reason = registry->slots[slot].quarantine;
    }
    for (int i = 0; i < N_BUILT_INS && slot < 0; i++) {
        if (strcmp(built_ins[i].name, name) == 0) {
            reason = registry->missing[i];
        }
    }
    if (out_reason != NULL) {
        *out_reason = reason;
    }
    return -1;
}

/* ---- quarantine ---- */

bool tnd_registry_quarantine(struct tnd_registry *registry, int slot, const char *reason)
{
    if (slot <= 1 || slot >= registry->n_slots) {
        return false;
    }
    struct slot *out = &registry->slots[slot];
    pthread_mutex_lock(&registry->lock);
    bool is_first = !is_out(registry, slot);
    if (is_first) {
        snprintf(out->quarantine, sizeof(out->quarantine), "is out of service: %s", reason);
        atomic_fetch_or_explicit(&registry->quarantined, UINT32_C(1) << slot, memory_order_release);
    }
    pthread_mutex_unlock(&registry->lock);
    if (is_first) {
        tnd_log_line(&registry->log, TANDEM_LOG_WARN, "backends",
                     "%s (%s) has failed and is not used any more: %s", out->name,
                     tnd_backend_describe(out->backend), reason);
    }
    return is_first;
}

uint32_t tnd_registry_quarantined(const struct tnd_registry *registry)
{
    return atomic_load_explicit(&registry->quarantined, memory_order_acquire);
}

enum tandem_status tnd_registry_supports(const struct tnd_registry *registry, int slot,
                                         const tandem_tensor *node, enum tandem_task task,
                                         struct tandem_error *error)
{
    tandem_backend *backend = tnd_registry_backend(registry, slot);
    if (backend == NULL) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, "", slot, registry->n_slots - 1,
                             "there is no backend in slot %d", slot);
    }
    if (is_out(registry, slot)) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, registry->slots[slot].name, slot,
                             0, "backend %s %s", registry->slots[slot].name,
                             registry->slots[slot].quarantine);
    }
    return tnd_backend_supports(backend, node, task, error);
}
