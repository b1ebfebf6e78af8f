/* SPDX-License-Identifier: MIT
 * Transcribes a sound with a published model: windows of 30 seconds, a prompt of language and task;
 * prints the text while it is generated. */
#include "tools/tandem-graph/speech_text.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/mel.h"
#include "ggml-like/array.h"
#include "tools/say.h"
#include "tools/tandem-graph/graph_cli.h"

enum { MAX_TOKENS = 4096, DEFAULT_FRAMES = 3000, DEFAULT_BINS = 80 };
#define SECONDS_A_TIMESTAMP 0.02

struct writer {
    const struct tnd_speech_request *request;
    const struct tnd_speech_config *config;
    const tandem_tokenizer *tokenizer; /* NULL: prints ids */
    tandem_onnx *encoder;
    tandem_lowered *heard;
    struct tnd_speech_decoder decoder;
    struct tnd_speech_rules rules;
    int32_t language; /* -1: not given to the model, or not detected yet */
    int32_t tokens[MAX_TOKENS];
    int64_t n;
    double begin_s; /* of this window */
};

/* ---- the sound ---- */

/* Lowers the encoder for one window. */
static enum tandem_status lower_encoder(struct writer *writer, struct tandem_error *error)
{
    const struct tnd_speech_request *request = writer->request;
    struct tandem_onnx_value input;
    struct tandem_net_array features = {.n_dims = 3};
    struct tandem_onnx_options options = TANDEM_ONNX_OPTIONS_INIT;
    struct tandem_lower_options lower = TANDEM_LOWER_OPTIONS_INIT;
    const int64_t usual[] = {1, writer->config->bins > 0 ? writer->config->bins : DEFAULT_BINS,
                             DEFAULT_FRAMES};
    tandem_net *net = NULL;
    if (!tandem_onnx_input(writer->encoder, 0, &input) || input.n_dims != 3 || !input.has_type ||
        input.type != TANDEM_DTYPE_F32) {
        return tnd_error_set(error, TANDEM_E_SHAPE, request->encoder, 0, 3,
                             "%.150s: the first input is no spectrogram, expected float32 with 3 "
                             "dimensions: 1, bins, frames",
                             request->encoder);
    }
    features.name = input.name;
    features.type = input.type;
    int64_t n = 1;
    for (int i = 0; i < 3; i++) {
        features.dims[i] = input.dims[i].extent >= 0 ? input.dims[i].extent : usual[i];
        for (int k = 0; input.dims[i].extent < 0 && k < request->n_dims; k++) {
            if (input.dims[i].name != NULL &&
                strcmp(request->dims[k].name, input.dims[i].name) == 0) {
                features.dims[i] = request->dims[k].extent;
            }
        }
        n *= features.dims[i] < 1 << 20 ? features.dims[i] : 1 << 20;
    }
    if (features.dims[0] != 1 || n < 1 || n > (int64_t)1 << 28) {
        return tnd_error_set(error, TANDEM_E_SHAPE, request->encoder, n, 1,
                             "%.150s: input '%.60s' takes %lldx%lldx%lld, expected 1, bins, frames",
                             request->encoder, input.name, (long long)features.dims[0],
                             (long long)features.dims[1], (long long)features.dims[2]);
    }
    const struct tnd_dims shape = {3, {1, features.dims[1], features.dims[2]}};
    struct tnd_array *zeros = tnd_array_new(TANDEM_DTYPE_F32, &shape);
    if (zeros == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, request->encoder, n, 0,
                             "no memory for a spectrogram");
    }
    features.data = zeros->data;
    features.bytes = (size_t)n * sizeof(float);
    options.arrays = &features;
    options.n_arrays = 1;
    enum tandem_status status = tandem_onnx_net(writer->encoder, &options, &net, error);
    tnd_array_free(zeros);
    if (status == TANDEM_OK) {
        lower.chooser = tandem_runtime_chooser(writer->decoder.runtime);
        status = tandem_net_lower(net, &lower, &writer->heard, error);
    }
    tandem_net_free(net);
    return status;
}

/* Encodes the window of samples from `at` on, and begins its text. */
static enum tandem_status hear(struct writer *writer, const struct tnd_wav *sound, int64_t at,
                               struct tandem_error *error)
{
    struct tandem_net_array input;
    struct tandem_net_array states;
    struct tnd_array *mel = NULL;
    (void)tandem_lowered_input(writer->heard, 0, &input);
    TND_TRY(tnd_mel(sound->samples + at, sound->n - at, (int)input.dims[1], input.dims[2], &mel,
                    error));
    enum tandem_status status = tandem_lowered_set_input(writer->heard, 0, mel->data,
                                                         (size_t)mel->n * sizeof(float), error);
    tnd_array_free(mel);
    TND_TRY(status);
    TND_TRY(tandem_runtime_compute(writer->decoder.runtime, tandem_lowered_graph(writer->heard),
                                   NULL, NULL, error));
    if (!tandem_lowered_output(writer->heard, 0, &states)) {
        return tnd_error_set(error, TANDEM_E_SHAPE, writer->request->encoder, 0, 1,
                             "%.150s: no output", writer->request->encoder);
    }
    return tnd_speech_begin(&writer->decoder, &states, error);
}

/* ---- the prompt ---- */

static int32_t special(const struct writer *writer, const char *text)
{
    return writer->tokenizer != NULL ? tandem_tokenizer_find(writer->tokenizer, text) : -1;
}

/* Token of "de" or "<|de|>"; -1: unknown to the model. */
static int32_t language_of(const struct writer *writer, const char *name)
{
    char token[32];
    (void)snprintf(token, sizeof(token), name[0] == '<' ? "%s" : "<|%s|>", name);
    for (int i = 0; i < writer->config->n_languages; i++) {
        if (strcmp(writer->config->languages[i].name, token) == 0) {
            return writer->config->languages[i].id;
        }
    }
    return writer->config->n_languages > 0 ? -1 : special(writer, token);
}

/* The most likely language after only the start token. */
static enum tandem_status detect_language(struct writer *writer, struct tandem_error *error)
{
    const struct tnd_speech_config *config = writer->config;
    const float *logits = NULL;
    int64_t vocabulary = 0;
    int best = -1;
    TND_TRY(tnd_speech_logits(&writer->decoder, &config->start, 1, &logits, &vocabulary, error));
    for (int i = 0; i < config->n_languages; i++) {
        const int32_t id = config->languages[i].id;
        if (id < vocabulary && (best < 0 || logits[id] > logits[config->languages[best].id])) {
            best = i;
        }
    }
    if (best >= 0) {
        writer->language = config->languages[best].id;
        tnd_say("language: %s, found by the model; --language sets it\n",
                config->languages[best].name);
    }
    return TANDEM_OK;
}

static void add(struct writer *writer, int32_t token)
{
    if (token >= 0 && writer->n < MAX_TOKENS) {
        writer->tokens[writer->n++] = token;
    }
}

/* <|startoftranscript|><|en|><|transcribe|><|notimestamps|>, as far as the model has these
 * tokens. */
static enum tandem_status make_prompt(struct writer *writer, struct tandem_error *error)
{
    const struct tnd_speech_request *request = writer->request;
    writer->n = 0;
    if (request->prompt != NULL) {
        for (int i = 0; i < request->prompt->n; i++) {
            add(writer, (int32_t)request->prompt->values[i]);
        }
    } else {
        add(writer, writer->config->start);
        if (writer->language < 0 && writer->config->n_languages > 0) {
            TND_TRY(detect_language(writer, error));
        }
        if (writer->language >= 0) {
            add(writer, writer->language);
            add(writer, special(writer, request->translates ? "<|translate|>" : "<|transcribe|>"));
        }
        if (writer->rules.timestamp < 0) {
            add(writer, writer->config->no_timestamps);
        }
    }
    writer->rules.n_prompt = writer->n;
    return TANDEM_OK;
}

/* ---- the text ---- */

static void print_token(const struct writer *writer, struct tandem_token_stream *stream,
                        int32_t token, bool is_first)
{
    char text[256];
    if (writer->tokenizer == NULL || writer->request->prints_ids) {
        printf("%s%d", is_first ? "" : " ", token);
    } else if (writer->rules.timestamp >= 0 && token >= writer->rules.timestamp) {
        printf("[%.2f]",
               writer->begin_s + (double)(token - writer->rules.timestamp) * SECONDS_A_TIMESTAMP);
    } else {
        const size_t n = tandem_token_stream_next(stream, token, text, sizeof(text));
        (void)fwrite(text, 1, n <= sizeof(text) ? n : 0, stdout);
    }
    fflush(stdout);
}

static enum tandem_status write_window(struct writer *writer, struct tandem_error *error)
{
    struct tandem_token_stream stream = tandem_token_stream_begin(writer->tokenizer, true);
    const int64_t most = writer->decoder.max_tokens > 0 ? writer->decoder.max_tokens : MAX_TOKENS;
    TND_TRY(make_prompt(writer, error));
    const int64_t last = writer->n + writer->request->n_tokens;
    while (writer->n < last && writer->n < most) {
        const float *logits = NULL;
        int64_t vocabulary = 0;
        TND_TRY(tnd_speech_logits(&writer->decoder, writer->tokens, writer->n, &logits, &vocabulary,
                                  error));
        const int32_t token =
            tnd_speech_choose(&writer->rules, writer->tokens, writer->n, logits, vocabulary);
        if (tnd_speech_is_end(writer->config, token)) {
            break;
        }
        print_token(writer, &stream, token, writer->n == writer->rules.n_prompt);
        add(writer, token);
    }
    if (writer->tokenizer != NULL && !writer->request->prints_ids) {
        char text[8];
        (void)fwrite(text, 1, tandem_token_stream_end(&stream, text, sizeof(text)), stdout);
    }
    printf("\n");
    return TANDEM_OK;
}

/* Checks that the model has what the request asks for. */
static enum tandem_status check(struct writer *writer, struct tandem_error *error)
{
    const struct tnd_speech_request *request = writer->request;
    const struct tnd_speech_config *config = writer->config;
    writer->language = -1;
    writer->rules = (struct tnd_speech_rules){.config = config, .timestamp = -1};
    if (request->language != NULL) {
        writer->language = language_of(writer, request->language);
        if (writer->language < 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, request->language, 0, 0,
                                 "--language %.40s: the model has no such language, expected a "
                                 "code as en or de%s",
                                 request->language,
                                 config->n_languages == 0 ? "; it may know English alone" : "");
        }
    }
    if (request->timestamps) {
        const int32_t before = config->no_timestamps;
        const int32_t first = special(writer, "<|0.00|>");
        writer->rules.timestamp = first >= 0 ? first : before >= 0 ? before + 1 : -1;
        if (writer->rules.timestamp < 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "timestamps", 0, 0,
                                 "--timestamps: neither the tokenizer nor generation_config.json "
                                 "has any");
        }
    }
    if (request->prompt == NULL && config->start < 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "prompt", 0, 0,
                             "config.json states no decoder_start_token_id, expected one, or "
                             "--prompt");
    }
    return TANDEM_OK;
}

static enum tandem_status write_all(struct writer *writer, struct tandem_error *error)
{
    const struct tnd_speech_request *request = writer->request;
    struct tnd_wav sound = {.n = 0};
    struct tandem_net_array input;
    TND_TRY(check(writer, error));
    TND_TRY(tnd_graph_sound(request->sound, &sound, error));
    enum tandem_status status = lower_encoder(writer, error);
    int64_t window = 0;
    if (status == TANDEM_OK && tandem_lowered_input(writer->heard, 0, &input)) {
        window = input.dims[2] * TND_MEL_HOP;
    }
    for (int64_t at = 0; status == TANDEM_OK && (at == 0 || at < sound.n); at += window) {
        writer->begin_s = (double)at / TND_MEL_RATE;
        writer->n = 0;
        status = hear(writer, &sound, at, error);
        status = status == TANDEM_OK ? write_window(writer, error) : status;
    }
    tnd_wav_free(&sound);
    return status;
}

enum tandem_status tnd_speech_write(const struct tnd_speech_request *request,
                                    const struct tnd_speech_config *config,
                                    const tandem_tokenizer *tokenizer, tandem_onnx *encoder,
                                    const struct tnd_speech_decoder *decoder,
                                    struct tandem_error *error)
{
    struct writer *writer = tnd_calloc(1, sizeof(*writer));
    if (writer == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a text");
    }
    writer->request = request;
    writer->config = config;
    writer->tokenizer = tokenizer;
    writer->encoder = encoder;
    writer->decoder = *decoder;
    writer->decoder.dims = request->dims;
    writer->decoder.n_dims = request->n_dims;
    writer->decoder.max_tokens = config->max_tokens;
    const enum tandem_status status = write_all(writer, error);
    tnd_speech_end(&writer->decoder);
    tandem_lowered_free(writer->heard);
    tnd_free(writer);
    return status;
}
