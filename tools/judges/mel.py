# SPDX-License-Identifier: MIT
# The spectrogram that Whisper's encoder reads, against the same formulas in numpy, in double
# precision and with numpy's own FFT: Radford et al. 2022 (arXiv 2212.04356), section 2.2, and
# Slaney's mel scale (Auditory Toolbox, 1998). Needs: numpy.
#
# usage: mel.py TANDEM_GRAPH
import os
import subprocess
import sys
import tempfile
import wave

import numpy as np

RATE, WINDOW, HOP = 16000, 400, 160
BOUND = 1e-5


def mel_of(hertz):
    hertz = np.asarray(hertz, float)
    high = 15 + np.log(np.maximum(hertz, 1e-9) / 1000) * 27 / np.log(6.4)
    return np.where(hertz < 1000, hertz * 3 / 200, high)


def hertz_of(mel):
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


def filters(bins):
    points = hertz_of(np.linspace(0, mel_of(RATE / 2), bins + 2))
    at = np.fft.rfftfreq(WINDOW, 1 / RATE)
    rows = []
    for low, middle, high in zip(points, points[1:], points[2:]):
        row = np.minimum((at - low) / (middle - low), (high - at) / (high - middle))
        rows.append(np.maximum(row, 0) * 2 / (high - low))
    return np.array(rows)


def spectrogram(samples, bins, frames):
    total = frames * HOP
    samples = np.pad(samples[:total].astype(float), (0, max(0, total - len(samples))))
    samples = np.pad(samples, WINDOW // 2, mode="reflect")
    window = np.hanning(WINDOW + 1)[:-1]
    rows = [samples[t * HOP:t * HOP + WINDOW] * window for t in range(frames)]
    powers = np.abs(np.fft.rfft(np.array(rows), axis=1)) ** 2
    logs = np.log10(np.maximum(powers @ filters(bins).T, 1e-10)).T
    return (np.maximum(logs, logs.max() - 8) + 4) / 4


def sound(seconds, seed=5):
    """Tones that slide, and noise that comes and goes."""
    random = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    tones = sum(np.sin(2 * np.pi * (f * t + 40 * np.sin(t * k))) / k
                for k, f in enumerate((220, 445, 1310, 3900), 1))
    return 0.2 * tones + 0.05 * random.standard_normal(len(t)) * (np.sin(3 * t) > 0)


def write_wav(path, samples, width, channels):
    full = np.clip(np.round(samples * 2 ** (8 * width - 1)), -2 ** (8 * width - 1),
                   2 ** (8 * width - 1) - 1).astype(np.int64)
    offset = 128 if width == 1 else 0
    raw = ((full + offset) & (2 ** (8 * width) - 1)).astype("<u4").view(np.uint8).reshape(-1, 4)
    with wave.open(path, "wb") as file:
        file.setparams((channels, width, RATE, 0, "NONE", ""))
        file.writeframes(np.repeat(raw[:, :width], channels, axis=0).tobytes())
    return (full / 2 ** (8 * width - 1)).astype(np.float32)


def main():
    program = sys.argv[1]
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        to = os.path.join(folder, "mel.npy")
        for seconds, width, channels, bins, frames in ((3.3, 2, 1, 80, 3000), (5.0, 3, 2, 80, 500),
                                                       (1.0, 1, 1, 128, 100), (31, 4, 1, 80, 3000)):
            path = os.path.join(folder, "sound.wav")
            samples = write_wav(path, sound(seconds), width, channels)
            subprocess.run([program, "mel", path, "-o", to, "-y", "--bins", str(bins), "--frames",
                            str(frames)], check=True, stdout=subprocess.DEVNULL)
            got, want = np.load(to), spectrogram(samples, bins, frames)
            difference = float(np.abs(got[0] - want).max())
            print(f"{seconds} s, {8 * width} bits, {channels} channels, {bins} bins, {frames} frames: "
                  f"largest difference {difference:.1e}")
            worst = max(worst, difference if got.shape == (1, bins, frames) else 1.0)
    print(f"mel: {'good' if worst <= BOUND else 'FAILED'}")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
