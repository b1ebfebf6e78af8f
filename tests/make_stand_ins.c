/* SPDX-License-Identifier: MIT
 * usage: make-stand-ins FOLDER
 * Adds what is too large to be kept to FOLDER, a copy of tests/stand-ins: the trained checkpoint as
 * llama2.c's versions 0 and 1, its tokenizer, blocks of each quantised type with their values, and
 * Hangul for the tables of normal forms. It shares no code with the library: layouts and formulas
 * are written down here a second time, after docs/formats.md. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/make_stand_ins.h"

enum {
    DIM = 64,
    HIDDEN = 172,
    LAYERS = 5,
    HEADS = 8,
    KV_HEADS = 4,
    VOCABULARY = 512,
    CONTEXT = 512,
    HEAD = DIM / HEADS,
    KV = HEAD * KV_HEADS,
    FIRST_PIECE = 259, /* <unk>, <s>, </s> and 256 bytes come first */
};

/* The order of weights.bin, which is that of version 0. */
enum tensor { EMBEDDING, ATTN_NORM, Q, K, V, O, FFN_NORM, GATE, DOWN, UP, NORM, TENSORS };
static const struct {
    int rows, columns;
} extents[TENSORS] = {{VOCABULARY, DIM},
                      {LAYERS, DIM},
                      {LAYERS * DIM, DIM},
                      {LAYERS * KV, DIM},
                      {LAYERS * KV, DIM},
                      {LAYERS * DIM, DIM},
                      {LAYERS, DIM},
                      {LAYERS * HIDDEN, DIM},
                      {LAYERS * DIM, HIDDEN},
                      {LAYERS * HIDDEN, DIM},
                      {1, DIM}};
static const enum tensor order_v1[TENSORS] = {ATTN_NORM, FFN_NORM, NORM, EMBEDDING, Q, K,
                                              V,         O,        GATE, DOWN,      UP};

void tnd_stand_in_fail(const char *what)
{
    perror(what);
    exit(1);
}

static const char *folder;

FILE *tnd_stand_in_open(const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        tnd_stand_in_fail(path);
    }
    return file;
}

void tnd_stand_in_write(FILE *file, const void *bytes, size_t n)
{
    if (fwrite(bytes, 1, n, file) != n) {
        tnd_stand_in_fail("write");
    }
}

void tnd_stand_in_close(FILE *file)
{
    if (fclose(file) != 0) {
        tnd_stand_in_fail("close");
    }
}

static void write_i32(FILE *file, int32_t value)
{
    tnd_stand_in_write(file, &value, sizeof(value));
}

/* Each row is a scale in F32 and signed bytes; their products are exact enough to be the same
 * everywhere: one rounding each. */
static float *read_tensor(FILE *file, enum tensor t)
{
    const int columns = extents[t].columns;
    float *values = calloc((size_t)extents[t].rows * (size_t)columns, sizeof(float));
    float *at = values;
    for (int row = 0; values != NULL && row < extents[t].rows; row++) {
        float scale = 0.0f;
        int8_t bytes[HIDDEN];
        if (fread(&scale, sizeof(scale), 1, file) != 1 ||
            fread(bytes, 1, (size_t)columns, file) != (size_t)columns) {
            tnd_stand_in_fail("weights.bin is too short");
        }
        for (int i = 0; i < columns; i++) {
            *at++ = scale * (float)bytes[i];
        }
    }
    if (values == NULL) {
        tnd_stand_in_fail("memory");
    }
    return values;
}

static void write_tensor(FILE *file, float *const tensors[TENSORS], enum tensor t)
{
    tnd_stand_in_write(file, tensors[t],
                       (size_t)extents[t].rows * (size_t)extents[t].columns * sizeof(float));
}

static void write_sizes(FILE *file)
{
    const int32_t sizes[] = {DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY, CONTEXT};
    tnd_stand_in_write(file, sizes, sizeof(sizes));
}

static void write_v0(float *const tensors[TENSORS])
{
    FILE *file = tnd_stand_in_open("llama/stories260K.bin", "wb");
    const float unused = 0.0f; /* cosines and sines, which readers skip */
    write_sizes(file);
    for (int t = 0; t < TENSORS; t++) {
        write_tensor(file, tensors, (enum tensor)t);
    }
    for (int i = 0; i < 2 * CONTEXT * HEAD / 2; i++) {
        tnd_stand_in_write(file, &unused, sizeof(unused));
    }
    tnd_stand_in_close(file);
}

static void write_v1(float *const tensors[TENSORS])
{
    FILE *file = tnd_stand_in_open("llama/stories260K.v1.bin", "wb");
    const char shares_classifier = 1;
    const char zeros[256 - 37] = {0};
    write_i32(file, 0x616b3432); /* "ak42" */
    write_i32(file, 1);
    write_sizes(file);
    tnd_stand_in_write(file, &shares_classifier, 1);
    tnd_stand_in_write(file, zeros, sizeof(zeros));
    for (int i = 0; i < TENSORS; i++) {
        write_tensor(file, tensors, order_v1[i]);
    }
    tnd_stand_in_close(file);
}

static void write_token(FILE *file, float score, const char *text)
{
    tnd_stand_in_write(file, &score, sizeof(score));
    write_i32(file, (int32_t)strlen(text));
    tnd_stand_in_write(file, text, strlen(text));
}

/* Pieces of tokens.txt, the best first: a line each, "\n" being the line feed itself. */
static void write_tokenizer(void)
{
    FILE *pieces = tnd_stand_in_open("llama/tokens.txt", "rb");
    FILE *file = tnd_stand_in_open("llama/tok512.bin", "wb");
    char text[64];
    int id = FIRST_PIECE;
    write_i32(file, 16); /* at least the length of the longest token */
    write_token(file, 0.0f, "<unk>");
    write_token(file, 0.0f, "\n<s>\n");
    write_token(file, 0.0f, "\n</s>\n");
    for (int byte = 0; byte < 256; byte++) {
        snprintf(text, sizeof(text), "<0x%02X>", (unsigned)byte);
        write_token(file, 0.0f, text);
    }
    for (; fgets(text, sizeof(text), pieces) != NULL; id++) {
        text[strcspn(text, "\n")] = '\0';
        write_token(file, (float)(FIRST_PIECE - id), strcmp(text, "\\n") == 0 ? "\n" : text);
    }
    if (id != VOCABULARY) {
        tnd_stand_in_fail("tokens.txt has another number of lines");
    }
    fclose(pieces);
    tnd_stand_in_close(file);
}

/* Hangul is arithmetic (the Unicode Standard, 3.12): the tables of normal forms get their 11,172
 * syllables here, one that composes or decomposes a line. */
static void write_hangul(const char *name, int composes)
{
    FILE *file = tnd_stand_in_open(name, "ab");
    for (int i = 0; i < 19 * 21 * 28; i++) {
        char parts[32];
        const int n = snprintf(parts, sizeof(parts), "%X %X", 0x1100 + (unsigned)i / (21 * 28),
                               0x1161 + (unsigned)i / 28 % 21);
        if (i % 28 != 0) {
            snprintf(parts + n, sizeof(parts) - (size_t)n, " %X", 0x11a7 + (unsigned)i % 28);
        }
        if (composes) {
            fprintf(file, "%s\t%X\n", parts, 0xac00 + (unsigned)i);
        } else {
            fprintf(file, "%X\t%s\n", 0xac00 + (unsigned)i, parts);
        }
    }
    tnd_stand_in_close(file);
}

int main(int argc, char **argv)
{
    float *tensors[TENSORS];
    if (argc != 2) {
        fprintf(stderr, "usage: make-stand-ins FOLDER\n");
        return 2;
    }
    folder = argv[1];
    FILE *weights = tnd_stand_in_open("llama/weights.bin", "rb");
    for (int t = 0; t < TENSORS; t++) {
        tensors[t] = read_tensor(weights, (enum tensor)t);
    }
    fclose(weights);
    write_v0(tensors);
    write_v1(tensors);
    write_tokenizer();
    tnd_stand_in_quants(tensors[EMBEDDING], VOCABULARY * DIM);
    write_hangul("tokenizer/sentencepiece/nfc.tsv", 1);
    write_hangul("tokenizer/sentencepiece/nfd.tsv", 0);
    write_hangul("tokenizer/sentencepiece/nfkd.tsv", 0);
    for (int t = 0; t < TENSORS; t++) {
        free(tensors[t]);
    }
    return 0;
}
