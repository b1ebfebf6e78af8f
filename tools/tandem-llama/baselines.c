/* SPDX-License-Identifier: MIT
 * The choices of other programs, as forced profiles. */
#include "tools/tandem-llama/baselines.h"

#include <stdio.h>
#include <string.h>

/* Programs with a BLAS library use it from this many tokens on; llama.cpp had the same number at
 * the time of the original proposal (ggml_compute_forward_mul_mat_use_blas). */
#define BLAS_M 32

enum place { ALL_THREADS, ONE_THREAD, DEVICE };

static const struct row {
    const char *name, *few, *many, *words;
    enum place place;
} rows[] = {
    {"blas-32", "cpu", NULL,
     "a BLAS library on its own threads from 32 tokens on, below that the CPU kernels",
     ALL_THREADS},
    {"one-thread", "cpu", "cpu", "the CPU kernels on one thread", ONE_THREAD},
    {"cpu", "cpu", "cpu", "the CPU kernels on all threads, weights as in the file", ALL_THREADS},
    {"gpu", NULL, NULL, "all on the first device", DEVICE},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct row *find_row(const char *name, size_t n)
{
    for (int i = 0; i < ROWS; i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *tnd_baseline_words(const char *name)
{
    const struct row *row = find_row(name, strlen(name));
    return row != NULL ? row->words : name;
}

bool tnd_baselines_check(const char *list)
{
    const char *at = list;
    bool is_known = strcmp(list, "all") == 0;
    while (!is_known) {
        const size_t n = strcspn(at, ",");
        if (find_row(at, n) == NULL) {
            (void)tnd_cli_usage("--baselines: '%.*s' is no baseline; expected all, or some of "
                                "blas-32,one-thread,cpu,gpu",
                                (int)n, at);
            return false;
        }
        is_known = at[n] == '\0';
        at += n + 1;
    }
    return true;
}

static bool is_in(const char *list, const char *name)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == strlen(name) && strncmp(at, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- profiles of this machine ---- */

static bool is_on_one_device(const struct tandem_profile_info *profile)
{
    const struct tandem_task_config *init = &profile->stage[TANDEM_STAGE_INIT];
    const struct tandem_task_config *compute = &profile->stage[TANDEM_STAGE_COMPUTE];
    return tnd_device_option_has_profile(profile->name) &&
           (init->backend == TANDEM_BACKEND_NONE || init->backend == compute->backend);
}

/* The first open profile for a baseline: the one it names, one that runs on a device from end to
 * end, or one of a library with its own threads. */
static bool find_profile(const tandem_runtime *runtime, const struct row *row, char out[32])
{
    struct tandem_profile_info profiles[32];
    const int n = tandem_runtime_profiles(runtime, profiles, 32);
    for (int i = 0; i < n && i < 32; i++) {
        const struct tandem_profile_info *one = &profiles[i];
        const bool is_it = row->many != NULL      ? strcmp(one->name, row->many) == 0
                           : row->place == DEVICE ? is_on_one_device(one)
                                                  : one->stage[TANDEM_STAGE_COMPUTE].own_threads;
        if (is_it && one->available) {
            memcpy(out, one->name, 32);
            return true;
        }
    }
    return false;
}

/* ---- opening ---- */

static enum tandem_status open_place(struct tnd_baselines *baselines, enum place place,
                                     const struct tnd_cli_runtime *like, struct tandem_error *error)
{
    struct tnd_cli_runtime wanted = *like;
    wanted.table = "none";
    wanted.profile = NULL;
    wanted.threads = place == ONE_THREAD ? 1 : like->threads;
    wanted.device = place == DEVICE ? like->device : "none";
    return baselines->runtimes[place] != NULL
               ? TANDEM_OK
               : tnd_cli_open_runtime(&wanted, &baselines->runtimes[place], error);
}

static enum tandem_status add(struct tnd_baselines *baselines, const struct row *row,
                              bool is_optional, const struct tnd_cli_runtime *like,
                              struct tandem_error *error)
{
    CLI_TRY(open_place(baselines, row->place, like, error));
    tandem_runtime *runtime = baselines->runtimes[row->place];
    char *many = baselines->profiles[baselines->n];
    const bool found = find_profile(runtime, row, many);
    if (!found && !is_optional) {
        return tnd_cli_error(error, TANDEM_E_NOT_FOUND, "this machine has not what it takes",
                             row->name);
    }
    if (found) {
        baselines->list[baselines->n++] =
            (struct tnd_baseline){row->name, row->few != NULL ? row->few : many, many, runtime};
    }
    return TANDEM_OK;
}

enum tandem_status tnd_baselines_open(const char *list, const struct tnd_cli_runtime *like,
                                      struct tnd_baselines *out, struct tandem_error *error)
{
    const bool is_all = strcmp(list, "all") == 0;
    CLI_TRY(open_place(out, ALL_THREADS, like, error));
    for (int i = 0; i < ROWS; i++) {
        if (is_all || is_in(list, rows[i].name)) {
            CLI_TRY(add(out, &rows[i], is_all, like, error));
        }
    }
    return TANDEM_OK;
}

void tnd_baselines_close(struct tnd_baselines *baselines)
{
    for (int i = 0; i < TND_BASELINE_RUNTIMES; i++) {
        tandem_runtime_close(baselines->runtimes[i]);
    }
    *baselines = (struct tnd_baselines){.n = 0};
}

tandem_runtime *tnd_baselines_runtime(const struct tnd_baselines *baselines)
{
    return baselines->runtimes[ALL_THREADS];
}

enum tandem_status tnd_baseline_use(const struct tnd_baseline *baseline, tandem_session *session,
                                    int64_t m, struct tandem_error *error)
{
    tandem_session_set_runtime(session, baseline->runtime);
    return tandem_runtime_force_profile(baseline->runtime,
                                        m < BLAS_M ? baseline->few : baseline->many, error);
}
