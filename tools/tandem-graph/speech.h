/* SPDX-License-Identifier: MIT
 * Whisper models as optimum exports them (huggingface/optimum, exporters/onnx): an encoder; a
 * decoder of whole texts; perhaps one that goes on behind keys and values of a text ("with past"),
 * or both in one file ("merged", chosen by use_cache_branch). Inputs and outputs are found by their
 * roles. */
#ifndef TND_SPEECH_H
#define TND_SPEECH_H

#include "formats/speech_config.h"
#include "tandem/onnx_nets.h"
#include "tandem/runtime.h"

/** One decoder, or two, for the text of one sound at a time. All zero: nothing is open. */
struct tnd_speech_decoder {
    const char *paths[2]; /* for messages, borrowed: of whole texts, with past */
    tandem_onnx *whole;   /* borrowed */
    tandem_onnx *past;    /* borrowed; NULL: none; the same one as `whole`: merged */
    tandem_runtime *runtime;
    int64_t max_tokens;                 /* 0: not known */
    const struct tandem_onnx_dim *dims; /* extents that the user gave, by name */
    int n_dims;
    struct tandem_net_array states; /* of the encoder, borrowed */
    tandem_lowered *lowered;        /* computes tokens n_past .. n_past + room - 1 */
    int64_t n_past, room;
    int n_kept;                    /* keys and values of the text, and of the states */
    struct tandem_net_array *kept; /* owned, with names of inputs */
};

/** Begins the text of one sound: {1, frames, width} states of the encoder, borrowed until the next
 *  begin. Errors: MEMORY. */
enum tandem_status tnd_speech_begin(struct tnd_speech_decoder *decoder,
                                    const struct tandem_net_array *states,
                                    struct tandem_error *error);
/** The logits behind token n - 1 of a text, `out_vocabulary` of them, which live until the next
 *  call. The text only grows between calls. Errors: those of tandem_onnx_net, tandem_net_lower and
 *  tandem_runtime_compute, SHAPE (an input that is not known, or without fixed extents), LIMIT
 *  (more tokens than the decoder has positions). */
enum tandem_status tnd_speech_logits(struct tnd_speech_decoder *decoder, const int32_t *tokens,
                                     int64_t n, const float **out_logits, int64_t *out_vocabulary,
                                     struct tandem_error *error);
/** Frees all that begin and logits have made. */
void tnd_speech_end(struct tnd_speech_decoder *decoder);

/** Whether a model has an input with this in its name: `input_ids` of optimum's decoders,
 *  `use_cache` of merged ones. */
bool tnd_speech_takes(const tandem_onnx *model, const char *part);

/** How a text is written down. */
struct tnd_speech_rules {
    const struct tnd_speech_config *config;
    int64_t n_prompt;  /* tokens in front of the text */
    int32_t timestamp; /* the first timestamp's id; -1: none are wanted */
};

/** The next token by these rules: the likeliest one that is allowed behind `tokens`. Timestamps as
 *  in Whisper's decoding (Radford et al. 2022, section 4.5; openai/whisper, ApplyTimestampRules):
 *  the text begins with one, they come in pairs and never go back, and one is taken where all
 *  together are likelier than each other token. */
int32_t tnd_speech_choose(const struct tnd_speech_rules *rules, const int32_t *tokens, int64_t n,
                          const float *logits, int64_t vocabulary);
/** Whether a token ends the text. */
bool tnd_speech_is_end(const struct tnd_speech_config *config, int32_t token);

#endif
