/* SPDX-License-Identifier: MIT
 * Files that were taken for models of another kind: what their first bytes say. */
#include "formats/mistaken.h"

#include <string.h>

#include "formats/safetensors.h"

static const struct {
    const char *begin, *what;
} kinds[] = {
    {"GGUF", "a GGUF file, which tandem-llama runs"},
    {"PK\x03\x04", "a ZIP archive, as PyTorch and NumPy (.npz) write"},
    {"\x93NUMPY", "an array of NumPy"},
    {"version https://git-lfs", "a Git LFS pointer: 'git lfs pull' fetches the file"},
    {"<!DOCTYPE", "a web page: download the file itself"},
    {"<!doctype", "a web page: download the file itself"},
    {"<html", "a web page: download the file itself"},
};

/* The field ir_version (1, a number below 128), then another one of ModelProto, 2 to 8 (onnx.proto
 * of onnx/onnx), of which model_version (5) is a number and the others have a length. */
bool tnd_mistaken_onnx(const uint8_t *bytes, size_t n)
{
    return n >= 3 && bytes[0] == 0x08 && bytes[1] < 0x80 && bytes[2] >= 0x12 && bytes[2] <= 0x42 &&
           (bytes[2] & 7) == (bytes[2] == 0x28 ? 0 : 2);
}

const char *tnd_mistaken_for(const uint8_t *bytes, size_t n)
{
    if (n == 0) {
        return "an empty file";
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t length = strlen(kinds[i].begin);
        if (n >= length && memcmp(bytes, kinds[i].begin, length) == 0) {
            return kinds[i].what;
        }
    }
    return tnd_safetensors_is(bytes, n) ? "a safetensors file, which tandem-llama runs" : NULL;
}
