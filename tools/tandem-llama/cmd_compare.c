/* SPDX-License-Identifier: MIT
 * tandem-llama compare: how much a weight type, a cache type or a profile changes a model's output.
 * The text is decoded token by token with the original model and with the variant; after each token
 * the two distributions of the next one are compared (Kullback-Leibler divergence of the variant
 * from the original, in nats). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/encoded.h"
#include "tools/tandem-llama/kit.h"

struct compare_options {
    struct tnd_kit_options kit; /* of the original model */
    const char *types;
    const char *other_cache;
    const char *other_profile;
    const char *text;
};

struct agreement {
    double sum, largest; /* of the divergences */
    double log_loss[2];  /* of the text's actual next token: original, variant */
    int64_t n, n_same;   /* positions, and those with the same most likely token */
};

static double log_sum_exp(const float *logits, int64_t n)
{
    double largest = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = logits[i] > largest ? logits[i] : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp(logits[i] - largest);
    }
    return largest + log(sum);
}

/* `next`: the token that follows in the text, or -1. */
static void compare_logits(const float *own, const float *other, int64_t n, int32_t next,
                           struct agreement *out)
{
    const double own_total = log_sum_exp(own, n);
    const double other_total = log_sum_exp(other, n);
    double divergence = 0;
    int64_t best[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        const double p = own[i] - own_total;
        divergence += exp(p) * (p - (other[i] - other_total));
        best[0] = own[i] > own[best[0]] ? i : best[0];
        best[1] = other[i] > other[best[1]] ? i : best[1];
    }
    out->sum += divergence;
    out->largest = divergence > out->largest ? divergence : out->largest;
    out->n++;
    out->n_same += best[0] == best[1];
    if (next >= 0) {
        out->log_loss[0] += own_total - own[next];
        out->log_loss[1] += other_total - other[next];
    }
}

static enum tandem_status compare_texts(struct tnd_kit *own, struct tnd_kit *other,
                                        const int32_t *tokens, int64_t n, struct agreement *out,
                                        struct tandem_error *error)
{
    for (int64_t i = 0; i < n; i++) {
        CLI_TRY(tandem_session_decode(own->session, &tokens[i], 1, 0, error));
        CLI_TRY(tandem_session_decode(other->session, &tokens[i], 1, 0, error));
        compare_logits(
            tandem_session_logits(own->session, 0), tandem_session_logits(other->session, 0),
            tandem_model_hparams(own->model)->vocabulary, i + 1 < n ? tokens[i + 1] : -1, out);
    }
    return TANDEM_OK;
}

static void print_agreement(const char *what, const struct agreement *a)
{
    const double n_next = a->n > 1 ? (double)(a->n - 1) : 1.0;
    printf("| %-12s | %9.6f | %9.6f | %6.2f %% | %10.4f | %10.4f |\n", what, a->sum / (double)a->n,
           a->largest, 100.0 * (double)a->n_same / (double)a->n, exp(a->log_loss[0] / n_next),
           exp(a->log_loss[1] / n_next));
}

static enum tandem_status compare_type(const struct compare_options *o, const char *checkpoint,
                                       const char *type, struct tandem_error *error)
{
    struct tnd_kit own = {.options = o->kit};
    struct tnd_kit other = {.options = o->kit};
    const struct tandem_encode_options how = {.size = sizeof(how), .add_bos = true};
    const struct tnd_encoded_text text = {.text = o->text, .n = strlen(o->text), .options = &how};
    int32_t *tokens = NULL;
    size_t n = 0;
    other.options.type = type[0] != '\0' ? type : o->kit.type;
    other.options.cache_type = o->other_cache != NULL ? o->other_cache : o->kit.cache_type;
    other.options.runtime.profile =
        o->other_profile != NULL ? o->other_profile : o->kit.runtime.profile;
    enum tandem_status status = tnd_kit_open(&own, checkpoint, error);
    if (status == TANDEM_OK) {
        status = tnd_kit_open(&other, checkpoint, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_encoded(own.tokenizer, &text, &tokens, &n, NULL, error);
    }
    struct agreement agreement = {0};
    if (status == TANDEM_OK) {
        status = compare_texts(&own, &other, tokens, (int64_t)n, &agreement, error);
    }
    if (status == TANDEM_OK && n > 0) {
        print_agreement(type[0] != '\0' ? type : "other", &agreement);
    }
    tnd_kit_close(&other);
    tnd_kit_close(&own);
    free(tokens);
    return status;
}

static int run(const struct compare_options *o, const char *checkpoint)
{
    struct tandem_error error = {0};
    enum tandem_status status = TANDEM_OK;
    char types[256];
    snprintf(types, sizeof(types), "%s", o->types);
    printf("| weights      | mean KL   | worst KL  | same top | perplexity | the other's |\n"
           "|--------------|----------:|----------:|---------:|-----------:|------------:|\n");
    char *at = types;
    do {
        char *end = at + strcspn(at, ",");
        const bool is_last = *end == '\0';
        *end = '\0';
        status = compare_type(o, checkpoint, at, &error);
        at = is_last ? NULL : end + 1;
    } while (at != NULL && status == TANDEM_OK);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}

int tnd_cmd_compare(int argc, char **argv)
{
    struct compare_options o = {
        .kit = TND_KIT_DEFAULTS,
        .types = "",
        .text = "Once upon a time, there was a little girl named Lily. She loved to play outside "
                "in the park. One day, she saw a big, red ball. She wanted to play with it, but "
                "it was too high."};
    const struct args_option rows[] = {
        {"p", ARGS_STRING, &o.text, 0, 0, "TEXT", "the text; default: the beginning of a story"},
        {"t", ARGS_STRING, &o.kit.tokenizer, 0, 0, "FILE",
         "tokenizer; default: the model file's own"},
        {"types", ARGS_STRING, &o.types, 0, 0, "T,T",
         "of the other's weights; default: as they are"},
        {"other-cache", ARGS_STRING, &o.other_cache, 0, 0, "TYPE",
         "of the other's keys and values"},
        {"other-profile", ARGS_STRING, &o.other_profile, 0, 0, "NAME", "the other's profile"},
        {"cache", ARGS_STRING, &o.kit.cache_type, 0, 0, "TYPE",
         "of keys and values: " TND_CACHE_OPTION_TYPES "; f32"},
        TND_RUNTIME_ROWS(&o.kit.runtime),
        TND_RANKS_ROWS(&o.kit.ranks),
    };
    const struct args_command command = {
        "compare",
        "MODEL",
        "Feeds a text to the model as it is and to another way of computing it, and prints\n"
        "the Kullback-Leibler divergence of the next token's distributions (in nats), how\n"
        "often both put the same token first, and both perplexities of the text.",
        CLI_ROWS(rows),
        1,
        1};
    const char *checkpoint = NULL;
    const int result = args_parse(&command, argc, argv, &checkpoint, NULL);
    if (result == ARGS_OK && tnd_ranks_joined() != NULL &&
        (o.types[0] != '\0' || o.other_profile != NULL)) { /* these need the same model */
        return tnd_cli_usage("compare: several ranks compare caches alone (--other-cache); types "
                             "and profiles are for one process, without mpirun");
    }
    o.kit.ranks.leads_here = true;
    return result == ARGS_OK ? run(&o, checkpoint) : args_code(result);
}
