/* SPDX-License-Identifier: MIT
 * mulmat-tune tune-device: measures candidates for the numbers of a backend's kernels and adds
 * their times to this machine's own table. Contains no name of a kind of device. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/tuner.h"
#include "base/tnd_status.h"
#include "measure/measure_numbers.h"
#include "table/invalidate.h"
#include "table/judge.h"
#include "table/table_layers.h"
#include "tools/device_option.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/say.h"
#include "tune/kernel_numbers.h"

struct request {
    const char *device;
    const char *backend;
    const char *type;
    int64_t threads;
    int64_t most;
    bool dry;
};

/* The measured times, and what they change. */
struct result {
    const char *backend;
    tandem_table *table;
    bool has_changed; /* the best numbers differ from those of the build */
    bool is_full;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted = signal_number;
}

static bool keep_time(void *user, const struct tnd_tuner_time *time_of)
{
    struct result *result = user;
    tnd_say("[%3d %%] %-14s %-58s %s m%-4lld ",
            100 * time_of->index / (time_of->count > 0 ? time_of->count : 1), time_of->family,
            time_of->numbers, tandem_type_name(time_of->type), (long long)time_of->m);
    if (time_of->n_us == 0 && time_of->error < 0) {
        tnd_say("refused by the device\n");
        return interrupted == 0;
    }
    if (time_of->n_us == 0) {
        tnd_say("wrong, error %.1e\n", time_of->error);
        return interrupted == 0;
    }
    const struct tnd_kernel_time record =
        tnd_numbers_record(result->backend, time_of, (int64_t)time(NULL));
    const double flop = 2.0 * (double)record.n * (double)record.k * (double)record.m;
    tnd_say("%10.1f us %8.1f GFLOP/s", record.median_us,
            record.median_us > 0 ? flop / record.median_us / 1e3 : 0.0);
    if (time_of->error >= 0) {
        tnd_say(", error %.1e", time_of->error);
    }
    tnd_say("\n");
    result->is_full = tnd_record_add(result->table, TND_RECORD_KERNEL_TIMES, &record) != TANDEM_OK;
    return interrupted == 0 && !result->is_full;
}

static void choose(void *user, const char *family, const char *prior, char out[TND_NUMBERS_MAX])
{
    struct result *result = user;
    tnd_kernel_numbers_choose(result->table, result->backend, family, prior, out);
    const bool is_other = strcmp(prior, out) != 0;
    result->has_changed = result->has_changed || is_other;
    printf("%-16s %s%s%s\n", family, out, is_other ? ", before: " : " (as before)",
           is_other ? prior : "");
    (void)fflush(stdout);
}

/* Marks curves as stale that were measured with other numbers. */
static enum tandem_status add_stale(const struct result *result, struct tandem_error *error)
{
    char path[4096];
    tandem_table *own = NULL;
    enum tandem_status status = TANDEM_OK;
    if (tnd_table_own_path(path, sizeof(path), NULL) == TANDEM_OK &&
        tandem_table_load(path, &own, NULL) == TANDEM_OK) {
        struct tnd_invalid_report report;
        tnd_table_invalidate(own, &result->table->fingerprint, &report);
        int n = tnd_table_mark_backend_stale(own, result->backend);
        if (n > 0) {
            tnd_say("%d times of %s are stale: mulmat-tune bench measures them first\n", n,
                    result->backend);
            status = tandem_table_merge(result->table, own, error);
        }
    }
    tandem_table_free(own);
    return status;
}

static int keep(const struct request *request, const struct result *result,
                struct tandem_error *error)
{
    char path[4096];
    if (request->dry) {
        tnd_say("nothing was kept (--dry)\n");
        return 0;
    }
    if ((result->has_changed && add_stale(result, error) != TANDEM_OK) ||
        tnd_cmd_update_own_table(result->table, path, sizeof(path), error) != TANDEM_OK) {
        return tnd_cmd_failed(error);
    }
    tnd_say("this machine's own table: %s\n", path);
    return 0;
}

static int tune_backend(const struct request *request, const struct tnd_tuner *tuner,
                        const struct tnd_runtime_parts *parts, int slot, int n_threads,
                        struct tandem_error *error)
{
    enum tandem_type types[1] = {TANDEM_TYPE_F32}; /* the default of the backend */
    int n_types = 0;
    tandem_backend *backend = tnd_registry_backend(parts->registry, slot);
    struct result result = {.backend = tnd_registry_name(parts->registry, slot)};
    if (request->type != NULL &&
        tnd_cmd_parse_types(request->type, types, 1, &n_types, error) != TANDEM_OK) {
        tnd_cmd_failed(error);
        return 2;
    }
    if (tandem_table_new(&result.table, error) != TANDEM_OK) {
        return tnd_cmd_failed(error);
    }
    tnd_fingerprint_read_all(parts->registry, &result.table->fingerprint);
    tnd_say("%s\n", tnd_backend_describe(backend));
    const struct tnd_tuner_options options = {.type = types[0],
                                              .most_candidates = (int)request->most,
                                              .timed = keep_time,
                                              .choose = choose,
                                              .user = &result};
    const struct tnd_measure_options measure = tnd_cmd_measure_options(parts);
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    enum tandem_status status =
        tuner->tune != NULL
            ? tuner->tune(backend, &options, error)
            : tnd_measure_numbers(&measure, tuner, backend, n_threads, &options, error);
    int exit_code = status == TANDEM_OK ? 0 : tnd_cmd_failed(error);
    if (result.table->n_kernel_times > 0) { /* complete families are kept, whatever ended the run */
        const int kept = keep(request, &result, error);
        exit_code = exit_code != 0 ? exit_code : kept;
    }
    tandem_table_free(result.table);
    return interrupted != 0 ? 128 + (int)interrupted : exit_code;
}

/* Opens a device for the tuner; *out_slot is its slot in the registry. */
static enum tandem_status open_for(const struct request *request, const struct tnd_tuner *tuner,
                                   tandem_runtime **out_runtime, int *out_slot,
                                   struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    const char *reason = NULL;
    /* Naming its profile asks for the device, even if it is a CPU. */
    struct tandem_backend_profile profile = {.name = tuner->api->name};
    tuner->api->profile(0, TANDEM_TYPE_Q4_0, &profile);
    TND_TRY(tnd_cmd_open_runtime("", (int)request->threads, profile.name, request->device,
                                 out_runtime, error));
    tnd_runtime_parts(*out_runtime, &parts);
    *out_slot = tnd_registry_find(parts.registry, tuner->api->name, &reason);
    if (*out_slot > 0) {
        return TANDEM_OK;
    }
    tandem_runtime_close(*out_runtime);
    *out_runtime = NULL;
    return tnd_error_set(error, TANDEM_E_NOT_FOUND, tuner->api->name, 0, 0, "%s is not open: %s",
                         tuner->api->name, reason != NULL ? reason : "no such backend");
}

static int no_tuner(const char *kind)
{
    const struct tnd_tuner *tuner = NULL;
    fprintf(stderr, "mulmat-tune: %s is no backend with numbers to find; known are",
            kind != NULL ? kind : "a device");
    for (int i = 0; (tuner = tnd_tuner_at(i)) != NULL; i++) {
        fprintf(stderr, " %s", tuner->api->name);
    }
    fprintf(stderr, "\n");
    return 2;
}

/* Tunes the first device that a tuner of the requested kind, or of any kind, can open; if none can,
 * reports the reason of each. */
static int tune(const struct request *request)
{
    enum { MOST = 4 };
    struct tandem_error errors[MOST];
    const struct tnd_tuner *tuner = NULL;
    tandem_runtime *runtime = NULL;
    struct tnd_runtime_parts parts;
    int slot = 0;
    int n = 0;
    int result = 1;
    memset(errors, 0, sizeof(errors));
    for (int i = 0; n < MOST && runtime == NULL && (tuner = tnd_tuner_at(i)) != NULL; i++) {
        const bool is_wanted = request->backend != NULL
                                   ? strcmp(tuner->api->name, request->backend) == 0
                                   : tuner->tune != NULL;
        if (is_wanted && open_for(request, tuner, &runtime, &slot, &errors[n]) != TANDEM_OK) {
            n++;
        } else if (is_wanted) {
            tnd_runtime_parts(runtime, &parts);
            result = tune_backend(request, tuner, &parts, slot, tandem_runtime_threads(runtime),
                                  &errors[n]);
        }
    }
    if (runtime != NULL) {
        tandem_runtime_close(runtime);
        return result;
    }
    for (int i = 0; i < n; i++) {
        if (i == 0 || strcmp(errors[i].text, errors[i - 1].text) != 0) {
            result = tnd_cmd_failed(&errors[i]);
        }
    }
    return n > 0 ? result : no_tuner(request->backend);
}

int tnd_cmd_tune_device(int argc, char **argv)
{
    struct request request = {.type = NULL};
    const struct args_option options[] = {
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"backend", ARGS_STRING, &request.backend, 0, 0, "KIND",
         "whose kernels: cpu, or a kind of device (default: the first device that opens)"},
        {"type", ARGS_STRING, &request.type, 0, 0, "T",
         "weights to measure with (default: q4_0 on devices, several on the CPU)"},
        {"threads", ARGS_INT, &request.threads, 1, 1024, "N", "of the CPU (default: one a core)"},
        {"most", ARGS_INT, &request.most, 1, 100000, "N",
         "at most N candidates of each family of kernels (default: all)"},
        {"dry", ARGS_FLAG, &request.dry, 0, 0, NULL, "keep nothing"},
    };
    const struct args_command command = {
        "tune-device",
        "",
        "Measures candidates for the numbers of matrix kernels (tiles of a device, how far ahead a "
        "CPU\nfetches) and adds their times to this machine's own table, by which numbers are "
        "chosen whenever\nthe backend is opened: others than before only where they are clearly "
        "faster. Takes minutes:\neach candidate of a device is compiled. Run bench after it.",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        0};
    int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    return tune(&request);
}
