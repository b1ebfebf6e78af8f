/* SPDX-License-Identifier: MIT
 * RIFF WAVE: chunks "fmt " and "data"; others are passed over. */
#include "formats/wav.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/cursor.h"

enum {
    RIFF_BYTES = 12,
    CHUNK_BYTES = 8,
    FORMAT_BYTES = 16,
    EXTENSION_BYTES = 40,
    PCM = 1,
    FLOATS = 3,
    EXTENSIBLE = 0xFFFE,
    MAX_CHANNELS = 64,
    MAX_RATE = 1 << 20
};

struct format {
    unsigned kind, channels, bits;
    uint32_t rate;
};

static enum tandem_status wrong(const struct tnd_cursor *cursor, const char *what, int64_t got,
                                int64_t limit, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, got, limit,
                         "%s: WAVE file: %s is %lld, expected at most %lld and more than 0",
                         tnd_short_name(cursor->name), what, (long long)got, (long long)limit);
}

static enum tandem_status read_format(const struct tnd_cursor *cursor, const uint8_t *chunk,
                                      uint32_t n, struct format *out, struct tandem_error *error)
{
    if (n < FORMAT_BYTES) {
        return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, n, FORMAT_BYTES,
                             "%s: WAVE file: the format has %u bytes, expected %d and more",
                             tnd_short_name(cursor->name), n, FORMAT_BYTES);
    }
    *out = (struct format){tnd_le16(chunk), tnd_le16(chunk + 2), tnd_le16(chunk + 14),
                           tnd_le32(chunk + 4)};
    if (out->kind == EXTENSIBLE && n >= EXTENSION_BYTES) {
        out->kind = tnd_le16(chunk + 24); /* the beginning of the sub-format's identifier */
    }
    const bool is_known =
        (out->kind == PCM && out->bits >= 8 && out->bits <= 32 && out->bits % 8 == 0) ||
        (out->kind == FLOATS && out->bits == 32);
    if (!is_known) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, cursor->name, out->kind, out->bits,
                             "%s: WAVE file: format %u of %u bits, expected PCM (1) of 8, 16, 24 "
                             "or 32 bits, or floats (3) of 32",
                             tnd_short_name(cursor->name), out->kind, out->bits);
    }
    if (out->channels < 1 || out->channels > MAX_CHANNELS) {
        return wrong(cursor, "the number of channels", out->channels, MAX_CHANNELS, error);
    }
    if (out->rate < 1 || out->rate > MAX_RATE) {
        return wrong(cursor, "the sample rate", out->rate, MAX_RATE, error);
    }
    return TANDEM_OK;
}

/* A sample from -1 to 1. Those of 8 bits have their middle at 128. */
static float sample_at(const struct format *format, const uint8_t *at)
{
    const unsigned bytes = format->bits / 8;
    if (format->kind == FLOATS) {
        float value;
        const uint32_t bits = tnd_le32(at);
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    if (bytes == 1) {
        return (float)(at[0] - 128) / 128.0F;
    }
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint32_t)at[i] << (8 * (4 - bytes + i)); /* to the top: the sign is in place */
    }
    return (float)((double)(int32_t)value / 2147483648.0);
}

static enum tandem_status read_data(const struct tnd_cursor *cursor, const struct format *format,
                                    const uint8_t *data, size_t bytes, struct tnd_wav *out,
                                    struct tandem_error *error)
{
    const size_t width = format->bits / 8;
    const size_t n = bytes / (width * format->channels);
    float *samples = tnd_alloc((n + 1) * sizeof(float));
    if (samples == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, cursor->name, (int64_t)n, 0,
                             "%s: no memory for %zu samples", tnd_short_name(cursor->name), n);
    }
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (unsigned c = 0; c < format->channels; c++) {
            sum += sample_at(format, data + (i * format->channels + c) * width);
        }
        samples[i] = sum / (float)format->channels;
    }
    *out = (struct tnd_wav){.rate = (int)format->rate, .n = (int64_t)n, .samples = samples};
    return TANDEM_OK;
}

enum tandem_status tnd_wav_read(const void *bytes, size_t n, const char *name, struct tnd_wav *out,
                                struct tandem_error *error)
{
    struct tnd_cursor cursor = {.data = bytes, .n = n, .name = name};
    struct format format = {.kind = 0};
    const uint8_t *head;
    TND_TRY(tnd_cursor_take(&cursor, RIFF_BYTES, "the head of a WAVE file", &head, error));
    if (memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, 0, 0,
                             "%s: the first bytes are not those of a WAVE file, expected RIFF and "
                             "WAVE",
                             tnd_short_name(name));
    }
    for (;;) {
        const uint8_t *chunk;
        TND_TRY(tnd_cursor_take(&cursor, CHUNK_BYTES, "the head of a chunk", &head, error));
        const uint32_t length = tnd_le32(head + 4);
        const bool is_data = memcmp(head, "data", 4) == 0;
        TND_TRY(
            tnd_cursor_take(&cursor, length, is_data ? "the samples" : "a chunk", &chunk, error));
        if (is_data && format.kind != 0) {
            return read_data(&cursor, &format, chunk, length, out, error);
        }
        if (memcmp(head, "fmt ", 4) == 0) {
            TND_TRY(read_format(&cursor, chunk, length, &format, error));
        } else if (is_data) {
            return tnd_error_set(error, TANDEM_E_FORMAT, name, 0, 0,
                                 "%s: WAVE file: samples stand in front of their format",
                                 tnd_short_name(name));
        }
        if (length % 2 != 0 && tnd_cursor_left(&cursor) > 0) {
            TND_TRY(tnd_cursor_take(&cursor, 1, "the end of a chunk", &chunk, error));
        }
    }
}

enum tandem_status tnd_wav_open(const char *path, struct tnd_wav *out, struct tandem_error *error)
{
    struct tnd_file file;
    struct tnd_wav wav = {.n = 0};
    TND_TRY(tnd_file_map(path, false, &file, error));
    enum tandem_status status = tnd_wav_read(file.data, file.bytes, path, &wav, error);
    if (status == TANDEM_OK) {
        status = tnd_file_check(&file, error);
    }
    tnd_file_close(&file);
    if (status != TANDEM_OK) {
        tnd_wav_free(&wav);
        return status;
    }
    *out = wav;
    return TANDEM_OK;
}

void tnd_wav_free(struct tnd_wav *wav)
{
    tnd_free(wav->samples);
    *wav = (struct tnd_wav){.n = 0};
}
