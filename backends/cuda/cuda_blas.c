/* SPDX-License-Identifier: MIT
 * Products with cuBLAS. A handle belongs to a context and allocates its memory, so it is created
 * when the device is opened, before weights take the memory.
 *
 * Precision. F32 weights are multiplied in plain F32 (CUBLAS_COMPUTE_32F with F32 operands): with
 * TF32, each operand keeps 10 bits of its mantissa, which gives a mean square error of about 2e-7,
 * while F32 products are allowed 1e-10. For quantised weights, whose own error is far larger, the
 * tuner may choose such a product (gpu_tune_gemm.c): TF32 from compute capability 8.0 on, which
 * takes floats directly and has their range; before that, halves. Sums are F32 in both. */
#include "backends/cuda/cuda_driver.h"

#include <stdio.h>

enum {
    CUBLAS_OK = 0,
    CUBLAS_ALLOC_FAILED = 3,
    NO_TRANSPOSE = 0,
    TRANSPOSE = 1,
    OF_FLOATS = 0, /* cudaDataType_t: CUDA_R_32F */
    OF_HALVES = 2, /* CUDA_R_16F */
    SUMS_F32 = 68, /* cublasComputeType_t: CUBLAS_COMPUTE_32F */
    SUMS_F32_OF_TF32 = 77,
    ANY_ALGORITHM = -1,
    FIRST_WITH_TF32 = 80
};

/* cublasStatus_t */
#define STATUS_LIST(X)                                                                             \
    X(SUCCESS, 0)                                                                                  \
    X(NOT_INITIALIZED, 1)                                                                          \
    X(ALLOC_FAILED, 3)                                                                             \
    X(INVALID_VALUE, 7)                                                                            \
    X(ARCH_MISMATCH, 8)                                                                            \
    X(MAPPING_ERROR, 11)                                                                           \
    X(EXECUTION_FAILED, 13)                                                                        \
    X(INTERNAL_ERROR, 14)                                                                          \
    X(NOT_SUPPORTED, 15)                                                                           \
    X(LICENSE_ERROR, 16)

static const char *name_of(int status)
{
    switch (status) {
#define STATUS_CASE(name, number)                                                                  \
    case number:                                                                                   \
        return "CUBLAS_STATUS_" #name;
        STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default:
        return "an unknown status";
    }
}

/* cuBLAS uses the thread's current context, which may be another library's. */
static enum tandem_status enter(const struct tnd_cuda_context *self, struct tandem_error *error)
{
    return tnd_cuda_check(self->library, self->base.name, "cuCtxPushCurrent",
                          self->library->cu.CtxPushCurrent(self->context), error);
}

static void leave(const struct tnd_cuda_context *self)
{
    tnd_cu_context popped = NULL;
    (void)self->library->cu.CtxPopCurrent(&popped);
}

/* cuBLAS reports a lost device only as a failure; libcuda knows the reason. Call it with the
 * context current. */
static enum tandem_status check(const struct tnd_cuda_context *self, const char *call, int status,
                                struct tandem_error *error)
{
    if (status == CUBLAS_OK) {
        return TANDEM_OK;
    }
    const int code = self->library->cu.CtxSynchronize();
    if (tnd_cuda_is_lost(code)) {
        return tnd_cuda_check(self->library, self->base.name, call, code, error);
    }
    return tnd_error_set(error,
                         status == CUBLAS_ALLOC_FAILED ? TANDEM_E_DEVICE_MEMORY : TANDEM_E_DEVICE,
                         self->base.name, status, 0, "cuda device '%s': %s failed with %s (%d)",
                         self->base.name, call, name_of(status), status);
}

static enum tandem_status make_handle(struct tnd_cuda_context *self, struct tandem_error *error)
{
    const struct tnd_cublas_functions *blas = &self->library->blas;
    TND_TRY(enter(self, error));
    enum tandem_status status = check(self, "cublasCreate", blas->Create(&self->blas), error);
    if (status == TANDEM_OK) {
        status = check(self, "cublasSetStream",
                       blas->SetStream(self->blas, self->streams[TND_GPU_QUEUE_WORK]), error);
    }
    leave(self);
    return status;
}

void tnd_cuda_blas_open(struct tnd_cuda_context *self, int capability)
{
    struct tnd_gpu_context *base = &self->base;
    struct tandem_error told = {0};
    if (!self->library->has_blas) {
        snprintf(base->blas_reason, sizeof(base->blas_reason), "%s", self->library->blas_reason);
    } else if (make_handle(self, &told) != TANDEM_OK) {
        snprintf(base->blas_reason, sizeof(base->blas_reason), "%.190s", told.text);
        tnd_cuda_blas_close(self);
    } else {
        base->has_blas = true;
        base->has_blas_half = true;
        base->blas_sums =
            capability >= FIRST_WITH_TF32 ? TND_GPU_SUMS_F32_OF_F32 : TND_GPU_SUMS_F32;
        base->blas_version = self->library->blas_version;
    }
}

/* Needed on a lost device, too: the handle has host memory. */
void tnd_cuda_blas_close(struct tnd_cuda_context *self)
{
    if (self->blas != NULL) {
        const bool is_inside = enter(self, NULL) == TANDEM_OK;
        (void)self->library->blas.Destroy(self->blas);
        self->blas = NULL;
        if (is_inside) {
            leave(self);
        }
    }
}

/* In the column order of cuBLAS: Y {n, m} = W' {n, k} * X {k, m}; each column of Y is a row of
 * ours. */
enum tandem_status tnd_cuda_product(struct tnd_gpu_context *context, const struct tnd_gpu_blas *p,
                                    struct tandem_error *error)
{
    struct tnd_cuda_context *self = (struct tnd_cuda_context *)context;
    const bool has_halves = p->is_half && context->blas_sums != TND_GPU_SUMS_F32_OF_F32;
    const size_t element = has_halves ? sizeof(uint16_t) : sizeof(float);
    const int type = has_halves ? OF_HALVES : OF_FLOATS;
    const int sums = p->is_half && !has_halves ? SUMS_F32_OF_TF32 : SUMS_F32;
    const char *w = (const char *)p->w + p->w_at + p->begin * p->k * element;
    const char *x = (const char *)p->x + p->x_at;
    char *y = (char *)p->y + p->y_at + p->begin * sizeof(float);
    const float one = 1.0F;
    const float zero = 0.0F;                  /* beta: Y is not read */
    TND_TRY(tnd_cuda_submit(context, error)); /* gathered launches may write its operands */
    TND_TRY(enter(self, error));
    const int code =
        self->library->blas.GemmEx(self->blas, TRANSPOSE, NO_TRANSPOSE, (int)(p->end - p->begin),
                                   (int)p->m, (int)p->k, &one, w, type, (int)p->k, x, type,
                                   (int)p->k, &zero, y, OF_FLOATS, (int)p->n, sums, ANY_ALGORITHM);
    const enum tandem_status status = check(self, "cublasGemmEx", code, error);
    leave(self);
    return status;
}
