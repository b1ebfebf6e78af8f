/* SPDX-License-Identifier: MIT
 * The calls of cuBLAS that a driver of ours makes, with the names, numbers and rules of NVIDIA's
 * manual, version 12. A product is a loop with sums in double on the stream's thread; each access
 * is held against the rules of kernels. They lie in the library that stands in for libcuda, because
 * both know the same streams and memory; libcublas.so.12 is another name of its file.
 * TANDEM_FAKE_CUBLAS_VERSION: "MAJOR.MINOR". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "tests/fake_cuda/fake_entry.h"
#include "tests/fake_cuda/fake_state.h"

enum status {
    OK = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15
};
enum { OF_FLOATS = 0, OF_HALVES = 2, SUMS_F32 = 68, SUMS_F32_OF_TF32 = 77 };
enum { MAX_HANDLES = 16, WORKSPACE_BYTES = 64 << 10 };

struct handle {
    const void *context; /* NULL: no handle */
    struct tnd_fake_stream *stream;
    uint64_t workspace;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards handles */
static struct handle handles[MAX_HANDLES];

/* A CUresult that the plan has for all calls becomes the status that cuBLAS would tell. */
static int enter(const char *name)
{
    const int code = tnd_fake_enter_call(name, true);
    return code == CUDA_ERROR_OUT_OF_MEMORY ? ALLOC_FAILED
           : code > NOT_SUPPORTED + 1       ? EXECUTION_FAILED
                                            : code;
}

static int wrong(const char *what, int status)
{
    tnd_fake_wrong(what, 0);
    return status;
}

/* ---- handles ---- */

EXPORT int cublasGetProperty(int which, int *out)
{
    const char *version = getenv("TANDEM_FAKE_CUBLAS_VERSION");
    int parts[3] = {12, 9, 0};
    CHECK(which >= 0 && which < 3 && out != NULL, INVALID_VALUE);
    if (version != NULL) {
        (void)sscanf(version, "%d.%d", &parts[0], &parts[1]);
    }
    *out = parts[which];
    return OK;
}

EXPORT int cublasCreate_v2(struct handle **out)
{
    const int status = enter(__func__);
    CHECK(status == OK, status);
    CHECK(tnd_fake_current() != NULL, wrong("cuBLAS without a context", NOT_INITIALIZED));
    uint64_t workspace = 0;
    CHECK(tnd_fake_allocate(WORKSPACE_BYTES, &workspace) == CUDA_SUCCESS, ALLOC_FAILED);
    struct handle *handle = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_HANDLES && handle == NULL; i++) {
        handle = handles[i].context == NULL ? &handles[i] : NULL;
    }
    if (handle != NULL) {
        *handle = (struct handle){tnd_fake_current(), NULL, workspace};
    }
    pthread_mutex_unlock(&lock);
    if (handle == NULL) {
        tnd_fake_free(workspace);
        return ALLOC_FAILED;
    }
    tnd_fake_live(TND_FAKE_BLAS, 1);
    *out = handle;
    return OK;
}

/* Works on a lost device too, as far as it gives something back. */
EXPORT int cublasDestroy_v2(struct handle *handle)
{
    const int status = enter(__func__);
    CHECK(handle != NULL && handle->context != NULL,
          wrong("a handle of cuBLAS is freed that is none", NOT_INITIALIZED));
    tnd_fake_wait_all();
    tnd_fake_free(handle->workspace);
    pthread_mutex_lock(&lock);
    *handle = (struct handle){0};
    pthread_mutex_unlock(&lock);
    tnd_fake_live(TND_FAKE_BLAS, -1);
    return status;
}

/* What all calls with a handle need. */
static int enter_handle(const char *name, const struct handle *handle)
{
    const int status = enter(name);
    CHECK(status == OK, status);
    CHECK(handle != NULL && handle->context != NULL, wrong("no handle of cuBLAS", NOT_INITIALIZED));
    CHECK(tnd_fake_current() == handle->context,
          wrong("cuBLAS in a context that is not its handle's", INVALID_VALUE));
    return OK;
}

EXPORT int cublasSetStream_v2(struct handle *handle, struct tnd_fake_stream *stream)
{
    const int status = enter_handle(__func__, handle);
    CHECK(status == OK, status);
    CHECK(tnd_fake_is_stream(stream), wrong("cuBLAS on what is no stream", INVALID_VALUE));
    handle->stream = stream;
    return OK;
}

/* ---- products ---- */

/* A matrix by columns; `rows` and `columns` as it lies in memory. */
struct matrix {
    const char *at;
    int type, rows, columns, step;
    bool is_transposed;
};
struct product {
    struct matrix a, b, c;
    int k, sums;
    double alpha, beta;
};

static size_t bytes_of(const struct matrix *m)
{
    return m->type == OF_HALVES ? 2 : 4;
}

/* To 10 bits of mantissa, to the nearest, ties to even. */
static float short_of(float value)
{
    const uint32_t bits = tnd_f32_bits(value);
    return (bits & 0x7F800000) == 0x7F800000
               ? value
               : tnd_f32_from_bits((bits + 0xFFF + (bits >> 13 & 1)) & ~(uint32_t)0x1FFF);
}

static double element(const struct matrix *m, int row, int column, int sums)
{
    const size_t index = m->is_transposed ? (size_t)row * (size_t)m->step + (size_t)column
                                          : (size_t)column * (size_t)m->step + (size_t)row;
    const char *at = m->at + index * bytes_of(m);
    uint16_t half = 0;
    float value = 0;
    if (m->type == OF_HALVES) {
        memcpy(&half, at, sizeof(half));
        return tnd_f16_to_f32(half);
    }
    memcpy(&value, at, sizeof(value));
    return sums == SUMS_F32_OF_TF32 ? short_of(value) : value;
}

/* NULL, or what is wrong with touching a matrix. */
static const char *touch(const struct matrix *m, bool is_write, uint32_t number)
{
    const struct tnd_fake_toucher who = {.launch = number};
    const struct tnd_fake_command *command = tnd_fake_command();
    const size_t bytes = (size_t)m->rows * bytes_of(m);
    const char *found = NULL;
    if ((size_t)(uintptr_t)m->at % bytes_of(m) != 0) {
        return "touches a place that is not aligned";
    }
    for (int i = 0; i < m->columns && found == NULL; i++) {
        const char *at = m->at + (size_t)i * (size_t)m->step * bytes_of(m);
        struct tnd_fake_range range;
        if (!tnd_fake_range_of(at, bytes, &range)) {
            return "touches memory that is not the device's";
        }
        if (command->is_checked) {
            found = tnd_fake_touch(&range, at, bytes, is_write ? TND_FAKE_WRITE : 0, &who);
        }
        if (command->is_checked && found == NULL) {
            found =
                tnd_fake_follow(range.orders + (at - range.begin), bytes, is_write, false, command);
        }
    }
    return found;
}

static void multiply(const struct product *p)
{
    for (int column = 0; column < p->c.columns; column++) {
        for (int row = 0; row < p->c.rows; row++) {
            const size_t index = (size_t)column * (size_t)p->c.step + (size_t)row;
            char *at = (char *)(uintptr_t)p->c.at + index * sizeof(float);
            float value = 0;
            double sum = 0;
            for (int i = 0; i < p->k; i++) {
                sum += element(&p->a, row, i, p->sums) * element(&p->b, i, column, p->sums);
            }
            memcpy(&value, at, sizeof(value));
            value = (float)(p->alpha * sum + (p->beta != 0 ? p->beta * (double)value : 0));
            memcpy(at, &value, sizeof(value));
        }
    }
}

static void run(void *data)
{
    struct product *p = data;
    const uint32_t number = tnd_fake_launch_number();
    tnd_fake_enter();
    const char *found = touch(&p->a, false, number);
    found = found != NULL ? found : touch(&p->b, false, number);
    found = found != NULL || p->beta == 0 ? found : touch(&p->c, false, number);
    found = found != NULL ? found : touch(&p->c, true, number);
    if (found == NULL) {
        multiply(p);
    }
    const char *beside = tnd_fake_leave();
    if (found != NULL || beside != NULL) {
        char text[160];
        snprintf(text, sizeof(text), "cublasGemmEx: %s", found != NULL ? found : beside);
        tnd_fake_wrong(text, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    free(p);
}

EXPORT int cublasGemmEx(struct handle *handle, int a_transpose, int b_transpose, int m, int n,
                        int k, const void *alpha, const void *a, int a_type, int a_step,
                        const void *b, int b_type, int b_step, const void *beta, void *c,
                        int c_type, int c_step, int sums, int algorithm)
{
    const int status = enter_handle(__func__, handle);
    CHECK(status == OK, status);
    CHECK((a_transpose & ~1) == 0 && (b_transpose & ~1) == 0 && m >= 0 && n >= 0 && k >= 0 &&
              a_step > 0 && a_step >= (a_transpose ? k : m) && b_step > 0 &&
              b_step >= (b_transpose ? n : k) && c_step > 0 && c_step >= m && alpha != NULL &&
              beta != NULL,
          wrong("cublasGemmEx: a number is out of its range", INVALID_VALUE));
    CHECK(algorithm == -1 && a_type == b_type && c_type == OF_FLOATS &&
              ((sums == SUMS_F32 && (a_type == OF_FLOATS || a_type == OF_HALVES)) ||
               (sums == SUMS_F32_OF_TF32 && a_type == OF_FLOATS)),
          NOT_SUPPORTED);
    struct product *p = malloc(sizeof(*p));
    float factors[2];
    CHECK(p != NULL, ALLOC_FAILED);
    memcpy(&factors[0], alpha, sizeof(float));
    memcpy(&factors[1], beta, sizeof(float));
    *p = (struct product){
        .a = {a, a_type, a_transpose ? k : m, a_transpose ? m : k, a_step, a_transpose != 0},
        .b = {b, b_type, b_transpose ? n : k, b_transpose ? k : n, b_step, b_transpose != 0},
        .c = {c, c_type, m, n, c_step, false},
        .k = k,
        .sums = sums,
        .alpha = (double)factors[0],
        .beta = (double)factors[1]};
    tnd_fake_push(handle->stream, run, p);
    return OK;
}
