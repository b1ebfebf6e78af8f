/* SPDX-License-Identifier: MIT
 * Profiles: the named ways of computing a matrix product. A profile describes its stages for a
 * weight type by backend names; resolving it against a registry gives the task configs of a
 * plan. */
#ifndef TND_PROFILES_H
#define TND_PROFILES_H

#include "backends/registry.h"
#include "table/tnd_table.h"

struct tnd_profile {
    const char *name;
    const char *what; /* a sentence for people */
    /** Fills the stages for weights of `type` (name excluded, `out` is zeroed before); false
     *  when the profile  is no way of computing them. */
    bool (*stages)(enum tandem_type type, struct tnd_table_stage out[TANDEM_STAGES]);
};

/** Number of profiles of this build and the i-th. */
int tnd_profile_count(void);
const struct tnd_profile *tnd_profile_at(int i);
/** Index by name, or -1. */
int tnd_profile_find(const char *name);

/** Description of profile i for `type`, its name included; false when it does not apply to the
 *  type. */
bool tnd_profile_describe(int i, enum tandem_type type, struct tnd_table_profile *out);

/** Whether both have the same stages, whatever their names. */
bool tnd_profile_is_same(const struct tnd_table_profile *a, const struct tnd_table_profile *b);
/** Whether an earlier profile has the same stages for `type`: F32 weights need no INIT, so that
 *  profiles which differ in who dequantises become one. */
bool tnd_profile_is_twin(int i, enum tandem_type type);

/** Turns a described profile into task configs. False when a backend is not open; `reason` (NULL
 *  allowed, n  bytes) then says which and why. */
bool tnd_profile_resolve(const struct tnd_table_profile *profile,
                         const struct tnd_registry *registry,
                         struct tandem_task_config out[TANDEM_STAGES], char *reason, size_t n);

#endif
