/* SPDX-License-Identifier: MIT
 * The stand-ins for NVIDIA's libraries, opened as a driver would open them. */
#ifndef TND_SUITE_CUDA_H
#define TND_SUITE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "tandem/tensor.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/support.h"

/** X(name, arguments): functions of the driver, all of which return int. */
#define TND_CU_LIST(X)                                                                             \
    X(Init, (unsigned flags))                                                                      \
    X(DeviceGet, (int *out, int ordinal))                                                          \
    X(DevicePrimaryCtxRetain, (void **out, int device))                                            \
    X(DevicePrimaryCtxRelease, (int device))                                                       \
    X(CtxSetCurrent, (void *context))                                                              \
    X(CtxSynchronize, (void))                                                                      \
    X(MemAlloc, (uint64_t * out, size_t bytes))                                                    \
    X(MemFree, (uint64_t address))                                                                 \
    X(MemHostAlloc, (void **out, size_t bytes, unsigned flags))                                    \
    X(MemFreeHost, (void *address))                                                                \
    X(MemcpyHtoD, (uint64_t to, const void *from, size_t bytes))                                   \
    X(MemcpyDtoH, (void *to, uint64_t from, size_t bytes))                                         \
    X(MemcpyDtoHAsync, (void *to, uint64_t from, size_t bytes, void *stream))                      \
    X(StreamCreate, (void **out, unsigned flags))                                                  \
    X(StreamDestroy, (void *stream))                                                               \
    X(StreamSynchronize, (void *stream))                                                           \
    X(StreamWaitEvent, (void *stream, void *event, unsigned flags))                                \
    X(LaunchHostFunc, (void *stream, void (*function)(void *data), void *data))                    \
    X(EventCreate, (void **out, unsigned flags))                                                   \
    X(EventDestroy, (void *event))                                                                 \
    X(EventRecord, (void *event, void *stream))                                                    \
    X(EventQuery, (void *event))                                                                   \
    X(ModuleLoadData, (void **out, const void *image))                                             \
    X(ModuleUnload, (void *module))                                                                \
    X(ModuleGetFunction, (void **out, void *module, const char *name))                             \
    X(LaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,            \
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,  \
                     void *stream, void **arguments, void **extra))

struct tnd_cu {
#define TND_CU_MEMBER(name, arguments) int(*name) arguments;
    TND_CU_LIST(TND_CU_MEMBER)
#undef TND_CU_MEMBER
    struct tnd_fake fake;
};
extern struct tnd_cu tnd_cu;

/** setUp and tearDown of the suites: a context; what is left alive fails the test. */
void tnd_test_cu_begin(void);
void tnd_test_cu_end(void);
/** False after a tnd_skip: no C++ compiler, or no stand-ins. */
bool tnd_test_cu_is_there(void);

/** Whether programs that are compiled from now on are checked at each access; true in each test. */
void tnd_test_cu_check(bool is_checked);

/** The text of a file of backends/opencl/kernels with what it includes; tnd_free it. */
char *tnd_test_cu_text(const char *source);

/** A module of backends/opencl/kernels/`source`, or of `source` itself where it has a line end.
 *  `options`: "-DX=1 -DY=2". NULL: a check has failed. */
void *tnd_test_cu_compile(const char *source, const char *options);

/** Memory of the device with these bytes (NULL: what is fresh). */
uint64_t tnd_test_cu_upload(const void *bytes, size_t n);
void tnd_test_cu_download(void *to, uint64_t from, size_t n);

/** Launches a kernel of a module by addresses of its arguments and waits; the driver's result. */
int tnd_test_cu_run(void *module, const char *kernel, const unsigned grid[2], unsigned block,
                    unsigned shared_bytes, void **arguments);
#define TND_ARGUMENTS(...)                                                                         \
    (void *[])                                                                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/** A product: W {K, N} of a type, its values, X {K, M}, and Y {N, M} in double. Odd shapes. */
enum { TND_CU_K = 512, TND_CU_N = 71, TND_CU_M = 5 };
struct tnd_cu_product {
    enum tandem_type type;
    size_t bytes;
    unsigned char *weights;
    float *values, *x, *y;
    double *want;
    uint64_t at_weights, at_x, at_y;
};
void tnd_cu_product_make(struct tnd_cu_product *p, enum tandem_type type);
void tnd_cu_product_free(struct tnd_cu_product *p);
/** Runs matvec (ROWS=2, COLUMNS=4, LANES=64) or tiled (TILE_N=32, TILE_M=16, 32 items). */
int tnd_cu_product_run(struct tnd_cu_product *p, void *module, const char *kernel,
                       const unsigned grid[2], unsigned block);
/** dequantize, by groups of 64. */
int tnd_cu_dequantize_run(struct tnd_cu_product *p, void *module, uint64_t to);

extern CU_TestInfo tnd_tests_cuda_kernels[], tnd_tests_cuda_mutants[], tnd_tests_cuda_driver[];

#endif
