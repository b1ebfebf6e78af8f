/* SPDX-License-Identifier: MIT
 * mulmat-tune tune-device: finds the tile numbers of the matrix kernels of a device by
 * measuring, and keeps them for later opens. Knows no kind of device by its name. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backends/tuner.h"
#include "tools/device_option.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/say.h"

struct request {
    const char *device;
    const char *type;
    int64_t most;
    bool dry;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static bool show(void *user, const struct tnd_tuner_step *step)
{
    (void)user;
    tnd_say("[%3d %%] %-7s %-56s ", 100 * step->index / (step->count > 0 ? step->count : 1),
            step->family, step->text);
    if (step->us < 0) {
        tnd_say("refused by the device\n");
    } else {
        tnd_say("%10.1f us %8.1f GFLOP/s%s\n", step->us, step->gflops, step->is_best ? " *" : "");
    }
    return interrupted == 0;
}

static void print_number(void *user, const char *name, int value)
{
    (void)user;
    printf("%-16s %d\n", name, value);
}

static int tune_backend(const struct request *request, const struct tnd_tuner *tuner,
                        tandem_backend *backend, struct tandem_error *error)
{
    enum tandem_type types[1] = {TANDEM_TYPE_Q4_0};
    int n_types = 0;
    if (tnd_cmd_parse_types(request->type, types, 1, &n_types, error) != TANDEM_OK) {
        tnd_cmd_failed(error);
        return 2;
    }
    tnd_say("%s\n", tnd_backend_describe(backend));
    const struct tnd_tuner_options options = {.type = types[0],
                                              .most_candidates = (int)request->most,
                                              .without_saving = request->dry,
                                              .progress = show,
                                              .found = print_number};
    signal(SIGINT, on_interrupt);
    if (tuner->tune(backend, &options, error) != TANDEM_OK) {
        return tnd_cmd_failed(error);
    }
    tnd_say(request->dry ? "nothing was kept (-dry)\n"
                         : "kept for this device and driver; mulmat-tune bench measures anew\n");
    return 0;
}

/* Opens the device as one of the tuner's. */
static enum tandem_status open_for(const struct request *request, const struct tnd_tuner *tuner,
                                   tandem_runtime **out_runtime, struct tandem_error *error)
{
    /* A profile says that its device is wanted, a CPU too where there is no other. */
    struct tandem_backend_profile profile = {.name = tuner->api->name};
    tuner->api->profile(0, TANDEM_TYPE_Q4_0, &profile);
    return tnd_cmd_open_runtime("", 1, profile.name, request->device, out_runtime, error);
}

/* The first device that a tuner can open; where none can, why, for each of them. */
static int tune(const struct request *request)
{
    enum { MOST = 4 };
    struct tandem_error errors[MOST];
    const struct tnd_tuner *tuner = NULL;
    tandem_runtime *runtime = NULL;
    struct tnd_runtime_parts parts;
    int n = 0;
    int result = 1;
    memset(errors, 0, sizeof(errors));
    while (n < MOST && runtime == NULL && (tuner = tnd_tuner_at(n)) != NULL) {
        n += open_for(request, tuner, &runtime, &errors[n]) != TANDEM_OK;
    }
    if (runtime != NULL) {
        tnd_runtime_parts(runtime, &parts);
        int slot = tnd_registry_find(parts.registry, tuner->api->name, NULL);
        result =
            tune_backend(request, tuner, tnd_registry_backend(parts.registry, slot), &errors[0]);
        tandem_runtime_close(runtime);
        return result;
    }
    for (int i = 0; i < n; i++) {
        if (i == 0 || strcmp(errors[i].text, errors[i - 1].text) != 0) {
            result = tnd_cmd_failed(&errors[i]);
        }
    }
    if (n == 0) {
        fprintf(stderr, "mulmat-tune: no device of this build has numbers to find\n");
    }
    return result;
}

int tnd_cmd_tune_device(int argc, char **argv)
{
    struct request request = {.type = "q4_0"};
    const struct args_option options[] = {
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"type", ARGS_STRING, &request.type, 0, 0, "T", "weights to measure with (default: q4_0)"},
        {"most", ARGS_INT, &request.most, 1, 100000, "N",
         "at most N candidates of each family of kernels (default: all)"},
        {"dry", ARGS_FLAG, &request.dry, 0, 0, NULL, "keep nothing"},
    };
    const struct args_command command = {
        "tune-device",
        "",
        "Measures tile numbers of the matrix kernels on a device and keeps the best for "
        "later\nopens, beside the cached programs. Takes minutes: each candidate is compiled. Run "
        "bench after it.",
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
