/* SPDX-License-Identifier: MIT
 * mulmat-tune profiles: the profiles available on this machine. */
#include <stdio.h>

#include "tools/device_option.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "base/emit.h"

enum { MAX_PROFILES = 64 };

static void add_stage_json(struct tnd_text *text, const tandem_runtime *runtime,
                           const struct tandem_task_config *config, int stage)
{
    const char *backend = tandem_runtime_backend_name(runtime, config->backend);
    tnd_text_printf(text, "%s{\"stage\": \"%s\", \"backend\": \"%s\", \"task\": \"%s\", ",
                    stage > 0 ? ", " : "", tandem_stage_name((enum tandem_stage)stage),
                    backend != NULL ? backend : "none",
                    tandem_task_name((enum tandem_task)config->task));
    tnd_text_printf(text, "\"parallel\": %s, \"wait\": %s, \"own_threads\": %s}",
                    config->parallel ? "true" : "false", config->wait ? "true" : "false",
                    config->own_threads ? "true" : "false");
}

static void add_json(struct tnd_text *text, const tandem_runtime *runtime,
                     const struct tandem_profile_info *profiles, int n)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_runtime_describe(runtime, &info);
    tnd_text_add(text, "{\n  \"cpu\": ");
    tnd_emit_json_string(text, info.cpu);
    tnd_text_printf(text, ",\n  \"isa\": \"%s\",\n  \"threads\": %d,\n  \"profiles\": [", info.isa,
                    info.n_threads);
    for (int i = 0; i < n; i++) {
        tnd_text_printf(
            text, "%s\n    {\"name\": \"%s\", \"available\": %s, \"reason\": ", i > 0 ? "," : "",
            profiles[i].name, profiles[i].available ? "true" : "false");
        tnd_emit_json_string(text, profiles[i].reason);
        tnd_text_add(text, ", \"what\": ");
        tnd_emit_json_string(text, profiles[i].what);
        tnd_text_add(text, ", \"stages\": [");
        for (int s = 0; s < TANDEM_STAGES; s++) {
            add_stage_json(text, runtime, &profiles[i].stage[s], s);
        }
        tnd_text_add(text, "]}");
    }
    tnd_text_add(text, "\n  ]\n}\n");
}

static void add_stage_text(struct tnd_text *text, const tandem_runtime *runtime,
                           const struct tandem_task_config *config, int stage)
{
    if (config->backend == TANDEM_BACKEND_NONE) {
        return;
    }
    const char *threads = config->parallel      ? "all threads"
                          : config->own_threads ? "the backend's own threads"
                                                : "one thread";
    tnd_text_printf(text, "    %-8s %-9s %-13s on %s%s\n",
                    tandem_stage_name((enum tandem_stage)stage),
                    tandem_runtime_backend_name(runtime, config->backend),
                    tandem_task_name((enum tandem_task)config->task), threads,
                    config->wait ? "; the others sleep" : "");
}

static void add_text(struct tnd_text *text, const tandem_runtime *runtime,
                     const struct tandem_profile_info *profiles, int n)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_runtime_describe(runtime, &info);
    tnd_text_printf(text, "%s, %s, %s; %d threads\n", info.cpu, info.isa, info.topology,
                    info.n_threads);
    for (int i = 0; i < n; i++) {
        tnd_text_printf(text, "\n%s: %s\n", profiles[i].name, profiles[i].what);
        if (!profiles[i].available) {
            tnd_text_printf(text, "    not on this machine: %s\n", profiles[i].reason);
            continue;
        }
        for (int s = 0; s < TANDEM_STAGES; s++) {
            add_stage_text(text, runtime, &profiles[i].stage[s], s);
        }
    }
    tnd_text_add(text, "\nStages are shown for quantised weights; weights in F32 need no INIT.\n");
}

int tnd_cmd_profiles(int argc, char **argv)
{
    bool json = false;
    const char *device = NULL;
    const struct args_option options[] = {
        {"device", ARGS_STRING, &device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"json", ARGS_FLAG, &json, 0, 0, NULL, "one JSON object"},
    };
    const struct args_command command = {
        "profiles",
        "",
        "Lists the profiles of matrix products, and which of them this machine has.",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        0};
    int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    tandem_runtime *runtime = NULL;
    struct tandem_error error = {0};
    if (tnd_cmd_open_runtime("", 0, NULL, device, &runtime, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    struct tandem_profile_info profiles[MAX_PROFILES];
    int n = tandem_runtime_profiles(runtime, profiles, MAX_PROFILES);
    n = n < MAX_PROFILES ? n : MAX_PROFILES;
    struct tnd_text text = TND_TEXT_INIT;
    if (json) {
        add_json(&text, runtime, profiles, n);
    } else {
        add_text(&text, runtime, profiles, n);
    }
    tandem_runtime_close(runtime);
    enum tandem_status status = tnd_emit_end(&text, tnd_cmd_write, stdout, "profiles", &error);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}
