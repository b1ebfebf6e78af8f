/* SPDX-License-Identifier: MIT
 * Any bytes as a tune file of an OpenCL device: an error with a message, or numbers in their ranges
 * that are printed and read again as the same. */
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_tiles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tnd_gpu_caps caps = {
        .local_bytes = 65536, .max_group = 1024, .max_items = {1024, 1024, 64}};
    struct tnd_gpu_tiles tiles;
    struct tnd_gpu_tiles again;
    struct tnd_text text = TND_TEXT_INIT;
    struct tandem_error error = {.text = ""};
    if (tnd_gpu_tiles_read(data, size, "fuzz", &tiles, &error) != TANDEM_OK) {
        return error.text[0] != '\0' ? 0 : (abort(), 0);
    }
    (void)tnd_gpu_tiles_fit(&caps, &tiles);
    tnd_gpu_tiles_print(&tiles, "any", &text);
    if (!text.failed &&
        (tnd_gpu_tiles_read(text.bytes, text.n, "fuzz", &again, NULL) != TANDEM_OK ||
         memcmp(&tiles, &again, sizeof(tiles)) != 0)) {
        abort();
    }
    tnd_text_fini(&text);
    return 0;
}
