/* SPDX-License-Identifier: MIT
 * Settings of a Whisper model's decoder from its config.json and generation_config.json, as
 * transformers' WhisperGenerationMixin reads them. */
#ifndef TND_SPEECH_CONFIG_H
#define TND_SPEECH_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/tnd_status.h"

#define TND_SPEECH_MAX_TOKENS    512 /* in a list of token ids */
#define TND_SPEECH_MAX_LANGUAGES 256

struct tnd_speech_tokens {
    int n;
    int32_t ids[TND_SPEECH_MAX_TOKENS];
};

struct tnd_speech_language {
    char name[24]; /* "<|en|>" */
    int32_t id;
};

struct tnd_speech_config {
    int32_t start;                        /* decoder_start_token_id; -1: not stated */
    int32_t no_timestamps;                /* no_timestamps_token_id; -1: not stated */
    int32_t max_tokens;                   /* positions of the decoder; 0: not stated */
    int32_t bins;                         /* bins of the spectrogram; 0: not stated */
    struct tnd_speech_tokens ends;        /* eos_token_id */
    struct tnd_speech_tokens never;       /* suppress_tokens */
    struct tnd_speech_tokens never_first; /* begin_suppress_tokens */
    int n_languages;                      /* lang_to_id */
    struct tnd_speech_language languages[TND_SPEECH_MAX_LANGUAGES];
};

/** Sets all members to "not stated". */
void tnd_speech_config_init(struct tnd_speech_config *config);
/** Parses `n` bytes of a JSON object; its members override those in `config`, others are skipped.
 * `name` is used in messages. After an error `config` is unspecified. Errors: FORMAT, LIMIT (too
 * many ids or languages). */
enum tandem_status tnd_speech_config_read(struct tnd_speech_config *config, const char *bytes,
                                          size_t n, const char *name, struct tandem_error *error);
/** As tnd_speech_config_read, from a file; a missing file changes nothing. Errors: also FILE. */
enum tandem_status tnd_speech_config_open(struct tnd_speech_config *config, const char *path,
                                          struct tandem_error *error);

#endif
