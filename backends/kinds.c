/* SPDX-License-Identifier: MIT
 * Kinds of backends, names of devices, profiles of each kind; see kinds.h. */
#include "backends/kinds.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/backend-list.h"
#include "base/tnd_assert.h"

#define EXTERN_API(name, by_default) extern const struct tandem_backend_api tnd_backend_##name;
TND_BACKEND_LIST(EXTERN_API)
#undef EXTERN_API

/* ---- kinds and devices ---- */

static const struct tandem_backend_api *const built_ins[] = {
#define BUILT_IN(name, by_default) &tnd_backend_##name,
    TND_BACKEND_LIST(BUILT_IN)
#undef BUILT_IN
        NULL};

static const bool is_default[] = {
#define IS_DEFAULT(name, by_default) by_default,
    TND_BACKEND_LIST(IS_DEFAULT)
#undef IS_DEFAULT
};

enum { N_BUILT_INS = sizeof(is_default) / sizeof(is_default[0]) };

const struct tandem_backend_api *tnd_kind_at(int i)
{
    return i >= 0 && i < N_BUILT_INS ? built_ins[i] : NULL;
}

bool tnd_kind_is_default(int i)
{
    TND_ASSERT(i >= 0 && i < N_BUILT_INS);
    return is_default[i];
}

void tnd_device_name(const char *kind, int index, char out[TND_BACKEND_NAME])
{
    TND_ASSERT(index >= 0 && index < TND_MAX_DEVICES && strlen(kind) < TND_BACKEND_NAME);
    if (index == 0) {
        snprintf(out, TND_BACKEND_NAME, "%s", kind);
    } else {
        snprintf(out, TND_BACKEND_NAME, "%.13s%d", kind, index);
    }
}

int tnd_device_index(const char *kind, const char *name, size_t n)
{
    size_t kind_n = strlen(kind);
    if (n < kind_n || memcmp(name, kind, kind_n) != 0) {
        return -1;
    }
    int index = 0;
    for (size_t i = kind_n; i < n; i++) {
        bool is_digit = name[i] >= (i == kind_n ? '1' : '0') && name[i] <= '9';
        index = is_digit ? 10 * index + (name[i] - '0') : TND_MAX_DEVICES;
        if (index >= TND_MAX_DEVICES) {
            return -1;
        }
    }
    return index;
}

uint32_t tnd_kind_of(const char *device)
{
    for (int i = 0; i < N_BUILT_INS; i++) {
        if (tnd_device_index(built_ins[i]->name, device, strlen(device)) >= 0) {
            return built_ins[i]->kind;
        }
    }
    return TANDEM_KIND_NONE;
}

bool tnd_kind_is_device(uint32_t kind)
{
    return kind == TANDEM_KIND_OPENCL || kind == TANDEM_KIND_CLBLAST || kind == TANDEM_KIND_CUDA ||
           kind == TANDEM_KIND_DEVICE;
}

/* ---- profiles ---- */

static bool ask(const struct tandem_backend_api *api, int i, enum tandem_type type,
                struct tandem_backend_profile *out)
{
    memset(out, 0, sizeof(*out));
    return api->size >= offsetof(struct tandem_backend_api, profile) + sizeof(api->profile) &&
           api->profile != NULL && api->profile(i, type, out) && out->name != NULL;
}

/* The task that a profile leaves to another backend; TANDEM_TASK_NONE: none. Looked up with a type
 * of quantised blocks, because only those have all stages. */
static uint32_t task_of_library(const struct tandem_backend_profile *profile)
{
    const struct tandem_profile_stage *stages[] = {&profile->init, &profile->compute,
                                                   &profile->finalize};
    for (int s = 0; s < 3; s++) {
        if (stages[s]->task != TANDEM_TASK_NONE && stages[s]->place == TANDEM_ON_LIBRARY) {
            return stages[s]->task;
        }
    }
    return TANDEM_TASK_NONE;
}

static const struct tandem_backend_api *find_library(const struct tandem_backend_api *const *kinds,
                                                     const struct tandem_backend_api *asker,
                                                     uint32_t task)
{
    struct tandem_backend_profile profile;
    for (; *kinds != NULL; kinds++) {
        bool fits = *kinds != asker && (*kinds)->run != NULL && (*kinds)->kind != TANDEM_KIND_CPU;
        for (int i = 0; fits && ask(*kinds, i, TANDEM_TYPE_Q4_0, &profile); i++) {
            if (profile.compute.task == task && profile.compute.place == TANDEM_ON_SELF) {
                return *kinds;
            }
        }
    }
    return NULL;
}

/* Expands a pattern: "opencl+*", library openblas, device opencl1 -> "opencl+openblas@opencl1".
 * False: too long. */
static bool spell_name(const char *pattern, const struct tandem_backend_api *library, int index,
                       struct tnd_profile *out)
{
    size_t n = strcspn(pattern, "*");
    bool has_star = pattern[n] == '*' && library != NULL;
    int length = snprintf(out->name, sizeof(out->name), "%.*s%s%s%s%s", (int)n, pattern,
                          has_star ? library->name : "", has_star ? pattern + n + 1 : "",
                          index > 0 ? "@" : "", index > 0 ? out->device : "");
    return length > 0 && (size_t)length < sizeof(out->name);
}

static bool has_name(const struct tnd_profiles *profiles, const char *name)
{
    for (int i = 0; i < profiles->n; i++) {
        if (strcmp(profiles->list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

void tnd_profiles_add(struct tnd_profiles *profiles, const struct tandem_backend_api *api,
                      int index, const struct tandem_backend_api *const *kinds)
{
    struct tandem_backend_profile asked;
    int n = profiles->n;
    for (int i = 0; n < TND_MAX_PROFILES && ask(api, i, TANDEM_TYPE_Q4_0, &asked); i++) {
        struct tnd_profile *profile = &profiles->list[n];
        uint32_t task = task_of_library(&asked);
        *profile = (struct tnd_profile){.api = api, .which = i};
        profile->library = task != TANDEM_TASK_NONE ? find_library(kinds, api, task) : NULL;
        tnd_device_name(api->name, index, profile->device);
        snprintf(profile->what, sizeof(profile->what), "%s%s%s",
                 asked.what != NULL ? asked.what : "", index > 0 ? "; device " : "",
                 index > 0 ? profile->device : "");
        bool is_possible = task == TANDEM_TASK_NONE || profile->library != NULL;
        if (is_possible && spell_name(asked.name, profile->library, index, profile) &&
            !has_name(profiles, profile->name)) {
            /* release: a reader that sees the count sees the profile */
            atomic_store_explicit(&profiles->n, ++n, memory_order_release);
        }
    }
}

static struct tnd_profiles built_in_profiles;

static void list_built_ins(void)
{
    for (int i = 0; i < N_BUILT_INS; i++) {
        tnd_profiles_add(&built_in_profiles, built_ins[i], 0, built_ins);
    }
}

const struct tnd_profiles *tnd_profiles_built_in(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_built_ins);
    return &built_in_profiles;
}

bool tnd_profiles_find(const struct tnd_profiles *profiles, const char *name,
                       struct tnd_profile *out)
{
    size_t n = strcspn(name, "@");
    const struct tnd_profile *first = NULL;
    for (int i = 0; i < profiles->n; i++) {
        const struct tnd_profile *profile = &profiles->list[i];
        if (strcmp(profile->name, name) == 0) {
            *out = *profile;
            return true;
        }
        bool is_first =
            name[n] == '@' && strlen(profile->name) == n && memcmp(profile->name, name, n) == 0 &&
            tnd_device_index(profile->api->name, name + n + 1, strlen(name + n + 1)) > 0;
        first = is_first ? profile : first;
    }
    if (first == NULL || strlen(name) >= sizeof(out->name)) {
        return false;
    }
    *out = *first;
    snprintf(out->name, sizeof(out->name), "%s", name);
    snprintf(out->device, sizeof(out->device), "%s", name + n + 1);
    return true;
}

bool tnd_profile_stages(const struct tnd_profile *profile, enum tandem_type type,
                        struct tandem_backend_profile *out)
{
    return ask(profile->api, profile->which, type, out) && out->compute.task != TANDEM_TASK_NONE;
}
