/* SPDX-License-Identifier: MIT
 * Any model file converted to GGUF: an error with a message, or a file that is read again with the
 * same tensors, no larger than the input's own bytes justify. */
#include <sys/stat.h>

#include "tests/fuzz/consume.h"
#include "tests/fuzz/read_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return consume_mutate(data, size, max_size, seed);
}

/* What was written is a GGUF file with the tensors of `source`. */
static void check_written(const tandem_source *source, const struct consumed *parts)
{
    tandem_source *written = NULL;
    struct tandem_error error = {.text = ""};
    struct stat info;
    must(stat(consume_path("out.gguf"), &info) == 0);
    must((size_t)info.st_size <= consume_bound(parts));
    must(tandem_source_open(consume_path("out.gguf"), &written, &error) == TANDEM_OK);
    must(tandem_source_tensor_count(written) == tandem_source_tensor_count(source));
    read_source(written);
    tandem_source_close(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct consumed parts = consume_parts(data, size);
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_source *source = parts.n_file == 0 ? NULL : consume_open(data, &parts);
    if (source == NULL) {
        return 0;
    }
    options.converts = parts.choice % 4 != 0;
    options.type = parts.type;
    options.threads = 1;
    if (tandem_source_save_gguf(source, consume_path("out.gguf"), &options, &error) == TANDEM_OK) {
        check_written(source, &parts);
        (void)unlink(consume_path("out.gguf"));
    } else {
        must(error.text[0] != '\0' && access(consume_path("out.gguf"), F_OK) != 0);
    }
    must(tnd_alloc_peak_bytes() <= consume_bound(&parts));
    tandem_source_close(source);
    return 0;
}
