/* SPDX-License-Identifier: MIT
 * usage: make-seeds FOLDER
 * Writes seeds for the fuzz targets of formats into FOLDER/TARGET: valid files that together reach
 * each branch that a valid file can reach. Small models in all formats: support_models.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/gguf.h"
#include "formats/onnx_op.h"
#include "tests/support_blob.h"
#include "tests/support_models.h"
#include "tests/support_wire.h"

static const char *folder;
static int n_seeds;

static void fail(const char *what)
{
    fprintf(stderr, "make-seeds: %s\n", what);
    exit(1);
}

/* Path of a file below the folder; one at a time. */
static const char *path_of(const char *target, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, target);
    (void)mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
    return path;
}

/* Writes a seed under the next number, and frees it. */
static void put_seed(const char *target, struct tnd_blob *seed)
{
    char name[16];
    snprintf(name, sizeof(name), "%04d", n_seeds++);
    FILE *file = fopen(path_of(target, name), "wb");
    if (file == NULL || fwrite(seed->bytes, 1, seed->n, file) != seed->n || fclose(file) != 0) {
        fail("cannot write a seed");
    }
    tnd_blob_free(seed);
    *seed = (struct tnd_blob){NULL, 0};
}

static struct tnd_blob read_file(const char *path)
{
    struct tnd_blob blob = {NULL, 0};
    unsigned char bytes[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail(path);
    }
    for (size_t n = 1; n > 0;) {
        n = fread(bytes, 1, sizeof(bytes), file);
        tnd_blob_add(&blob, bytes, n);
    }
    (void)fclose(file);
    return blob;
}

static struct tnd_blob read_back(const char *path)
{
    struct tnd_blob blob = read_file(path);
    (void)unlink(path);
    return blob;
}

/* ---- GGUF ---- */

static void gguf_text(struct tnd_blob *blob, const char *text)
{
    tnd_blob_number(blob, strlen(text), 8);
    tnd_blob_string(blob, text);
}

static void gguf_head(struct tnd_blob *blob, int version, int n_tensors, int n_values)
{
    tnd_blob_string(blob, "GGUF");
    tnd_blob_number(blob, (uint64_t)version, 4);
    tnd_blob_number(blob, (uint64_t)n_tensors, 8);
    tnd_blob_number(blob, (uint64_t)n_values, 8);
}

/* One item of a type; lists hold two bytes, or lists of their own. */
static void gguf_item(struct tnd_blob *blob, uint32_t type, int depth)
{
    if (type == TND_GGUF_TEXT) {
        gguf_text(blob, depth % 2 == 0 ? "text" : "");
    } else if (type == TND_GGUF_ARRAY) {
        tnd_blob_number(blob, depth < 2 ? TND_GGUF_ARRAY : TND_GGUF_U8, 4);
        tnd_blob_number(blob, depth < 2 ? 1 : 2, 8);
        if (depth < 2) {
            gguf_item(blob, TND_GGUF_ARRAY, depth + 1);
        } else {
            tnd_blob_number(blob, 0x0201, 2);
        }
    } else {
        tnd_blob_number(blob, type == TND_GGUF_BOOL ? 1 : UINT64_MAX - 1,
                        (int)tnd_gguf_type_bytes(type));
    }
}

static void gguf_tensor(struct tnd_blob *blob, const char *name, enum tandem_type type, int n_dims,
                        uint64_t offset)
{
    gguf_text(blob, name);
    tnd_blob_number(blob, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims; i++) {
        tnd_blob_number(blob, i == 0 ? (uint64_t)tandem_type_block_values(type) : 2, 8);
    }
    tnd_blob_number(blob, type, 4);
    tnd_blob_number(blob, offset, 8);
}

static void gguf_values(void)
{
    struct tnd_blob blob = {NULL, 0};
    for (uint32_t type = 0; type < TND_GGUF_TYPES; type++) {
        gguf_head(&blob, 2 + (int)type % 2, 0, 1);
        gguf_text(&blob, "value");
        tnd_blob_number(&blob, type, 4);
        gguf_item(&blob, type, 1);
        put_seed("gguf", &blob);
        for (int count = 0; count < 3; count += 2) {
            gguf_head(&blob, 3, 0, 1);
            gguf_text(&blob, "list");
            tnd_blob_number(&blob, TND_GGUF_ARRAY, 4);
            tnd_blob_number(&blob, type, 4);
            tnd_blob_number(&blob, (uint64_t)count, 8);
            for (int i = 0; i < count; i++) {
                gguf_item(&blob, type, i);
            }
            put_seed("gguf", &blob);
        }
    }
}

static void gguf_tensors(void)
{
    struct tnd_blob blob = {NULL, 0};
    for (int type = 0; type < TANDEM_TYPE_NUMBERS; type++) {
        const uint64_t alignment = (uint64_t)8 << (type % 5);
        if (!tandem_type_is_valid((enum tandem_type)type)) {
            continue;
        }
        gguf_head(&blob, 3, 2, 1);
        gguf_text(&blob, "general.alignment");
        tnd_blob_number(&blob, TND_GGUF_U32, 4);
        tnd_blob_number(&blob, alignment, 4);
        gguf_tensor(&blob, "first", (enum tandem_type)type, type % 5, 1024);
        gguf_tensor(&blob, "second", (enum tandem_type)type, 1, 0);
        tnd_blob_pad(&blob, (size_t)alignment);
        tnd_blob_number(&blob, 1, 1024 + 16 * (int)tandem_type_block_bytes((enum tandem_type)type));
        put_seed("gguf", &blob);
    }
}

/* ---- safetensors ---- */

static void safetensors_seed(const char *header, size_t data)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_number(&blob, strlen(header), 8);
    tnd_blob_string(&blob, header);
    tnd_blob_number(&blob, 1, (int)data);
    put_seed("safetensors", &blob);
}

static void safetensors_seeds(void)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8},
                 {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U8", 1},  {"BOOL", 1}};
    static const char *const shapes[] = {"", "6", "2,3", "1,2,3", "1,1,2,3", "0,6"};
    char header[512];
    for (int type = 0; type < 10; type++) {
        for (int shape = 0; shape < 6; shape++) {
            const int n = types[type].bytes * (shape == 0 ? 1 : shape == 5 ? 0 : 6);
            snprintf(
                header, sizeof(header),
                "{\"__metadata__\":{\"format\":\"pt\",\"k\\u00e9\\n\":\"\\\"v\\ud83d\\ude00\"}, "
                "\"t\" :{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%d],"
                "\"other\":[{\"a\":null},true,-1.5e3]}}",
                types[type].name, shapes[shape], n);
            safetensors_seed(header, (size_t)n);
        }
    }
    safetensors_seed("{}", 0);
    safetensors_seed("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                     "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}  ",
                     2);
}

/* ---- PyTorch ---- */

static void torch_text(struct tnd_blob *blob, const char *text)
{
    tnd_blob_string(blob, "X");
    tnd_blob_number(blob, strlen(text), 4);
    tnd_blob_string(blob, text);
}

/* A tensor of 2 x 3 values of a storage. `way` chooses among equal spellings. */
static void torch_tensor(struct tnd_blob *blob, const char *storage, int way)
{
    if (way % 3 == 1) {
        tnd_blob_string(blob, "ctorch._utils\n_rebuild_parameter\n(");
    }
    tnd_blob_string(blob, way % 4 == 3 ? "ctorch._utils\n_rebuild_tensor\n("
                                       : "ctorch._utils\n_rebuild_tensor_v2\n(");
    tnd_blob_string(blob, "(");
    torch_text(blob, "storage");
    if (way % 2 == 0) {
        tnd_blob_string(blob, "ctorch\n");
        tnd_blob_string(blob, storage);
        tnd_blob_string(blob, "\n");
    } else {
        torch_text(blob, "torch");
        torch_text(blob, storage);
        tnd_blob_string(blob, "\x93");
    }
    torch_text(blob, "0");
    torch_text(blob, "cpu");
    tnd_blob_string(blob, "K\6tQ");
    tnd_blob_string(blob, "K");
    tnd_blob_number(blob, 0, 1);
    tnd_blob_string(blob, way % 2 == 0 ? "K\2K\3\x86" : "(M\2");
    tnd_blob_number(blob, 0, way % 2 == 0 ? 0 : 1);
    tnd_blob_string(blob, way % 2 == 0 ? "" : "\x8a\1\3t");
    tnd_blob_string(blob, way % 5 == 0 ? "K\1K\2\x86" : "K\3K\1\x86");
    if (way % 4 != 3) {
        tnd_blob_string(blob, "\x89"
                              "ccollections\nOrderedDict\n)R");
    }
    tnd_blob_string(blob, "tR");
    if (way % 3 == 1) {
        tnd_blob_string(blob, "\x88"
                              "ccollections\nOrderedDict\n)RtR");
    }
}

/* Values that are no tensors, of all kinds. */
static void torch_others(struct tnd_blob *blob, int way)
{
    static const struct {
        const char *bytes;
        size_t n;
#define BYTES(text) text, sizeof(text) - 1
    } others[] = {{BYTES("K\7")},
                  {BYTES("M\1\2")},
                  {BYTES("J\xff\xff\xff\xff")},
                  {BYTES("\x8a\0")},
                  {BYTES("\x8a\2\xff\xff")},
                  {BYTES("\x8b\1\0\0\0\5")},
                  {BYTES("G\x3f\xe0\0\0\0\0\0\0")},
                  {BYTES("N")},
                  {BYTES("\x88")},
                  {BYTES("\x89")},
                  {BYTES("U\3abc")},
                  {BYTES("\x8c\2ab")},
                  {BYTES("\x8d\1\0\0\0\0\0\0\0z")},
                  {BYTES("]K\1a")},
                  {BYTES("](K\1K\2e")},
                  {BYTES("(K\1K\2l")},
                  {BYTES("(K\1K\2d")},
                  {BYTES("}K\1K\2s")},
                  {BYTES("\x8f(K\1\x90")},
                  {BYTES("(K\1\x91")},
                  {BYTES("K\1\x85")},
                  {BYTES("K\1K\2K\3\x87")},
                  {BYTES("K\1q\5h\5\x86")},
                  {BYTES("K\1r\5\0\0\0j\5\0\0\0\x86")},
                  {BYTES("K\1\x94h\0\x86")},
                  {BYTES("K\1K\2"
                         "0")},
                  {BYTES("K\1"
                         "20")},
                  {BYTES("(K\1K\2"
                         "1K\3")},
                  {BYTES("ctorch\nSize\n(K\2K\3\x86tR")},
                  {BYTES("ccollections\nOrderedDict\n(]](K\1K\2eatR")},
                  {BYTES("ccollections\nOrderedDict\n)R}K\1K\2sb")}};
#undef BYTES
    torch_text(blob, "other");
    const int n = (int)(sizeof(others) / sizeof(others[0]));
    tnd_blob_add(blob, others[way % n].bytes, others[way % n].n);
}

static void zip_head(struct tnd_blob *zip, const char *name, size_t n, int central, size_t place)
{
    tnd_blob_string(zip, central ? "PK\1\2" : "PK\3\4");
    tnd_blob_number(zip, 45, central ? 4 : 2);
    tnd_blob_number(zip, 0, 12); /* flags, method, time, checksum */
    tnd_blob_number(zip, n, 4);
    tnd_blob_number(zip, n, 4);
    tnd_blob_number(zip, strlen(name), 2);
    tnd_blob_number(zip, 0, central ? 12 : 2);
    if (central) {
        tnd_blob_number(zip, place, 4);
    }
    tnd_blob_string(zip, name);
}

static void torch_seed(const char *storage, int way)
{
    const char *const names[] = {"m/data.pkl", "m/byteorder", "m/data/0"};
    struct tnd_blob parts[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    struct tnd_blob zip = {NULL, 0};
    size_t places[3];
    tnd_blob_string(&parts[0], way % 2 == 0 ? "\x80\2}q\1(" : "\x80\4\x95");
    tnd_blob_number(&parts[0], 0, way % 2 == 0 ? 0 : 8);
    tnd_blob_string(&parts[0], way % 2 == 0 ? "" : "}(");
    torch_text(&parts[0], "t");
    torch_tensor(&parts[0], storage, way);
    torch_others(&parts[0], way);
    tnd_blob_string(&parts[0], "u.");
    tnd_blob_number(&parts[0], 0, 64); /* room for mutations */
    tnd_blob_string(&parts[1], way % 7 == 6 ? "big" : "little");
    tnd_blob_number(&parts[2], 1, 48);
    for (int i = 0; i < 3; i++) {
        places[i] = zip.n;
        zip_head(&zip, names[i], parts[i].n, 0, 0);
        tnd_blob_add(&zip, parts[i].bytes, parts[i].n);
    }
    const size_t directory = zip.n;
    for (int i = 0; i < 3; i++) {
        zip_head(&zip, names[i], parts[i].n, 1, places[i]);
        tnd_blob_free(&parts[i]);
    }
    const size_t end = zip.n;
    tnd_blob_string(&zip, "PK\5\6");
    tnd_blob_number(&zip, 0, 4);
    tnd_blob_number(&zip, 3, 2);
    tnd_blob_number(&zip, 3, 2);
    tnd_blob_number(&zip, end - directory, 4);
    tnd_blob_number(&zip, directory, 4);
    tnd_blob_number(&zip, 0, 2);
    put_seed("torch", &zip);
}

static void torch_seeds(void)
{
    static const char *const storages[] = {
        "FloatStorage", "HalfStorage",  "BFloat16Storage", "DoubleStorage", "LongStorage",
        "IntStorage",   "ShortStorage", "CharStorage",     "ByteStorage",   "BoolStorage"};
    for (int way = 0; way < 62; way++) {
        torch_seed(storages[way % 10], way);
    }
}

/* ---- sentencepiece ---- */

static void proto_varint(struct tnd_blob *blob, int field, uint64_t value)
{
    tnd_blob_number(blob, (uint64_t)field << 3 | (field > 15 ? 0x80 : 0), 1);
    if (field > 15) {
        blob->bytes[blob->n - 1] = (unsigned char)((field << 3 & 0x7f) | 0x80);
        tnd_blob_number(blob, (uint64_t)field >> 4, 1);
    }
    for (; value > 127; value >>= 7) {
        tnd_blob_number(blob, (value & 127) | 128, 1);
    }
    tnd_blob_number(blob, value, 1);
}

static void proto_bytes(struct tnd_blob *blob, int field, const void *bytes, size_t n)
{
    tnd_blob_number(blob, (uint64_t)field << 3 | 2, 1);
    tnd_blob_number(blob, n, 1); /* below 128 */
    tnd_blob_add(blob, bytes, n);
}

static void proto_piece(struct tnd_blob *file, const char *text, float score, int type)
{
    struct tnd_blob piece = {NULL, 0};
    proto_bytes(&piece, 1, text, strlen(text));
    tnd_blob_number(&piece, 2 << 3 | 5, 1);
    tnd_blob_add(&piece, &score, 4);
    if (type != 1) {
        proto_varint(&piece, 3, (uint64_t)type);
    }
    proto_bytes(file, 1, piece.bytes, piece.n);
    tnd_blob_free(&piece);
}

/* Each bit of `flags` turns something on. */
static void sentencepiece_seed(int flags)
{
    static const char *const pieces[] = {"a",
                                         "b",
                                         "ab",
                                         "\xe2\x96\x81",
                                         ("\xe2\x96\x81"
                                          "a"),
                                         "abc",
                                         "\xe2\x96\x81\xe2\x96\x81",
                                         "\xc3\xa9",
                                         "bc",
                                         "ba"};
    static const char text[32] = " ab  abc \xc3\xa9 a\nb<s>\xff \xe2\x96\x81 ba";
    struct tnd_blob file = {NULL, 0};
    struct tnd_blob part = {NULL, 0};
    proto_piece(&file, "<unk>", 0, 2);
    proto_piece(&file, "<s>", 0, 3);
    proto_piece(&file, "</s>", 0, 3);
    for (int i = 0; i < 256 && (flags & 1) != 0; i++) {
        char name[8];
        snprintf(name, sizeof(name), "<0x%02X>", (unsigned)i);
        proto_piece(&file, name, 0, 6);
    }
    for (int i = 0; i < 10; i++) {
        proto_piece(&file, pieces[i], -(float)i, i == 8 ? 4 : i == 9 ? 5 : 1);
    }
    proto_varint(&part, 3, (flags & 2) != 0 ? 2 : 1);
    proto_varint(&part, 24, (flags & 4) != 0);
    proto_varint(&part, 35, flags & 1);
    proto_varint(&part, 41, 1);
    proto_varint(&part, 42, 2);
    if ((flags & 4) != 0) {
        tnd_blob_string(&part, "\xe2\x02"); /* field 44: the surface of an unknown token */
        tnd_blob_string(&part, "\4 ?? ");
    }
    proto_bytes(&file, 2, part.bytes, part.n);
    tnd_blob_free(&part);
    part = (struct tnd_blob){NULL, 0};
    proto_varint(&part, 3, (flags & 8) != 0);
    proto_varint(&part, 4, (flags & 16) != 0);
    proto_varint(&part, 5, (flags & 32) != 0);
    proto_bytes(&file, 3, part.bytes, part.n);
    tnd_blob_free(&part);
    tnd_blob_add(&file, text, sizeof(text));
    put_seed("tokenizer_spm", &file);
}

/* ---- whole models ---- */

static tandem_source *synthesize(const struct tandem_llama_shape *shape, enum tandem_type type)
{
    tandem_source *source = NULL;
    if (tandem_source_synthesize(shape, type, 1, &source, NULL) != TANDEM_OK) {
        fail("cannot make a model");
    }
    return source;
}

/* The same file for each target that takes models: consume.h describes the end of the input. */
static void put_model(struct tnd_blob *file, const struct tnd_blob *config, int type, int choice,
                      int n_targets)
{
    static const char *const targets[] = {"llama_model", "convert", "requantize"};
    for (int i = 0; i < n_targets; i++) {
        struct tnd_blob seed = {NULL, 0};
        tnd_blob_add(&seed, file->bytes, file->n);
        if (config != NULL) {
            tnd_blob_add(&seed, config->bytes, config->n);
        }
        tnd_blob_number(&seed, config == NULL ? 0 : config->n, 2);
        tnd_blob_number(&seed, (uint64_t)type, 1);
        tnd_blob_number(&seed, (uint64_t)choice, 1);
        put_seed(targets[i], &seed);
    }
}

/* A model in every format but GGUF, to become the given type. */
static void foreign_models(const tandem_source *model, int type)
{
    static const char *const more[] = {
        "", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}",
        ("\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
         "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}"),
        "\"sliding_window\":4"};
    char path[4096];
    struct tnd_blob config = {NULL, 0};
    snprintf(path, sizeof(path), "%s", path_of("convert", "tmp"));
    for (int kind = 0; kind < 7; kind++) {
        bool good = tnd_model_write_config(model, path, more[(type + kind) % 4]);
        config = read_back(path);
        good = good && (kind == 0   ? tnd_model_write_llama2c(model, path)
                        : kind == 1 ? tnd_model_write_safetensors(model, path, 0, 1)
                        : kind == 2 ? tnd_model_write_torch(model, path, false)
                        : kind == 3 ? tnd_model_write_torch(model, path, true)
                        : kind == 4 ? tnd_model_write_torch_hf(model, path)
                        : kind == 5 ? tnd_model_write_torch_llama(model, path, true)
                                    : tnd_model_write_safetensors(model, path, 0, 1));
        if (!good) {
            fail("cannot write a model");
        }
        struct tnd_blob file = read_back(path);
        put_model(&file, kind == 1 || kind == 4 ? &config : NULL, type, type, 3);
        tnd_blob_free(&file);
        tnd_blob_free(&config);
    }
}

/* A model of Hugging Face with each member of config.json that changes how it is read. */
static void config_models(const tandem_source *model)
{
    static const char *const more[] = {
        "\"hidden_act\":\"silu\"",
        "\"hidden_act\":\"gelu\"",
        "\"hidden_act\":\"gelu_new\"",
        "\"hidden_act\":\"relu\"",
        "\"hidden_act\":\"tanh\"",
        "\"hidden_act\":7",
        "\"layer_types\":[\"full_attention\"]",
        "\"sliding_window\":4,\"layer_types\":[\"sliding_attention\"]",
        "\"layer_types\":[\"chunked_attention\"]",
        "\"layer_types\":null",
        "\"use_sliding_window\":true,\"max_window_layers\":0,\"sliding_window\":4",
        "\"use_sliding_window\":null,\"sliding_window\":null",
        "\"use_sliding_window\":3",
        "\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32}",
        "\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[16,16]}",
        "\"quantization_config\":{\"load_in_8bit\":true,\"other\":[1]}",
        "\"quantization_config\":null",
        "\"quantization\":{\"w_bit\":4}",
        "\"eos_token_id\":[2,3]",
        "\"eos_token_id\":null",
        "\"bos_token_id\":null",
        "\"attention_bias\":true",
        "\"attention_bias\":false,\"mlp_bias\":false",
        "\"mlp_bias\":true",
        "\"head_dim\":16",
        "\"head_dim\":null",
        "\"head_dim\":8",
        "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000.0}",
        "\"rope_scaling\":null",
        "\"rope_scaling\":{}",
        "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.0}",
        "\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2.0}",
        "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":2.0}",
        "\"partial_rotary_factor\":1.0",
        "\"partial_rotary_factor\":0.5",
        "\"logit_scale\":1",
        "\"attention_multiplier\":null",
        "\"num_experts\":0",
        "\"num_experts\":8",
        "\"model_type\":\"mixtral\",\"num_local_experts\":2,\"num_experts_per_tok\":1",
        ("\"model_type\":\"qwen2_moe\",\"num_experts\":2,\"moe_intermediate_size\":32,"
         "\"shared_expert_intermediate_size\":32,\"norm_topk_prob\":true,\"mlp_only_layers\":[]"),
        "\"model_type\":\"qwen3_moe\",\"num_local_experts\":2,\"decoder_sparse_step\":1",
        "\"final_logit_softcapping\":\"\"",
        "\"auto_map\":{}",
        "\"embedding_multiplier\":[]",
        "\"unknown\":1",
        "\"unknown\":null",
        "\"pretraining_tp\":1,\"use_cache\":true,\"transformers_version\":\"4\""};
    char path[4096];
    snprintf(path, sizeof(path), "%s", path_of("convert", "tmp"));
    if (!tnd_model_write_safetensors(model, path, 0, 1)) {
        fail("cannot write a model");
    }
    struct tnd_blob file = read_back(path);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        if (!tnd_model_write_config(model, path, more[i])) {
            fail("cannot write a config.json");
        }
        struct tnd_blob config = read_back(path);
        put_model(&file, &config, TANDEM_TYPE_F32, 0, 1);
        tnd_blob_free(&config);
    }
    tnd_blob_free(&file);
}

static void gguf_model(const tandem_source *model, int type)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s", path_of("convert", "tmp"));
    if (tandem_source_save_gguf(model, path, NULL, NULL) != TANDEM_OK) {
        fail("cannot write a GGUF file");
    }
    struct tnd_blob file = read_back(path);
    put_model(&file, NULL, type, type, 3);
    tnd_blob_free(&file);
}

static void models(void)
{
    struct tandem_llama_shape small = {.size = sizeof(small),
                                       .dim = 32,
                                       .hidden = 32,
                                       .layers = 1,
                                       .heads = 2,
                                       .kv_heads = 1,
                                       .vocabulary = 6,
                                       .context = 8};
    struct tandem_llama_shape wide = small;
    wide.dim = 256;
    wide.heads = 8;
    for (int type = 0; type < TANDEM_TYPE_NUMBERS; type++) {
        if (!tandem_type_is_valid((enum tandem_type)type) || type == TANDEM_TYPE_I32) {
            continue;
        }
        const bool is_wide = tandem_type_block_values((enum tandem_type)type) > 32;
        tandem_source *model = synthesize(is_wide ? &wide : &small, (enum tandem_type)type);
        gguf_model(model, TANDEM_TYPE_Q8_0);
        tandem_source_close(model);
        struct tandem_llama_shape mixture = small;
        mixture.experts = 3;
        mixture.experts_used = 2;
        model = synthesize(&mixture, is_wide ? TANDEM_TYPE_F32 : (enum tandem_type)type);
        gguf_model(model, TANDEM_TYPE_Q8_0);
        tandem_source_close(model);
        small.kv_heads = type % 2 == 0 ? 1 : 2;
        model = synthesize(&small, TANDEM_TYPE_F32);
        gguf_model(model, type);
        if (type % 2 == 0) {
            foreign_models(model, type);
        }
        if (type == TANDEM_TYPE_F32) {
            config_models(model);
        }
        tandem_source_close(model);
    }
}

/* ---- tables ---- */

static void table_text(struct tnd_blob *blob, const char *path)
{
    struct tnd_blob file = read_file(path);
    tnd_blob_add(blob, file.bytes, file.n);
    tnd_blob_free(&file);
}

/* Times of one product on two backends; each bit of `flags` turns something on. */
static void table_of(struct tnd_blob *blob, int flags)
{
    static const char *const backends[] = {"cpu", "openblas", "opencl", "elsewhere"};
    static const char *const tasks[] = {"node", "mul_mat_q", "mul_mat_packed", "mul_mat_f32"};
    char text[1024];
    tnd_blob_string(blob,
                    "{\"version\": 2, \"fingerprint\": {\"cpu_model\": \"x\"}, \"profiles\": [");
    for (int i = 0; i < 2; i++) {
        snprintf(
            text, sizeof(text),
            "%s{\"name\": \"p%d\", \"stages\": {\"compute\": {\"backend\": \"%s\", \"kind\": %d, "
            "\"task\": \"%s\", \"parallel\": %s}}}",
            i > 0 ? ", " : "", i, backends[(flags + i) % 4], 1 + (flags + i) % 5,
            tasks[flags / 4 % 4], (flags & 16) != 0 ? "true" : "false");
        tnd_blob_string(blob, text);
    }
    tnd_blob_string(blob, "], \"curves\": [");
    for (int i = 0; i < 2; i++) {
        snprintf(
            text, sizeof(text),
            "%s{\"op\": \"mul_mat\", \"type\": \"%s\", \"n\": 64, \"k\": 64, \"backend\": \"%s\", "
            "\"stage\": \"compute\", \"task\": \"%s\", \"parallel\": %s, \"threads\": %d, "
            "\"samples\": [{\"m\": 1, \"median_us\": 5, \"spread_us\": 1, \"count\": 3, \"when\": "
            "%d}, {\"m\": 8, \"median_us\": 9, \"spread_us\": 0.1, \"count\": %d, \"when\": 7}]}",
            i > 0 ? ", " : "", (flags & 32) != 0 ? "f16" : "q4_0", backends[(flags + i) % 4],
            tasks[flags / 4 % 4], (flags & 16) != 0 ? "true" : "false",
            (flags & 16) != 0 ? 1 + flags % 4 : 1, flags, 1 + i);
        tnd_blob_string(blob, text);
    }
    tnd_blob_string(blob, "]}");
}

/* The saved tables and made ones, alone and in pairs. */
static void table_seeds(void)
{
    static const char *const saved[] = {
        "json/convolutions.json", "json/devices.json",  "json/evidence.json", "json/from_text.json",
        "json/small.json",        "text/published.txt", "text/small.txt"};
    enum { N_SAVED = sizeof(saved) / sizeof(saved[0]), N_MADE = 64 };
    for (int i = 0; i < N_SAVED + N_MADE; i++) {
        struct tnd_blob one = {NULL, 0}, pair = {NULL, 0};
        char path[96];
        if (i < N_SAVED) {
            snprintf(path, sizeof(path), "tests/fuzz/corpus/table_%s", saved[i]);
            table_text(&one, path);
        } else {
            table_of(&one, i - N_SAVED);
        }
        tnd_blob_add(&pair, one.bytes, one.n);
        tnd_blob_number(&pair, 0, 1);
        table_of(&pair, i * 5 % N_MADE);
        put_seed("table_use", &one);
        put_seed("table_merge", &pair);
    }
}

/* ---- ONNX and arrays ---- */

/* A node of the operator between so many inputs {1, 2, 4, 4} and one output. */
static void onnx_node(const char *domain, const char *op, int n_in, int opset,
                      const char *attributes)
{
    static const char shape[] = "{1:{1:1} 1:{1:2} 1:{1:4} 1:{1:4}}";
    char text[2048];
    size_t n = (size_t)snprintf(text, sizeof(text), "1:8 8:{2:%d} 7:{12:{1:'y'} 1:{", opset);
    struct tnd_blob seed = {NULL, 0};
    for (int i = 0; i < n_in; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "1:'x%d' ", i);
    }
    n += (size_t)snprintf(text + n, sizeof(text) - n, "2:'y' 4:'%s' 7:'%s' %s}", op, domain,
                          attributes);
    for (int i = 0; i < n_in; i++) {
        n +=
            (size_t)snprintf(text + n, sizeof(text) - n, "11:{1:'x%d' 2:{1:{1:1 2:%s}}}", i, shape);
    }
    (void)snprintf(text + n, sizeof(text) - n, "}");
    tnd_blob_fields(&seed, text);
    put_seed("onnx", &seed);
}

/* Every operator with one to three operands, and models of more than a node. */
static void onnx_seeds(void)
{
#define FAMILY_ROW(name)          {"", tnd_onnx_##name},
#define FAMILY_OF_MICROSOFT(name) {"com.microsoft", tnd_onnx_##name},
#define FAMILY_OF_ML(name)        {"ai.onnx.ml", tnd_onnx_##name},
#define FAMILY_OF_PREVIEW(name)   {"ai.onnx.preview", tnd_onnx_##name},
    static const struct {
        const char *domain;
        const struct tnd_onnx_op *ops;
    } families[] = {TND_ONNX_FAMILIES(FAMILY_ROW) TND_ONNX_MICROSOFT(FAMILY_OF_MICROSOFT)
                        TND_ONNX_ML(FAMILY_OF_ML) TND_ONNX_PREVIEW(FAMILY_OF_PREVIEW)};
    static const char *const models[] = {
        "1:8 8:{2:17} 7:{5:{8:'w' 1:2 2:1 9=0000803f00000040} 5:{8:'n' 1=02 2:7 7=02} "
        "11:{1:'x' 2:{1:{1:1 2:{1:{1:2}}}}} 1:{1:'x' 1:'w' 2:'y' 4:'Add'} 12:{1:'y'}}",
        "1:8 8:{2:11} 7:{5:{8:'c' 2:9 9=01} 1:{1:'c' 2:'y' 4:'If' "
        "5:{1:'then_branch' 20:5 6:{5:{8:'a' 2:1 4=00000000} 12:{1:'a'}}} "
        "5:{1:'else_branch' 20:5 6:{5:{8:'b' 2:1 4~00000000} 12:{1:'b'}}}} 12:{1:'y'}}",
        "1:8 8:{2:17} 7:{5:{8:'n' 2:7 7=03} 5:{8:'a' 1=02 2:1 9=0000803f00000040} "
        "1:{1:'n' 1:'' 1:'a' 2:'y' 2:'z' 4:'Loop' 5:{1:'body' 20:5 6:{11:{1:'i'} 11:{1:'c'} "
        "11:{1:'v'} 1:{1:'v' 1:'v' 2:'s' 4:'Add'} 12:{1:'c'} 12:{1:'s'} 12:{1:'v'}}}} "
        "12:{1:'y'} 12:{1:'z'}}",
        "1:8 8:{2:28} 7:{5:{8:'f' 1:3 2:23 9=210f} 1:{1:'f' 1:'f' 2:'b' 4:'Mul'} 12:{1:'b'}}",
        "1:8 8:{2:17} 7:{5:{8:'w' 1:2 2:1 14:1 13:{1:'location' 2:'w.bin'}}}",
        "1:8 8:{2:17} 8:{1:'own' 2:1} 25:{1:'F' 4:'a' 5:'b' 7:{1:'a' 2:'b' 4:'Relu'} 9:{2:17} "
        "10:'own'} 7:{11:{1:'x' 2:{1:{1:1 2:{1:{1:2}}}}} 1:{1:'x' 2:'y' 4:'F' 7:'own'} "
        "12:{1:'y'}}",
        "1:8 2:'maker' 3:'1' 4:'org' 5:7 6:'says' 8:{2:17} 14:{1:'names' 2:'a, b'} 14:{2:'v'} "
        "14:{} 7:{2:'g' 10:'does' 11:{1:'x' 2:{1:{1:1 2:{1:{1:2}}}}} 1:{1:'x' 2:'y' 4:'Relu'} "
        "12:{1:'y'}}",
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        const char *domain = families[i].domain;
        for (const struct tnd_onnx_op *op = families[i].ops; op->name != NULL; op++) {
            onnx_node(domain, op->name, 1, 17, "5:{1:'axis' 3:1 20:2}");
            onnx_node(domain, op->name, 2, 9, "5:{1:'kernel_shape' 8=0202 20:7}");
            onnx_node(domain, op->name, 3, 23, "");
        }
    }
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct tnd_blob seed = {NULL, 0};
        tnd_blob_fields(&seed, models[i]);
        put_seed("onnx", &seed);
    }
}

static void npy_seeds(void)
{
    static const char *const dictionaries[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 1, 1), }\n",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (24,), }\n",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (0, 7), }\n",
    };
    for (size_t i = 0; i < 3 * sizeof(dictionaries) / sizeof(dictionaries[0]); i++) {
        const char *dictionary = dictionaries[i / 3];
        struct tnd_blob seed = {NULL, 0};
        tnd_blob_string(&seed, "\x93NUMPY");
        tnd_blob_number(&seed, i % 3 + 1, 2);
        tnd_blob_number(&seed, strlen(dictionary), i % 3 == 0 ? 2 : 4);
        tnd_blob_string(&seed, dictionary);
        tnd_blob_add(&seed, "\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7\0\1\2\3\4\5\6\7", 24);
        put_seed("npy", &seed);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make-seeds FOLDER\n");
        return 2;
    }
    folder = argv[1];
    (void)mkdir(folder, 0777);
    gguf_values();
    gguf_tensors();
    safetensors_seeds();
    torch_seeds();
    for (int flags = 0; flags < 64; flags++) {
        sentencepiece_seed(flags);
    }
    models();
    table_seeds();
    onnx_seeds();
    npy_seeds();
    return 0;
}
