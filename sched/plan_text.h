/* SPDX-License-Identifier: MIT
 * Plans as text, to be stored, read by people, sent and run again. Backends are named, because
 * slots differ from one runtime to the next. Format: docs/planning.md, "Plans in files". */
#ifndef TND_PLAN_TEXT_H
#define TND_PLAN_TEXT_H

#include "base/text.h"
#include "sched/plan.h"

/** Identifies the graphs that a plan fits: hashes operations, types and weights of the nodes in
 *  order, but not the number of tokens. */
uint64_t tnd_plan_graph_hash(const struct tandem_graph *graph);

/** Appends the plan to `out`. Errors: ARGUMENT (a slot that is not open, a stage or reason without
 *  a name; `out` is unchanged then), MEMORY. */
enum tandem_status tnd_plan_print(const struct tandem_plan *plan, uint64_t graph_hash,
                                  const struct tnd_registry *registry, struct tnd_text *out,
                                  struct tandem_error *error);

/** Reads what tnd_plan_print wrote, from bytes that are not trusted. `name` stands in messages.
 *  Errors: FORMAT and TRUNCATED with line and column, TABLE_VERSION (a later form), LIMIT,
 *  UNSUPPORTED_BACKEND (a backend that is not open here), MEMORY. */
enum tandem_status tnd_plan_parse(const char *bytes, size_t n, const char *name,
                                  const struct tnd_registry *registry,
                                  struct tandem_plan **out_plan, uint64_t *out_graph_hash,
                                  struct tandem_error *error);

#endif
