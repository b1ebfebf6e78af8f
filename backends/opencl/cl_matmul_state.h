/* SPDX-License-Identifier: MIT
 * What the matrix products keep for a device. For cl_matmul.c, its tuner and its tests. */
#ifndef TND_CL_MATMUL_STATE_H
#define TND_CL_MATMUL_STATE_H

#include "backends/opencl/cl_launch.h"
#include "backends/opencl/cl_tiles.h"
#include "tandem/tensor.h"

enum tnd_cl_family {
    TND_CL_FAMILY_AUTO = 0, /* by M */
    TND_CL_FAMILY_MATVEC,   /* one token a group, whatever M */
    TND_CL_FAMILY_SKINNY,
    TND_CL_FAMILY_TILED
};

struct tnd_cl_matmul {
    struct tnd_cl_tiles tiles;
    enum tnd_cl_family family; /* AUTO but in tests and while tuning */
    int use_subgroups;         /* 0: no, 1: yes, 2: pretended ones of one work-item, for tests */
    bool without_aligned;      /* for tests: no wide loads */
    bool without_clblast;      /* our own F32 product although CLBlast is there */
    bool has_used_clblast;     /* its cache refers to the device's context */
};

/** Types that decode.clh knows. */
bool tnd_cl_has_decoder(enum tandem_type type);

/** Which kernels multiply m tokens with a matrix. */
enum tnd_cl_family tnd_cl_family_of(const struct tnd_cl_matmul *self, uint32_t m);

/** Begins a launch of a kernel that sums as matvec.clh does. A device may say that it has subgroups
 *  whose functions its compiler does not build: then sums go through local memory, here and from
 *  now on. Errors: those of launches. */
enum tandem_status tnd_cl_matvec_begin(struct tnd_cl_device *device, enum tnd_cl_source source,
                                       struct tnd_cl_variant *variant, struct tnd_cl_launch *launch,
                                       struct tandem_error *error);

/** Says what a kernel with tiled.clh is built for. */
void tnd_cl_tiled_variant(const struct tnd_cl_tiles *tiles, struct tnd_cl_variant *variant);

/** Operands of Y {n, m} = X {k, m} * W {k, n}; rows begin..end-1 of W only. */
struct tnd_cl_product {
    struct tnd_cl_range w, x, y;
    enum tandem_type type; /* of W */
    uint32_t k, n, m;
    uint32_t begin, end;
};

/** Binds the kernel that is chosen for a product, and its work-items. Errors: those of launches. */
struct tnd_cl_shape {
    int n_dims;
    size_t global[2], local[2];
};
enum tandem_status tnd_cl_product_bind(struct tnd_cl_device *device,
                                       const struct tnd_cl_product *product,
                                       struct tnd_cl_launch *launch, struct tnd_cl_shape *out_shape,
                                       struct tandem_error *error);

/** Rows begin..end-1 of W to floats (or halves) at their places in product->y {k, n}. */
enum tandem_status tnd_cl_dequantize(struct tnd_cl_device *device,
                                     const struct tnd_cl_product *product, bool to_half,
                                     struct tandem_error *error);

#endif
