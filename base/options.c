/* SPDX-License-Identifier: MIT
 * Reading versioned options structs. */
#include "base/options.h"

#include <string.h>

enum tandem_status tnd_options_read(const void *options, const char *name, void *out,
                                    size_t out_bytes, struct tandem_error *error)
{
    if (options == NULL) {
        return TANDEM_OK;
    }
    size_t bytes;
    memcpy(&bytes, options, sizeof(bytes));
    if (bytes < sizeof(size_t)) {
        return tnd_error_set(error, TANDEM_E_ABI, name, (int64_t)bytes, (int64_t)out_bytes,
                             "%s: size is %zu; initialise the struct with its _INIT macro", name,
                             bytes);
    }
    const unsigned char *raw = options;
    for (size_t i = out_bytes; i < bytes; i++) {
        if (raw[i] != 0) {
            return tnd_error_set(
                error, TANDEM_E_ABI, name, (int64_t)bytes, (int64_t)out_bytes,
                "%s: the program sets an option that this library (%s) does not know", name,
                TANDEM_VERSION_STRING);
        }
    }
    memcpy(out, options, bytes < out_bytes ? bytes : out_bytes);
    return TANDEM_OK;
}
