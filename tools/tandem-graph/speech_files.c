/* SPDX-License-Identifier: MIT
 * Finds models, configuration and tokenizer in a folder, by optimum's file names. */
#include "tools/tandem-graph/speech_files.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/tnd_status.h"

/* FOLDER/onnx/NAME or FOLDER/NAME, the first that exists; false: `out` is "". */
static bool find(const char *folder, const char *name, char *out, size_t size)
{
    static const char *const below[] = {"/onnx/", "/"};
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        const int n = snprintf(out, size, "%s%s%s", folder, below[i], name);
        if (n > 0 && (size_t)n < size && tnd_file_exists(out)) {
            return true;
        }
    }
    out[0] = '\0';
    return false;
}

static enum tandem_status read_config(const char *folder, const char *name,
                                      struct tnd_speech_config *config, struct tandem_error *error)
{
    char path[4096];
    return find(folder, name, path, sizeof(path)) ? tnd_speech_config_open(config, path, error)
                                                  : TANDEM_OK;
}

enum tandem_status tnd_speech_files_open(const char *folder, struct tnd_speech_files *out,
                                         struct tandem_error *error)
{
    memset(out, 0, sizeof(*out));
    tnd_speech_config_init(&out->config);
    if (!find(folder, "encoder_model.onnx", out->encoder, sizeof(out->encoder))) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, folder, 0, 0,
                             "%.200s: no encoder_model.onnx, nor onnx/encoder_model.onnx", folder);
    }
    if (find(folder, "decoder_model_merged.onnx", out->whole, sizeof(out->whole))) {
        memcpy(out->past, out->whole, sizeof(out->past));
    } else if (find(folder, "decoder_model.onnx", out->whole, sizeof(out->whole))) {
        (void)find(folder, "decoder_with_past_model.onnx", out->past, sizeof(out->past));
    } else {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, folder, 0, 0,
                             "%.200s: no decoder: expected decoder_model_merged.onnx, or "
                             "decoder_model.onnx and perhaps decoder_with_past_model.onnx",
                             folder);
    }
    TND_TRY(read_config(folder, "config.json", &out->config, error));
    TND_TRY(read_config(folder, "generation_config.json", &out->config, error));
    const enum tandem_status status = tandem_tokenizer_open(folder, 0, &out->tokenizer, error);
    return status == TANDEM_E_NOT_FOUND ? TANDEM_OK : status;
}

void tnd_speech_files_close(struct tnd_speech_files *files)
{
    tandem_tokenizer_close(files->tokenizer);
    files->tokenizer = NULL;
}
