/* SPDX-License-Identifier: MIT
 * What the matrix products keep for a device. For gpu_matmul.c, its tuner and its tests. */
#ifndef TND_GPU_MATMUL_STATE_H
#define TND_GPU_MATMUL_STATE_H

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_tiles.h"
#include "tandem/tensor.h"

enum tnd_gpu_family {
    TND_GPU_FAMILY_AUTO = 0, /* by M */
    TND_GPU_FAMILY_MATVEC,   /* one token a group, whatever M */
    TND_GPU_FAMILY_SKINNY,
    TND_GPU_FAMILY_TILED
};

struct tnd_gpu_matmul {
    struct tnd_gpu_tiles tiles;
    enum tnd_gpu_family family; /* AUTO but in tests and while tuning */
    int use_subgroups;          /* 0: no, 1: yes, 2: pretended ones of one work-item, for tests */
    bool without_aligned;       /* for tests: no wide loads */
    bool without_blas;          /* our own F32 product although a library is there */
};

/** Types that decode.clh knows. */
bool tnd_gpu_has_decoder(enum tandem_type type);

/** Which kernels multiply m tokens with a matrix. */
enum tnd_gpu_family tnd_gpu_family_of(const struct tnd_gpu_matmul *self, uint32_t m);

/** Begins a launch of a kernel that sums as matvec.clh does. A device may say that it has subgroups
 *  whose functions its compiler does not build: then sums go through local memory, here and from
 *  now on. Errors: those of launches. */
enum tandem_status tnd_gpu_matvec_begin(struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                        struct tnd_gpu_variant *variant,
                                        struct tnd_gpu_launch *launch, struct tandem_error *error);

/** Says what a kernel with tiled.clh is built for; the variant's type and flags are there. */
void tnd_gpu_tiled_variant(const struct tnd_gpu_tiles *tiles, struct tnd_gpu_variant *variant);

/** Operands of Y {n, m} = X {k, m} * W {k, n}; rows begin..end-1 of W only. */
struct tnd_gpu_product {
    struct tnd_gpu_range w, x, y;
    enum tandem_type type; /* of W */
    uint32_t k, n, m;
    uint32_t begin, end;
};

/** Binds the kernel that is chosen for a product, and its work-items. Errors: those of launches. */
struct tnd_gpu_shape {
    int n_dims;
    size_t global[2], local[2];
};
enum tandem_status tnd_gpu_product_bind(struct tnd_gpu_device *device,
                                        const struct tnd_gpu_product *product,
                                        struct tnd_gpu_launch *launch,
                                        struct tnd_gpu_shape *out_shape,
                                        struct tandem_error *error);

/** Rows begin..end-1 of W to floats (or halves) at their places in product->y {k, n}. */
enum tandem_status tnd_gpu_dequantize(struct tnd_gpu_device *device,
                                      const struct tnd_gpu_product *product, bool to_half,
                                      struct tandem_error *error);

#endif
