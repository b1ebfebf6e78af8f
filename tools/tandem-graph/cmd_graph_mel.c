/* SPDX-License-Identifier: MIT
 * tandem-graph mel: sound to the spectrogram that Whisper's encoder reads. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/mel.h"
#include "formats/npy.h"
#include "formats/wav.h"
#include "tools/new_file.h"
#include "tools/tandem-graph/graph_cli.h"

/* Reads samples from a .npy file: a one-dimensional float32 array. */
static enum tandem_status from_npy(const char *path, struct tnd_wav *out,
                                   struct tandem_error *error)
{
    struct tnd_array *samples = NULL;
    TND_TRY(tnd_npy_open(path, &samples, error));
    enum tandem_status status =
        samples->type == TANDEM_DTYPE_F32 && samples->shape.n == 1
            ? TANDEM_OK
            : tnd_error_set(error, TANDEM_E_SHAPE, path, samples->shape.n, 1,
                            "%s: samples of %s with %d dimensions, expected float32 with 1", path,
                            tandem_dtype_name(samples->type), samples->shape.n);
    if (status == TANDEM_OK) {
        *out = (struct tnd_wav){TND_MEL_RATE, samples->n,
                                tnd_alloc((size_t)(samples->n + 1) * sizeof(float))};
        if (out->samples == NULL) {
            status = tnd_error_set(error, TANDEM_E_MEMORY, path, samples->n, 0,
                                   "%s: no memory for %lld samples", path, (long long)samples->n);
        } else {
            memcpy(out->samples, samples->data, (size_t)samples->n * sizeof(float));
        }
    }
    tnd_array_free(samples);
    return status;
}

static enum tandem_status from_wav(const char *path, struct tnd_wav *out,
                                   struct tandem_error *error)
{
    TND_TRY(tnd_wav_open(path, out, error));
    if (out->rate != TND_MEL_RATE) {
        tnd_error_set(error, TANDEM_E_ARGUMENT, path, out->rate, TND_MEL_RATE,
                      "%s: %d samples a second, expected %d: ffmpeg -i FILE -ar %d NEW.wav", path,
                      out->rate, TND_MEL_RATE, TND_MEL_RATE);
        tnd_wav_free(out);
        return TANDEM_E_ARGUMENT;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_graph_sound(const char *path, struct tnd_wav *out,
                                   struct tandem_error *error)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0 ? from_npy(path, out, error)
                                                      : from_wav(path, out, error);
}

enum tandem_status tnd_graph_mel(const char *path, int bins, int64_t frames, struct tnd_array **out,
                                 struct tandem_error *error)
{
    struct tnd_wav wav = {.n = 0};
    TND_TRY(tnd_graph_sound(path, &wav, error));
    const enum tandem_status status = tnd_mel(wav.samples, wav.n, bins, frames, out, error);
    tnd_wav_free(&wav);
    return status;
}

static enum tandem_status run(const char *path, const char *to, bool overwrites, int bins,
                              int64_t frames, struct tandem_error *error)
{
    struct tnd_array *mel = NULL;
    char shape[160];
    TND_TRY(tnd_new_file_check(to, overwrites, error));
    TND_TRY(tnd_graph_mel(path, bins, frames, &mel, error));
    const enum tandem_status status = tnd_npy_save(to, mel, error);
    if (status == TANDEM_OK) {
        printf("%s: float32 %s\n", to, tnd_dims_text(&mel->shape, shape));
    }
    tnd_array_free(mel);
    return status;
}

int tnd_cmd_graph_mel(int argc, char **argv)
{
    const char *path = NULL, *to = NULL;
    bool overwrites = false;
    int64_t bins = 80, frames = 3000;
    const struct args_option options[] = {
        {"o", ARGS_STRING, &to, 0, 0, "FILE", "the spectrogram, a .npy file"},
        TND_NEW_FILE_OPTION(overwrites),
        {"frames", ARGS_INT, &frames, 0, 1 << 20, "N", "of 10 ms; 0: all of the sound; 3000"},
        {"bins", ARGS_INT, &bins, 1, TND_MEL_MAX_BINS, "N", "of the mel scale; 80"},
    };
    const struct args_command command = {
        "mel",
        "SOUND",
        "Computes the log-mel spectrogram that Whisper's encoder reads, {1, bins, frames}, of a "
        ".wav "
        "file or of a\n.npy file of float32, 16,000 samples a second.",
        options,
        (int)(sizeof(options) / sizeof(options[0])),
        1,
        1};
    struct tandem_error error = {.text = ""};
    const int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (to == NULL) {
        fputs("tandem-graph mel: -o is missing, expected a file; see 'tandem-graph mel --help'\n",
              stderr);
        return ARGS_WRONG;
    }
    return run(path, to, overwrites, (int)bins, frames, &error) == TANDEM_OK
               ? 0
               : tnd_graph_fail(&error);
}
