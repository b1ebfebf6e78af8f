/* SPDX-License-Identifier: MIT
 * Files of the cache of OpenCL programs: whatever they hold, only the payload of a whole file of
 * the right key comes out, and what is written is read back. */
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process: libFuzzer reports it. */
static void must(bool good)
{
    if (!good) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const void *payload = NULL;
    size_t n = 0;
    struct tandem_error error = {0};
    enum tandem_status status = tnd_gpu_cache_read(data, size, "key", &payload, &n, &error);
    if (status == TANDEM_OK) {
        const uint8_t *begin = payload;
        must(begin >= data && n <= size && begin + n == data + size);
    } else {
        must(payload == NULL && n == 0 && error.text[0] != '\0');
    }

    struct tnd_text file = TND_TEXT_INIT;
    tnd_gpu_cache_write("key", data, size, &file);
    if (!file.failed) {
        must(tnd_gpu_cache_read(file.bytes, file.n, "key", &payload, &n, NULL) == TANDEM_OK);
        must(n == size && (n == 0 || memcmp(payload, data, n) == 0));
        must(tnd_gpu_cache_read(file.bytes, file.n, "k", &payload, &n, NULL) != TANDEM_OK);
    }
    tnd_text_fini(&file);
    return 0;
}
