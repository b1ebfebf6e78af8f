/* SPDX-License-Identifier: MIT
 * tandem-llama embed: embeddings of texts, one per line; or how well each one answers a query: the
 * score of a reranker, or the cosine similarity of the embeddings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/encoded.h"
#include "tools/pooling_option.h"
#include "tools/tandem-llama/kit.h"

struct embed {
    struct tnd_kit kit;
    const char *pooling, *query, *text;
    bool is_raw, is_many;
    bool is_ranked;
    float *query_vector; /* {n}, of length 1 */
    int32_t *ids;
    int64_t n; /* values per text */
};

static enum tandem_status no_memory(size_t n, struct tandem_error *error)
{
    snprintf(error->text, sizeof(error->text), "no memory for a text of %zu tokens", n);
    return error->status = TANDEM_E_MEMORY;
}

/* Encodes a text as the tokenizer's file prescribes, or the query and a text. */
static enum tandem_status encode(struct embed *e, const char *text, size_t n, size_t *out_n,
                                 size_t *out_second, struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = e->kit.tokenizer;
    const struct tandem_encode_options how = {.size = sizeof(how),
                                              .add_bos = tandem_tokenizer_adds_bos(tokenizer),
                                              .add_eos = tandem_tokenizer_adds_eos(tokenizer)};
    const struct tnd_encoded_text one = {.text = text, .n = n, .options = &how};
    const struct tnd_encoded_text both = {
        .text = e->query, .n = e->is_ranked ? strlen(e->query) : 0, .second = text, .n_second = n};
    free(e->ids);
    e->ids = NULL;
    return tnd_encoded(tokenizer, e->is_ranked ? &both : &one, &e->ids, out_n, out_second, error);
}

/* The embedding of a text, or its scores; borrowed until the next call. */
static enum tandem_status compute(struct embed *e, const char *text, size_t n, const float **out,
                                  struct tandem_error *error)
{
    size_t n_ids = 0, second = 0;
    CLI_TRY(encode(e, text, n, &n_ids, &second, error));
    if (n_ids == 0) {
        snprintf(error->text, sizeof(error->text), "a text without tokens has no vector");
        return error->status = TANDEM_E_ARGUMENT;
    }
    (void)tandem_session_rollback(e->kit.session, 0, 0);
    tandem_session_set_second(e->kit.session, 0, (int64_t)second);
    CLI_TRY(tandem_session_decode(e->kit.session, e->ids, (int64_t)n_ids, 0, error));
    *out = tandem_session_embedding(e->kit.session, 0);
    return TANDEM_OK;
}

static double length_of(const float *values, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sum > 0.0 ? sqrt(sum) : 1.0;
}

static double cosine(const struct embed *e, const float *values)
{
    double sum = 0.0;
    for (int64_t i = 0; i < e->n; i++) {
        sum += (double)values[i] * (double)e->query_vector[i];
    }
    return sum / length_of(values, e->n);
}

static void print(const struct embed *e, const float *values)
{
    if (e->query_vector != NULL) {
        printf("%.9g\n", cosine(e, values));
        return;
    }
    const double length = e->is_raw || e->is_ranked ? 1.0 : length_of(values, e->n);
    for (int64_t i = 0; i < e->n; i++) {
        printf("%s%.9g", i > 0 ? " " : "", (double)values[i] / length);
    }
    printf("\n");
}

static enum tandem_status take_query(struct embed *e, struct tandem_error *error)
{
    const float *values = NULL;
    CLI_TRY(compute(e, e->query, strlen(e->query), &values, error));
    e->query_vector = malloc((size_t)e->n * sizeof(values[0]));
    if (e->query_vector == NULL) {
        return no_memory((size_t)e->n, error);
    }
    const double length = length_of(values, e->n);
    for (int64_t i = 0; i < e->n; i++) {
        e->query_vector[i] = (float)((double)values[i] / length);
    }
    return TANDEM_OK;
}

static enum tandem_status work(struct embed *e, const char *text, size_t n,
                               struct tandem_error *error)
{
    const char end = e->is_many ? '\0' : '\n';
    const float *values = NULL;
    if (e->query != NULL && !e->is_ranked) {
        CLI_TRY(take_query(e, error));
    }
    for (size_t at = 0; at < n;) {
        const char *found = memchr(text + at, end, n - at);
        const size_t length = found == NULL ? n - at : (size_t)(found - (text + at));
        CLI_TRY(compute(e, text + at, length, &values, error));
        print(e, values);
        at += length + 1;
    }
    return TANDEM_OK;
}

static enum tandem_status open_and_work(struct embed *e, const char *path,
                                        struct tandem_error *error)
{
    char *text = NULL;
    size_t n = 0;
    CLI_TRY(tnd_pooling_option_read(e->pooling, &e->kit.options.pooling, error));
    CLI_TRY(tnd_kit_open(&e->kit, path, error));
    e->n = tandem_session_embedding_size(e->kit.session);
    e->is_ranked = tandem_model_hparams(e->kit.model)->pooling == TANDEM_POOLING_RANK;
    if (e->is_ranked && e->query == NULL) {
        snprintf(error->text, sizeof(error->text),
                 "the model scores how well a text answers a query: --query TEXT");
        return error->status = TANDEM_E_ARGUMENT;
    }
    CLI_TRY(tnd_cli_take_text(e->text, &text, &n, error));
    const enum tandem_status status = work(e, text, n, error);
    free(text);
    return status;
}

int tnd_cmd_embed(int argc, char **argv)
{
    struct embed e = {.kit = {.options = TND_KIT_DEFAULTS}};
    struct tnd_kit_options *o = &e.kit.options;
    const char *path = NULL;
    const struct args_option rows[] = {
        {"p", ARGS_STRING, &e.text, 0, 0, "TEXT", "in place of standard input"},
        {"query", ARGS_STRING, &e.query, 0, 0, "TEXT",
         "print how well each text answers it, instead of vectors"},
        {"pooling", ARGS_STRING, &e.pooling, 0, 0, "HOW", TND_POOLING_OPTION_HELP},
        {"raw", ARGS_FLAG, &e.is_raw, 0, 0, NULL, "vectors as they are, not of length 1"},
        {"null", ARGS_FLAG, &e.is_many, 0, 0, NULL, "texts end with a zero byte, not a newline"},
        {"t", ARGS_STRING, &o->tokenizer, 0, 0, "FILE", "tokenizer; default: the model file's own"},
        {"type", ARGS_STRING, &o->type, 0, 0, "TYPE", "convert the weights first (q8_0, f16, ...)"},
        {"context", ARGS_INT, &o->context, 0, 1e9, "N",
         "tokens of a text at most; default: the model's, 4096 of a decoder"},
        TND_RUNTIME_ROWS(&o->runtime),
    };
    const struct args_command command = {
        "embed",
        "MODEL",
        "Texts on stdin, one a line, become vectors of length 1, one a line; or scores with "
        "--query.",
        CLI_ROWS(rows),
        1,
        1};
    o->has_embeddings = true;
    int code = args_parse(&command, argc, argv, &path, NULL);
    if (code != ARGS_OK) {
        return args_code(code);
    }
    struct tandem_error error = {0};
    code = open_and_work(&e, path, &error) == TANDEM_OK ? 0 : tnd_cli_fail(&error);
    tnd_kit_close(&e.kit);
    free(e.query_vector);
    free(e.ids);
    return code;
}
