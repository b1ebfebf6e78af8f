/* SPDX-License-Identifier: MIT
 * Tells by a file's first bytes what it is instead of the expected kind of model. */
#ifndef TND_MISTAKEN_H
#define TND_MISTAKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a file that is not a model of the expected kind is, for messages: "an empty file", "a GGUF
 * file, which tandem-llama runs". NULL: unknown. Does not recognise ONNX models. */
const char *tnd_mistaken_for(const uint8_t *bytes, size_t n);
/** Whether the bytes start like an ONNX model. */
bool tnd_mistaken_onnx(const uint8_t *bytes, size_t n);

#endif
