/* SPDX-License-Identifier: MIT
 * Drivers of nets: one function a kind of work (ggml-like/work.h), which computes some of its items
 * with the kernels of an instruction set. */
#ifndef TND_CPU_NET_H
#define TND_CPU_NET_H

#include "backends/cpu/kernels/kernels.h"
#include "ggml-like/work.h"
#include "tandem/backend.h"

/** Computes items `begin` to `end - 1`. Any thread, several at once. */
typedef enum tandem_status tnd_cpu_work_fn(const struct tnd_cpu_kernels *kernels,
                                           const struct tandem_tensor *node, int64_t begin,
                                           int64_t end);
#define TND_CPU_WORK_FUNCTION(name, function) tnd_cpu_work_fn tnd_cpu_work_##function;
TND_WORK_KIND_LIST(TND_CPU_WORK_FUNCTION)
#undef TND_CPU_WORK_FUNCTION

/** How many items there are, of kinds whose tiles depend on kernels. */
int64_t tnd_cpu_items_program(const struct tnd_cpu_kernels *kernels, const struct tnd_work *work);
int64_t tnd_cpu_items_conv(const struct tnd_cpu_kernels *kernels, const struct tnd_work *work);
int64_t tnd_cpu_items_winograd(const struct tnd_cpu_kernels *kernels, const struct tnd_work *work);

/* cpu_transpose.c: programs that only swap two dimensions */
bool tnd_cpu_transposes(const struct tnd_work *work);
int64_t tnd_cpu_transpose_items(const struct tnd_work *work);
void tnd_cpu_transpose(const struct tnd_work *work, const struct tandem_tensor *node, int64_t begin,
                       int64_t end);

/* cpu_recurrent.c: all workers of the stage call it */
void tnd_cpu_recurrent(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                       struct tandem_worker *worker);

/* cpu_program.c */
/** Computes items `begin_item` to `end_item - 1`. `in`: where the values at index 0 are. */
void tnd_fuse_run(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse,
                  const struct tnd_fuse_space *space, const void *const *in, void *out,
                  int64_t begin_item, int64_t end_item);

/** Computes one tile in place, with the bits of tnd_fuse_run. */
void tnd_fuse_tile(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse,
                   const struct tnd_fuse_matrix *matrix, const void *const *in,
                   const struct tnd_fuse_tile *tile);

/* cpu_epilogue.c */
enum { TND_EPILOGUE_ROWS = 2 * TND_CONV_PIXELS }; /* of a tile, at most */
/** Values of a tile, when all their sums are there, through the epilogue (NULL: none) to the
 *  result, `y` at its first value, `line` from one row to the next. `node` is the one that
 *  computes. */
void tnd_epilogue_write(const struct tnd_strip_kernel *kernel, const struct tnd_epilogue *epilogue,
                        const struct tandem_tensor *node, const struct tnd_fuse_tile *tile,
                        float *y, int64_t line);

/** The epilogue (NULL: none) of a tile as kernels run it before its sums leave the registers;
 *  without codes: they do not. `line`: of the result; `operands` have room for all registers. */
struct tnd_conv_ending tnd_epilogue_ending(const struct tnd_conv_kernel *kernel,
                                           const struct tnd_epilogue *epilogue,
                                           const struct tandem_tensor *node,
                                           const struct tnd_fuse_tile *tile, int64_t line,
                                           struct tnd_strip_operand *operands);

/* cpu_depthwise.c: convolutions of one filter a channel */
int64_t tnd_cpu_depthwise_items(const struct tnd_conv *conv);
void tnd_cpu_depthwise(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv,
                       const struct tandem_tensor *node, int64_t begin, int64_t end);

/* cpu_conv_rows.c */
/** Pointers of `n` places of the result from `pixel` on, by tap and place: to values from `channel`
 *  on, or to zeros where the window lies in the padding. */
void tnd_conv_rows(const struct tnd_conv *conv, const float *x, int64_t pixel, int n,
                   int64_t channel, const float **rows);
/** Pointers to the columns that TND_CONV_LINE_PLACES places of a line of the result see from
 *  `pixel` on, by line of the window, all channels: zeros in the padding and behind the line. Steps
 *  along the line are at most 2, taps at most TND_CONV_LINE_TAPS without dilation. */
void tnd_conv_columns(const struct tnd_conv *conv, const float *x, int64_t pixel,
                      const float **columns);
/** How many places or tiles are computed together, of `n` in all: as many as the kernel can, in
 *  about equal parts. */
int64_t tnd_conv_tile_pixels(const struct tnd_conv_kernel *kernel, int64_t n);

#endif
