/* SPDX-License-Identifier: MIT
 * The type of keys and values asked for on the command line. */
#include "tools/cache_option.h"

#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/tnd_status.h"

/* Memory left once the weights are loaded, at least 1; 0: unknown. Pages of mapped files count as
 * free until they are read. */
static int64_t memory_beside(const tandem_model *model)
{
    double bytes = tnd_memory_available("/proc", "/sys/fs/cgroup");
    struct tandem_source_tensor tensor;
    if (bytes <= 0 || model == NULL) {
        return 0;
    }
    for (int i = 0; tandem_source_tensor_at(tandem_model_source(model), i, &tensor); i++) {
        bytes -= (double)tensor.bytes;
    }
    return bytes > 1 ? (int64_t)bytes : 1;
}

enum tandem_status tnd_cache_option_read(const char *text, const tandem_model *model,
                                         struct tandem_session_options *options,
                                         struct tandem_error *error)
{
    if (text != NULL && strcmp(text, "auto") == 0) {
        options->is_cache_planned = true;
        options->cache_memory = memory_beside(model);
        return TANDEM_OK;
    }
    return text == NULL || tandem_type_from_name(text, &options->cache_type)
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_ARGUMENT, "--cache", 0, 0,
                               "unknown type: '%.64s', expected f32, f16, q8_0, q4_0 or auto",
                               text);
}

void tnd_cache_option_print(const tandem_session *session)
{
    struct tandem_cache_info info;
    for (int i = 0; tandem_session_cache(session, i, &info) && info.is_planned; i++) {
        fprintf(stderr, "%s %-5s %10.1f MiB%s, error %.0e", i == 0 ? "cache:" : "      ",
                tandem_type_name(info.type), (double)info.bytes / 1048576.0,
                info.fits ? "" : " (too much)", info.error);
        if (info.attention_us > 0) {
            fprintf(stderr, ", attention of a token at half of the context %.1f us",
                    info.attention_us);
        }
        fprintf(stderr, "%s\n", info.is_chosen ? ": chosen" : "");
    }
}
