/* SPDX-License-Identifier: MIT
 * A few threads for the kernel bench, without the library's pool: they spin between jobs, so that
 * starting a job costs almost nothing. */
#ifndef TND_BENCH_TEAM_H
#define TND_BENCH_TEAM_H

#include "tandem/backend.h"

typedef struct tnd_team tnd_team;
typedef void tnd_team_fn(void *user, struct tandem_worker *worker);

tnd_team *tnd_team_new(int n_threads, size_t scratch_bytes);
void tnd_team_free(tnd_team *team);
/** Runs `job` on all threads, the caller among them, and returns when all are done. */
void tnd_team_run(tnd_team *team, tnd_team_fn *job, void *user);
/** Seconds from the end of the first thread to that of the last one, in the last job. */
double tnd_team_tail_s(const tnd_team *team);

#endif
