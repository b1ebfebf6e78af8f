/* SPDX-License-Identifier: MIT
 * safetensors: a 64-bit length, a JSON header, data. Facts: README.md of huggingface/safetensors
 * ("Format"); names of models: config.json of Hugging Face's transformers. */
#ifndef TND_SAFETENSORS_H
#define TND_SAFETENSORS_H

#include "formats/json_pull.h"
#include "formats/source.h"

#define TND_SAFETENSORS_MAX_HEADER ((uint64_t)100000000) /* by the format */
#define TND_SAFETENSORS_MAX_NAME   512

/** Whether bytes begin like a safetensors file, or like the index of a sharded one. */
bool tnd_safetensors_is(const uint8_t *bytes, size_t n);
bool tnd_safetensors_is_index(const uint8_t *bytes, size_t n);

/** The file to open for `path`: that of a model's folder, else `path` itself. `out_path` has
 *  PATH_MAX bytes. Errors: FILE (a folder without a model), LIMIT. */
enum tandem_status tnd_safetensors_in_folder(const char *path, char *out_path,
                                             struct tandem_error *error);

/** Reads one file in memory, which the source borrows; config.json is looked for beside `path`.
 *  Errors: FORMAT, TRUNCATED, UNSUPPORTED_BUILD, LIMIT, MEMORY, FILE. */
enum tandem_status tnd_safetensors_read(const void *bytes, size_t n, const char *path,
                                        tandem_source **out_source, struct tandem_error *error);
/** Reads model.safetensors.index.json and the files that it names. Errors: as above. */
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
 *  `ends` (NULL: none) count before those of config.json. `out_is_model` says whether it is an
 *  architecture whose names are mapped. Errors: FORMAT, LIMIT, MEMORY, UNSUPPORTED_BUILD (a member
 *  that may change results and is not computed). */
enum tandem_status tnd_safetensors_read_config(const void *bytes, size_t n, const char *path,
                                               const struct tnd_end_tokens *ends,
                                               tandem_source *source, bool *out_is_model,
                                               struct tandem_error *error);
/** End tokens of generation_config.json; `out` stays as it is where it says none. Errors: FORMAT,
 *  LIMIT. */
enum tandem_status tnd_safetensors_read_ends(const void *bytes, size_t n, const char *path,
                                             struct tnd_end_tokens *out,
                                             struct tandem_error *error);
/** The same from config.json and generation_config.json beside `path`, if there are any. Errors:
 *  also FILE. */
enum tandem_status tnd_safetensors_config_beside(const char *path, tandem_source *source,
                                                 bool *out_is_model, struct tandem_error *error);
/** hf_chat_template.c: chat templates of the files in a folder (its path with the last slash, or
 *  "") become the values tokenizer.chat_template and tokenizer.chat_template.NAME. Files that
 *  cannot be read give none. Errors: MEMORY. */
enum tandem_status tnd_hf_chat_templates(const char *folder, tandem_source *source,
                                         struct tandem_error *error);
/** hf_quantized.c: reads the object that says how weights are quantised. Errors:
 *  UNSUPPORTED_BUILD (tnd_hf_unpack does not know it), and those of a text that is no JSON. */
enum tandem_status tnd_hf_read_quantized(struct tnd_json *json, const char *member,
                                         struct tnd_hf_quantized *out, struct tandem_error *error);
/** hf_unpack.c: quantised weights become types of ours that hold them without loss. Errors: SHAPE,
 *  FORMAT, MEMORY, LIMIT, FILE. */
enum tandem_status tnd_hf_unpack(tandem_source *source, struct tandem_error *error);
/** hf_experts.c: puts the experts of each layer together that were read under names of their own,
 *  blk.N.ffn_gate.E.weight, as blk.N.ffn_gate_exps.weight {K, N, experts}. Nothing happens to
 *  models without experts. Errors: NOT_FOUND, SHAPE, OVERFLOW, MEMORY, LIMIT, FILE. */
enum tandem_status tnd_hf_join_experts(tandem_source *source, struct tandem_error *error);
/** hf_reshape.c: what a model's tensors go through when all are there: tnd_hf_unpack,
 *  tnd_hf_join_experts, then other names, rows in another order, transposed, one added (struct
 *  tnd_hf_family). Errors: those, and SHAPE. */
enum tandem_status tnd_hf_finish(tandem_source *source, struct tandem_error *error);
/** hf_names.c: name in the GGUF convention of a tensor of Hugging Face's llama, mistral, qwen2 or
 *  qwen3; the name itself when it is none of theirs. False for one that is not needed. */
bool tnd_safetensors_map_name(const char *name, char *out, size_t capacity);

#endif
