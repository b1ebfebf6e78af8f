/* SPDX-License-Identifier: MIT
 * Any text as tile numbers of a timing table: an error with a message, or numbers in their ranges
 * that are printed and read again as the same. */
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_tiles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tnd_gpu_caps caps = {
        .local_bytes = 65536, .max_group = 1024, .max_items = {1024, 1024, 64}};
    char text[TND_NUMBERS_MAX] = ""; /* as much as a record holds */
    char printed[TND_NUMBERS_MAX];
    struct tnd_gpu_tiles tiles;
    struct tnd_gpu_tiles again;
    struct tandem_error error = {.text = ""};
    memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
    tnd_gpu_tiles_default(&caps, &tiles);
    again = tiles;
    if (tnd_gpu_tiles_read(text, "fuzz", &tiles, &error) != TANDEM_OK) {
        return error.text[0] != '\0' ? 0 : (abort(), 0);
    }
    (void)tnd_gpu_tiles_fit(&caps, &tiles);
    if (tnd_gpu_tiles_print(&tiles, text, printed) &&
        (tnd_gpu_tiles_read(printed, "fuzz", &again, NULL) != TANDEM_OK ||
         memcmp(&tiles, &again, sizeof(tiles)) != 0)) {
        abort();
    }
    return 0;
}
