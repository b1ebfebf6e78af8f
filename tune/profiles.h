/* SPDX-License-Identifier: MIT
 * Profiles: the named methods of computing a matrix product, provided by backends. A profile
 * describes its stages for a weight type by names of devices; resolving it against a registry
 * yields the task configs of a plan. */
#ifndef TND_PROFILES_H
#define TND_PROFILES_H

#include "backends/registry.h"
#include "table/tnd_table.h"

/* Indices of profiles belong to one registry; NULL: the profiles of the first device of each kind
 * in this build. Profile 0 is the CPU's own, which can compute every product. */

int tnd_profile_count(const struct tnd_registry *registry);
/** NULL if out of range. Valid until a backend is added. */
const struct tnd_profile *tnd_profile_at(const struct tnd_registry *registry, int i);
/** Whether a kind of backend has a profile of this name, whether or not a device of it is present.
 */
bool tnd_profile_is_known(const struct tnd_registry *registry, const char *name);
/** Index by name, or -1. */
int tnd_profile_find(const struct tnd_registry *registry, const char *name);

/** Description of profile i for `type`, its name included; false when it does not apply to the
 *  type. */
bool tnd_profile_describe(const struct tnd_registry *registry, int i, enum tandem_type type,
                          struct tnd_table_profile *out);
/** Like tnd_profile_describe, by name, also for devices that are not present: tables of other
 * machines name them. */
bool tnd_profile_describe_name(const struct tnd_registry *registry, const char *name,
                               enum tandem_type type, struct tnd_table_profile *out);

/** Whether both have the same stages; names are ignored. */
bool tnd_profile_is_same(const struct tnd_table_profile *a, const struct tnd_table_profile *b);
/** Whether an earlier profile has the same stages for `type`: F32 weights need no INIT, which makes
 * profiles equal that differ only in the backend that dequantises. */
bool tnd_profile_is_twin(const struct tnd_registry *registry, int i, enum tandem_type type);

/** Resolves a described profile to task configs. False if a backend is not open; `reason` (NULL
 * allowed, n bytes) then gets its name and why. */
bool tnd_profile_resolve(const struct tnd_table_profile *profile,
                         const struct tnd_registry *registry,
                         struct tandem_task_config out[TANDEM_STAGES], char *reason, size_t n);

#endif
