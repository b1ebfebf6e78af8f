/* SPDX-License-Identifier: MIT
 * Speech to text with a published model. */
#ifndef TND_SPEECH_TEXT_H
#define TND_SPEECH_TEXT_H

#include "tandem/tokenizer.h"
#include "tools/args.h"
#include "tools/tandem-graph/speech.h"

struct tnd_speech_request {
    const char *sound, *encoder;        /* paths */
    const char *language;               /* "en", "<|en|>"; NULL: detected */
    const struct args_ints *prompt;     /* NULL: built from language and task */
    const struct tandem_onnx_dim *dims; /* extents of symbolic dimensions */
    int n_dims;
    int64_t n_tokens; /* maximum per window */
    bool translates, timestamps, prints_ids;
};

/** Prints the text of each window of the sound to stdout while it is generated; ids without a
 * tokenizer. Everything is borrowed for the call. Errors: ARGUMENT (the model lacks what the
 * request asks for), those of tnd_graph_sound, tnd_speech_logits, tandem_onnx_net,
 * tandem_runtime_compute. */
enum tandem_status tnd_speech_write(const struct tnd_speech_request *request,
                                    const struct tnd_speech_config *config,
                                    const tandem_tokenizer *tokenizer, tandem_onnx *encoder,
                                    const struct tnd_speech_decoder *decoder,
                                    struct tandem_error *error);

#endif
