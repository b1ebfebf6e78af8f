/* SPDX-License-Identifier: MIT
 * Llama models in PyTorch checkpoints with Meta's names: consolidated.00.pth with params.json, and
 * those that llama2.c's training saves ("model", "model_args"). */
#ifndef TND_TORCH_LLAMA_H
#define TND_TORCH_LLAMA_H

#include "formats/torch_pickle.h"

/** The dict of tensors in a checkpoint's root object; NULL: not such a model. */
const struct tnd_pickle_value *tnd_torch_llama_weights(const struct tnd_pickle_value *root);
/** The dict under "state_dict", "model_state_dict" or "model", or `root` itself. */
const struct tnd_pickle_value *tnd_torch_state_dict(const struct tnd_pickle_value *root);
/** Maps a tensor name to the GGUF convention; unknown names are copied. False: the tensor is not
 * needed. */
bool tnd_torch_llama_name(const char *name, char *out, size_t capacity);
/** Adds the values of the model, whose tensors are in `source`: from "model_args", and from
 * params.json in the folder of `path`. Errors: FORMAT, UNSUPPORTED_BUILD (a model of several
 * parts), FILE, MEMORY. */
enum tandem_status tnd_torch_llama_values(const struct tnd_pickle_value *root, const char *path,
                                          tandem_source *source, struct tandem_error *error);

#endif
