/* SPDX-License-Identifier: MIT
 * The list of profiles and their resolution against the backends of a runtime. What each profile
 * does stands in its own file, profile_*.c. */
#include "tune/profiles.h"

#include <stdio.h>
#include <string.h>

#include "tune/profile-list.h"

#define DECLARE(identifier) extern const struct tnd_profile tnd_profile_##identifier;
TND_PROFILE_LIST(DECLARE)
#undef DECLARE

static const struct tnd_profile *const profiles[] = {
#define ENTRY(identifier) &tnd_profile_##identifier,
    TND_PROFILE_LIST(ENTRY)
#undef ENTRY
};

int tnd_profile_count(void)
{
    return (int)(sizeof(profiles) / sizeof(profiles[0]));
}

const struct tnd_profile *tnd_profile_at(int i)
{
    return i >= 0 && i < tnd_profile_count() ? profiles[i] : NULL;
}

int tnd_profile_find(const char *name)
{
    for (int i = 0; i < tnd_profile_count(); i++) {
        if (strcmp(profiles[i]->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

bool tnd_profile_describe(int i, enum tandem_type type, struct tnd_table_profile *out)
{
    const struct tnd_profile *profile = tnd_profile_at(i);
    struct tnd_table_profile described;
    memset(&described, 0, sizeof(described));
    if (profile == NULL || !profile->stages(type, described.stage)) {
        return false;
    }
    snprintf(described.name, sizeof(described.name), "%s", profile->name);
    *out = described;
    return true;
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

bool tnd_profile_is_twin(int i, enum tandem_type type)
{
    struct tnd_table_profile own;
    struct tnd_table_profile other;
    bool found = false;
    if (tnd_profile_describe(i, type, &own)) {
        for (int j = 0; j < i && !found; j++) {
            found = tnd_profile_describe(j, type, &other) && tnd_profile_is_same(&own, &other);
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
