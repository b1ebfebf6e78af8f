/* SPDX-License-Identifier: MIT
 * Baselines: what other programs do without measuring. Gains are relative to the best of them. They
 * are fixed choices for the matrix products, forced on runtimes without a table. */
#ifndef TANDEM_LLAMA_BASELINES_H
#define TANDEM_LLAMA_BASELINES_H

#include "tandem/llama.h"
#include "tools/tandem-llama/cli.h"

enum { TND_BASELINES_MAX = 8, TND_BASELINE_RUNTIMES = 3 };

/** A fixed choice: profiles for graphs of fewer than 32 tokens, and of more. */
struct tnd_baseline {
    const char *name;
    const char *few, *many;  /* NULL: the rule chooses */
    tandem_runtime *runtime; /* borrowed; without a table */
};

/** Open baselines; all zero: none. */
struct tnd_baselines {
    struct tnd_baseline list[TND_BASELINES_MAX];
    int n;
    tandem_runtime *runtimes[TND_BASELINE_RUNTIMES]; /* owned */
    char profiles[TND_BASELINES_MAX][32];            /* the profile found for each baseline */
};

/** Whether all names of the list are known; if not, prints a usage error that lists the known
 * ones. */
bool tnd_baselines_check(const char *list);
/** Opens the baselines of a list (comma-separated names, or "all": those that this machine has)
 * with the threads and devices of `like`. `out` is zeroed; close it after an error too. Errors:
 * NOT_FOUND (a backend is missing), those of opening a runtime. */
enum tandem_status tnd_baselines_open(const char *list, const struct tnd_cli_runtime *like,
                                      struct tnd_baselines *out, struct tandem_error *error);
void tnd_baselines_close(struct tnd_baselines *baselines);
/** The runtime of baselines that use all threads, for other fixed choices; borrowed. */
tandem_runtime *tnd_baselines_runtime(const struct tnd_baselines *baselines);

/** Description of a baseline. */
const char *tnd_baseline_words(const char *name);
/** Makes a session compute graphs of m tokens by a fixed choice. */
enum tandem_status tnd_baseline_use(const struct tnd_baseline *baseline, tandem_session *session,
                                    int64_t m, struct tandem_error *error);

#endif
