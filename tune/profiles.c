/* SPDX-License-Identifier: MIT
 * Describes profiles as tables do, and resolves them against the backends of a runtime. The backend
 * that provides a profile defines its stages. */
#include "tune/profiles.h"

#include <stdio.h>
#include <string.h>

#include "base/tnd_assert.h"

int tnd_profile_count(const struct tnd_registry *registry)
{
    return tnd_registry_profiles(registry)->n;
}

const struct tnd_profile *tnd_profile_at(const struct tnd_registry *registry, int i)
{
    const struct tnd_profiles *profiles = tnd_registry_profiles(registry);
    return i >= 0 && i < profiles->n ? &profiles->list[i] : NULL;
}

int tnd_profile_find(const struct tnd_registry *registry, const char *name)
{
    const struct tnd_profiles *profiles = tnd_registry_profiles(registry);
    for (int i = 0; i < profiles->n; i++) {
        if (strcmp(profiles->list[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static const struct tandem_backend_api *cpu_kind(void)
{
    const struct tandem_backend_api *cpu = tnd_kind_at(0);
    TND_ASSERT(cpu != NULL && cpu->kind == TANDEM_KIND_CPU);
    return cpu;
}

static void describe_stage(const struct tnd_profile *profile,
                           const struct tandem_profile_stage *asked, struct tnd_table_stage *out)
{
    if (asked->task == TANDEM_TASK_NONE) {
        return;
    }
    bool is_self = asked->place == TANDEM_ON_SELF;
    const struct tandem_backend_api *where = is_self                         ? profile->api
                                             : asked->place == TANDEM_ON_CPU ? cpu_kind()
                                                                             : profile->library;
    TND_ASSERT(where != NULL);
    strncpy(out->backend, is_self ? profile->device : where->name, sizeof(out->backend) - 1);
    out->kind = asked->text_kind != 0 ? asked->text_kind : (uint8_t)where->kind;
    out->task = (uint8_t)asked->task;
    out->parallel = asked->parallel;
    out->wait = asked->wait;
    out->own_threads = asked->own_threads;
}

static bool describe(const struct tnd_profile *profile, enum tandem_type type,
                     struct tnd_table_profile *out)
{
    struct tandem_backend_profile asked;
    if (!tnd_profile_stages(profile, type, &asked)) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out->name, profile->name, sizeof(out->name));
    describe_stage(profile, &asked.init, &out->stage[TANDEM_STAGE_INIT]);
    describe_stage(profile, &asked.compute, &out->stage[TANDEM_STAGE_COMPUTE]);
    describe_stage(profile, &asked.finalize, &out->stage[TANDEM_STAGE_FINALIZE]);
    return true;
}

bool tnd_profile_describe(const struct tnd_registry *registry, int i, enum tandem_type type,
                          struct tnd_table_profile *out)
{
    const struct tnd_profile *profile = tnd_profile_at(registry, i);
    return profile != NULL && describe(profile, type, out);
}

bool tnd_profile_is_known(const struct tnd_registry *registry, const char *name)
{
    struct tnd_profile profile;
    return tnd_profiles_find(tnd_registry_profiles(registry), name, &profile);
}

bool tnd_profile_describe_name(const struct tnd_registry *registry, const char *name,
                               enum tandem_type type, struct tnd_table_profile *out)
{
    struct tnd_profile profile;
    return tnd_profiles_find(tnd_registry_profiles(registry), name, &profile) &&
           describe(&profile, type, out);
}

bool tnd_profile_is_same(const struct tnd_table_profile *a, const struct tnd_table_profile *b)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *x = &a->stage[s];
        const struct tnd_table_stage *y = &b->stage[s];
        if (strcmp(x->backend, y->backend) != 0 || x->task != y->task ||
            x->parallel != y->parallel || x->own_threads != y->own_threads) {
            return false;
        }
    }
    return true;
}

bool tnd_profile_is_twin(const struct tnd_registry *registry, int i, enum tandem_type type)
{
    struct tnd_table_profile own;
    struct tnd_table_profile other;
    bool found = false;
    if (tnd_profile_describe(registry, i, type, &own)) {
        for (int j = 0; j < i && !found; j++) {
            found = tnd_profile_describe(registry, j, type, &other) &&
                    tnd_profile_is_same(&own, &other);
        }
    }
    return found;
}

bool tnd_profile_resolve(const struct tnd_table_profile *profile,
                         const struct tnd_registry *registry,
                         struct tandem_task_config out[TANDEM_STAGES], char *reason, size_t n)
{
    struct tandem_task_config resolved[TANDEM_STAGES];
    memset(resolved, 0, sizeof(resolved));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] == '\0') {
            continue;
        }
        const char *why = NULL;
        int slot = tnd_registry_find(registry, stage->backend, &why);
        if (slot < 0) {
            if (reason != NULL) {
                snprintf(reason, n, "%s: %s", stage->backend, why != NULL ? why : "not open");
            }
            return false;
        }
        resolved[s].backend = (uint8_t)slot;
        resolved[s].task = stage->task;
        resolved[s].parallel = stage->parallel;
        resolved[s].wait = stage->wait;
        resolved[s].own_threads = stage->own_threads;
    }
    memcpy(out, resolved, sizeof(resolved));
    return true;
}
