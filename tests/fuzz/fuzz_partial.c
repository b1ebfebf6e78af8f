/* SPDX-License-Identifier: MIT
 * Records of copies of which a part is there: whatever they hold, ranges that come out ascend
 * within the file, and the record is written again as it was read. Input as it is, and with a right
 * magic and digest, so that the rest is looked at. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "formats/partial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process: libFuzzer reports it. */
static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void check(const uint8_t *bytes, size_t n)
{
    struct tnd_partial partial = {.bytes = 0};
    struct tandem_error error = {.text = ""};
    const enum tandem_status status = tnd_partial_parse(bytes, n, "fuzz", &partial, &error);
    must((status == TANDEM_OK) == (error.text[0] == '\0'));
    if (status != TANDEM_OK) {
        must(partial.blocks == NULL && partial.present.n == 0);
        return;
    }
    for (size_t i = 0; i < partial.present.n; i++) {
        const struct tnd_file_span span = partial.present.list[i];
        must(span.begin < span.end && span.end <= partial.bytes);
        must(i == 0 || span.begin > partial.present.list[i - 1].end);
        must(tnd_spans_contain(&partial.present, span.begin, span.end));
        must(!tnd_spans_contain(&partial.present, span.begin, span.end + 1));
    }
    size_t n_again = 0;
    uint8_t *again = tnd_partial_write(&partial, &n_again);
    must(again == NULL || (n_again == n && memcmp(again, bytes, n) == 0));
    tnd_free(again);
    tnd_partial_fini(&partial);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    if (size >= 16 && size % 8 == 0) {
        uint8_t *bytes = malloc(size);
        must(bytes != NULL);
        memcpy(bytes, data, size);
        memcpy(bytes, "TNDPART1", 8);
        uint64_t digest = tnd_digest(bytes, size - 8);
        for (size_t i = size - 8; i < size; i++, digest >>= 8) {
            bytes[i] = (uint8_t)digest;
        }
        check(bytes, size);
        free(bytes);
    }
    return 0;
}
