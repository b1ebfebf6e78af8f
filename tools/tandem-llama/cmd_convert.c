/* SPDX-License-Identifier: MIT
 * tandem-llama convert and synth: write GGUF files from other files, or with random weights. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tandem/llama.h"
#include "tools/new_file.h"
#include "tools/pack_option.h"
#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/kit.h"
#include "tools/terminal.h"
#include "tools/say.h"

#define BAR_WIDTH 30

struct progress {
    double begin;
    double shown; /* time of the last update of the bar */
    bool is_drawn;
};

static volatile sig_atomic_t stopped_by; /* a signal; 0: none */

static void on_stop(int signal_number)
{
    stopped_by = signal_number;
}

/* The first signal stops writing cleanly, so that no temporary file is left; the second one kills
 * the process. */
static void catch_stops(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND};
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

/* Draws a bar on a terminal, at most ten times a second. */
static bool draw_progress(void *user, const char *tensor, int64_t done, int64_t all)
{
    struct progress *progress = user;
    const double now = tnd_cli_seconds();
    if (stopped_by != 0) {
        return false;
    }
    if (tnd_say_level == TND_SAY_QUIET || !isatty(STDERR_FILENO) ||
        (now - progress->shown < 0.1 && done < all)) {
        return true;
    }
    const int filled = all > 0 ? (int)((double)done / (double)all * BAR_WIDTH) : BAR_WIDTH;
    const double left =
        done > 0 ? (now - progress->begin) * (double)(all - done) / (double)done : 0.0;
    tnd_terminal_control("\r");
    fprintf(stderr, "[%.*s%.*s] %3d %%  %.0f s left  %-32.32s", filled,
            "##############################", BAR_WIDTH - filled, "                              ",
            (int)(all > 0 ? 100 * (done / 1024) / (all / 1024 + 1) : 100), left, tensor);
    progress->shown = now;
    progress->is_drawn = true;
    return true;
}

static int count_type(const tandem_source *source, enum tandem_type type)
{
    struct tandem_source_tensor tensor;
    int n = 0;
    for (int i = 0; tandem_source_tensor_at(source, i, &tensor); i++) {
        n += tensor.type == type ? 1 : 0;
    }
    return n;
}

/* The value of a key ARCHITECTURE.NAME; `otherwise` without one. */
static int64_t value_of(const tandem_source *source, const char *architecture, const char *name,
                        int64_t otherwise)
{
    char key[128];
    int64_t value = otherwise;
    snprintf(key, sizeof(key), "%s.%s", architecture, name);
    (void)tandem_source_integer(source, key, &value);
    return value;
}

/* Notes where llama.cpp will compute something else, since it ignores keys (src/llama-model.cpp of
 * ggml-org/llama.cpp): windows of these architectures, how experts are weighted, other activations
 * than silu. */
static void note_passed_over(const tandem_source *source, const struct tandem_hparams *h)
{
    static const char *const note = "tandem-llama: note: llama.cpp passes over %s%s: there the "
                                    "model computes %s\n";
    const bool norms = strcmp(h->architecture, "qwen2moe") != 0;
    const char *activation = NULL;
    int64_t truncates = 1;
    if (h->window > 0 && h->window_period == 0 && h->windowed == NULL) {
        tnd_say(note, h->architecture, ".attention.sliding_window", "without a window");
    }
    if (h->experts > 0 &&
        value_of(source, h->architecture, "expert_weights_norm", norms) != norms) {
        tnd_say(note, h->architecture, ".expert_weights_norm",
                norms ? "with weights of experts that add up to 1"
                      : "with weights of experts as they are");
    }
    if (tandem_source_text(source, "tandem.activation", &activation)) {
        tnd_say(note, "tandem.activation", "", "with silu");
    }
    if (tandem_source_integer(source, "tandem.rope.truncate", &truncates) && truncates == 0) {
        tnd_say(note, "tandem.rope.truncate", "", "yarn with whole pairs");
    }
}

/* Options for the matrices' types. `type` may name one type for all, or a mix; --mix accepts only
 * mixes. */
struct wanted {
    const char *type, *mix, *importance;
};

static int save(const tandem_source *source, const char *path, const struct wanted *wanted,
                int64_t threads)
{
    const char *type = wanted->mix == NULL ? wanted->type : NULL;
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    struct progress progress = {.begin = tnd_cli_seconds()};
    tandem_source *again = NULL;
    struct tandem_hparams hparams; /* refuses a model that nothing could run */
    if (tandem_source_hparams(source, &hparams, &error) != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    options.mix = wanted->mix;
    options.importance = wanted->importance;
    if (type != NULL && !tandem_type_from_name(type, &options.type)) {
        options.mix = type;
        type = NULL;
    }
    if (type != NULL && options.type == TANDEM_TYPE_BCML1) {
        tnd_say("tandem-llama: warning: bcml1 is a type of Tandem alone; no other program "
                "reads %s (q4_1 has its size and is read by all)\n",
                path);
    }
    options.converts = type != NULL;
    options.threads = (int)threads;
    options.progress = draw_progress;
    options.user = &progress;
    catch_stops();
    enum tandem_status status = tandem_source_save_gguf(source, path, &options, &error);
    if (status == TANDEM_E_NOT_FOUND && options.mix != NULL) {
        return tnd_cli_usage("%s: '%s' is no %s", wanted->mix != NULL ? "--mix" : "--type",
                             options.mix,
                             wanted->mix != NULL ? "mix of llama.cpp" : "type of weights or mix");
    }
    if (progress.is_drawn) {
        tnd_terminal_control("\r\033[K");
    }
    if (status == TANDEM_E_CANCELLED) { /* exits as the sender of the signal expects */
        tnd_cli_fail(&error);
        raise(stopped_by);
    }
    if (status == TANDEM_OK) { /* checks that the written file can be read */
        status = tandem_source_open(path, &again, &error);
    }
    if (status != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    printf("%s: %d tensors, %d values, written in %.1f s\n", path,
           tandem_source_tensor_count(again), tandem_source_value_count(again),
           tnd_cli_seconds() - progress.begin);
    if (type != NULL && count_type(again, options.type) == 0) {
        tnd_say("tandem-llama: note: no matrix has rows of whole %s blocks: all stay\n", type);
    }
    note_passed_over(source, &hparams);
    tandem_source_close(again);
    return 0;
}

/* ---- packed weights ---- */

/* Name of the file of packed weights beside a model. False: too long. */
static bool name_packed(const char *model, char *out, size_t bytes)
{
    const int n = snprintf(out, bytes, "%s.packed", model);
    return n > 0 && (size_t)n < bytes;
}

/* Packs all matrices; the runtime writes the file. */
static enum tandem_status pack_into_file(struct tnd_kit *kit, const char *model, int64_t threads,
                                         struct tandem_error *error)
{
    const struct tnd_cli_runtime wanted = {.threads = threads,
                                           .profile = "cpu-packed",
                                           .table = "none",
                                           .settings = "cpu:packed-file=write"};
    const struct tandem_session_options options = {.size = sizeof(options), .context = 16};
    CLI_TRY(tandem_source_open(model, &kit->source, error));
    CLI_TRY(tandem_model_new(kit->source, &kit->model, error));
    CLI_TRY(tnd_cli_open_runtime(&wanted, &kit->runtime, error));
    CLI_TRY(tandem_session_new(kit->model, kit->runtime, &options, &kit->session, error));
    return tnd_pack_option_pack(true, kit->session, kit->runtime, error);
}

/* Whether a file has the magic of packed weights (docs/formats.md). */
static bool is_packed_file(const char *path)
{
    char magic[7] = "";
    FILE *file = fopen(path, "rb");
    const bool is_read = file != NULL && fread(magic, sizeof(magic), 1, file) == 1;
    if (file != NULL) {
        fclose(file);
    }
    return is_read && memcmp(magic, "TNDPACK", sizeof(magic)) == 0;
}

static int save_packed(const char *model, const char *packed, int64_t threads)
{
    struct tnd_kit kit = {.source = NULL};
    struct tandem_error error = {.text = ""};
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    struct stat facts;
    const double begin = tnd_cli_seconds();
    int code = 1;
    if (is_packed_file(packed)) { /* -y was given, but other kinds of files are kept */
        (void)remove(packed);
    }
    if (pack_into_file(&kit, model, threads, &error) != TANDEM_OK) {
        tnd_cli_fail(&error);
    } else if (!is_packed_file(packed) || stat(packed, &facts) != 0) {
        tnd_say("tandem-llama: %s was not written: a note says why, or the model was copied into "
                "memory (TANDEM_MAP=copy) where it has to be mapped\n",
                packed);
    } else {
        tandem_runtime_describe(kit.runtime, &info);
        printf("%s: %.1f MiB of packed weights for %s, written in %.1f s\n", packed,
               (double)facts.st_size / 1048576.0, info.isa, tnd_cli_seconds() - begin);
        code = 0;
    }
    tnd_kit_close(&kit);
    return code;
}

/* Copies the tokenizer of the folder, or the one named by the option. Only the latter must exist
 * and fit. */
static enum tandem_status take_tokenizer(tandem_source *source, const char *input,
                                         const char *tokenizer, struct tandem_error *error)
{
    const char *path = tokenizer != NULL ? tokenizer : input;
    bool is_common = false;
    struct tandem_array tokens;
    if (tokenizer == NULL && (!tnd_cli_is_folder(input) ||
                              tandem_source_array(source, "tokenizer.ggml.tokens", &tokens))) {
        return TANDEM_OK;
    }
    const enum tandem_status status = tandem_source_add_tokenizer(source, path, &is_common, error);
    if (status != TANDEM_OK && tokenizer == NULL) {
        if (status != TANDEM_E_NOT_FOUND) {
            tnd_say("tandem-llama: note: no tokenizer is taken along: %s\n", error->text);
        }
        return TANDEM_OK;
    }
    if (status == TANDEM_OK && !is_common) {
        tnd_say("tandem-llama: note: GGUF has no keys for this tokenizer; it is taken along as the "
                "file that it is, and no other program finds it there\n");
    }
    return status;
}

/* A checkpoint is converted for this library, so its architecture must be supported; GGUF files are
 * copied as they are. */
static enum tandem_status check_model(const tandem_source *source, struct tandem_error *error)
{
    tandem_model *model = NULL;
    if (strncmp(tandem_source_format(source), "GGUF", 4) == 0) {
        return TANDEM_OK;
    }
    const enum tandem_status status = tandem_model_new(source, &model, error);
    tandem_model_free(model);
    return status;
}

int tnd_cmd_convert(int argc, char **argv)
{
    struct wanted wanted = {NULL, NULL, NULL};
    const char *tokenizer = NULL;
    int64_t threads = 0;
    bool replaces = false;
    bool packs = false;
    char packed[PATH_MAX];
    const struct args_option rows[] = {
        {"t", ARGS_STRING, &tokenizer, 0, 0, "FILE",
         "tokenizer to take along; default: that of the folder"},
        {"type", ARGS_STRING, &wanted.type, 0, 0, "TYPE",
         "of the matrices (q4_0, iq4_xs, f16, ...), or a mix (q4_k_m, ...); as they are"},
        {"mix", ARGS_STRING, &wanted.mix, 0, 0, "MIX",
         "types as llama.cpp lays them out under this name (q4_k_m, q2_k, iq3_xs, ...)"},
        {"imatrix", ARGS_STRING, &wanted.importance, 0, 0, "FILE",
         "importance matrix: which columns' errors count more (tandem-llama imatrix)"},
        {"threads", ARGS_INT, &threads, 0, 1024, "N", "threads; default: one a core"},
        {"packed", ARGS_FLAG, &packs, 0, 0, NULL,
         "also write OUT.gguf.packed: starts then need not pack weights on CPUs like this one"},
        TND_NEW_FILE_OPTION(replaces),
    };
    const struct args_command command = {
        "convert",
        "IN OUT.gguf",
        "IN: GGUF, safetensors (or the folder of a model), PyTorch or llama2.c.",
        CLI_ROWS(rows),
        2,
        2};
    const char *paths[2] = {NULL, NULL};
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    int code = args_parse(&command, argc, argv, paths, NULL);
    if (code != ARGS_OK) {
        return args_code(code);
    }
    if (packs && !name_packed(paths[1], packed, sizeof(packed))) {
        return tnd_cli_usage("convert: the name of '%s' is too long for --packed", paths[1]);
    }
    if (tnd_new_file_check(paths[1], replaces, &error) != TANDEM_OK ||
        (packs && tnd_new_file_check(packed, replaces, &error) != TANDEM_OK) ||
        tandem_source_open(paths[0], &source, &error) != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    enum tandem_status status = check_model(source, &error);
    tnd_say_text_of(source);
    if (status == TANDEM_OK) {
        status = take_tokenizer(source, paths[0], tokenizer, &error);
    }
    code = status == TANDEM_OK ? save(source, paths[1], &wanted, threads) : tnd_cli_fail(&error);
    tandem_source_close(source);
    return code == 0 && packs ? save_packed(paths[1], packed, threads) : code;
}

int tnd_cmd_synth(int argc, char **argv)
{
    const char *shape = "quick";
    const char *type = "q4_0";
    int64_t context = 2048;
    bool replaces = false;
    const struct args_option rows[] = {
        {"shape", ARGS_STRING, &shape, 0, 0, "SHAPE",
         "1.1b, quick, 1b-moe, dim,ffn,layers,heads,kv,words[,experts,used]; "
         "quick"},
        {"type", ARGS_STRING, &type, 0, 0, "TYPE", "of the matrices; q4_0"},
        {"context", ARGS_INT, &context, 0, 1e9, "N",
         "positions that the model claims to know; 2048"},
        TND_NEW_FILE_OPTION(replaces),
    };
    const struct args_command command = {
        "synth",
        "OUT.gguf",
        "Writes a model with random weights, for measuring. It has no tokenizer.",
        CLI_ROWS(rows),
        1,
        1};
    const char *path = NULL;
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    int code = args_parse(&command, argc, argv, &path, NULL);
    if (code != ARGS_OK) {
        return args_code(code);
    }
    if (tnd_new_file_check(path, replaces, &error) != TANDEM_OK ||
        tnd_cli_synthesize(shape, type, context, &source, &error) != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    code = save(source, path, &(const struct wanted){NULL, NULL, NULL}, 0);
    tandem_source_close(source);
    return code;
}
