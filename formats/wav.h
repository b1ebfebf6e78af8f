/* SPDX-License-Identifier: MIT
 * Sound in RIFF WAVE files: Microsoft and IBM, Multimedia Programming Interface and Data
 * Specifications 1.0 (1991), and WAVEFORMATEXTENSIBLE. Integers of 8 to 32 bits and float32. */
#ifndef TND_WAV_H
#define TND_WAV_H

#include <stddef.h>
#include <stdint.h>

#include "base/tnd_status.h"

/** One channel of samples, -1 to 1: the mean of the file's channels. */
struct tnd_wav {
    int rate; /* samples per second */
    int64_t n;
    float *samples;
};

/** Reads the bytes of a file. `name` is used in messages. Free with tnd_wav_free. Errors: FORMAT,
 * TRUNCATED, UNSUPPORTED_BUILD (compressed, or another sample width), MEMORY. */
enum tandem_status tnd_wav_read(const void *bytes, size_t n, const char *name, struct tnd_wav *out,
                                struct tandem_error *error);
/** As tnd_wav_read, from a file. Errors: also FILE. */
enum tandem_status tnd_wav_open(const char *path, struct tnd_wav *out, struct tandem_error *error);
void tnd_wav_free(struct tnd_wav *wav);

#endif
