/* SPDX-License-Identifier: MIT
 * Prints the schedule of a plan. */
#ifndef TND_PRINT_SCHEDULE_H
#define TND_PRINT_SCHEDULE_H

#include "backends/registry.h"
#include "base/text.h"
#include "tandem/profile.h"

/** Appends parts, lanes with the critical path, and why the schedule was chosen or not; nothing if
 * the plan has no schedule. */
void tnd_print_schedule(const struct tnd_registry *registry, const struct tandem_plan *plan,
                        struct tnd_text *out);

#endif
