/* SPDX-License-Identifier: MIT
 * room: backends
 *
 * X(NAME, "text", columns, "what it does"): the units of work that a backend may offer for a stage
 * of a node. Names stand in table files and are pinned. The columns (backends/task.h) say what
 * other rooms need to know of a task, so that none of them tests for a particular one. Formats in
 * the workspace of a node: dequantized W: F32, row-major {K, N}, dense, from the first byte
 * quantized X:   the backend's own layout, read only by the same backend's mul_mat_q */
#define TANDEM_TASK_LIST(X)                                                                        \
    X(NONE, "none", 0, "the stage does not exist")                                                 \
    X(NODE, "node", TND_TASK_WHOLE | TND_TASK_READS_W | TND_TASK_READS_X | TND_TASK_WRITES_RESULT, \
      "the whole operation in one stage")                                                          \
    X(NODE_STREAMED, "node_streamed",                                                              \
      TND_TASK_WHOLE | TND_TASK_READS_W | TND_TASK_READS_X | TND_TASK_WRITES_RESULT |              \
          TND_TASK_STREAMS_W,                                                                      \
      "the same on a device, with constant weights that the executor uploads each time")           \
    X(QUANTIZE_X, "quantize_x", TND_TASK_READS_X | TND_TASK_LEAVES_X | TND_TASK_BY_TOKEN,          \
      "activations to 8-bit blocks in the workspace")                                              \
    X(DEQUANTIZE_W, "dequantize_w", TND_TASK_READS_W | TND_TASK_LEAVES_W,                          \
      "weights to F32 in the workspace")                                                           \
    X(MUL_MAT_Q, "mul_mat_q",                                                                      \
      TND_TASK_READS_W | TND_TASK_READS_X | TND_TASK_USES_LEFT_X | TND_TASK_WRITES_RESULT,         \
      "quantised weights times the quantised activations")                                         \
    X(MUL_MAT_PACKED, "mul_mat_packed",                                                            \
      TND_TASK_READS_W | TND_TASK_READS_X | TND_TASK_USES_PACKED | TND_TASK_WRITES_RESULT,         \
      "the same, over the backend's own copy, packed once")                                        \
    X(TILE_X, "tile_x", TND_TASK_READS_X | TND_TASK_LEAVES_X | TND_TASK_BY_TOKEN,                  \
      "activations to 8-bit tiles in the workspace")                                               \
    X(MUL_MAT_TILES, "mul_mat_tiles",                                                              \
      TND_TASK_READS_W | TND_TASK_READS_X | TND_TASK_USES_LEFT_X | TND_TASK_USES_PACKED |          \
          TND_TASK_WRITES_RESULT,                                                                  \
      "weights, of the backend's own copy where there is one, times the tiles")                    \
    X(MUL_MAT_F32, "mul_mat_f32",                                                                  \
      TND_TASK_READS_X | TND_TASK_USES_LEFT_W | TND_TASK_WRITES_RESULT,                            \
      "F32 weights, dequantised or given, times F32 activations")                                  \
    X(FINALIZE, "finalize", TND_TASK_FETCHES,                                                      \
      "the result to host memory, by the library itself: no backend is asked")                     \
    X(MUL_MAT_BF16, "mul_mat_bf16",                                                                \
      TND_TASK_READS_W | TND_TASK_READS_X | TND_TASK_USES_PACKED | TND_TASK_WRITES_RESULT,         \
      "BF16 weights, of the backend's own copy, times activations rounded to BF16")
