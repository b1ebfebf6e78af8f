/* SPDX-License-Identifier: MIT
 * Any bytes as the configuration of a Whisper model: an error with a message, or lists within their
 * bounds whose ids are not negative. */
#include <stdlib.h>
#include <string.h>

#include "formats/speech_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const struct tnd_speech_tokens *list)
{
    if (list->n < 0 || list->n > TND_SPEECH_MAX_TOKENS) {
        abort();
    }
    for (int i = 0; i < list->n; i++) {
        if (list->ids[i] < 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tandem_error error = {.text = ""};
    struct tnd_speech_config config;
    tnd_speech_config_init(&config);
    if (tnd_speech_config_read(&config, (const char *)data, size, "fuzz", &error) != TANDEM_OK) {
        return error.text[0] != '\0' ? 0 : (abort(), 0);
    }
    check_list(&config.ends);
    check_list(&config.never);
    check_list(&config.never_first);
    for (int i = 0; i < config.n_languages; i++) {
        if (memchr(config.languages[i].name, 0, sizeof(config.languages[i].name)) == NULL ||
            config.languages[i].id < 0) {
            abort();
        }
    }
    return 0;
}
