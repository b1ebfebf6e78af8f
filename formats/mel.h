/* SPDX-License-Identifier: MIT
 * Log-mel spectrograms as Whisper's input (Radford et al. 2022, arXiv 2212.04356, section 2.2):
 * 16,000 samples per second; Hann windows of 400 samples, 160 apart, the signal mirrored at both
 * ends; powers of 201 frequencies, summed with triangular filters on Slaney's mel scale (Auditory
 * Toolbox 1998, each of area 1); log10, clamped to at most 8 below the maximum, plus 4, divided by
 * 4. */
#ifndef TND_MEL_H
#define TND_MEL_H

#include "base/tnd_status.h"
#include "ggml-like/array.h"

#define TND_MEL_RATE     16000
#define TND_MEL_HOP      160
#define TND_MEL_MAX_BINS 256

/** Computes the spectrogram {1, bins, frames} in F32, which the caller frees, from `frames` *
 * TND_MEL_HOP samples, padded with zeros; 0 frames: as many as the samples fill. Errors: ARGUMENT
 * (bins, frames), MEMORY. */
enum tandem_status tnd_mel(const float *samples, int64_t n, int bins, int64_t frames,
                           struct tnd_array **out, struct tandem_error *error);

#endif
