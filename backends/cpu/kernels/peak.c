/* SPDX-License-Identifier: MIT
 * Chooses the peak measurements; implements them in plain C. */
#include "backends/cpu/kernels/peak.h"

#include "base/cpu.h"

static double plain_fma(int64_t rounds)
{
    volatile float result;
    float sum[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int64_t i = 0; i < rounds; i++) {
        for (int j = 0; j < 8; j++) {
            sum[j] = sum[j] * 0.999f + 0.001f;
        }
    }
    result = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
    (void)result;
    return 16.0 * (double)rounds;
}

static int64_t plain_read(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / sizeof(*words); i++) {
        sum += words[i];
    }
    return (int64_t)sum;
}

int64_t tnd_read_streams(tnd_read_fn *read, const void *memory, size_t bytes, int n_streams)
{
    enum { STEP = 1024 };
    const char *from = memory;
    size_t part = bytes / (size_t)n_streams / STEP * STEP;
    int64_t sum = 0;
    if (n_streams == 1) {
        return read(memory, bytes);
    }
    for (size_t at = 0; at < part; at += STEP) {
        for (size_t s = 0; s < (size_t)n_streams; s++) {
            sum += read(from + s * part + at, STEP);
        }
    }
    return sum;
}

struct tnd_peaks tnd_peaks_find(void)
{
    struct tnd_peaks peaks = {plain_fma, plain_fma, "int8 scalar", NULL, plain_read};
#if defined(__x86_64__)
    uint32_t features = tnd_cpu_features();
    if ((features & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        tnd_peaks_fill_avx2(&peaks);
        if ((features & (uint32_t)TND_CPU_AVX_VNNI) != 0) {
            tnd_peaks_fill_avxvnni(&peaks);
        }
    }
    if ((features & TND_CPU_SET_AVX512) == TND_CPU_SET_AVX512) {
        tnd_peaks_fill_avx512(&peaks);
        if ((features & (uint32_t)TND_CPU_AVX512_VNNI) != 0) {
            tnd_peaks_fill_vnni(&peaks);
        }
        if ((features & (uint32_t)TND_CPU_AVX512_BF16) != 0) {
            tnd_peaks_fill_bf16(&peaks);
        }
    }
    if ((features & TND_CPU_SET_AMX) == TND_CPU_SET_AMX) {
        tnd_peaks_fill_amx(&peaks);
    }
#elif defined(__aarch64__)
    uint32_t features = tnd_cpu_features();
    if ((features & (uint32_t)TND_CPU_NEON) != 0) {
        tnd_peaks_fill_neon(&peaks);
    }
    if ((features & TND_CPU_SET_DOTPROD) == TND_CPU_SET_DOTPROD) {
        tnd_peaks_fill_dotprod(&peaks);
    }
    if ((features & TND_CPU_SET_I8MM) == TND_CPU_SET_I8MM) {
        tnd_peaks_fill_i8mm(&peaks);
    }
#endif
    return peaks;
}
