/* SPDX-License-Identifier: MIT
 * Runs mulmat-tune in a process of its own, for one model. */
#include "tools/tandem-llama/offer_tune.h"
#include "tools/say.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH_BYTES = 4096, MAX_ARGUMENTS = 16, FEW_CORES = 4 };

bool tnd_tune_pays(const tandem_runtime *runtime)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_runtime_describe(runtime, &info);
    return info.n_devices > 0 || info.n_cores > FEW_CORES;
}

void tnd_tune_arguments(const tandem_model *model, char *out, size_t capacity)
{
    const struct tandem_hparams *h = tandem_model_hparams(model);
    snprintf(out, capacity,
             "bench --model %lldx%lld,%lldx%lld,%lldx%lld,%lldx%lld,%lldx%lld --type %s "
             "--budget 60",
             (long long)h->q_dim, (long long)h->dim, (long long)h->kv_dim, (long long)h->dim,
             (long long)h->hidden, (long long)h->dim, (long long)h->dim, (long long)h->hidden,
             (long long)h->vocabulary, (long long)h->dim, tandem_type_name(h->weight_type));
}

/* Path of mulmat-tune beside this program; the bare name when that is unknown. */
static void find_program(char *out, size_t capacity)
{
    char path[PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    snprintf(out, capacity, "mulmat-tune");
    if (n > 0) {
        path[n] = '\0';
        char *slash = strrchr(path, '/');
        const size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
        if (folder > 0 && folder + sizeof("mulmat-tune") <= sizeof(path)) {
            strcpy(path + folder, "mulmat-tune");
            if (access(path, X_OK) == 0 && strlen(path) < capacity) {
                strcpy(out, path);
            }
        }
    }
}

static bool run(char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    pid_t process;
    int result = -1;
    posix_spawn_file_actions_init(&actions);
    /* mulmat-tune stores the table itself; its stdout is for other programs */
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int failure = posix_spawnp(&process, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) {
        fprintf(stderr, "tandem-llama: mulmat-tune cannot be started: %s\n", strerror(failure));
        return false;
    }
    while (waitpid(process, &result, 0) < 0) {
        /* interrupted: continue waiting */
    }
    return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

bool tnd_tune_run(const tandem_model *model)
{
    char program[PATH_BYTES];
    char text[512];
    char *arguments[MAX_ARGUMENTS] = {program};
    char *rest = NULL;
    int n = 1;
    find_program(program, sizeof(program));
    tnd_tune_arguments(model, text, sizeof(text));
    tnd_say("%s %s\n", program, text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL && n < MAX_ARGUMENTS - 1;
         word = strtok_r(NULL, " ", &rest)) {
        arguments[n++] = word;
    }
    return run(arguments);
}
