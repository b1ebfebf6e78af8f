/* SPDX-License-Identifier: MIT
 * Weighing and selecting the likeliest tokens: counting (ggml-like/sample.c) beside a full sort and
 * a partial one. Prints medians of several rounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/arguments.h"
#include "formats/tnd_tokenizer.h"
#include "tandem/llama.h"
#include "tandem/sample.h"

enum { MAX_ROUNDS = 101 };

static const char usage[] =
    "usage: bench-sampler [--rounds N]\n"
    "What it costs to keep the likeliest of 32,000 to 256,000 tokens, and the text valid "
    "UTF-8.\n";

struct token_weight {
    float weight;
    int32_t token;
};

struct input {
    float *logits;             /* {n} */
    struct token_weight *work; /* {n} */
    void *room;
    int64_t n;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int likelier(const void *a, const void *b)
{
    const struct token_weight *x = a;
    const struct token_weight *y = b;
    return x->weight != y->weight ? (x->weight > y->weight ? -1 : 1)
                                  : (x->token < y->token ? -1 : 1);
}

static int64_t cut(const struct token_weight *sorted, int64_t n, double mass)
{
    double sum = 0.0;
    int64_t kept = 0;
    while (kept < n && sum < mass) {
        sum += (double)sorted[kept++].weight;
    }
    return kept;
}

static double sum_of(const struct input *in)
{
    double sum = 0.0;
    for (int64_t i = 0; i < in->n; i++) {
        sum += (double)in->work[i].weight;
    }
    return sum;
}

/* ---- the algorithms; each moves the selected tokens to the front and returns their number ---- */

static int64_t counting(struct input *in, int64_t k, double p)
{
    struct tandem_sample_settings settings;
    struct tandem_sample_choice choice;
    tandem_sample_settings_fill(&settings, 1.0f, k, (float)p, 0.0f, 0);
    return tandem_sample_row(&settings, in->logits, in->n, NULL, in->room, NULL, &choice);
}

static void weigh(struct input *in)
{
    float largest = in->logits[0];
    for (int64_t i = 1; i < in->n; i++) {
        largest = in->logits[i] > largest ? in->logits[i] : largest;
    }
    for (int64_t i = 0; i < in->n; i++) {
        in->work[i] = (struct token_weight){expf(in->logits[i] - largest), (int32_t)i};
    }
}

static int64_t full_sort(struct input *in, int64_t k, double p)
{
    weigh(in);
    const double mass = p * sum_of(in);
    qsort(in->work, (size_t)in->n, sizeof(in->work[0]), likelier);
    return p < 1.0 ? cut(in->work, in->n, mass) : k;
}

/* Top-k: a heap of the k likeliest tokens, the least likely on top. Top-p: tokens below (1 - p) / n
 * of the total cannot be selected and are not sorted (as in llama2.c). */
static void sink(struct token_weight *heap, int64_t n, int64_t i)
{
    for (;;) {
        int64_t least = i;
        for (int64_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            least = likelier(&heap[child], &heap[least]) > 0 ? child : least;
        }
        if (least == i) {
            return;
        }
        const struct token_weight other = heap[i];
        heap[i] = heap[least];
        heap[least] = other;
        i = least;
    }
}

static int64_t partial_sort(struct input *in, int64_t k, double p)
{
    struct token_weight *c = in->work;
    weigh(in);
    if (p < 1.0) {
        const double sum = sum_of(in);
        const float floor = (float)((1.0 - p) / (double)in->n * sum);
        int64_t n = 0;
        for (int64_t i = 0; i < in->n; i++) {
            if (c[i].weight >= floor) {
                c[n++] = c[i];
            }
        }
        qsort(c, (size_t)n, sizeof(c[0]), likelier);
        return cut(c, n, p * sum);
    }
    for (int64_t i = k / 2; i-- > 0;) {
        sink(c, k, i);
    }
    for (int64_t i = k; i < in->n; i++) {
        if (likelier(&c[i], &c[0]) < 0) {
            c[0] = c[i];
            sink(c, k, 0);
        }
    }
    return k;
}

/* ---- measuring ---- */

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_us(struct input *in, int64_t (*method)(struct input *, int64_t, double),
                        int64_t k, double p, int rounds, int64_t *out_kept)
{
    double times[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        const double begin = now_us();
        *out_kept = method(in, k, p);
        times[i] = now_us() - begin;
    }
    qsort(times, (size_t)rounds, sizeof(times[0]), compare_times);
    return times[rounds / 2];
}

/* Standard normal, by the sum of 12 uniform numbers. */
static double normal(uint64_t *state)
{
    double sum = 0.0;
    for (int j = 0; j < 12; j++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 40) * 0x1p-24;
    }
    return sum - 6.0;
}

/* Logits as models give them: normal ones with a deviation of `width`. */
static void fill(struct input *in, double width)
{
    uint64_t state = 1;
    for (int64_t i = 0; i < in->n; i++) {
        in->logits[i] = (float)(width * normal(&state));
    }
}

static void measure(struct input *in, int64_t k, double p, double width, int rounds)
{
    int64_t kept[3];
    char what[32];
    fill(in, width);
    const double a = median_us(in, counting, k, p, rounds, &kept[0]);
    const double b = median_us(in, full_sort, k, p, rounds, &kept[1]);
    const double c = median_us(in, partial_sort, k, p, rounds, &kept[2]);
    snprintf(what, sizeof(what), p < 1.0 ? "top-p %.2f" : "top-k %.0f", p < 1.0 ? p : (double)k);
    printf("| %6lld | %-10s | %5.1f | %6lld | %8.0f | %9.0f | %7.0f | %5.1f | %5.1f |%s\n",
           (long long)in->n, what, width, (long long)kept[0], a, b, c, b / a, c / a,
           llabs(kept[0] - kept[1]) > 1 || llabs(kept[0] - kept[2]) > 1 ? " DIFFERENT" : "");
}

/* ---- the mask of valid UTF-8 ---- */

enum { MASK_TOKENS = 128256, BYTE_TOKENS = 3 + 256, ENTRY = 8 + 8 };

/* A file of llama2.c: the bytes, then words of 8 letters. */
static tandem_tokenizer *make_tokenizer(unsigned char *file)
{
    tandem_tokenizer *tokenizer = NULL;
    size_t at = 4;
    memset(file, 0, 4);
    for (int i = 0; i < MASK_TOKENS; i++) {
        char text[16];
        snprintf(text, sizeof(text), i >= 3 && i < BYTE_TOKENS ? "<0x%02X>" : "%08d",
                 i >= 3 && i < BYTE_TOKENS ? i - 3 : i);
        memset(file + at, 0, 8);
        file[at + 4] = (unsigned char)strlen(text);
        memcpy(file + at + 8, text, strlen(text));
        at += 8 + strlen(text);
    }
    return tnd_tokenizer_llama2c_read(file, at, "words", MASK_TOKENS, &tokenizer, NULL) == TANDEM_OK
               ? tokenizer
               : NULL;
}

static double sample_us(float temperature, const tandem_tokenizer *tokenizer, const float *logits,
                        int rounds)
{
    double times[MAX_ROUNDS];
    tandem_sampler *sampler = NULL;
    const struct tandem_sampler_options options = {.size = sizeof(options),
                                                   .vocabulary = MASK_TOKENS,
                                                   .temperature = temperature,
                                                   .top_p = 0.9f,
                                                   .seed = 1};
    if (tandem_sampler_new(&options, &sampler, NULL) != TANDEM_OK ||
        (tokenizer != NULL && tandem_sampler_keep_utf8(sampler, tokenizer, NULL) != TANDEM_OK)) {
        return 0.0;
    }
    for (int i = 0; i < rounds; i++) {
        const double begin = now_us();
        tandem_sampler_accept(sampler, tandem_sampler_sample(sampler, logits), true);
        times[i] = now_us() - begin;
    }
    tandem_sampler_free(sampler);
    qsort(times, (size_t)rounds, sizeof(times[0]), compare_times);
    return times[rounds / 2];
}

static int measure_mask(int rounds)
{
    float *logits = malloc(MASK_TOKENS * sizeof(*logits));
    unsigned char *file = malloc(4 + (size_t)MASK_TOKENS * ENTRY);
    tandem_tokenizer *tokenizer = file != NULL ? make_tokenizer(file) : NULL;
    uint64_t state = 1;
    if (logits == NULL || tokenizer == NULL) {
        fprintf(stderr, "bench-sampler: no memory\n");
        free(logits);
        free(file);
        return 1;
    }
    for (int i = 0; i < MASK_TOKENS; i++) {
        logits[i] = 3.0f * (float)normal(&state);
    }
    printf("\nA token of %d, chosen; us\n\n| temperature | any bytes | valid UTF-8 "
           "|\n|---:|---:|---:|\n",
           MASK_TOKENS);
    for (int i = 0; i < 2; i++) {
        printf("| %d | %.0f | %.0f |\n", i, sample_us((float)i, NULL, logits, rounds),
               sample_us((float)i, tokenizer, logits, rounds));
    }
    tandem_tokenizer_close(tokenizer);
    free(file);
    free(logits);
    return 0;
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {32000, 128256, 256000};
    struct tnd_bench_number option = {"--rounds", 1, MAX_ROUNDS, 15};
    tnd_bench_arguments(argc, argv, usage, &option, 1);
    const int rounds = (int)option.value;
    printf(
        "| logits | step       | width |   kept | count us |   sort us | part us | sort/ | part/ "
        "|\n|-------:|------------|------:|-------:|---------:|----------:|--------:|------:|"
        "------:|\n");
    for (int i = 0; i < 3; i++) {
        const size_t n = (size_t)sizes[i];
        struct input in = {.n = sizes[i]};
        in.logits = calloc(n, sizeof(in.logits[0]));
        in.work = calloc(n, sizeof(in.work[0]));
        in.room = malloc(tandem_sample_memory(in.n));
        if (in.logits == NULL || in.work == NULL || in.room == NULL) {
            fprintf(stderr, "bench-sampler: no memory\n");
            return 1;
        }
        for (int w = 0; w < 2; w++) {
            const double width = w == 0 ? 1.0 : 3.0; /* hardly trained, trained */
            measure(&in, 40, 1.0, width, rounds);
            measure(&in, 1000, 1.0, width, rounds);
            measure(&in, INT64_MAX, 0.9, width, rounds);
            measure(&in, INT64_MAX, 0.99, width, rounds);
        }
        free(in.room);
        free(in.work);
        free(in.logits);
    }
    return measure_mask(rounds);
}
