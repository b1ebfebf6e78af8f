/* SPDX-License-Identifier: MIT
 * State of a device's matrix products. For gpu_matmul.c, its tuner and its tests. */
#ifndef TND_GPU_MATMUL_STATE_H
#define TND_GPU_MATMUL_STATE_H

#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_tiles.h"
#include "tandem/tensor.h"

enum tnd_gpu_family {
    TND_GPU_FAMILY_AUTO = 0, /* by M */
    TND_GPU_FAMILY_MATVEC,   /* one token per group, whatever M is */
    TND_GPU_FAMILY_SKINNY,
    TND_GPU_FAMILY_TILED
};

struct tnd_gpu_matmul {
    struct tnd_gpu_tiles tiles;
    enum tnd_gpu_family family; /* AUTO except in tests and while tuning */
    int use_subgroups;          /* 0: no, 1: yes, 2: simulated ones of one work-item, for tests */
    bool without_aligned;       /* for tests: no wide loads */
    bool without_blas;          /* uses our own F32 product even if there is a library */
};

/** Types that decode.clh supports. */
bool tnd_gpu_has_decoder(enum tandem_type type);

/** The family of kernels that multiplies m tokens by a matrix. */
enum tnd_gpu_family tnd_gpu_family_of(const struct tnd_gpu_matmul *self, uint32_t m);

/** Begins a launch of a kernel that sums as matvec.clh does. A device may report subgroups whose
 * functions its compiler cannot build: then sums use local memory, for this launch and all later
 * ones. Errors: those of launches. */
enum tandem_status tnd_gpu_matvec_begin(struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                        struct tnd_gpu_variant *variant,
                                        struct tnd_gpu_launch *launch, struct tandem_error *error);

/** Sets the options of a kernel that uses tiled.clh; the variant's type and flags must be set
 * already. */
void tnd_gpu_tiled_variant(const struct tnd_gpu_tiles *tiles, struct tnd_gpu_variant *variant);

/** Operands of Y {n, m} = X {k, m} * W {k, n}; only rows begin..end-1 of W. */
struct tnd_gpu_product {
    struct tnd_gpu_range w, x, y;
    enum tandem_type type; /* of W */
    uint32_t k, n, m;
    uint32_t begin, end;
};

/** Binds the kernel chosen for a product, and sets its work-items. Errors: those of launches. */
struct tnd_gpu_shape {
    int n_dims;
    size_t global[2], local[2];
};
enum tandem_status tnd_gpu_product_bind(struct tnd_gpu_device *device,
                                        const struct tnd_gpu_product *product,
                                        struct tnd_gpu_launch *launch,
                                        struct tnd_gpu_shape *out_shape,
                                        struct tandem_error *error);

/** Dequantises rows begin..end-1 of W to floats (or halves) at the same rows of product->y {k,
 * n}. */
enum tandem_status tnd_gpu_dequantize(struct tnd_gpu_device *device,
                                      const struct tnd_gpu_product *product, bool to_half,
                                      struct tandem_error *error);

#endif
