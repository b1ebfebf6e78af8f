/* SPDX-License-Identifier: MIT
 * Weights are found in the plan of one generated token; those of experts are packed when they are
 * first read, unless a cache file is to hold them. */
#include "tools/pack_option.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/tnd_status.h"
#include "tools/args.h"
#include "tools/say.h"
#include "tools/terminal.h"

enum tandem_status tnd_pack_option_apply(const char *folder, struct tnd_pack_option *memory,
                                         struct tandem_runtime_options *options,
                                         struct tandem_error *error)
{
    if (folder == NULL) {
        return TANDEM_OK;
    }
    const char *asked = options->settings != NULL ? options->settings : "";
    const int n = snprintf(memory->settings, sizeof(memory->settings), "%s%scpu:pack-cache=%s",
                           asked, asked[0] != '\0' ? ";" : "", folder);
    if (folder[0] == '\0' || strpbrk(folder, ",;") != NULL || n >= (int)sizeof(memory->settings)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "pack-cache", n, 0,
                             "--pack-cache '%.200s': expected the name of a folder, short and "
                             "without ',' and ';'",
                             folder);
    }
    options->settings = memory->settings;
    return TANDEM_OK;
}

/* The progress bar on a terminal. */
struct progress {
    double shown; /* time of the last update, in seconds */
    bool is_drawn;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool draw(void *user, uint64_t done, uint64_t all)
{
    struct progress *progress = user;
    const double now = seconds();
    if (now - progress->shown >= 0.2 && tnd_say_level != TND_SAY_QUIET && isatty(STDERR_FILENO)) {
        tnd_terminal_control("\r");
        fprintf(stderr, "packing weights: %3.0f %%", 100.0 * (double)done / (double)all);
        progress->shown = now;
        progress->is_drawn = true;
    }
    return true;
}

static enum tandem_status prepare(const struct tandem_prepare_options *options,
                                  tandem_session *session, tandem_runtime *runtime,
                                  struct tandem_error *error)
{
    tandem_graph *graph = NULL;
    tandem_plan *plan = NULL;
    enum tandem_status status = tandem_session_plan(session, 1, &graph, &plan, error);
    if (status == TANDEM_OK) {
        status = tandem_runtime_prepare(runtime, graph, plan, options, error);
    }
    tandem_plan_free(plan);
    return status;
}

enum tandem_status tnd_pack_option_pack(bool experts, tandem_session *session,
                                        tandem_runtime *runtime, struct tandem_error *error)
{
    struct tandem_prepare_options options = TANDEM_PREPARE_OPTIONS_INIT;
    struct progress progress = {.shown = seconds()};
    options.experts = experts;
    options.progress = draw;
    options.user = &progress;
    const enum tandem_status status = prepare(&options, session, runtime, error);
    if (progress.is_drawn) {
        tnd_terminal_control("\r\033[K");
    }
    return status;
}

static void say_packed_later(const struct tandem_error *error)
{
    tnd_say("%s: note: weights are packed when they are needed: %s\n", args_program, error->text);
}

void tnd_pack_option_prepare(const char *folder, tandem_session *session, tandem_runtime *runtime)
{
    struct tandem_error error = {0};
    if (tnd_pack_option_pack(folder != NULL, session, runtime, &error) != TANDEM_OK) {
        say_packed_later(&error);
    }
}

void tnd_pack_option_begin(const char *folder, const char *settings, tandem_session *session,
                           tandem_runtime *runtime)
{
    struct tandem_prepare_options options = TANDEM_PREPARE_OPTIONS_INIT;
    struct tandem_error error = {0};
    options.gradually = true;
    if (folder != NULL || (settings != NULL && (strstr(settings, "pack-cache=") != NULL ||
                                                strstr(settings, "packed-file=") != NULL))) {
        tnd_pack_option_prepare(folder, session, runtime);
    } else if (prepare(&options, session, runtime, &error) != TANDEM_OK) {
        say_packed_later(&error);
    }
}
