/* SPDX-License-Identifier: MIT
 * Structs that begin with their size: reading options, writing results. */
#include "base/options.h"

#include <string.h>

static enum tandem_status read_size(const void *from, const char *name, size_t expected,
                                    size_t *out_bytes, struct tandem_error *error)
{
    memcpy(out_bytes, from, sizeof(*out_bytes));
    if (*out_bytes < sizeof(size_t)) {
        return tnd_error_set(error, TANDEM_E_ABI, name, (int64_t)*out_bytes, (int64_t)expected,
                             "%s: size is %zu; initialise the struct with its _INIT macro", name,
                             *out_bytes);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_options_read(const void *options, const char *name, void *out,
                                    size_t out_bytes, struct tandem_error *error)
{
    if (options == NULL) {
        return TANDEM_OK;
    }
    size_t bytes;
    TND_TRY(read_size(options, name, out_bytes, &bytes, error));
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

enum tandem_status tnd_results_write(const void *results, size_t bytes, const char *name, void *out,
                                     struct tandem_error *error)
{
    size_t given;
    if (out == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, name, 0, 0, "%s: the results go to NULL",
                             name);
    }
    TND_TRY(read_size(out, name, bytes, &given, error));
    memcpy(out, results, given < bytes ? given : bytes);
    if (given > bytes) {
        memset((char *)out + bytes, 0, given - bytes);
    }
    memcpy(out, &given, sizeof(given));
    return TANDEM_OK;
}
