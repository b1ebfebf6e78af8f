/* SPDX-License-Identifier: MIT
 * Drivers of nets: one function per kind of work (ggml-like/work.h), which computes some of its
 * items with the kernels of an instruction set. */
#ifndef TND_CPU_NET_H
#define TND_CPU_NET_H

#include "backends/cpu/kernels/kernels.h"
#include "ggml-like/work.h"
#include "tandem/backend.h"

/** Computes items `begin` to `end - 1`. Thread-safe. */
typedef enum tandem_status tnd_cpu_work_fn(const struct tnd_cpu_kernels *kernels,
                                           const struct tandem_tensor *node, int64_t begin,
                                           int64_t end);
#define TND_CPU_WORK_FUNCTION(name, function) tnd_cpu_work_fn tnd_cpu_work_##function;
TND_WORK_KIND_LIST(TND_CPU_WORK_FUNCTION)
#undef TND_CPU_WORK_FUNCTION

/** Number of items, for kinds whose tiles depend on the kernels. */
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
/** Computes items `begin_item` to `end_item - 1`. `in`: addresses of the values at index 0. */
void tnd_fuse_run(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse,
                  const struct tnd_fuse_space *space, const void *const *in, void *out,
                  int64_t begin_item, int64_t end_item);

/** Computes one tile in place, bit-identical to tnd_fuse_run. */
void tnd_fuse_tile(const struct tnd_strip_kernel *kernel, const struct tnd_fuse *fuse,
                   const struct tnd_fuse_matrix *matrix, const void *const *in,
                   const struct tnd_fuse_tile *tile);

/* cpu_epilogue.c */
enum { TND_EPILOGUE_ROWS = 2 * TND_CONV_PIXELS }; /* most rows of a tile */
/** Writes a tile of finished sums through the epilogue (NULL: none) to the result: `y` is at the
 * tile's first value, `line` the stride between rows. `node` is the node that computes the sums. */
void tnd_epilogue_write(const struct tnd_strip_kernel *kernel, const struct tnd_epilogue *epilogue,
                        const struct tandem_tensor *node, const struct tnd_fuse_tile *tile,
                        float *y, int64_t line);

/** The epilogue (NULL: none) of a tile for kernels that apply it before sums leave the registers;
 * without codes they cannot. `line`: of the result; `operands` has room for all registers. */
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
/** Pointers for `n` output positions from `pixel` on, by tap and position: to values from
 * `channel` on, or to zeros in the padding. */
void tnd_conv_rows(const struct tnd_conv *conv, const float *x, int64_t pixel, int n,
                   int64_t channel, const float **rows);
/** Pointers to the columns that TND_CONV_LINE_PLACES output positions of a line read from `pixel`
 * on, by line of the window, all channels; to zeros in the padding and beyond the line. The stride
 * along the line is at most 2, taps at most TND_CONV_LINE_TAPS, no dilation. */
void tnd_conv_columns(const struct tnd_conv *conv, const float *x, int64_t pixel,
                      const float **columns);
/** Positions or tiles that are computed together, of `n` in all: as many as the kernel supports,
 * divided about evenly. */
int64_t tnd_conv_tile_pixels(const struct tnd_conv_kernel *kernel, int64_t n);

#endif
