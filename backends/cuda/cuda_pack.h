/* SPDX-License-Identifier: MIT
 * The pack of prebuilt kernels: PTX of all programs that are used before anybody tunes, made by
 * tools/cuda-pack when the library is built, for machines without NVRTC. Layout, all numbers
 * little-endian:
 *     8 bytes    magic with the format's version
 *     u64        hash of all bytes behind it
 *     u64        hash of all sources of kernels that the pack was made from
 *     u32 x 4    version of PTX (63 is 6.3), least compute capability (60), programs, 0
 *     each       u64 key, u64 offset of its bytes in the file, u64 bytes, u64 bytes of the text;
 *                keys ascend
 *     the rest   texts, deflated where that makes them shorter; nothing between or behind them */
#ifndef TND_CUDA_PACK_H
#define TND_CUDA_PACK_H

#include "backends/gpu/driver.h"
#include "base/text.h"

#define TND_CUDA_PACK_FILE "tandem-cuda-kernels.pack"

struct tnd_cuda_pack {
    const unsigned char *bytes; /* borrowed, or mapped from a file that stays open */
    size_t n;
    unsigned ptx_version, capability, n_programs;
};

/** Validates a pack: afterwards the position of each program is known to be valid. Errors: FORMAT
 * (also for a pack made from other sources than `sources`), TRUNCATED. */
enum tandem_status tnd_cuda_pack_read(const void *bytes, size_t n, uint64_t sources,
                                      struct tnd_cuda_pack *out, struct tandem_error *error);

/** The text of a program, zero-terminated; free it with tnd_free. Errors: NOT_FOUND (no such
 * program), FORMAT (it cannot be inflated; without zlib none can), MEMORY. */
enum tandem_status tnd_cuda_pack_text(const struct tnd_cuda_pack *pack, uint64_t key,
                                      char **out_text, struct tandem_error *error);

/** Finds the pack beside `libcuda` (the requested path, or ""), beside the library's own file, or
 * in share/tandem near that. It stays in memory until the process ends. Errors: NOT_FOUND (no
 * file), FILE (also if every user may write to it), those of reading it. */
enum tandem_status tnd_cuda_pack_find(const char *libcuda, struct tnd_cuda_pack *out,
                                      struct tandem_error *error);

/** Key of a program: hash of its sources and of the options that define macros. */
uint64_t tnd_cuda_pack_key(const struct tnd_gpu_text *text);
/** Hash of all kernel sources in this library. */
uint64_t tnd_cuda_pack_sources(void);

/** A program to pack. */
struct tnd_cuda_packed {
    uint64_t key;
    struct tnd_text text;
};
/** Appends the bytes of a pack of `n` programs with ascending keys to `out`, which keeps a
 * failure. */
void tnd_cuda_pack_write(const struct tnd_cuda_packed *programs, unsigned n, uint64_t sources,
                         unsigned ptx_version, unsigned capability, struct tnd_text *out);

#endif
