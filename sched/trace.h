/* SPDX-License-Identifier: MIT
 * A record of every step that ran, for trace viewers (chrome://tracing, Perfetto). Enabled by
 * TANDEM_TRACE. Kept in memory and written when it is closed. */
#ifndef TND_TRACE_H
#define TND_TRACE_H

#include "sched/exec.h"

struct tnd_trace;

/** A trace that will be written to `path` (copied). Errors: MEMORY. */
enum tandem_status tnd_trace_new(const char *path, struct tnd_trace **out_trace,
                                 struct tandem_error *error);
/** Adds the steps of one run of `graph`, and the spans that `plan` (or NULL) predicts; with several
 *  NUMA nodes in `pool` (or NULL) also the rows of each node. Steps beyond 256 MiB of text are
 *  dropped. Any thread. */
void tnd_trace_add(struct tnd_trace *trace, const struct tandem_graph *graph,
                   const struct tandem_plan *plan, const struct tnd_registry *registry,
                   struct tnd_pool *pool, const struct tnd_step_time *times, int n);
/** Writes the file and frees the trace. NULL is allowed. Errors: FILE, MEMORY. */
enum tandem_status tnd_trace_close(struct tnd_trace *trace, struct tandem_error *error);

#endif
