/* SPDX-License-Identifier: MIT
 * From a sound to its text, by a published model. */
#ifndef TND_SPEECH_TEXT_H
#define TND_SPEECH_TEXT_H

#include "tandem/tokenizer.h"
#include "tools/args.h"
#include "tools/tandem-graph/speech.h"

struct tnd_speech_request {
    const char *sound, *encoder;        /* paths */
    const char *language;               /* "en", "<|en|>"; NULL: the model finds it */
    const struct args_ints *prompt;     /* NULL: that of language and task */
    const struct tandem_onnx_dim *dims; /* extents of symbolic dimensions */
    int n_dims;
    int64_t n_tokens; /* of a window at most */
    bool translates, timestamps, prints_ids;
};

/** Prints the text of each window of the sound to stdout while it is found; ids where there is no
 *  tokenizer. Everything is borrowed for the call. Errors: ARGUMENT (what is asked for is not in
 *  the model), those of tnd_graph_sound, tnd_speech_logits, tandem_onnx_net,
 *  tandem_runtime_compute. */
enum tandem_status tnd_speech_write(const struct tnd_speech_request *request,
                                    const struct tnd_speech_config *config,
                                    const tandem_tokenizer *tokenizer, tandem_onnx *encoder,
                                    const struct tnd_speech_decoder *decoder,
                                    struct tandem_error *error);

#endif
