/* SPDX-License-Identifier: MIT
 * Writers of model files. The formats: docs/formats.md. */
#include "tests/support_models.h"

#include <stdio.h>
#include <string.h>

#include "tests/support.h"

static bool write_blob(struct tnd_blob *blob, const char *path)
{
    const bool written = tnd_test_write_file(path, blob->bytes, blob->n);
    tnd_blob_free(blob);
    return written;
}

static int64_t value_of(const tandem_source *model, const char *key)
{
    int64_t value = 0;
    (void)tandem_source_integer(model, key, &value);
    return value;
}

/* ---- llama2.c ---- */

static void put_float(struct tnd_blob *blob, float value)
{
    tnd_blob_add(blob, &value, sizeof(value));
}

/* A tensor of each layer, one behind the other; NULL: `name` is the whole name. */
static bool put_tensors(const tandem_source *model, struct tnd_blob *blob, const char *name,
                        int64_t layers)
{
    for (int64_t layer = 0; layer < (layers == 0 ? 1 : layers); layer++) {
        struct tandem_source_tensor t;
        char full[96];
        snprintf(full, sizeof(full), "blk.%lld.%s.weight", (long long)layer, name);
        if (!tandem_source_find(model, layers == 0 ? name : full, &t) ||
            t.type != TANDEM_TYPE_F32) {
            return false;
        }
        tnd_blob_add(blob, t.data, t.bytes);
    }
    return true;
}

bool tnd_model_write_llama2c(const tandem_source *model, const char *path)
{
    static const char *const order[] = {"attn_norm", "attn_q",      "attn_k",
                                        "attn_v",    "attn_output", "ffn_norm",
                                        "ffn_gate",  "ffn_down",    "ffn_up"};
    struct tnd_blob blob = {NULL, 0};
    struct tandem_source_tensor ignored;
    const int64_t layers = value_of(model, "llama.block_count");
    const int64_t dim = value_of(model, "llama.embedding_length");
    const int64_t heads = value_of(model, "llama.attention.head_count");
    const int64_t context = value_of(model, "llama.context_length");
    const int64_t vocabulary = value_of(model, "llama.vocab_size");
    const bool has_output = tandem_source_find(model, "output.weight", &ignored);
    const int64_t header[] = {dim,
                              value_of(model, "llama.feed_forward_length"),
                              layers,
                              heads,
                              value_of(model, "llama.attention.head_count_kv"),
                              has_output ? -vocabulary : vocabulary,
                              context};
    for (int i = 0; i < 7; i++) {
        tnd_blob_number(&blob, (uint64_t)header[i], 4);
    }
    bool complete = put_tensors(model, &blob, "token_embd.weight", 0);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        complete = put_tensors(model, &blob, order[i], layers) && complete;
    }
    complete = put_tensors(model, &blob, "output_norm.weight", 0) && complete;
    for (int64_t i = 0; i < context * (dim / heads); i++) { /* cosines and sines: not read */
        put_float(&blob, 0.0f);
    }
    complete = (!has_output || put_tensors(model, &blob, "output.weight", 0)) && complete;
    return write_blob(&blob, path) && complete;
}

bool tnd_model_write_tokenizer(const char *path, int vocabulary)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_number(&blob, 8, 4);
    for (int i = 0; i < vocabulary; i++) {
        const int letter = i - 259;
        char text[16] = "";
        if (i < 3) {
            snprintf(text, sizeof(text), "%s", i == 0 ? "<unk>" : i == 1 ? "\n<s>\n" : "\n</s>\n");
        } else if (letter < 0) {
            snprintf(text, sizeof(text), "<0x%02X>", (unsigned)i - 3);
        } else if (letter < 27) {
            snprintf(text, sizeof(text), "%c", letter == 0 ? ' ' : 'a' + letter - 1);
        } else {
            snprintf(text, sizeof(text), "%c%c", 'a' + (letter - 27) / 26 % 26,
                     'a' + (letter - 27) % 26);
        }
        put_float(&blob, letter < 0 ? 0.0f : (float)-letter);
        tnd_blob_number(&blob, strlen(text), 4);
        tnd_blob_string(&blob, text);
    }
    return write_blob(&blob, path);
}

/* ---- safetensors ---- */

/* The name that Hugging Face gives to a tensor of the GGUF convention. */
static void their_name(const char *name, char out[96])
{
    static const char *const names[][2] = {
        {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
        {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
        {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
        {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
        {"ffn_down", "mlp.down_proj"}};
    int layer = 0;
    char part[32];
    snprintf(out, 96, "%s",
             strcmp(name, "token_embd.weight") == 0 ? "model.embed_tokens.weight"
             : strcmp(name, "output.weight") == 0   ? "lm_head.weight"
                                                    : "model.norm.weight");
    if (sscanf(name, "blk.%d.%31[^.].weight", &layer, part) == 2) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (strcmp(part, names[i][0]) == 0) {
                snprintf(out, 96, "model.layers.%d.%s.weight", layer, names[i][1]);
            }
        }
    }
}

/* Adds a tensor's bytes; rows of q and k go from adjacent pairs to halves. */
static void put_rows(const tandem_source *model, struct tnd_blob *data,
                     const struct tandem_source_tensor *t)
{
    const char *key = strstr(t->name, "attn_q.")   ? "llama.attention.head_count"
                      : strstr(t->name, "attn_k.") ? "llama.attention.head_count_kv"
                                                   : NULL;
    const size_t row = (size_t)t->ne[0] * sizeof(float);
    if (key == NULL) {
        tnd_blob_add(data, t->data, t->bytes);
        return;
    }
    const int64_t d = t->ne[1] / value_of(model, key);
    for (int64_t r = 0; r < t->ne[1]; r++) {
        const int64_t within = r % d;
        const int64_t from = r - within + within % (d / 2) * 2 + within / (d / 2);
        tnd_blob_add(data, (const char *)t->data + (size_t)from * row, row);
    }
}

bool tnd_model_write_safetensors(const tandem_source *model, const char *path, int part, int parts)
{
    struct tnd_blob header = {NULL, 0};
    struct tnd_blob data = {NULL, 0};
    struct tnd_blob file = {NULL, 0};
    tnd_blob_string(&header, "{");
    for (int i = part; i < tandem_source_tensor_count(model); i += parts) {
        struct tandem_source_tensor t = {.name = ""};
        char theirs[96], shape[64], line[256];
        const size_t begin = data.n;
        (void)tandem_source_tensor_at(model, i, &t);
        if (strncmp(t.name, "rope_", 5) == 0) { /* config.json says it */
            continue;
        }
        their_name(t.name, theirs);
        put_rows(model, &data, &t);
        snprintf(shape, sizeof(shape), t.n_dims == 1 ? "%lld" : "%lld,%lld",
                 (long long)t.ne[t.n_dims - 1], (long long)t.ne[0]);
        snprintf(line, sizeof(line),
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                 header.n > 1 ? "," : "", theirs, shape, begin, data.n);
        tnd_blob_string(&header, line);
    }
    tnd_blob_string(&header, "}");
    while (header.n % 8 != 0) {
        tnd_blob_string(&header, " ");
    }
    tnd_blob_number(&file, header.n, 8);
    tnd_blob_add(&file, header.bytes, header.n);
    tnd_blob_add(&file, data.bytes, data.n);
    tnd_blob_free(&header);
    tnd_blob_free(&data);
    return write_blob(&file, path);
}

bool tnd_model_write_index(const tandem_source *model, const char *path, const char *format,
                           int parts)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (int i = 0; i < tandem_source_tensor_count(model); i++) {
        struct tandem_source_tensor t = {.name = ""};
        char theirs[96], file[64], line[256];
        (void)tandem_source_tensor_at(model, i, &t);
        their_name(t.name, theirs);
        snprintf(file, sizeof(file), format, i % parts + 1);
        snprintf(line, sizeof(line), "%s\"%s\":\"%s\"", i > 0 ? "," : "", theirs, file);
        tnd_blob_string(&blob, line);
    }
    tnd_blob_string(&blob, "}}");
    return write_blob(&blob, path);
}

bool tnd_model_write_config(const tandem_source *model, const char *path, const char *more)
{
    static const char *const members[][2] = {
        {"hidden_size", "llama.embedding_length"},
        {"intermediate_size", "llama.feed_forward_length"},
        {"num_hidden_layers", "llama.block_count"},
        {"num_attention_heads", "llama.attention.head_count"},
        {"num_key_value_heads", "llama.attention.head_count_kv"},
        {"max_position_embeddings", "llama.context_length"},
        {"vocab_size", "llama.vocab_size"}};
    struct tnd_blob blob = {NULL, 0};
    char line[96];
    tnd_blob_string(&blob, "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",");
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        struct tandem_source_tensor embedding = {.ne = {0}};
        int64_t value = value_of(model, members[i][1]);
        if (value == 0 && strcmp(members[i][0], "vocab_size") == 0 &&
            tandem_source_find(model, "token_embd.weight", &embedding)) {
            value = embedding.ne[1];
        }
        snprintf(line, sizeof(line), "\"%s\":%lld,", members[i][0], (long long)value);
        tnd_blob_string(&blob, value > 0 ? line : "");
    }
    double base = 10000.0;
    (void)tandem_source_number(model, "llama.rope.freq_base", &base);
    snprintf(line, sizeof(line), "\"rms_norm_eps\":1e-05,\"rope_theta\":%.1f,", base);
    tnd_blob_string(&blob, line);
    struct tandem_source_tensor output;
    tnd_blob_string(&blob, "\"bos_token_id\":1,\"eos_token_id\":2,\"torch_dtype\":\"float32\"");
    tnd_blob_string(&blob, tandem_source_find(model, "output.weight", &output)
                               ? ""
                               : ",\"tie_word_embeddings\":true");
    tnd_blob_string(&blob, more[0] != '\0' ? "," : "");
    tnd_blob_string(&blob, more);
    tnd_blob_string(&blob, "}");
    return write_blob(&blob, path);
}

/* ---- PyTorch ---- */

static void put_unicode(struct tnd_blob *blob, const char *text)
{
    tnd_blob_string(blob, "X");
    tnd_blob_number(blob, strlen(text), 4);
    tnd_blob_string(blob, text);
}

static void put_integer(struct tnd_blob *blob, int64_t value)
{
    tnd_blob_string(blob, "\x8a\x08");
    tnd_blob_number(blob, (uint64_t)value, 8);
}

/* What torch.save writes for a tensor whose storage has the key `number`. */
static void put_tensor(struct tnd_blob *blob, const struct tandem_source_tensor *t, int number,
                       bool is_legacy)
{
    char key[16];
    snprintf(key, sizeof(key), "%d", number);
    tnd_blob_string(blob, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_unicode(blob, "storage");
    tnd_blob_string(blob, "ctorch\nFloatStorage\n");
    put_unicode(blob, key);
    put_unicode(blob, "cpu");
    put_integer(blob, (int64_t)(t->bytes / sizeof(float)));
    tnd_blob_string(blob, is_legacy ? "NtQ" : "tQ");
    put_integer(blob, 0);
    tnd_blob_string(blob, "(");
    for (int i = t->n_dims - 1; i >= 0; i--) { /* the slowest first */
        put_integer(blob, t->ne[i]);
    }
    tnd_blob_string(blob, "t(");
    for (int i = t->n_dims - 1; i >= 0; i--) {
        put_integer(blob, i == 0 ? 1 : t->ne[0]);
    }
    tnd_blob_string(blob, "t\x89"
                          "ccollections\nOrderedDict\n)RtR");
}

static void put_number(struct tnd_blob *blob, double value)
{
    unsigned char bytes[8];
    memcpy(bytes, &value, 8);
    tnd_blob_string(blob, "G");
    for (int i = 7; i >= 0; i--) { /* the only big-endian number of a pickle */
        tnd_blob_add(blob, &bytes[i], 1);
    }
}

/* One dict of values and tensors. */
static struct tnd_blob make_pickle(const tandem_source *model, bool is_legacy)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(&blob, "\x80\x02}(");
    for (int i = 0; i < tandem_source_value_count(model); i++) {
        struct tandem_source_value value = {.key = ""};
        (void)tandem_source_value_at(model, i, &value);
        put_unicode(&blob, value.key);
        if (value.kind == TANDEM_VALUE_INTEGER) {
            put_integer(&blob, value.integer);
        } else if (value.kind == TANDEM_VALUE_NUMBER) {
            put_number(&blob, value.number);
        } else {
            put_unicode(&blob, value.kind == TANDEM_VALUE_TEXT ? value.text : "");
        }
    }
    for (int i = 0; i < tandem_source_tensor_count(model); i++) {
        struct tandem_source_tensor t = {.name = ""};
        (void)tandem_source_tensor_at(model, i, &t);
        put_unicode(&blob, t.name);
        put_tensor(&blob, &t, i, is_legacy);
    }
    tnd_blob_string(&blob, "u.");
    return blob;
}

/* PKWARE's APPNOTE 4.3.7 and 4.3.12, stored; checksums are not looked at. */
static void put_zip_header(struct tnd_blob *blob, bool is_central, const char *name, size_t n)
{
    tnd_blob_string(blob, is_central ? "PK\x01\x02" : "PK\x03\x04");
    tnd_blob_number(blob, 45, is_central ? 4 : 2);
    tnd_blob_number(blob, 0, 12);
    tnd_blob_number(blob, n, 4);
    tnd_blob_number(blob, n, 4);
    tnd_blob_number(blob, strlen(name), 2);
    tnd_blob_number(blob, 0, 2);
}

static void put_zip_file(struct tnd_blob *blob, struct tnd_blob *directory, const char *name,
                         const void *bytes, size_t n)
{
    const size_t at = blob->n;
    put_zip_header(blob, false, name, n);
    tnd_blob_string(blob, name);
    tnd_blob_add(blob, bytes, n);
    put_zip_header(directory, true, name, n);
    tnd_blob_number(directory, 0, 10);
    tnd_blob_number(directory, at, 4);
    tnd_blob_string(directory, name);
}

static void put_archive(struct tnd_blob *blob, const tandem_source *model,
                        const struct tnd_blob *pickle, bool is_theirs)
{
    struct tnd_blob directory = {NULL, 0};
    const int n = tandem_source_tensor_count(model);
    put_zip_file(blob, &directory, "model/data.pkl", pickle->bytes, pickle->n);
    put_zip_file(blob, &directory, "model/byteorder", "little", 6);
    for (int i = 0; i < n; i++) {
        struct tandem_source_tensor t = {.name = ""};
        char name[32];
        (void)tandem_source_tensor_at(model, i, &t);
        snprintf(name, sizeof(name), "model/data/%d", i);
        struct tnd_blob data = {NULL, 0};
        if (is_theirs) {
            put_rows(model, &data, &t);
        } else {
            tnd_blob_add(&data, t.data, t.bytes);
        }
        put_zip_file(blob, &directory, name, data.bytes, data.n);
        tnd_blob_free(&data);
    }
    const size_t at = blob->n;
    tnd_blob_add(blob, directory.bytes, directory.n);
    tnd_blob_string(blob, "PK\x05\x06");
    tnd_blob_number(blob, 0, 4);
    tnd_blob_number(blob, (uint64_t)n + 2, 2);
    tnd_blob_number(blob, (uint64_t)n + 2, 2);
    tnd_blob_number(blob, directory.n, 4);
    tnd_blob_number(blob, at, 4);
    tnd_blob_number(blob, 0, 2);
    tnd_blob_free(&directory);
}

/* torch/serialization.py, _legacy_save: magic number, protocol, machine, object, keys, storages. */
static void put_pickles(struct tnd_blob *blob, const tandem_source *model,
                        const struct tnd_blob *pickle)
{
    const int n = tandem_source_tensor_count(model);
    tnd_blob_add(blob, "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", 21);
    tnd_blob_string(blob, "\x80\x02}");
    put_unicode(blob, "little_endian");
    tnd_blob_string(blob, "\x88s.");
    tnd_blob_add(blob, pickle->bytes, pickle->n);
    tnd_blob_string(blob, "\x80\x02](");
    for (int i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%d", i);
        put_unicode(blob, key);
    }
    tnd_blob_string(blob, "e.");
    for (int i = 0; i < n; i++) {
        struct tandem_source_tensor t = {.name = ""};
        (void)tandem_source_tensor_at(model, i, &t);
        tnd_blob_number(blob, t.bytes / sizeof(float), 8);
        tnd_blob_add(blob, t.data, t.bytes);
    }
}

bool tnd_model_write_torch(const tandem_source *model, const char *path, bool is_legacy)
{
    struct tnd_blob blob = {NULL, 0};
    struct tnd_blob pickle = make_pickle(model, is_legacy);
    if (is_legacy) {
        put_pickles(&blob, model, &pickle);
    } else {
        put_archive(&blob, model, &pickle, false);
    }
    tnd_blob_free(&pickle);
    return write_blob(&blob, path);
}

/* The name that llama's authors give to a tensor of the GGUF convention. */
static void authors_name(const char *name, char out[96])
{
    static const char *const names[][2] = {
        {"attn_norm", "attention_norm"}, {"attn_q", "attention.wq"},
        {"attn_k", "attention.wk"},      {"attn_v", "attention.wv"},
        {"attn_output", "attention.wo"}, {"ffn_norm", "ffn_norm"},
        {"ffn_gate", "feed_forward.w1"}, {"ffn_up", "feed_forward.w3"},
        {"ffn_down", "feed_forward.w2"}};
    int layer = 0;
    char part[32];
    snprintf(out, 96, "%s",
             strcmp(name, "token_embd.weight") == 0 ? "tok_embeddings.weight"
             : strcmp(name, "output.weight") == 0   ? "output.weight"
                                                    : "norm.weight");
    if (sscanf(name, "blk.%d.%31[^.].weight", &layer, part) == 2) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (strcmp(part, names[i][0]) == 0) {
                snprintf(out, 96, "layers.%d.%s.weight", layer, names[i][1]);
            }
        }
    }
}

/* The tensors part, part + parts, part + 2 * parts, ... */
static void put_tensors_as(struct tnd_blob *pickle, const tandem_source *model, const char *prefix,
                           void (*name_of)(const char *name, char out[96]), int part, int parts)
{
    tnd_blob_string(pickle, "}(");
    for (int i = part; i < tandem_source_tensor_count(model); i += parts) {
        struct tandem_source_tensor t = {.name = ""};
        char name[96], full[128];
        (void)tandem_source_tensor_at(model, i, &t);
        name_of(t.name, name);
        snprintf(full, sizeof(full), "%s%s", prefix, name);
        put_unicode(pickle, full);
        put_tensor(pickle, &t, i, false);
    }
    tnd_blob_string(pickle, "u");
}

static const char *const arguments[][2] = {
    {"dim", "llama.embedding_length"},         {"n_layers", "llama.block_count"},
    {"n_heads", "llama.attention.head_count"}, {"n_kv_heads", "llama.attention.head_count_kv"},
    {"vocab_size", "llama.vocab_size"},        {"max_seq_len", "llama.context_length"}};
enum { N_ARGUMENTS = sizeof(arguments) / sizeof(arguments[0]) };

static bool write_archive(const tandem_source *model, const char *path, struct tnd_blob *pickle,
                          bool is_theirs)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_string(pickle, ".");
    put_archive(&blob, model, pickle, is_theirs);
    tnd_blob_free(pickle);
    return write_blob(&blob, path);
}

static void bare_name(const char *name, char out[96])
{
    static const char prefix[] = "model.";
    char theirs[96];
    their_name(name, theirs);
    snprintf(out, 96, "%s", strncmp(theirs, prefix, 6) == 0 ? theirs + 6 : theirs);
}

bool tnd_model_write_torch_part(const tandem_source *model, const char *path, int part, int parts,
                                bool is_bare)
{
    struct tnd_blob pickle = {NULL, 0};
    tnd_blob_string(&pickle, "\x80\x02");
    if (is_bare) {
        tnd_blob_string(&pickle, "}(");
        put_unicode(&pickle, "state_dict");
    }
    put_tensors_as(&pickle, model, "", is_bare ? bare_name : their_name, part, parts);
    tnd_blob_string(&pickle, is_bare ? "u" : "");
    return write_archive(model, path, &pickle, true);
}

bool tnd_model_write_torch_hf(const tandem_source *model, const char *path)
{
    return tnd_model_write_torch_part(model, path, 0, 1, false);
}

bool tnd_model_write_torch_llama(const tandem_source *model, const char *path, bool is_nested)
{
    struct tnd_blob pickle = {NULL, 0};
    tnd_blob_string(&pickle, "\x80\x02");
    if (!is_nested) {
        put_tensors_as(&pickle, model, "", authors_name, 0, 1);
        return write_archive(model, path, &pickle, false);
    }
    tnd_blob_string(&pickle, "}(");
    put_unicode(&pickle, "iter_num");
    put_integer(&pickle, 100);
    put_unicode(&pickle, "model");
    put_tensors_as(&pickle, model, "_orig_mod.", authors_name, 0, 1);
    put_unicode(&pickle, "model_args");
    tnd_blob_string(&pickle, "}(");
    for (int i = 0; i < N_ARGUMENTS; i++) {
        put_unicode(&pickle, arguments[i][0]);
        put_integer(&pickle, value_of(model, arguments[i][1]));
    }
    tnd_blob_string(&pickle, "uu");
    return write_archive(model, path, &pickle, false);
}

bool tnd_model_write_params(const tandem_source *model, const char *path)
{
    struct tnd_blob blob = {NULL, 0};
    char line[96];
    tnd_blob_string(&blob, "{\"norm_eps\": 1e-05, \"multiple_of\": 256");
    for (int i = 0; i < N_ARGUMENTS; i++) {
        snprintf(line, sizeof(line), ", \"%s\": %lld", arguments[i][0],
                 (long long)value_of(model, arguments[i][1]));
        tnd_blob_string(&blob, line);
    }
    tnd_blob_string(&blob, "}");
    return write_blob(&blob, path);
}
