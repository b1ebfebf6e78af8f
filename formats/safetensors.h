/* SPDX-License-Identifier: MIT
 * safetensors: a 64-bit length, a JSON header, data. Facts: README.md of huggingface/safetensors
 * ("Format"); names of models: config.json of Hugging Face's transformers. */
#ifndef TND_SAFETENSORS_H
#define TND_SAFETENSORS_H

#include "formats/json_pull.h"
#include "formats/source.h"

#define TND_SAFETENSORS_MAX_HEADER ((uint64_t)100000000) /* limit of the format */
#define TND_SAFETENSORS_MAX_NAME   512

/** Whether the bytes start like a safetensors file, or like the index of a sharded one. */
bool tnd_safetensors_is(const uint8_t *bytes, size_t n);
bool tnd_safetensors_is_index(const uint8_t *bytes, size_t n);

/** The file to open for `path`: the model file in a folder, else `path` itself. `out_path` has
 * PATH_MAX bytes. Errors: FILE (a folder without a model), LIMIT. */
enum tandem_status tnd_safetensors_in_folder(const char *path, char *out_path,
                                             struct tandem_error *error);

/** Reads one file in memory, which the source borrows; config.json is looked up in the folder of
 * `path`. Errors: FORMAT, TRUNCATED, UNSUPPORTED_BUILD, LIMIT, MEMORY, FILE. */
enum tandem_status tnd_safetensors_read(const void *bytes, size_t n, const char *path,
                                        tandem_source **out_source, struct tandem_error *error);
/** Reads model.safetensors.index.json and the files that it lists. Errors: those of
 * tnd_safetensors_read. */
enum tandem_status tnd_safetensors_read_index(const void *bytes, size_t n, const char *path,
                                              tandem_source **out_source,
                                              struct tandem_error *error);

/** Tokens that end a text. */
#define TND_MAX_END_TOKENS 64
struct tnd_end_tokens {
    int32_t ids[TND_MAX_END_TOKENS];
    int n;
};

/** safetensors_config.c: values of config.json of a model of Hugging Face, in the GGUF convention.
 * `ends` (NULL: none) override those of config.json. Sets `out_is_model` if its tensor names are
 * mapped (hf_names.c). Errors: FORMAT, LIMIT, MEMORY, UNSUPPORTED_BUILD (an unsupported member that
 * may change results). */
enum tandem_status tnd_safetensors_read_config(const void *bytes, size_t n, const char *path,
                                               const struct tnd_end_tokens *ends,
                                               tandem_source *source, bool *out_is_model,
                                               struct tandem_error *error);
/** Reads the end tokens of generation_config.json; `out` is unchanged if it has none. Errors:
 * FORMAT, LIMIT. */
enum tandem_status tnd_safetensors_read_ends(const void *bytes, size_t n, const char *path,
                                             struct tnd_end_tokens *out,
                                             struct tandem_error *error);
/** Reads config.json and generation_config.json in the folder of `path`, if they exist. Errors:
 * those of both, FILE. */
enum tandem_status tnd_safetensors_config_beside(const char *path, tandem_source *source,
                                                 bool *out_is_model, struct tandem_error *error);
/** hf_chat_template.c: adds the chat templates of the files in a folder (its path with a trailing
 * slash, or "") as the values tokenizer.chat_template and tokenizer.chat_template.NAME. Files that
 * cannot be read are skipped. Errors: MEMORY. */
enum tandem_status tnd_hf_chat_templates(const char *folder, tandem_source *source,
                                         struct tandem_error *error);
/** hf_quantized.c: parses quantization_config. Errors: UNSUPPORTED_BUILD (tnd_hf_unpack cannot read
 * the weights), and those of invalid JSON. */
enum tandem_status tnd_hf_read_quantized(struct tnd_json *json, const char *member,
                                         struct tnd_hf_quantized *out, struct tandem_error *error);
/** hf_unpack.c: converts quantised weights to our types that hold them without loss. Errors: SHAPE,
 * FORMAT, MEMORY, LIMIT, FILE. */
enum tandem_status tnd_hf_unpack(tandem_source *source, struct tandem_error *error);
/** hf_experts.c: joins the experts of each layer, blk.N.ffn_gate.E.weight, to
 * blk.N.ffn_gate_exps.weight {K, N, experts}. Models without experts stay as they are. Errors:
 * NOT_FOUND, SHAPE, OVERFLOW, MEMORY, LIMIT, FILE. */
enum tandem_status tnd_hf_join_experts(tandem_source *source, struct tandem_error *error);
/** hf_reshape.c: converts a model's tensors after all have been read: tnd_hf_unpack,
 * tnd_hf_join_experts, then renames, reorders rows, transposes and adds 1 (struct tnd_hf_family).
 * Errors: those of both, SHAPE. */
enum tandem_status tnd_hf_finish(tandem_source *source, struct tandem_error *error);
/** hf_names.c: maps a tensor name of a Hugging Face model to the GGUF convention; unknown names are
 * copied. False: the tensor is not needed. */
bool tnd_safetensors_map_name(const char *name, char *out, size_t capacity);

#endif
