/* SPDX-License-Identifier: MIT
 * A few threads for the kernel bench, without the library's pool: they spin between jobs, so that a
 * job's start costs next to nothing. */
#ifndef TND_BENCH_CREW_H
#define TND_BENCH_CREW_H

#include "tandem/backend.h"

typedef struct tnd_crew tnd_crew;
typedef void tnd_crew_fn(void *user, struct tandem_worker *worker);

tnd_crew *tnd_crew_new(int n_threads, size_t scratch_bytes);
void tnd_crew_free(tnd_crew *crew);
/** Runs `job` on all threads, the caller among them, and returns when all are done. */
void tnd_crew_run(tnd_crew *crew, tnd_crew_fn *job, void *user);
/** Seconds from the end of the first thread to that of the last one, in the last job. */
double tnd_crew_tail_s(const tnd_crew *crew);

#endif
