/* SPDX-License-Identifier: MIT
 * tandem-graph transcribe: an audio encoder and a token decoder, as in Whisper. Published models
 * are run by speech_text.c. This file: decoders made for this program, which keep keys and values
 * of their text in blocks of cells, so that they are lowered again only when a block is full. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tnd_status.h"
#include "tools/tandem-graph/graph_cli.h"
#include "tools/tandem-graph/speech_files.h"
#include "tools/tandem-graph/speech_text.h"

enum { BLOCK = 32, MAX_TOKENS = 4096 };
#define UNSEEN     -1e9F /* added to the scores of empty cells */
#define PAST       "past_"
#define PAST_BYTES (sizeof(PAST) - 1)

struct listen {
    const char *files[3]; /* encoder, decoder, sound; or folder and sound */
    int n_files;
    const char *past; /* a decoder with past keys and values, or NULL */
    struct tnd_speech_request request;
    struct args_ints prompt;
    int64_t end, n_tokens;
    struct tnd_graph_runtime how;
    tandem_runtime *runtime;
    tandem_onnx *encoder, *decoder, *with_past;
    tandem_lowered *heard, *step; /* encoder and decoder, lowered; NULL: not yet */
    int64_t cells;                /* of `step` */
};

static enum tandem_status compute(struct listen *listen, tandem_lowered *lowered,
                                  struct tandem_error *error)
{
    return tandem_runtime_compute(listen->runtime, tandem_lowered_graph(lowered), NULL, NULL,
                                  error);
}

/* ---- the sound ---- */

static enum tandem_status encode(struct listen *listen, struct tandem_error *error)
{
    struct tandem_net_array input;
    struct tnd_array *mel = NULL;
    TND_TRY(tandem_onnx_lower(listen->encoder, NULL, 0, &listen->heard, error));
    if (!tandem_lowered_input(listen->heard, 0, &input) || input.n_dims != 3 ||
        input.type != TANDEM_DTYPE_F32) {
        return tnd_error_set(error, TANDEM_E_SHAPE, listen->files[0], 0, 3,
                             "%.150s: the first input is no spectrogram, expected float32 with 3 "
                             "dimensions: 1, bins, frames",
                             listen->files[0]);
    }
    TND_TRY(tnd_graph_mel(listen->files[2], (int)input.dims[1], input.dims[2], &mel, error));
    const enum tandem_status status = tandem_lowered_set_input(
        listen->heard, 0, mel->data, (size_t)mel->n * sizeof(float), error);
    tnd_array_free(mel);
    TND_TRY(status);
    return compute(listen, listen->heard, error);
}

/* ---- the decoder's inputs ---- */

/* An input with keys or values of the text, and the output that becomes its next cell. */
struct cache {
    struct tandem_net_array past, next;
    size_t outer, inner; /* number of rows of cells, and bytes of one cell in a row */
};

static bool is_past(const struct tandem_net_array *array)
{
    return strncmp(array->name, PAST, PAST_BYTES) == 0;
}

/* Whether input `i` of a net is a cache with this many cells: it has shape and type of its output,
 * except for one axis, where the output has extent 1 and the input `cells`. */
static bool find_cache(const tandem_lowered *lowered, int i, int64_t cells, struct cache *out)
{
    if (!tandem_lowered_input(lowered, i, &out->past) || !is_past(&out->past) ||
        !tandem_lowered_output(lowered,
                               tandem_lowered_find_output(lowered, out->past.name + PAST_BYTES),
                               &out->next) ||
        out->past.n_dims != out->next.n_dims || out->past.type != out->next.type) {
        return false;
    }
    int axis = -1;
    out->outer = 1;
    for (int k = 0; k < out->past.n_dims; k++) {
        const bool is_same = out->past.dims[k] == out->next.dims[k];
        if (!is_same && (axis >= 0 || out->next.dims[k] != 1 || out->past.dims[k] != cells)) {
            return false;
        }
        axis = is_same ? axis : k;
        out->outer *= axis < 0 ? (size_t)out->past.dims[k] : 1;
    }
    out->inner = out->outer == 0 ? 0 : out->next.bytes / out->outer;
    return axis >= 0;
}

/* Checks that each input past_NAME of a net is a cache; its cells must be as large as in the
 * previous net, if there is one. */
static enum tandem_status check_caches(const struct listen *listen, const tandem_lowered *lowered,
                                       int64_t cells, struct tandem_error *error)
{
    struct tandem_net_array input;
    struct cache cache, old;
    for (int i = 0; tandem_lowered_input(lowered, i, &input); i++) {
        if (!is_past(&input)) {
            continue;
        }
        const bool is_cache =
            find_cache(lowered, i, cells, &cache) &&
            (listen->step == NULL || (find_cache(listen->step, i, listen->cells, &old) &&
                                      old.outer == cache.outer && old.inner == cache.inner));
        if (!is_cache) {
            return tnd_error_set(error, TANDEM_E_SHAPE, listen->files[1], 0, cells,
                                 "%.150s: input %.60s is no cache: expected an output %.60s of its "
                                 "type and shape, with 1 where the input has `cells`",
                                 listen->files[1], input.name, input.name + PAST_BYTES);
        }
    }
    return TANDEM_OK;
}

/* Copies the next cell of each cache to index `at`. */
static void keep_cells(const struct listen *listen, int64_t at)
{
    struct cache cache;
    for (int i = 0; i < tandem_lowered_input_count(listen->step); i++) {
        if (!find_cache(listen->step, i, listen->cells, &cache)) {
            continue;
        }
        for (size_t k = 0; k < cache.outer; k++) {
            char *run = (char *)cache.past.data + k * (size_t)listen->cells * cache.inner;
            memcpy(run + (size_t)at * cache.inner, (const char *)cache.next.data + k * cache.inner,
                   cache.inner);
        }
    }
}

/* Copies the cells so far into a net with more cells; the mask hides the others. */
static void move_cells(const tandem_lowered *from, int64_t n, const tandem_lowered *to,
                       int64_t room)
{
    struct cache old, cache;
    for (int i = 0; i < tandem_lowered_input_count(to); i++) {
        if (!find_cache(to, i, room, &cache)) {
            continue;
        }
        memset(cache.past.data, 0, cache.past.bytes);
        for (size_t k = 0; from != NULL && find_cache(from, i, n, &old) && k < cache.outer; k++) {
            memcpy((char *)cache.past.data + k * (size_t)room * cache.inner,
                   (const char *)old.past.data + k * (size_t)n * cache.inner,
                   (size_t)n * cache.inner);
        }
    }
}

/* Copies the encoder's outputs to the decoder's inputs of the same names. */
static enum tandem_status give_states(const struct listen *listen, struct tandem_error *error)
{
    struct tandem_net_array states;
    for (int i = 0; tandem_lowered_output(listen->heard, i, &states); i++) {
        const int input = tandem_lowered_find_input(listen->step, states.name);
        if (input >= 0) {
            TND_TRY(
                tandem_lowered_set_input(listen->step, input, states.data, states.bytes, error));
        }
    }
    return TANDEM_OK;
}

/* Lowers the decoder with one more block of cells. */
static enum tandem_status grow(struct listen *listen, struct tandem_error *error)
{
    const int64_t cells = listen->cells + BLOCK;
    const struct tandem_onnx_dim dims[] = {{"cells", cells}, {"keys", cells + 1}};
    tandem_lowered *larger = NULL;
    TND_TRY(tandem_onnx_lower(listen->decoder, dims, 2, &larger, error));
    TND_TRY(check_caches(listen, larger, cells, error));
    move_cells(listen->step, listen->cells, larger, cells);
    listen->step = larger;
    listen->cells = cells;
    return give_states(listen, error);
}

/* Sets an input by name; ignored if the decoder has no such input. */
static enum tandem_status set(const struct listen *listen, const char *name, const void *data,
                              size_t bytes, struct tandem_error *error)
{
    const int input = tandem_lowered_find_input(listen->step, name);
    return input < 0 ? TANDEM_OK
                     : tandem_lowered_set_input(listen->step, input, data, bytes, error);
}

/* Makes cells up to `at` visible, and the last key, which is the token's own. */
static void set_mask(const struct listen *listen, int64_t at)
{
    struct tandem_net_array mask;
    if (tandem_lowered_input(listen->step, tandem_lowered_find_input(listen->step, "mask"),
                             &mask) &&
        mask.type == TANDEM_DTYPE_F32) {
        const int64_t n = (int64_t)(mask.bytes / sizeof(float));
        for (int64_t i = 0; i < n; i++) {
            ((float *)mask.data)[i] = i < at || i == n - 1 ? 0.0F : UNSEEN;
        }
    }
}

/* ---- the text ---- */

static enum tandem_status likeliest(const struct listen *listen, int64_t *out,
                                    struct tandem_error *error)
{
    struct tandem_net_array logits;
    if (!tandem_lowered_output(listen->step, tandem_lowered_find_output(listen->step, "logits"),
                               &logits) ||
        logits.type != TANDEM_DTYPE_F32 || logits.bytes == 0) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, listen->files[1], 0, 0,
                             "%.150s: no output logits of float32, expected one", listen->files[1]);
    }
    const float *values = logits.data;
    *out = 0;
    for (int64_t i = 1; i < (int64_t)(logits.bytes / sizeof(float)); i++) {
        *out = values[i] > values[*out] ? i : *out;
    }
    return TANDEM_OK;
}

static enum tandem_status step(struct listen *listen, int64_t token, int64_t at, int64_t *next,
                               struct tandem_error *error)
{
    if (at == listen->cells) {
        TND_TRY(grow(listen, error));
    }
    TND_TRY(set(listen, "token", &token, sizeof(token), error));
    TND_TRY(set(listen, "position", &at, sizeof(at), error));
    set_mask(listen, at);
    TND_TRY(compute(listen, listen->step, error));
    keep_cells(listen, at);
    return likeliest(listen, next, error);
}

static enum tandem_status decode(struct listen *listen, struct tandem_error *error)
{
    const int64_t n = listen->prompt.n + listen->n_tokens;
    int64_t token = 0;
    for (int64_t at = 0; at < n; at++) {
        const bool is_prompt = at < listen->prompt.n;
        token = is_prompt ? listen->prompt.values[at] : token;
        if (!is_prompt) {
            printf("%s%lld", at > listen->prompt.n ? " " : "", (long long)token);
            fflush(stdout);
        }
        if (!is_prompt && token == listen->end) {
            break;
        }
        if (at + 1 < n) {
            TND_TRY(step(listen, token, at, &token, error));
        }
    }
    printf("\n");
    return TANDEM_OK;
}

/* ---- published models ---- */

/* The folder with config.json: the encoder's folder, or the one above if it is `onnx`. */
static void folder_of(const char *encoder, char *out, size_t size)
{
    size_t n = tnd_file_folder_length(encoder);
    n -= n > 1;
    (void)snprintf(out, size, "%.*s", (int)(n > 0 ? n : 1), n > 0 ? encoder : ".");
    const size_t length = strlen(out);
    if (length >= 5 && strcmp(out + length - 5, "/onnx") == 0) {
        out[length - 5] = '\0';
    } else if (strcmp(out, "onnx") == 0) {
        (void)snprintf(out, size, ".");
    }
}

/* Reads the configuration beside the two models, if there is one. */
static enum tandem_status read_beside(struct tnd_speech_files *files, const char *encoder,
                                      struct tandem_error *error)
{
    char folder[4096];
    char path[4200];
    folder_of(encoder, folder, sizeof(folder));
    tnd_speech_config_init(&files->config);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder,
                       i == 0 ? "config.json" : "generation_config.json");
        TND_TRY(tnd_speech_config_open(&files->config, path, error));
    }
    const enum tandem_status status = tandem_tokenizer_open(folder, 0, &files->tokenizer, error);
    return status == TANDEM_E_NOT_FOUND ? TANDEM_OK : status;
}

static enum tandem_status publish(struct listen *listen, struct tnd_speech_files *files,
                                  struct tandem_error *error)
{
    struct tnd_speech_decoder decoder = {.paths = {listen->files[1], listen->past},
                                         .whole = listen->decoder,
                                         .past = listen->with_past,
                                         .runtime = listen->runtime};
    if (tnd_speech_takes(listen->decoder, "use_cache")) {
        decoder.past = listen->decoder;
        decoder.paths[1] = listen->files[1];
    }
    if (listen->end >= 0) {
        files->config.ends = (struct tnd_speech_tokens){1, {(int32_t)listen->end}};
    }
    listen->request.sound = listen->files[2];
    listen->request.encoder = listen->files[0];
    listen->request.prompt = listen->prompt.n > 0 ? &listen->prompt : NULL;
    listen->request.n_tokens = listen->n_tokens;
    return tnd_speech_write(&listen->request, &files->config, files->tokenizer, listen->encoder,
                            &decoder, error);
}

/* ---- the command ---- */

static enum tandem_status open_models(struct listen *listen, struct tandem_error *error)
{
    TND_TRY(tandem_onnx_open(listen->files[0], &listen->encoder, error));
    TND_TRY(tandem_onnx_open(listen->files[1], &listen->decoder, error));
    if (listen->past != NULL && strcmp(listen->past, listen->files[1]) != 0) {
        TND_TRY(tandem_onnx_open(listen->past, &listen->with_past, error));
    }
    TND_TRY(tnd_graph_open_runtime(&listen->how, &listen->runtime, error));
    tandem_onnx_set_chooser(listen->encoder, tandem_runtime_chooser(listen->runtime));
    tandem_onnx_set_chooser(listen->decoder, tandem_runtime_chooser(listen->runtime));
    return TANDEM_OK;
}

static enum tandem_status transcribe(struct listen *listen, struct tnd_speech_files *files,
                                     struct tandem_error *error)
{
    if (listen->n_files == 2) {
        listen->files[2] = listen->files[1];
        TND_TRY(tnd_speech_files_open(listen->files[0], files, error));
        listen->files[0] = files->encoder;
        listen->files[1] = files->whole;
        listen->past = files->past[0] != '\0' ? files->past : NULL;
        TND_TRY(open_models(listen, error));
        return publish(listen, files, error);
    }
    TND_TRY(open_models(listen, error));
    if (tnd_speech_takes(listen->decoder, "input_ids")) {
        TND_TRY(read_beside(files, listen->files[0], error));
        return publish(listen, files, error);
    }
    listen->prompt.n += listen->prompt.n == 0; /* default: token 0 */
    TND_TRY(encode(listen, error));
    return decode(listen, error);
}

int tnd_cmd_graph_transcribe(int argc, char **argv)
{
    static struct tnd_speech_files files;
    static struct listen listen;
    struct tandem_onnx_dim dims[ARGS_LIST_MAX];
    struct args_strings words = {.n = 0};
    const char *task = "transcribe";
    listen = (struct listen){.end = -1, .n_tokens = 224};
    const struct args_option options[] = {
        {"language", ARGS_STRING, &listen.request.language, 0, 0, "L",
         "spoken, as en or de; default: the model finds it"},
        {"task", ARGS_STRING, &task, 0, 0, "T", "transcribe, or translate to English"},
        {"timestamps", ARGS_FLAG, &listen.request.timestamps, 0, 0, NULL,
         "begin and end of each piece, in seconds"},
        {"ids", ARGS_FLAG, &listen.request.prints_ids, 0, 0, NULL, "print token ids, not text"},
        {"past", ARGS_STRING, &listen.past, 0, 0, "FILE",
         "the decoder with past, where DECODER is not merged"},
        {"dim", ARGS_STRINGS, &words, 0, 0, "NAME=N", "extent of a symbolic dimension"},
        {"prompt", ARGS_INTS, &listen.prompt, 0, INT32_MAX, "T[,T..]",
         "tokens to begin with; default: those of language and task"},
        {"end", ARGS_INT, &listen.end, -1, INT32_MAX, "T",
         "the token that ends the text; default: config.json's"},
        {"tokens", ARGS_INT, &listen.n_tokens, 1, MAX_TOKENS, "N",
         "at most, in 30 s of sound; 224"},
        {"threads", ARGS_INT, &listen.how.threads, 0, 1024, "N", "threads; default: one a core"},
        {"table", ARGS_STRING, &listen.how.table, 0, 0, "FILE",
         "timing table; none: the rule; default: this machine's"},
        TND_GRAPH_DEVICE_ROWS(&listen.how),
    };
    const struct args_command command = {
        "transcribe",
        "FOLDER SOUND | ENCODER.onnx DECODER.onnx SOUND",
        "Writes down a sound (.wav, or .npy of samples, 16,000 a second) with a Whisper model: the "
        "folder of a\npublished one with its config.json and tokenizer, or its two files.",
        options,
        (int)(sizeof(options) / sizeof(options[0])),
        2,
        3};
    struct tandem_error error = {.text = ""};
    const int result = args_parse(&command, argc, argv, listen.files, &listen.n_files);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    listen.request.translates = strcmp(task, "translate") == 0;
    if (!listen.request.translates && strcmp(task, "transcribe") != 0) {
        fprintf(stderr, "tandem-graph: --task %s: expected transcribe or translate\n", task);
        return ARGS_WRONG;
    }
    enum tandem_status status = tnd_dim_option_read(&words, dims, &error);
    if (status != TANDEM_OK) {
        (void)tnd_graph_fail(&error);
        return ARGS_WRONG;
    }
    listen.request.dims = dims;
    listen.request.n_dims = words.n;
    status = transcribe(&listen, &files, &error);
    tandem_runtime_close(listen.runtime);
    tandem_onnx_close(listen.encoder);
    tandem_onnx_close(listen.decoder);
    tandem_onnx_close(listen.with_past);
    tnd_speech_files_close(&files);
    for (int i = 0; i < words.n; i++) {
        tnd_free((void *)(uintptr_t)dims[i].name);
    }
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
