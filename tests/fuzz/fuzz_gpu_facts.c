/* SPDX-License-Identifier: MIT
 * Any bytes as what libcuda says of its devices: codes, counts, numbers and names. The list is
 * refused with a message, or holds devices with a reason, or facts that tile numbers and texts can
 * be made of. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_facts.h"
#include "backends/gpu/gpu_tiles.h"
#include "base/alloc.h"
#include "base/emit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *left; /* zeros follow what there is */
static size_t n_left;

static void take(void *out, size_t bytes)
{
    const size_t n = bytes < n_left ? bytes : n_left;
    memset(out, 0, bytes);
    memcpy(out, left, n);
    left += n;
    n_left -= n;
}

/* Mostly success: else nothing is looked at. */
static int take_code(void)
{
    uint8_t byte = 0;
    take(&byte, 1);
    return byte < 250 ? TND_CU_SUCCESS : (int)byte * 4 - 100;
}

/* What is of use to a reader, or any number. */
static int say_attribute(int *out, int attribute, int device)
{
    static const int32_t usual[] = {0, 1, 32, 64, 1024, 1 << 16, -1, INT32_MAX};
    uint8_t which = 0;
    (void)device;
    take(&which, 1);
    if (which < 128) {
        *out = attribute == TND_CU_WARP              ? 32
               : attribute == TND_CU_MAJOR           ? 8
               : attribute == TND_CU_COMPUTE_MODE    ? 0
               : attribute == TND_CU_SHARED_OF_BLOCK ? 49152
                                                     : 1024;
    } else if (which < 192) {
        *out = usual[which % 8];
    } else {
        take(out, sizeof(*out));
    }
    return take_code();
}

static int say_count(int *out)
{
    uint8_t byte = 0;
    take(&byte, 1);
    *out = byte < 200 ? byte % 8 : (byte - 228) * 1000000;
    return take_code();
}

static int say_device(int *out, int ordinal)
{
    (void)ordinal;
    take(out, sizeof(*out));
    return take_code();
}

static int say_name(char *out, int bytes, int device)
{
    uint8_t n = 0;
    (void)device;
    take(&n, 1);
    take(out, n < bytes ? n : (size_t)bytes); /* with an end or without */
    return take_code();
}

static int say_memory(size_t *out, int device)
{
    (void)device;
    take(out, sizeof(*out));
    return take_code();
}

static int say_error(int code, const char **out)
{
    (void)code;
    *out = NULL;
    return 1;
}

static enum tandem_status find(const struct tnd_gpu_libraries *libraries,
                               struct tnd_gpu_found **out_found, int *out_n,
                               struct tandem_error *error)
{
    struct tnd_cuda_library library = {.cu = {.GetErrorName = say_error,
                                              .DeviceGetCount = say_count,
                                              .DeviceGet = say_device,
                                              .DeviceGetName = say_name,
                                              .DeviceTotalMem = say_memory,
                                              .DeviceGetAttribute = say_attribute}};
    (void)libraries;
    take(&library.version, sizeof(library.version));
    library.has_compiler = library.version % 4 != 0;
    return tnd_cuda_list(&library, out_found, out_n, error);
}

static void check_text(const char *text, size_t bytes)
{
    if (memchr(text, '\0', bytes) == NULL) {
        abort();
    }
    for (; *text != '\0'; text += tnd_emit_utf8_length(text)) {
        if (tnd_emit_utf8_length(text) == 0 || (unsigned char)*text < ' ' || *text == 0x7f) {
            abort();
        }
    }
}

static void use(const struct tnd_gpu_found *found)
{
    const struct tnd_gpu_caps *caps = &found->caps;
    struct tnd_gpu_tiles tiles;
    check_text(found->info.name, sizeof(found->info.name));
    check_text(found->info.reason, sizeof(found->info.reason));
    check_text(found->info.version, sizeof(found->info.version));
    check_text(found->options, sizeof(found->options));
    if (!found->info.is_fit && found->info.reason[0] == '\0') {
        abort();
    }
    if (!found->info.is_fit) {
        return;
    }
    tnd_gpu_tiles_default(caps, &tiles);
    if (!tnd_gpu_tiles_fit(caps, &tiles) || caps->compute_units < 1 || caps->max_group > 65536 ||
        caps->max_alloc_bytes < 1 || caps->max_alloc_bytes > caps->global_bytes ||
        caps->global_bytes > UINT64_C(1) << 48) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tnd_gpu_driver driver = {.name = "fuzz", .find = find};
    static const struct tnd_gpu_libraries usual;
    struct tnd_gpu_found *found = NULL;
    struct tandem_error error = {.text = ""};
    int n = 0;
    left = data;
    n_left = size;
    if (tnd_gpu_find_devices(&driver, &usual, &found, &n, &error) != TANDEM_OK) {
        return error.text[0] != '\0' ? 0 : (abort(), 0);
    }
    for (int i = 0; i < n; i++) {
        use(&found[i]);
    }
    tnd_free(found);
    return 0;
}
