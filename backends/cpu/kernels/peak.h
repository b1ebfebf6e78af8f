/* SPDX-License-Identifier: MIT
 * Loops that only do what the CPU does fastest: the peak rates that kernels are compared with. */
#ifndef TND_PEAK_H
#define TND_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* The independent chains must stay in registers. */
#if defined(__clang__)
#define TND_PEAK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TND_PEAK_UNROLL _Pragma("GCC unroll 16")
#endif

/** Each runs `rounds` rounds on this thread and returns the operations done (a multiply and an add
 *  are two). */
typedef double tnd_peak_fn(int64_t rounds);
/** Reads all of the memory; returns a value that depends on it. */
typedef int64_t tnd_read_fn(const void *memory, size_t bytes);

struct tnd_peaks {
    tnd_peak_fn *fma;      /* fp32 multiply-add */
    tnd_peak_fn *int8;     /* int8 dot product */
    const char *int8_unit; /* what computes it: "int8 VNNI", "int8 AMX", ... */
    tnd_peak_fn *bf16;     /* bf16 dot product, or NULL */
    tnd_read_fn *read;
};

/** The best that the CPU's features allow; plain C otherwise. */
struct tnd_peaks tnd_peaks_find(void);
/** Numbers of concurrent streams that are tried: which one reads fastest depends on the machine. */
enum { TND_READ_TRIALS = 4 };
static const int TND_READ_STREAMS[TND_READ_TRIALS] = {1, 8, 2, 4};
/** Reads the memory in this many concurrent streams, except for a remainder at the end. */
int64_t tnd_read_streams(tnd_read_fn *read, const void *memory, size_t bytes, int n_streams);

void tnd_peaks_fill_avx2(struct tnd_peaks *out);
void tnd_peaks_fill_avxvnni(struct tnd_peaks *out);
void tnd_peaks_fill_avx512(struct tnd_peaks *out);
void tnd_peaks_fill_vnni(struct tnd_peaks *out);
void tnd_peaks_fill_bf16(struct tnd_peaks *out);
void tnd_peaks_fill_amx(struct tnd_peaks *out);
void tnd_peaks_fill_neon(struct tnd_peaks *out);
void tnd_peaks_fill_dotprod(struct tnd_peaks *out);
void tnd_peaks_fill_i8mm(struct tnd_peaks *out);

#endif
