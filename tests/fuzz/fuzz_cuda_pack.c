/* SPDX-License-Identifier: MIT
 * Packs of prebuilt kernels: whatever a file holds, also under a hash that is right, only texts
 * that lie in it come out, and what is written is read back. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_pack.h"
#include "base/alloc.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 40, HASHED_FROM = 16, SOURCES = 7 };

/* Ends the process: libFuzzer reports it. */
static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void read_all(const uint8_t *bytes, size_t n)
{
    struct tnd_cuda_pack pack = {0};
    struct tandem_error error = {0};
    if (tnd_cuda_pack_read(bytes, n, SOURCES, &pack, &error) != TANDEM_OK) {
        must(pack.bytes == NULL && error.text[0] != '\0');
        return;
    }
    for (unsigned i = 0; i < pack.n_programs; i++) {
        uint64_t key = 0;
        char *text = NULL;
        for (int j = 7; j >= 0; j--) {
            key = key << 8 | bytes[HEADER + 32 * i + (unsigned)j];
        }
        must((tnd_cuda_pack_text(&pack, key, &text, &error) == TANDEM_OK) == (text != NULL));
        tnd_free(text);
    }
}

/* The same bytes with the magic, the hash and the sources that a pack has. */
static void read_as_pack(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size);
    must(bytes != NULL);
    memcpy(bytes, data, size);
    memcpy(bytes, "TNDPTX1\n", 8);
    memcpy(bytes + HASHED_FROM, (const uint8_t[8]){SOURCES}, 8);
    const uint64_t hash = tnd_hash_bytes(bytes + HASHED_FROM, size - HASHED_FROM, 0);
    for (int i = 0; i < 8; i++) {
        bytes[8 + i] = (uint8_t)(hash >> 8 * i);
    }
    read_all(bytes, size);
    free(bytes);
}

static void write_and_read(const uint8_t *data, size_t size)
{
    struct tnd_cuda_packed programs[2] = {{.key = 3}, {.key = UINT64_MAX}};
    struct tnd_text file = TND_TEXT_INIT;
    struct tnd_cuda_pack pack;
    char *text = NULL;
    tnd_text_add_bytes(&programs[1].text, (const char *)data, size);
    tnd_cuda_pack_write(programs, 2, SOURCES, 63, 60, &file);
    must(tnd_cuda_pack_read(file.bytes, file.n, SOURCES, &pack, NULL) == TANDEM_OK);
    must(pack.ptx_version == 63 && pack.capability == 60 && pack.n_programs == 2);
    must(tnd_cuda_pack_text(&pack, UINT64_MAX, &text, NULL) == TANDEM_OK);
    must(size == 0 || memcmp(text, data, size) == 0);
    tnd_free(text);
    must(tnd_cuda_pack_text(&pack, 4, &text, NULL) == TANDEM_E_NOT_FOUND);
    must(tnd_cuda_pack_read(file.bytes, file.n, SOURCES + 1, &pack, NULL) == TANDEM_E_FORMAT);
    must(tnd_cuda_pack_read(file.bytes, file.n - 1, SOURCES, &pack, NULL) != TANDEM_OK);
    tnd_text_fini(&programs[1].text);
    tnd_text_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size);
    if (size >= HEADER) {
        read_as_pack(data, size);
    }
    write_and_read(data, size);
    return 0;
}
