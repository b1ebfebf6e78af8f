/* SPDX-License-Identifier: MIT
 * Any bytes as a file of the bridge's verdicts: nothing, or verdicts that print and read the
 * same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/ggml/bridge_verdicts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TND_VERDICTS_MOST_BYTES];
    struct tnd_bridge_verdicts found;
    struct tnd_bridge_verdicts again;
    memset(&found, 0, sizeof(found));
    memset(&again, 0, sizeof(again));
    if (!tnd_verdicts_parse((const char *)data, size, "fuzz", &found)) {
        return 0;
    }
    size_t n = tnd_verdicts_print(&found, "fuzz", text, sizeof(text));
    if (n > 0 && (!tnd_verdicts_parse(text, n, "fuzz", &again) ||
                  memcmp(&found, &again, sizeof(found)) != 0)) {
        abort();
    }
    return 0;
}
