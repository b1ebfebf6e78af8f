/* SPDX-License-Identifier: MIT
 * Reads, finds and writes packs of prebuilt kernels. A pack is untrusted: it is validated
 * completely before any of it is used. */
#include "backends/cuda/cuda_pack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef TND_HAVE_ZLIB
#include <zlib.h>
#endif

#include "backends/gpu/gpu_kernels.h"
#include "base/alloc.h"
#include "base/dl.h"
#include "base/file.h"
#include "base/hash.h"

enum {
    HASHED_FROM = 16,
    HEADER_BYTES = HASHED_FROM + 8 + 4 * 4,
    ROW_BYTES = 4 * 8,
    MOST_BYTES = 256 << 20, /* per pack */
    MOST_TEXT = 16 << 20,   /* per program */
    MOST_VERSION = 999      /* of PTX, and of compute capabilities */
};
static const char magic[] = "TNDPTX1\n";
static const char what[] = "pack of kernels";

static uint64_t number_at(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0) {
        value = value << 8 | at[bytes];
    }
    return value;
}

static const unsigned char *row_of(const struct tnd_cuda_pack *pack, unsigned i)
{
    return pack->bytes + HEADER_BYTES + (size_t)i * ROW_BYTES;
}

/* ---- reading ---- */

static enum tandem_status refuse(enum tandem_status status, const char *why,
                                 struct tandem_error *error)
{
    return tnd_error_set(error, status, what, 0, 0, "%s: %s", what, why);
}

/* Checks that texts are contiguous from the end of the rows to the end of the file. */
static bool rows_are_good(const struct tnd_cuda_pack *pack)
{
    uint64_t end = HEADER_BYTES + (uint64_t)pack->n_programs * ROW_BYTES;
    for (unsigned i = 0; i < pack->n_programs; i++) {
        const unsigned char *row = row_of(pack, i);
        const uint64_t bytes = number_at(row + 16, 8);
        const uint64_t text_bytes = number_at(row + 24, 8);
        if (number_at(row + 8, 8) != end || bytes > pack->n - end || text_bytes > MOST_TEXT ||
            bytes > text_bytes || (i > 0 && number_at(row - ROW_BYTES, 8) >= number_at(row, 8))) {
            return false;
        }
        end += bytes;
    }
    return end == pack->n;
}

enum tandem_status tnd_cuda_pack_read(const void *bytes, size_t n, uint64_t sources,
                                      struct tnd_cuda_pack *out, struct tandem_error *error)
{
    const unsigned char *at = bytes;
    if (n < HEADER_BYTES || memcmp(at, magic, sizeof(magic) - 1) != 0) {
        return refuse(TANDEM_E_FORMAT, "no header of version 1", error);
    }
    const struct tnd_cuda_pack pack = {at, n, (unsigned)number_at(at + 24, 4),
                                       (unsigned)number_at(at + 28, 4),
                                       (unsigned)number_at(at + 32, 4)};
    if (pack.n_programs > (n - HEADER_BYTES) / ROW_BYTES) {
        return refuse(TANDEM_E_TRUNCATED, "fewer bytes than programs need", error);
    }
    if (tnd_hash_bytes(at + HASHED_FROM, n - HASHED_FROM, 0) != number_at(at + 8, 8)) {
        return refuse(TANDEM_E_FORMAT, "the contents do not have the hash of the header", error);
    }
    if (number_at(at + HASHED_FROM, 8) != sources) {
        return refuse(TANDEM_E_FORMAT, "it was made for another version of the library", error);
    }
    if (pack.ptx_version > MOST_VERSION || pack.capability > MOST_VERSION) {
        return refuse(TANDEM_E_FORMAT, "no version of PTX or of a GPU", error);
    }
    if (!rows_are_good(&pack)) {
        return refuse(TANDEM_E_FORMAT, "a program does not lie where it should", error);
    }
    *out = pack;
    return TANDEM_OK;
}

static bool inflate_text(const unsigned char *from, size_t bytes, char *to, size_t text_bytes)
{
#ifdef TND_HAVE_ZLIB
    uLongf n = (uLongf)text_bytes;
    return uncompress((Bytef *)to, &n, from, (uLong)bytes) == Z_OK && n == text_bytes;
#else
    (void)from;
    (void)bytes;
    (void)to;
    return text_bytes == 0;
#endif
}

enum tandem_status tnd_cuda_pack_text(const struct tnd_cuda_pack *pack, uint64_t key,
                                      char **out_text, struct tandem_error *error)
{
    unsigned begin = 0;
    for (unsigned end = pack->n_programs; begin < end;) {
        const unsigned middle = begin + (end - begin) / 2;
        if (number_at(row_of(pack, middle), 8) < key) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    const unsigned char *row = row_of(pack, begin);
    if (begin == pack->n_programs || number_at(row, 8) != key) {
        return refuse(TANDEM_E_NOT_FOUND, "no such program", error);
    }
    const unsigned char *from = pack->bytes + number_at(row + 8, 8);
    const size_t bytes = (size_t)number_at(row + 16, 8);
    const size_t text_bytes = (size_t)number_at(row + 24, 8);
    char *text = tnd_alloc(text_bytes + 1);
    if (text == NULL) {
        return refuse(TANDEM_E_MEMORY, "no memory for a program", error);
    }
    if (bytes == text_bytes) {
        memcpy(text, from, bytes);
    } else if (!inflate_text(from, bytes, text, text_bytes)) {
        tnd_free(text);
        return refuse(TANDEM_E_FORMAT, "a program cannot be inflated", error);
    }
    text[text_bytes] = '\0';
    *out_text = text;
    return TANDEM_OK;
}

/* ---- finding ---- */

/* File of this library, or of the program that it is linked into. The program may have been started
 * by a name without a folder. */
static const char *own_file(char *buffer, size_t bytes)
{
    const char *file = tnd_dl_path((void (*)(void))tnd_cuda_pack_find);
    if (file != NULL && file[0] == '/') {
        return file;
    }
    const ssize_t n = readlink("/proc/self/exe", buffer, bytes - 1);
    buffer[n > 0 ? n : 0] = '\0';
    return buffer;
}

enum tandem_status tnd_cuda_pack_find(const char *libcuda, struct tnd_cuda_pack *out,
                                      struct tandem_error *error)
{
    char buffer[1024];
    const char *own = own_file(buffer, sizeof(buffer));
    const struct { /* a file, and the path from its folder to the pack's */
        const char *file, *from_there;
    } places[] = {
        {libcuda, ""}, {own, ""}, {own, "../share/tandem/"}, {own, "../../share/tandem/"}};
    char path[1024];
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const int folder = (int)tnd_file_folder_length(places[i].file);
        struct tnd_file found = {0};
        const int n = snprintf(path, sizeof(path), "%.*s%s" TND_CUDA_PACK_FILE, folder,
                               places[i].file, places[i].from_there);
        if (folder == 0 || n < 0 || (size_t)n >= sizeof(path) || !tnd_file_exists(path)) {
            continue;
        }
        if (i > 0) { /* a user who names a libcuda trusts its folder */
            TND_TRY(tnd_file_check_owner(path, error));
        }
        TND_TRY(tnd_file_read(path, MOST_BYTES, &found, error));
        const enum tandem_status status =
            tnd_cuda_pack_read(found.data, found.bytes, tnd_cuda_pack_sources(), out, error);
        if (status != TANDEM_OK) {
            tnd_file_close(&found);
        }
        return status;
    }
    return refuse(TANDEM_E_NOT_FOUND, "there is none", error);
}

uint64_t tnd_cuda_pack_key(const struct tnd_gpu_text *text)
{
    const char *defines = strstr(text->options, " -D");
    return tnd_hash_string(defines != NULL ? defines : "",
                           tnd_hash_string(text->text, tnd_hash_string(text->dialect, 0)));
}

uint64_t tnd_cuda_pack_sources(void)
{
    uint64_t hash = 0;
    for (int i = 0; i < TND_GPU_SOURCE_COUNT; i++) {
        hash = tnd_hash_bytes(&tnd_gpu_sources[i].hash, sizeof(tnd_gpu_sources[i].hash), hash);
    }
    return hash;
}

/* ---- writing ---- */

static void add_number(struct tnd_text *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        tnd_text_add_char(out, (char)(value >> 8 * i & 0xff));
    }
}

/* Appends a text, deflated if that is shorter; returns the stored size. */
static size_t add_deflated(const struct tnd_text *text, struct tnd_text *out)
{
#ifdef TND_HAVE_ZLIB
    uLongf n = compressBound((uLong)text->n);
    unsigned char *bytes = tnd_alloc(n);
    const bool good = bytes != NULL &&
                      compress2(bytes, &n, (const Bytef *)text->bytes, (uLong)text->n, 9) == Z_OK &&
                      n < text->n;
    if (good) {
        tnd_text_add_bytes(out, (const char *)bytes, n);
    }
    tnd_free(bytes);
    if (good) {
        return n;
    }
#endif
    tnd_text_add_bytes(out, text->bytes, text->n);
    return text->n;
}

void tnd_cuda_pack_write(const struct tnd_cuda_packed *programs, unsigned n, uint64_t sources,
                         unsigned ptx_version, unsigned capability, struct tnd_text *out)
{
    struct tnd_text rest = TND_TEXT_INIT;
    struct tnd_text texts = TND_TEXT_INIT;
    const uint64_t begin = HEADER_BYTES + (uint64_t)n * ROW_BYTES;
    add_number(&rest, sources, 8);
    add_number(&rest, ptx_version, 4);
    add_number(&rest, capability, 4);
    add_number(&rest, n, 4);
    add_number(&rest, 0, 4);
    for (unsigned i = 0; i < n; i++) {
        add_number(&rest, programs[i].key, 8);
        add_number(&rest, begin + texts.n, 8);
        add_number(&rest, add_deflated(&programs[i].text, &texts), 8);
        add_number(&rest, programs[i].text.n, 8);
    }
    tnd_text_add_bytes(&rest, texts.bytes, texts.n);
    tnd_text_add_bytes(out, magic, sizeof(magic) - 1);
    add_number(out, tnd_hash_bytes(rest.bytes, rest.n, 0), 8);
    tnd_text_add_bytes(out, rest.bytes, rest.n);
    out->failed = out->failed || rest.failed || texts.failed;
    tnd_text_fini(&rest);
    tnd_text_fini(&texts);
}
