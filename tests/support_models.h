/* SPDX-License-Identifier: MIT
 * Small model files for tests, in every format but GGUF, written from the tensors of a source with
 * the names of the GGUF convention (a synthetic llama, the trained checkpoint), F32. */
#ifndef TND_TESTS_SUPPORT_MODELS_H
#define TND_TESTS_SUPPORT_MODELS_H

#include "tandem/formats.h"
#include "tests/support_blob.h"

/** A llama2.c checkpoint, version 0. */
bool tnd_model_write_llama2c(const tandem_source *model, const char *path);
/** Part `part` of `parts` as a safetensors file under Hugging Face's names, rows of q and k in
 *  halves; every parts-th tensor is in it. */
bool tnd_model_write_safetensors(const tandem_source *model, const char *path, int part, int parts);
/** The index of `parts` files, whose names are made by `format` ("part-%d.safetensors") from 1. */
bool tnd_model_write_index(const tandem_source *model, const char *path, const char *format,
                           int parts);
/** config.json of Hugging Face. `more`: further members such as "\"rope_scaling\":{...}", or "". */
bool tnd_model_write_config(const tandem_source *model, const char *path, const char *more);
/** PyTorch: an archive, or pickles one behind the other as before version 1.6. Names and values are
 *  those of the source, in one dict. */
bool tnd_model_write_torch(const tandem_source *model, const char *path, bool is_legacy);
/** The archive pytorch_model.bin of Hugging Face: their names, rows of q and k in halves. */
bool tnd_model_write_torch_hf(const tandem_source *model, const char *path);
/** Part `part` of `parts` of it. `is_bare`: within {"state_dict": ...}, names without "model.". */
bool tnd_model_write_torch_part(const tandem_source *model, const char *path, int part, int parts,
                                bool is_bare);
/** consolidated.00.pth under the names of llama's authors; `is_nested`: as llama2.c's training
 *  saves it, with "model" and "model_args". */
bool tnd_model_write_torch_llama(const tandem_source *model, const char *path, bool is_nested);
/** params.json beside it. */
bool tnd_model_write_params(const tandem_source *model, const char *path);
/** A llama2.c tokenizer of so many tokens: <unk>, begin, end, 256 bytes, then letters and pairs. */
bool tnd_model_write_tokenizer(const char *path, int vocabulary);

#endif
