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

/* Pieces lie one behind the other. */
static void check_spans(const struct srv_spans *spans, size_t n)
{
    size_t end = 0;
    must(spans->n >= 0 && spans->n <= SRV_MAX_SPANS);
    for (int i = 0; i < spans->n; i++) {
        must(end <= spans->items[i].begin && spans->items[i].begin < spans->items[i].end);
        end = spans->items[i].end;
    }
    must(end <= n);
}

/* What a reader is told of pieces, of which `told` bytes of the text were told before. */
static size_t tell(const struct srv_spans *spans, const char *text, size_t told, char *out,
                   size_t n)
{
    for (int i = 0; i < spans->n; i++) {
        const struct srv_span *span = &spans->items[i];
        const size_t begin = told > span->begin ? told : span->begin;
        if (span->end > begin) {
            memcpy(out + n, text + begin, span->end - begin);
            n += span->end - begin;
            told = span->end;
        }
    }
    return n;
}

static size_t end_of(const struct srv_spans *spans)
{
    return spans->n > 0 ? spans->items[spans->n - 1].end : 0;
}

static void check_answer(const struct srv_answer *answer, size_t n)
{
    check_spans(&answer->reasoning, n);
    check_spans(&answer->content, n);
    must(answer->n_decided <= n && answer->n_calls <= SRV_MAX_CALLS && !answer->failed);
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
    static const char *const templates[] = {NULL, "<response>", "<answer>", "<|START_RESPONSE|>"};
    static char want[1 << 14], got[1 << 14];
    struct srv_answer whole, part, rest;
    if (size < 2 || size > 1 << 14) {
        return 0;
    }
    struct srv_answer_options options = {
        .has_calls = true,
        .format = (enum srv_call_format)(data[0] % 16 % SRV_N_CALL_FORMATS),
        .takes_reasoning = (data[0] & 64) != 0,
        .thinking = (data[0] & 128) != 0 ? tnd_srv_reasoning_at(0) : NULL,
        .frame = tnd_srv_frame_of(templates[data[0] / 16 % 4])};
    const char *text = (const char *)data + 2;
    const size_t n = size - 2;
    const size_t cut = n * data[1] / 256;
    tnd_srv_answer_read(&options, text, n, true, &whole);
    tnd_srv_answer_read(&options, text, cut, false, &part);
    options.n_decided = part.n_decided;
    options.in_frame = part.in_frame;
    tnd_srv_answer_read(&options, text, n, true, &rest);
    check_answer(&whole, n);
    check_answer(&part, cut);
    check_answer(&rest, n);
    /* what is told of the beginning and then of the rest is what is told of the whole, unless it
     * has more pieces than there is room for */
    const struct srv_spans *pieces[][3] = {{&whole.content, &part.content, &rest.content},
                                           {&whole.reasoning, &part.reasoning, &rest.reasoning}};
    for (int i = 0; i < 2 && pieces[i][0]->n < SRV_MAX_SPANS; i++) {
        const size_t n_want = tell(pieces[i][0], text, 0, want, 0);
        size_t n_got = tell(pieces[i][1], text, 0, got, 0);
        n_got = tell(pieces[i][2], text, end_of(pieces[i][1]), got, n_got);
        must(n_got == n_want && memcmp(got, want, n_got) == 0);
    }
    must(part.n_calls <= whole.n_calls && rest.n_calls == whole.n_calls);
    for (int i = 0; i < part.n_calls; i++) {
        must(part.calls[i].arguments.n == whole.calls[i].arguments.n);
    }
    tnd_srv_answer_free(&rest);
    tnd_srv_answer_free(&part);
    tnd_srv_answer_free(&whole);
    return 0;
}
