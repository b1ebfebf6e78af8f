/* SPDX-License-Identifier: MIT
 * Any bytes as a WAVE file: an error with a message, or no more samples than there are bytes. */
#include <stdlib.h>

#include "formats/wav.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tandem_error error = {.text = ""};
    struct tnd_wav wav = {.n = 0};
    if (tnd_wav_read(data, size, "fuzz", &wav, &error) != TANDEM_OK) {
        return error.text[0] != '\0' && wav.samples == NULL ? 0 : (abort(), 0);
    }
    if ((size_t)wav.n > size || wav.rate < 1) {
        abort();
    }
    tnd_wav_free(&wav);
    return 0;
}
