/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of answers: the first byte chooses the format, the second where the text is
 * cut. Spans lie within the text, arguments are JSON objects, and what a beginning has told stays
 * true. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-server/srv_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_span(struct srv_span span, size_t n)
{
    must(span.begin <= span.end && span.end <= n);
}

static void check_answer(const struct srv_answer *answer, size_t n)
{
    check_span(answer->reasoning, n);
    check_span(answer->content, n);
    check_span(answer->rest, n);
    must(answer->n_calls <= SRV_MAX_CALLS && !answer->failed);
    for (int i = 0; i < answer->n_calls; i++) {
        const struct srv_call *call = &answer->calls[i];
        cJSON *arguments =
            cJSON_ParseWithLengthOpts(call->arguments.bytes, call->arguments.n, NULL, false);
        must(cJSON_IsObject(arguments) && call->name[0] != '\0');
        cJSON_Delete(arguments);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct srv_answer whole, part;
    if (size < 2 || size > 1 << 14) {
        return 0;
    }
    const struct srv_answer_options options = {
        .has_calls = true,
        .format = (enum srv_call_format)(data[0] % SRV_N_CALL_FORMATS),
        .takes_reasoning = (data[0] & 64) != 0,
        .is_thinking = (data[0] & 128) != 0};
    const char *text = (const char *)data + 2;
    const size_t n = size - 2;
    const size_t cut = n * data[1] / 256;
    tnd_srv_answer_read(&options, text, n, true, &whole);
    tnd_srv_answer_read(&options, text, cut, false, &part);
    check_answer(&whole, n);
    check_answer(&part, cut);
    must(part.n_calls <= whole.n_calls && part.reasoning.end <= whole.reasoning.end);
    must(part.content.begin == part.content.end ||
         (part.content.begin == whole.content.begin && part.content.end <= whole.content.end));
    for (int i = 0; i < part.n_calls; i++) {
        must(part.calls[i].arguments.n == whole.calls[i].arguments.n);
    }
    tnd_srv_answer_free(&part);
    tnd_srv_answer_free(&whole);
    return 0;
}
