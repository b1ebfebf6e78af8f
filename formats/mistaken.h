/* SPDX-License-Identifier: MIT
 * Files that were taken for models of another kind: what their first bytes say. */
#ifndef TND_MISTAKEN_H
#define TND_MISTAKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a file is that is no model of the kind looked for, for a message: "an empty file", "a GGUF
 *  file, which tandem-llama runs". NULL: its first bytes do not say. Knows no ONNX models. */
const char *tnd_mistaken_for(const uint8_t *bytes, size_t n);
/** Whether bytes begin as an ONNX model does. */
bool tnd_mistaken_onnx(const uint8_t *bytes, size_t n);

#endif
