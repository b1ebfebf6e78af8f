/* SPDX-License-Identifier: MIT
 * Llamas in PyTorch checkpoints under the names of their authors: consolidated.00.pth with
 * params.json, and what llama2.c's training saves ("model", "model_args"). */
#ifndef TND_TORCH_LLAMA_H
#define TND_TORCH_LLAMA_H

#include "formats/torch_pickle.h"

/** The dict of tensors of such a model in the object of a checkpoint; NULL when it is none. */
const struct tnd_pickle_value *tnd_torch_llama_weights(const struct tnd_pickle_value *root);
/** The dict under "state_dict", "model_state_dict" or "model", or `root` itself. */
const struct tnd_pickle_value *tnd_torch_state_dict(const struct tnd_pickle_value *root);
/** Name in the GGUF convention; the name itself when it is none of theirs. False for one that is
 *  not needed. */
bool tnd_torch_llama_name(const char *name, char *out, size_t capacity);
/** Adds the values of the model, whose tensors are in `source`: from "model_args", and from
 *  params.json beside `path`. Errors: FORMAT, UNSUPPORTED_BUILD (one of several parts), FILE,
 *  MEMORY. */
enum tandem_status tnd_torch_llama_values(const struct tnd_pickle_value *root, const char *path,
                                          tandem_source *source, struct tandem_error *error);

#endif
