/* SPDX-License-Identifier: MIT
 * Whisper models as optimum exports them (huggingface/optimum, exporters/onnx): an encoder; a
 * decoder of whole texts; perhaps one that continues from a text's keys and values ("with past"),
 * or both in one file ("merged", chosen by use_cache_branch). Inputs and outputs are found by their
 * roles. */
#ifndef TND_SPEECH_H
#define TND_SPEECH_H

#include "formats/speech_config.h"
#include "tandem/onnx_nets.h"
#include "tandem/runtime.h"

/** One or two decoders, for one sound at a time. All zero: nothing is open. */
struct tnd_speech_decoder {
    const char *paths[2]; /* for messages, borrowed: decoders without and with past */
    tandem_onnx *whole;   /* borrowed */
    tandem_onnx *past;    /* borrowed; NULL: none; equal to `whole`: merged */
    tandem_runtime *runtime;
    int64_t max_tokens;                 /* 0: unknown */
    const struct tandem_onnx_dim *dims; /* symbolic dimensions set by the user */
    int n_dims;
    struct tandem_net_array states; /* encoder output, borrowed */
    tandem_lowered *lowered;        /* computes tokens n_past .. n_past + room - 1 */
    int64_t n_past, room;
    int n_kept;                    /* keys and values of the text, and of the encoder output */
    struct tandem_net_array *kept; /* owned; named after inputs */
};

/** Begins the text of one sound; `states` is the encoder's output {1, frames, width}, borrowed
 * until the next begin. Errors: MEMORY. */
enum tandem_status tnd_speech_begin(struct tnd_speech_decoder *decoder,
                                    const struct tandem_net_array *states,
                                    struct tandem_error *error);
/** The logits after token n - 1 of a text, `out_vocabulary` of them, valid until the next call.
 * Between calls the text may only grow. Errors: those of tandem_onnx_net, tandem_net_lower and
 * tandem_runtime_compute, SHAPE (an unknown input, or one without fixed extents), LIMIT (more
 * tokens than the decoder has positions). */
enum tandem_status tnd_speech_logits(struct tnd_speech_decoder *decoder, const int32_t *tokens,
                                     int64_t n, const float **out_logits, int64_t *out_vocabulary,
                                     struct tandem_error *error);
/** Frees all memory of begin and logits. */
void tnd_speech_end(struct tnd_speech_decoder *decoder);

/** Whether a model has an input whose name contains `part`: `input_ids` for optimum's decoders,
 * `use_cache` for merged ones. */
bool tnd_speech_takes(const tandem_onnx *model, const char *part);

/** Rules for choosing tokens. */
struct tnd_speech_rules {
    const struct tnd_speech_config *config;
    int64_t n_prompt;  /* tokens before the text */
    int32_t timestamp; /* id of the first timestamp; -1: no timestamps */
};

/** The most likely token that these rules allow after `tokens`. Timestamps as in Whisper's decoding
 * (Radford et al. 2022, section 4.5; openai/whisper, ApplyTimestampRules): the text begins with
 * one, they come in pairs and never go back, and one is chosen if all timestamps together are more
 * likely than any other token. */
int32_t tnd_speech_choose(const struct tnd_speech_rules *rules, const int32_t *tokens, int64_t n,
                          const float *logits, int64_t vocabulary);
/** Whether a token ends the text. */
bool tnd_speech_is_end(const struct tnd_speech_config *config, int32_t token);

#endif
