/* SPDX-License-Identifier: MIT
 * Cases of single ONNX operators, written as text: a model of one node is made in memory, its net
 * built and run by the reference. */
#ifndef TND_SUITE_FORMATS_ONNX_CASE_H
#define TND_SUITE_FORMATS_ONNX_CASE_H

#include "formats/onnx_build.h"
#include "formats/onnx_op.h"
#include "tests/support.h"

#define ONNX_CASE_MAX 12 /* operands; results */

/** Arrays are written "float32[2,3] 1 2 nan -inf 0.5 6", "int64[] 7"; attributes "axis=1 alpha=0.5
 *  axes=[0,1] mode='LEFT' words=['a','b'] value={float32[1] 2}", a number with a point being a
 *  float. An operator of another domain than ONNX's has it in front: "com.microsoft.Gelu". */
struct onnx_case {
    const char *op;
    int opset;
    const char *attributes;
    const char *in[ONNX_CASE_MAX]; /* "": left out; NULL: the end */
    const char
        *want[ONNX_CASE_MAX]; /* likewise; one that begins with "!": refused with this text */
};

void check_onnx_case(const struct onnx_case *it);
#define check_onnx_cases(list)                                                                     \
    do {                                                                                           \
        for (size_t onnx_i = 0; onnx_i < sizeof(list) / sizeof((list)[0]); onnx_i++) {             \
            check_onnx_case(&(list)[onnx_i]);                                                      \
        }                                                                                          \
    } while (0)

/** The array of a text, which the caller frees. */
struct tnd_array *onnx_case_array(const char *text);
/** Whether two arrays hold the same values, floats as far as their type says; `what` stands in the
 *  message. */
void check_onnx_array(const struct tnd_array *got, const char *want, const char *what);

#endif
