/* SPDX-License-Identifier: MIT
 * The files of a published model: a folder as on the Hugging Face Hub, with or without `onnx/`. */
#ifndef TND_SPEECH_FILES_H
#define TND_SPEECH_FILES_H

#include "formats/speech_config.h"
#include "tandem/tokenizer.h"

struct tnd_speech_files {
    char encoder[4096], whole[4096], past[4096]; /* "": none; `past` equal to `whole`: merged */
    struct tnd_speech_config config;
    tandem_tokenizer *tokenizer; /* owned; NULL: not in the folder */
};

/** Finds the models of a folder, reads its config.json and generation_config.json, and opens its
 * tokenizer. Errors: NOT_FOUND (no encoder or no decoder: the message lists the names), those of
 * tnd_speech_config_open and tandem_tokenizer_open. */
enum tandem_status tnd_speech_files_open(const char *folder, struct tnd_speech_files *out,
                                         struct tandem_error *error);
void tnd_speech_files_close(struct tnd_speech_files *files);

#endif
