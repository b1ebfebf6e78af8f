/* SPDX-License-Identifier: MIT
 * usage: cuda-pack texts FOLDER       writes a source for clang, FOLDER/KEY.cu, for each program
 *        cuda-pack join FOLDER FILE   packs what clang compiled, FOLDER/KEY.s, into FILE
 * A program of the build (mk/cuda_pack.mk) that is not installed. The pack has the programs that a
 * device needs before it is tuned, for all weight types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/bcml1_panels.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_program.h"
#include "base/alloc.h"
#include "base/file.h"

enum { MOST_PROGRAMS = 1024, MOST_BYTES = 16 << 20, GROUP_MOST = 1024 };

struct program {
    enum tnd_gpu_source source;
    uint64_t key;
    struct tnd_text options;
};
static struct program programs[MOST_PROGRAMS];
static unsigned n_programs;
static char *texts;

/* A device with the features that all supported devices have. */
static struct tnd_gpu_device device = {.caps = {.fp64 = true,
                                                .subgroups = true,
                                                .max_group = GROUP_MOST,
                                                .max_items = {GROUP_MOST, GROUP_MOST, 64},
                                                .local_bytes = 48 << 10}};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "cuda-pack: %s: %s\n", what, why);
    exit(1);
}

static const char *text_of(int source)
{
    return texts + tnd_gpu_sources[source].offset;
}

/* ---- which programs ---- */

static void add(enum tnd_gpu_source source, struct tnd_gpu_variant variant)
{
    struct program *program = &programs[n_programs++];
    if (n_programs == MOST_PROGRAMS) {
        fail("programs", "too many");
    }
    program->source = source;
    tnd_gpu_program_options(&device, &variant, &program->options);
    if (program->options.failed) {
        fail("options", "no memory");
    }
    program->key = tnd_cuda_pack_key(
        &(struct tnd_gpu_text){tnd_gpu_sources[source].name, text_of(TND_GPU_SOURCE_DIALECT_CUDA),
                               text_of(source), tnd_text_string(&program->options)});
}

static void add_products(const struct tnd_gpu_tiles *tiles, struct tnd_gpu_variant variant)
{
    const struct tnd_gpu_variant plain = variant;
    add(TND_GPU_SOURCE_DEQUANTIZE, variant);
    tnd_gpu_tiled_variant(tiles, &variant);
    add(TND_GPU_SOURCE_TILED, variant);
    add(TND_GPU_SOURCE_EXPERTS_TILED, variant);
    variant = plain;
    variant.use_subgroups = 1;
    variant.lanes = tiles->matvec_lanes;
    variant.rows = tiles->matvec_rows;
    variant.columns = 1;
    add(TND_GPU_SOURCE_MATVEC, variant);
    variant.flags = 2; /* ONE_TOKEN of gpu_experts.c */
    add(TND_GPU_SOURCE_EXPERTS_MATVEC, variant);
    variant.flags = 0;
    variant.lanes = tiles->skinny_lanes;
    variant.rows = tiles->skinny_rows;
    for (variant.columns = 4; variant.columns <= tiles->skinny_columns; variant.columns *= 2) {
        add(TND_GPU_SOURCE_MATVEC, variant);
        add(TND_GPU_SOURCE_EXPERTS_MATVEC, variant);
    }
}

static void add_panels(const struct tnd_gpu_tiles *tiles)
{
    struct tnd_gpu_variant variant = {.type = 1 + TANDEM_TYPE_BCML1, .flags = 1}; /* IN_PANELS */
    add(TND_GPU_SOURCE_BCML1, variant);
    for (variant.group = TND_PANEL_ROWS; variant.group <= GROUP_MOST; variant.group *= 2) {
        for (variant.columns = 1; variant.columns <= 16; variant.columns *= 2) {
            if (variant.group < GROUP_MOST || variant.columns < 8) {
                add(TND_GPU_SOURCE_BCML1, variant);
            }
        }
    }
    variant = (struct tnd_gpu_variant){.type = 1 + TANDEM_TYPE_BCML1, .flags = 1};
    tnd_gpu_tiled_variant(tiles, &variant);
    for (; variant.aligned <= 1; variant.aligned++) {
        add(TND_GPU_SOURCE_TILED, variant);
    }
}

static void add_all(void)
{
    static const enum tnd_gpu_source plain[] = {
        TND_GPU_SOURCE_SMOKE,      TND_GPU_SOURCE_OPS_COPY, TND_GPU_SOURCE_OPS_ELEMENTWISE,
        TND_GPU_SOURCE_OPS_ROUTER, TND_GPU_SOURCE_OPS_ROWS, TND_GPU_SOURCE_OPS_SAMPLE};
    struct tnd_gpu_tiles tiles;
    tnd_gpu_tiles_default(&device.caps, &tiles);
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        add(plain[i], (struct tnd_gpu_variant){0});
    }
    add(TND_GPU_SOURCE_EXPERTS_GROUP, (struct tnd_gpu_variant){.group = GROUP_MOST});
    add(TND_GPU_SOURCE_OPS_GET_ROWS, (struct tnd_gpu_variant){.type = 1 + TANDEM_TYPE_I32});
    add_panels(&tiles);
    for (int type = 0; type < TANDEM_TYPE_NUMBERS; type++) {
        if (!tnd_gpu_has_decoder((enum tandem_type)type)) {
            continue;
        }
        for (int32_t aligned = 0; aligned <= 1; aligned++) {
            add_products(&tiles, (struct tnd_gpu_variant){.type = 1 + type, .aligned = aligned});
        }
        add(TND_GPU_SOURCE_OPS_GET_ROWS, (struct tnd_gpu_variant){.type = 1 + type});
        add(TND_GPU_SOURCE_OPS_TILES, (struct tnd_gpu_variant){.type = 1 + type, .rows = 4});
        add(TND_GPU_SOURCE_OPS_TILES, (struct tnd_gpu_variant){.type = 1 + type, .rows = 16});
    }
}

/* ---- writing sources ---- */

static void write_file(const char *path, struct tnd_text *text)
{
    struct tandem_error error = {0};
    if (text->failed || tnd_file_make_folders(path, &error) != TANDEM_OK ||
        tnd_file_write_atomic(path, text->bytes, text->n, &error) != TANDEM_OK) {
        fail(path, text->failed ? "no memory" : error.text);
    }
    tnd_text_fini(text);
}

/* Writes the options as #define lines, and the headers that a driver passes to NVRTC as #include
 * lines. */
static void write_text(const char *folder, const struct program *program)
{
    struct tnd_text text = TND_TEXT_INIT;
    char path[4096];
    const char *at = tnd_text_string(&program->options);
    while ((at = strstr(at, "-D")) != NULL) {
        const int name = (int)strcspn(at += 2, "=");
        const int value = (int)strcspn(at + name, " ");
        tnd_text_printf(&text, "#define %.*s %.*s\n", name, at, value - 1, at + name + 1);
    }
    tnd_text_printf(&text,
                    "#include \"dialect_cuda.text\"\nextern \"C\" {\n#include \"%s.text\"\n}\n",
                    tnd_gpu_sources[program->source].name);
    snprintf(path, sizeof(path), "%s/%016llx.cu", folder, (unsigned long long)program->key);
    write_file(path, &text);
}

static void write_texts(const char *folder)
{
    char path[4096];
    for (int i = 0; i < TND_GPU_SOURCE_COUNT; i++) {
        struct tnd_text text = TND_TEXT_INIT;
        tnd_text_add(&text, text_of(i));
        snprintf(path, sizeof(path), "%s/%s.text", folder, tnd_gpu_sources[i].name);
        write_file(path, &text);
    }
    for (unsigned i = 0; i < n_programs; i++) {
        write_text(folder, &programs[i]);
    }
}

/* ---- the pack ---- */

static int compare(const void *a, const void *b)
{
    const struct program *p = a;
    const struct program *q = b;
    return p->key < q->key ? -1 : p->key > q->key;
}

/* The number after a word of PTX without its point: 63 for ".version 6.3". */
static unsigned number_behind(const char *ptx, const char *word)
{
    const char *at = strstr(ptx, word);
    unsigned number = 0;
    if (at == NULL) {
        fail(word, "not in what clang has made");
    }
    for (at += strlen(word); (*at >= '0' && *at <= '9') || *at == '.'; at++) {
        number = *at == '.' ? number : 10 * number + (unsigned)(*at - '0');
    }
    return number;
}

/* Each program is preceded by a comment with the key that it was made from. */
static void join(const char *folder, const char *path)
{
    static struct tnd_cuda_packed packed[MOST_PROGRAMS];
    struct tnd_text pack = TND_TEXT_INIT;
    unsigned version = 0;
    unsigned capability = 0;
    qsort(programs, n_programs, sizeof(programs[0]), compare);
    for (unsigned i = 0; i < n_programs; i++) {
        struct tandem_error error = {0};
        struct tnd_file file;
        char from[4096];
        snprintf(from, sizeof(from), "%s/%016llx.s", folder, (unsigned long long)programs[i].key);
        if (tnd_file_read(from, MOST_BYTES, &file, &error) != TANDEM_OK) {
            fail(from, error.text);
        }
        packed[i].key = programs[i].key;
        tnd_text_printf(&packed[i].text, "//tandem %s%s\n",
                        tnd_gpu_sources[programs[i].source].name,
                        tnd_text_string(&programs[i].options));
        tnd_text_add_bytes(&packed[i].text, (const char *)file.data, file.bytes);
        tnd_file_close(&file);
        version = number_behind(tnd_text_string(&packed[i].text), ".version ");
        capability = number_behind(tnd_text_string(&packed[i].text), ".target sm_");
    }
    tnd_cuda_pack_write(packed, n_programs, tnd_cuda_pack_sources(), version, capability, &pack);
    printf("%u programs, PTX %u.%u for sm_%u, %.2f MB\n", n_programs, version / 10, version % 10,
           capability, (double)pack.n * 1e-6);
    write_file(path, &pack);
    for (unsigned i = 0; i < n_programs; i++) {
        tnd_text_fini(&packed[i].text);
    }
}

int main(int argc, char **argv)
{
    struct tandem_error error = {0};
    const bool is_join = argc == 4 && strcmp(argv[1], "join") == 0;
    if (!is_join && (argc != 3 || strcmp(argv[1], "texts") != 0)) {
        fprintf(stderr, "usage: cuda-pack texts FOLDER | join FOLDER FILE\n");
        return 2;
    }
    if (tnd_gpu_texts("cuda", &texts, &error) != TANDEM_OK) {
        fail("sources", error.text);
    }
    add_all();
    if (is_join) {
        join(argv[2], argv[3]);
    } else {
        write_texts(argv[2]);
    }
    for (unsigned i = 0; i < n_programs; i++) {
        tnd_text_fini(&programs[i].options);
    }
    tnd_free(texts);
    return 0;
}
