/* SPDX-License-Identifier: MIT
 * Products by a library. CLBlast's kernels have parameters, and it knows good ones for the devices
 * of its authors; for others the rows below are alternatives, from which gpu_tune.c chooses the
 * best. Names of parameters and rules between them: CLBlast's src/tuning/kernels/xgemm.hpp and
 * xgemm_direct.hpp. */
#include "backends/gpu/gpu_gemm.h"

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"

/* X(KWG, KWI, MWG, NWG, MDIM, NDIM, local memory, vector of M, vector of N): tile MWG x NWG x KWG,
 * group MDIM x NDIM. */
#define GEMM_ROWS(X)                                                                               \
    X(32, 2, 128, 64, 16, 16, 1, 4, 4)                                                             \
    X(16, 2, 128, 128, 16, 16, 1, 4, 4)                                                            \
    X(32, 2, 64, 64, 16, 16, 1, 4, 4)                                                              \
    X(32, 2, 64, 64, 8, 8, 1, 4, 4)                                                                \
    X(32, 2, 32, 32, 8, 8, 1, 2, 2)                                                                \
    X(32, 2, 64, 64, 8, 8, 0, 4, 4)                                                                \
    X(32, 2, 64, 32, 4, 4, 0, 8, 4)                                                                \
    X(32, 2, 64, 64, 4, 4, 0, 8, 8)

struct gemm_row {
    int32_t kwg, kwi, mwg, nwg, mdim, ndim, local, vwm, vwn;
};
static const struct gemm_row gemm_rows[] = {
#define GEMM_ROW(...) {__VA_ARGS__},
    GEMM_ROWS(GEMM_ROW)
#undef GEMM_ROW
};
enum { N_GEMM_ROWS = sizeof(gemm_rows) / sizeof(gemm_rows[0]) };

/* Rules of CLBlast's kernels; a row that violates one does not compile there. */
#define FOLLOWS_RULES(kwg, kwi, mwg, nwg, mdim, ndim, local, vwm, vwn)                             \
    _Static_assert((kwg) % (kwi) == 0 && (mwg) % ((mdim) * (vwm)) == 0 &&                          \
                       (nwg) % ((ndim) * (vwn)) == 0 && (kwg) % (ndim) == 0 &&                     \
                       (kwg) % (mdim) == 0,                                                        \
                   "a row of parameters that CLBlast cannot build");
GEMM_ROWS(FOLLOWS_RULES)
#undef FOLLOWS_RULES

int tnd_gpu_gemm_rows(void)
{
    return N_GEMM_ROWS;
}

bool tnd_gpu_gemm_fits(const struct tnd_gpu_caps *caps, int32_t row)
{
    if (row <= 0 || row > N_GEMM_ROWS) {
        return row == 0;
    }
    const struct gemm_row *p = &gemm_rows[row - 1];
    size_t local_bytes =
        (size_t)p->local * (size_t)(p->mwg + p->nwg) * (size_t)p->kwg * sizeof(float);
    return (size_t)(p->mdim * p->ndim) <= caps->max_group &&
           (size_t)p->mdim <= caps->max_items[0] && (size_t)p->ndim <= caps->max_items[1] &&
           local_bytes <= caps->local_bytes;
}

enum tandem_status tnd_gpu_gemm_choose(struct tnd_gpu_device *device, int32_t row,
                                       struct tandem_error *error)
{
    if (!device->context->has_blas_parameters || row < 1 || row > N_GEMM_ROWS) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, device->name, row, N_GEMM_ROWS,
                             "%s: no CLBlast that takes parameters", device->name);
    }
    const struct gemm_row *p = &gemm_rows[row - 1];
    const struct {
        const char *name;
        int32_t value;
    } parameters[] = {
        {"GEMMK", 0},       {"KREG", 1},        {"KWG", p->kwg},  {"KWI", p->kwi},
        {"MDIMA", p->mdim}, {"MDIMC", p->mdim}, {"MWG", p->mwg},  {"NDIMB", p->ndim},
        {"NDIMC", p->ndim}, {"NWG", p->nwg},    {"SA", p->local}, {"SB", p->local},
        {"STRM", 0},        {"STRN", 0},        {"VWM", p->vwm},  {"VWN", p->vwn},
    };
    enum { N = sizeof(parameters) / sizeof(parameters[0]) };
    const char *names[N];
    size_t values[N];
    for (int i = 0; i < N; i++) {
        names[i] = parameters[i].name;
        values[i] = (size_t)parameters[i].value;
    }
    return device->driver->override_parameters(device->context, N, names, values, error);
}

static enum tandem_status submit(struct tnd_gpu_device *device, const struct tnd_gpu_gemm *p,
                                 bool is_half, struct tandem_error *error)
{
    const struct tnd_gpu_blas call = {p->w.buffer, p->x.buffer, p->y.buffer, p->w.offset,
                                      p->x.offset, p->y.offset, p->n,        p->m,
                                      p->k,        p->begin,    p->end,      is_half};
    return device->driver->product(device->context, &call, error);
}

enum tandem_status tnd_gpu_gemm_submit(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_gemm *product,
                                       struct tandem_error *error)
{
    return submit(device, product, false, error);
}

/* Converts rows of `k` values between F32 and F16. */
static enum tandem_status convert(struct tnd_gpu_device *device, struct tnd_gpu_range from,
                                  enum tandem_type type, struct tnd_gpu_range to, size_t k,
                                  size_t rows, struct tandem_error *error)
{
    struct tnd_gpu_product product = {.w = from,
                                      .x = from,
                                      .y = to,
                                      .type = type,
                                      .k = (uint32_t)k,
                                      .n = (uint32_t)rows,
                                      .end = (uint32_t)rows};
    return tnd_gpu_dequantize(device, &product, type == TANDEM_TYPE_F32, error);
}

bool tnd_gpu_gemm_has_half(const struct tnd_gpu_device *device)
{
    const struct tnd_gpu_context *context = device->context;
    return context->has_blas_half && (context->blas_sums != TND_GPU_SUMS_HALF || device->caps.fp16);
}

enum tandem_status tnd_gpu_gemm_submit_half(struct tnd_gpu_device *device,
                                            const struct tnd_gpu_gemm *product,
                                            struct tandem_error *error)
{
    const struct tnd_gpu_gemm *p = product;
    const enum tnd_gpu_sums sums = device->context->blas_sums;
    struct tnd_gpu_gemm half = {.n = p->n, .m = p->m, .k = p->k, .end = p->n, .y = p->y};
    if (sums == TND_GPU_SUMS_F32_OF_F32) {
        return submit(device, p, true, error);
    }
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_HALF_W, p->k * p->n * sizeof(uint16_t), &half.w,
                            error));
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_HALF_X, p->k * p->m * sizeof(uint16_t), &half.x,
                            error));
    if (sums == TND_GPU_SUMS_HALF) {
        TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_HALF_Y, p->n * p->m * sizeof(uint16_t),
                                &half.y, error));
    }
    TND_TRY(convert(device, p->w, TANDEM_TYPE_F32, half.w, p->k, p->n, error));
    TND_TRY(convert(device, p->x, TANDEM_TYPE_F32, half.x, p->k, p->m, error));
    TND_TRY(submit(device, &half, true, error));
    return sums == TND_GPU_SUMS_HALF
               ? convert(device, half.y, TANDEM_TYPE_F16, p->y, p->n, p->m, error)
               : TANDEM_OK;
}
