/* SPDX-License-Identifier: MIT
 * The backends of one runtime: opens the requested ones and plugins, and keeps the reason for each
 * one that is missing. Only calls `open` and `close` of a backend; all other functions are called
 * by vtable.c. */
#include "backends/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backends/kinds.h"
#include "backends/settings.h"
#include "base/alloc.h"
#include "base/dl.h"
#include "base/text.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum {
    MAX_SLOTS = TND_MAX_SLOTS,
    MAX_SETTINGS = 512,
    MAX_KINDS = 2 * MAX_SLOTS, /* kinds of this build and plugins */
    REASON = 256               /* bytes of a reason's text */
};

struct slot {
    char name[TND_BACKEND_NAME];
    tandem_backend *backend;
    const struct tandem_backend_api *kind; /* functions that it was opened with */
    const struct tandem_backend_api *told; /* the backend's own table of functions */
    struct tandem_backend_api api;         /* a copy of it with the device's name, limited to what
                                            * the library knows: all calls use it */
    char quarantine[REASON]; /* why it is out of service; written before its bit is set */
};

/* A device of a kind in this build that is not open. */
struct missing {
    char name[TND_BACKEND_NAME];
    char reason[REASON];
};

struct tnd_registry {
    /* One thread at a time adds slots and their devices' profiles while others read: a reader that
     * sees the count sees the slot. */
    pthread_mutex_t add_lock;
    _Atomic int n_slots; /* including slot 0 */
    struct slot slots[MAX_SLOTS];
    int n_missing;
    struct missing missing[MAX_KINDS];
    struct tnd_profiles profiles;
    int n_threads_max;
    _Atomic uint32_t own_slots;   /* one bit per slot */
    pthread_mutex_t lock;         /* serialises quarantines */
    _Atomic uint32_t quarantined; /* one bit per slot */
    uint32_t left_open;           /* one bit per slot */
    struct tnd_log log;
};

/* ---- names and settings ---- */

/* Index of a device by name among those of a kind, or -1. A kind that lists no devices has one. */
static int device_of(const struct tandem_backend_api *kind, const char *name, size_t n)
{
    int index = tnd_device_index(kind->name, name, n);
    return index > 0 && kind->devices == NULL ? -1 : index;
}

static bool is_known(const char *name, size_t n)
{
    bool found = false;
    for (int i = 0; tnd_kind_at(i) != NULL && !found; i++) {
        found = device_of(tnd_kind_at(i), name, n) >= 0;
    }
    return found;
}

/* Consumes the next name of a comma-separated list. */
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

/* Refuses settings of an unknown backend, which are probably a typing error. */
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

static bool is_listed(const char *list, const char *wanted)
{
    const char *name = NULL;
    size_t n = 0;
    for (const char *at = list; next_name(&at, &name, &n);) {
        if (strlen(wanted) == n && memcmp(wanted, name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Slot of a name, in service or not; -1: none. */
static int slot_of(const struct tnd_registry *registry, const char *name)
{
    for (int i = 0; i < registry->n_slots; i++) {
        if (strcmp(registry->slots[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Why a device of a kind in this build is not open; NULL: opening it was not tried. */
static const struct missing *missing_of(const struct tnd_registry *registry, const char *name)
{
    for (int i = 0; i < registry->n_missing; i++) {
        if (strcmp(registry->missing[i].name, name) == 0) {
            return &registry->missing[i];
        }
    }
    return NULL;
}

/* Removes the backend's name from a reason, because messages name it already. */
static const char *without_name(const char *reason, const char *name)
{
    const char *text = tnd_text_behind(reason, "backend ");
    const char *behind = tnd_text_behind(text, name);
    return behind != text && behind[0] == ':' && behind[1] == ' ' ? behind + 2 : reason;
}

static void note_missing(struct tnd_registry *registry, const char *name, const char *reason)
{
    if (registry->n_missing < MAX_KINDS) {
        struct missing *missing = &registry->missing[registry->n_missing++];
        snprintf(missing->name, sizeof(missing->name), "%s", name);
        snprintf(missing->reason, sizeof(missing->reason), "%s", without_name(reason, name));
    }
}

/* ---- profiles of available devices ---- */

/* Adds the profiles of a device of `kind`, which may be a plugin. */
static void list_device(struct tnd_registry *registry, const struct tandem_backend_api *kind,
                        int index)
{
    const struct tandem_backend_api *kinds[MAX_KINDS + 1];
    int n = 0;
    for (; tnd_kind_at(n) != NULL; n++) {
        kinds[n] = tnd_kind_at(n);
        /* a stub, or a program's own backend with the name of a kind in this build */
        kind = strcmp(kinds[n]->name, kind->name) == 0 ? kinds[n] : kind;
    }
    TND_ASSERT(n < MAX_KINDS);
    kinds[n] = NULL;
    tnd_profiles_add(&registry->profiles, kind, index, kinds);
}

/* Lists profiles of the first device of each kind in this build, open or not, and of devices that
 * are open or were requested. */
static void list_profiles(struct tnd_registry *registry)
{
    for (int k = 0; tnd_kind_at(k) != NULL; k++) {
        const struct tandem_backend_api *kind = tnd_kind_at(k);
        for (int index = 0; index < (kind->devices != NULL ? TND_MAX_DEVICES : 1); index++) {
            char name[TND_BACKEND_NAME];
            tnd_device_name(kind->name, index, name);
            if (index == 0 || slot_of(registry, name) > 0 || missing_of(registry, name) != NULL) {
                list_device(registry, kind, index);
            }
        }
    }
}

const struct tnd_profiles *tnd_registry_profiles(const struct tnd_registry *registry)
{
    return registry != NULL ? &registry->profiles : tnd_profiles_built_in();
}

/* ---- opening ---- */

static int log_line(void *user, int level, const char *text)
{
    tnd_log_line(user, (enum tandem_log_level)level, "backends", "%s", text);
    return 0;
}

/* Whether all required functions exist; a device with memory of its own needs those that
 * transfer. */
static bool is_complete(const struct tandem_backend_api *api)
{
    bool runs = api->run != NULL || (api->submit != NULL && api->sync != NULL);
    bool moves = api->run == NULL && api->map != NULL && api->unmap != NULL &&
                 api->upload != NULL && api->download != NULL;
    return runs && (api->memory != TANDEM_MEMORY_OWN || moves);
}

/* Copies the functions that the library knows; missing ones are NULL. */
static void copy_api(const struct tandem_backend_api *api, struct tandem_backend_api *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out, api, api->size < sizeof(*out) ? api->size : sizeof(*out));
}

/* Puts an open backend into the next slot. On failure the caller keeps ownership. */
static enum tandem_status put_slot(struct tnd_registry *registry, tandem_backend *backend,
                                   const struct tandem_backend_api *kind, const char *name,
                                   struct tandem_error *error)
{
    if (registry->n_slots >= MAX_SLOTS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, registry->n_slots, MAX_SLOTS - 1,
                             "backend %s: all %d slots are taken", name, MAX_SLOTS - 1);
    }
    struct slot *slot = &registry->slots[registry->n_slots];
    copy_api(backend->api, &slot->api);
    if (!is_complete(&slot->api)) {
        return tnd_error_set(error, TANDEM_E_ABI, name, 0, 0,
                             "backend %s: has memory of its own, but not all of submit, sync, map, "
                             "unmap, upload and download (and no run)",
                             name);
    }
    snprintf(slot->name, sizeof(slot->name), "%s", name);
    slot->kind = kind;
    slot->told = backend->api;
    slot->api.name = slot->name;
    slot->backend = backend;
    backend->api = &slot->api;
    if (tnd_backend_is_own(backend)) {
        atomic_fetch_or(&registry->own_slots, UINT32_C(1) << registry->n_slots);
    }
    atomic_fetch_add_explicit(&registry->n_slots, 1, memory_order_release);
    return TANDEM_OK;
}

/* Opens a device of a kind into the next slot. */
static enum tandem_status open_slot(struct tnd_registry *registry,
                                    const struct tandem_backend_api *api, int index,
                                    const char *settings, bool is_asked_for,
                                    struct tandem_error *error)
{
    char name[TND_BACKEND_NAME];
    tnd_device_name(api->name, index, name);
    /* the name must live as long as the backend, so it is stored in the slot */
    char *kept = registry->n_slots < MAX_SLOTS ? registry->slots[registry->n_slots].name : name;
    memcpy(kept, name, sizeof(name));
    struct tandem_backend_options options = {sizeof(options), registry->n_threads_max,
                                             settings,        log_line,
                                             &registry->log,  is_asked_for,
                                             index,           kept};
    tandem_backend *backend = NULL;
    struct tandem_error told = {0};
    enum tandem_status status = tnd_settings_check(api, name, settings, error);
    if (status != TANDEM_OK) {
        return status;
    }
    status = api->open(&options, &backend, &told);
    if (status == TANDEM_OK && (backend == NULL || backend->api == NULL)) {
        return tnd_error_set(error, TANDEM_E_DEVICE, name, 0, 0,
                             "backend %s: opened without an object or without its functions", name);
    }
    if (status != TANDEM_OK) {
        if (told.status != status) {
            return tnd_error_set(error, status, name, 0, 0, "backend %s: %s", name,
                                 tandem_status_text(status));
        }
        if (error != NULL) {
            *error = told;
        }
        return status;
    }
    status = put_slot(registry, backend, api, name, error);
    if (status != TANDEM_OK) {
        backend->api->close(backend);
    }
    return status;
}

static bool is_unsupported(enum tandem_status status)
{
    return status == TANDEM_E_UNSUPPORTED_MACHINE || status == TANDEM_E_UNSUPPORTED_BUILD;
}

/* Whether the backend is optional after this failure: the machine may lack a device, but wrong
 * settings and a missing CPU backend are errors. */
static bool may_be_missing(enum tandem_status status)
{
    return is_unsupported(status) || status == TANDEM_E_DEVICE || status == TANDEM_E_DEVICE_LOST ||
           status == TANDEM_E_DEVICE_MEMORY || status == TANDEM_E_DEVICE_TIMEOUT;
}

/* Opens a device of a kind in this build; `out_status` receives the result. */
static enum tandem_status open_device(struct tnd_registry *registry,
                                      const struct tandem_backend_api *kind, int index,
                                      const struct tnd_registry_options *all,
                                      enum tandem_status *out_status, struct tandem_error *error)
{
    char name[TND_BACKEND_NAME];
    char settings[MAX_SETTINGS] = "";
    size_t n = 0;
    tnd_device_name(kind->name, index, name);
    const bool has_settings = tnd_settings_of(all->settings, name, settings, sizeof(settings), &n);
    if (n >= sizeof(settings)) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, (int64_t)n, MAX_SETTINGS - 1,
                             "settings of %s are longer than %d bytes", name, MAX_SETTINGS - 1);
    }
    struct tandem_error told = {0};
    enum tandem_status status = open_slot(registry, kind, index, has_settings ? settings : NULL,
                                          all->backends != NULL, &told);
    *out_status = status;
    if (status == TANDEM_OK) {
        return TANDEM_OK;
    }
    if (kind->kind == TANDEM_KIND_CPU || !may_be_missing(status)) {
        if (error != NULL) {
            *error = told;
        }
        return status;
    }
    /* the search has passed the last device */
    if (index > 0 && all->backends == NULL && is_unsupported(status)) {
        return TANDEM_OK;
    }
    note_missing(registry, name, told.text);
    /* a device that fails, or that the program has named, is worth a warning */
    bool is_missed = all->backends != NULL || !is_unsupported(status);
    tnd_log_line(&registry->log, is_missed ? TANDEM_LOG_WARN : TANDEM_LOG_INFO, "backends",
                 "left out: %s", told.text);
    return TANDEM_OK;
}

/* Opens the devices of a kind that are named. If the program names none, opens one after the other
 * until there are no more, or those that have settings. */
static enum tandem_status open_kind(struct tnd_registry *registry, int which,
                                    const struct tnd_registry_options *all,
                                    struct tandem_error *error)
{
    const struct tandem_backend_api *kind = tnd_kind_at(which);
    int n = kind->devices != NULL ? TND_MAX_DEVICES : 1;
    bool is_over = false;
    for (int index = 0; index < n && registry->n_slots < MAX_SLOTS; index++) {
        char name[TND_BACKEND_NAME];
        size_t length = 0;
        tnd_device_name(kind->name, index, name);
        /* settings for a device request it */
        bool is_named =
            kind->devices != NULL && tnd_settings_of(all->settings, name, NULL, 0, &length);
        bool is_wanted = kind->kind == TANDEM_KIND_CPU ||
                         (all->backends != NULL ? is_listed(all->backends, name)
                                                : tnd_kind_is_default(which) || is_named);
        if (!is_wanted) {
            if (index == 0) {
                char reason[REASON];
                snprintf(reason, sizeof(reason), "backend %s: was not asked for", name);
                note_missing(registry, name, reason);
            }
            continue;
        }
        if (is_over && all->backends == NULL &&
            !tnd_settings_of(all->settings, name, NULL, 0, &length)) {
            continue;
        }
        enum tandem_status status = TANDEM_OK;
        TND_TRY(open_device(registry, kind, index, all, &status, error));
        is_over = is_over || (index > 0 && is_unsupported(status));
    }
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
    pthread_mutex_init(&registry->add_lock, NULL);
    registry->n_slots = 1;
    strcpy(registry->slots[0].name, "none");
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
    for (int i = 0; tnd_kind_at(i) != NULL; i++) {
        enum tandem_status status = open_kind(registry, i, options, error);
        if (status != TANDEM_OK) {
            tnd_registry_close(registry);
            return status;
        }
    }
    list_profiles(registry);
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
            put_slot(registry, backends[i], backends[i]->api, backends[i]->api->name, error);
        if (status != TANDEM_OK) {
            while (--registry->n_slots > 0) { /* their backends are still the caller's */
                backends[registry->n_slots - 1]->api = registry->slots[registry->n_slots].told;
            }
            registry->n_slots = 1;
            tnd_registry_close(registry);
            return status;
        }
    }
    list_profiles(registry);
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
        if ((registry->left_open >> i & 1) == 0) {
            backend->api->close(backend);
        }
    }
    pthread_mutex_destroy(&registry->lock);
    pthread_mutex_destroy(&registry->add_lock);
    tnd_free(registry);
}

static bool is_out(const struct tnd_registry *registry, int slot)
{
    return (tnd_registry_quarantined(registry) >> slot & 1) != 0;
}

/* ---- plugins ---- */

/* Checks that profiles are consistent: FINALIZE is the download of a result, and every stage has a
 * task. */
static enum tandem_status check_profiles(const struct tandem_backend_api *known,
                                         struct tandem_error *error)
{
    enum { MOST = 64 };
    for (int i = 0; known->profile != NULL && i < MOST; i++) {
        struct tandem_backend_profile profile = {.name = NULL};
        if (!known->profile(i, TANDEM_TYPE_Q4_0, &profile) || profile.name == NULL) {
            break;
        }
        const uint32_t task = profile.finalize.task;
        const bool is_fetched = task == TANDEM_TASK_FINALIZE && known->memory == TANDEM_MEMORY_OWN;
        if (task != TANDEM_TASK_NONE && !is_fetched) {
            return tnd_error_set(
                error, TANDEM_E_ARGUMENT, profile.name, task, TANDEM_TASK_FINALIZE,
                "backend %s: FINALIZE of profile %.31s has task %u; it can only be "
                "'finalize', of a backend with memory of its own",
                known->name, profile.name, (unsigned)task);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status check_api(const struct tandem_backend_api *api,
                                    struct tandem_error *error)
{
    if (api->abi != TANDEM_ABI) {
        return tnd_error_set(error, TANDEM_E_ABI, "", api->abi, TANDEM_ABI,
                             "backend: built for interface %u, this library has interface %u",
                             (unsigned)api->abi, (unsigned)TANDEM_ABI);
    }
    /* Members are only ever added at the end: a longer struct is newer, and its tail is not used; a
     * shorter one is older and may lack optional members. */
    if (api->size < offsetof(struct tandem_backend_api, workspace)) {
        return tnd_error_set(error, TANDEM_E_ABI, "", api->size,
                             (int64_t)offsetof(struct tandem_backend_api, workspace),
                             "backend: its table of functions has %u bytes, expected %zu or more",
                             (unsigned)api->size, offsetof(struct tandem_backend_api, workspace));
    }
    if (api->name == NULL || api->name[0] == '\0' || strlen(api->name) >= TND_KIND_NAME ||
        strpbrk(api->name, ":;,= \t\r\n+@*") != NULL || strcmp(api->name, "none") == 0) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "", 0, TND_KIND_NAME - 1,
            "backend: its name must have 1 to %d characters, none of ':;,=+@*' or blank",
            TND_KIND_NAME - 1);
    }
    struct tandem_backend_api known;
    copy_api(api, &known);
    bool runs = known.run != NULL || (known.submit != NULL && known.sync != NULL);
    if (known.open == NULL || known.close == NULL || known.supports == NULL || !runs) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, api->name, 0, 0,
            "backend %s: lacks one of open, close, supports, and run or submit with "
            "sync",
            api->name);
    }
    return check_profiles(&known, error);
}

/* Adds the first device, then all others that open with the same settings. */
static enum tandem_status add_devices(struct tnd_registry *registry,
                                      const struct tandem_backend_api *api, const char *settings,
                                      struct tandem_error *error)
{
    struct tandem_backend_api known;
    copy_api(api, &known);
    if (slot_of(registry, api->name) >= 0) {
        return tnd_error_set(error, TANDEM_E_EXISTS, api->name, 0, 0,
                             "backend %s: one of that name is open already", api->name);
    }
    TND_TRY(open_slot(registry, api, 0, settings, true, error));
    list_device(registry, api, 0);
    for (int index = 1; known.devices != NULL && index < TND_MAX_DEVICES; index++) {
        char name[TND_BACKEND_NAME];
        struct tandem_error told = {0};
        tnd_device_name(api->name, index, name);
        if (registry->n_slots >= MAX_SLOTS || slot_of(registry, name) >= 0 ||
            open_slot(registry, api, index, settings, false, &told) != TANDEM_OK) {
            break;
        }
        list_device(registry, api, index);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_registry_add(struct tnd_registry *registry,
                                    const struct tandem_backend_api *api, const char *settings,
                                    struct tandem_error *error)
{
    TND_TRY(check_api(api, error));
    pthread_mutex_lock(&registry->add_lock);
    enum tandem_status status = add_devices(registry, api, settings, error);
    pthread_mutex_unlock(&registry->add_lock);
    return status;
}

/* Loads one plugin, "FILE" or "FILE:settings" of `n` bytes. */
static enum tandem_status add_plugin(struct tnd_registry *registry, const char *spec, size_t n,
                                     struct tandem_error *error)
{
    char path[1024];
    size_t path_n = strcspn(spec, ":;");
    if (n >= sizeof(path)) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "plugin", (int64_t)n, sizeof(path) - 1,
                             "plugin: '%.60s..' is longer than %zu bytes", spec, sizeof(path) - 1);
    }
    memcpy(path, spec, n);
    path[n] = '\0';
    const char *settings = path_n < n ? path + path_n + 1 : NULL;
    path[path_n < n ? path_n : n] = '\0';
    struct {
        tandem_backend_plugin_function tell;
    } found = {NULL};
    const struct tnd_dl_symbol symbol = {TANDEM_PLUGIN_SYMBOL, 0, true};
    void *library = NULL; /* never unloaded: its functions may be in use until the process ends */
    TND_TRY(tnd_dl_open((const char *[]){path, NULL}, &symbol, 1, &found, &library, error));
    const struct tandem_backend_api *api = found.tell();
    if (api == NULL) {
        return tnd_error_set(error, TANDEM_E_DEVICE, path, 0, 0, "plugin %s: tells no backend",
                             path);
    }
    return tnd_registry_add(registry, api, settings, error);
}

enum tandem_status tnd_registry_add_plugins(struct tnd_registry *registry, const char *plugins,
                                            struct tandem_error *error)
{
    for (const char *at = plugins; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ";");
        if (n > 0) {
            TND_TRY(add_plugin(registry, at, n, error));
        }
        at += n + (at[n] == ';');
    }
    return TANDEM_OK;
}

/* ---- accessors ---- */

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
    const struct missing *missing = missing_of(registry, name);
    if (slot < 0 && missing != NULL) {
        reason = missing->reason;
    } else if (slot < 0 && is_known(name, strlen(name))) {
        reason = "this machine has no such device, or it was not asked for";
    }
    if (out_reason != NULL) {
        *out_reason = reason;
    }
    return -1;
}

/* ---- quarantine ---- */

void tnd_registry_leave_open(struct tnd_registry *registry, uint32_t slots)
{
    if (registry != NULL) {
        registry->left_open |= slots;
    }
}

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
