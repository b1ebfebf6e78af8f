/* SPDX-License-Identifier: MIT
 * room: backends
 *
 * X(NAME, "text", "what it does"): the units of work that a backend may offer for a stage of a
 * node. Names stand in table files and are pinned. Formats in the workspace of a node:
 *   dequantized W: F32, row-major {K, N}, dense, from the first byte
 *   quantized X:   the backend's own layout, read only by the same backend's mul_mat_q */
#define TANDEM_TASK_LIST(X)                                                                        \
    X(NONE, "none", "the stage does not exist")                                                    \
    X(NODE, "node", "the whole operation in one stage")                                            \
    X(QUANTIZE_X, "quantize_x", "activations to 8-bit blocks in the workspace")                    \
    X(DEQUANTIZE_W, "dequantize_w", "weights to F32 in the workspace")                             \
    X(MUL_MAT_Q, "mul_mat_q", "quantised weights times the quantised activations")                 \
    X(MUL_MAT_PACKED, "mul_mat_packed", "the same, over the backend's own copy, packed once")      \
    X(MUL_MAT_F32, "mul_mat_f32", "F32 weights, dequantised or given, times F32 activations") \
    X(FINALIZE, "finalize", "what remains after COMPUTE, for instance fetching a result")
