/* SPDX-License-Identifier: MIT
 * Tile numbers: defaults, rules, and tune files. A tune file is text: a first line with the
 * version, a line "device NAME", one line "member number" a number in any order, and "end". It is
 * not trusted. */
#include "backends/gpu/gpu_tiles.h"

#include <inttypes.h>
#include <string.h>

#include "backends/gpu/gpu_gemm.h"
#include "base/checked.h"

static const char first_word[] = "tandem-opencl-tiles";

/* ---- what may be ---- */

void tnd_gpu_tiles_default(const struct tnd_gpu_caps *caps, struct tnd_gpu_tiles *out)
{
    if (caps->is_cpu) {
        /* A work-item a row: its vectors are the lanes. Tiles in "local" memory, which is memory
         * like any other there, lose against the skinny kernel for all M (measured: 5 times). */
        *out = (struct tnd_gpu_tiles){
            .matvec_lanes = 1,
            .matvec_rows = 1,
            .skinny_lanes = 1,
            .skinny_rows = 2,
            .skinny_columns = 8,
            .skinny_most = 1 << 30,
            .tile_m = 16,
            .tile_n = 128,
            .tile_k = 32,
            .item_m = 4,
            .item_n = 8,
        };
    } else {
        *out = (struct tnd_gpu_tiles){
            .matvec_lanes = 64,
            .matvec_rows = 2,
            .skinny_lanes = 64,
            .skinny_rows = 2,
            .skinny_columns = 8,
            .skinny_most = 16,
            .tile_m = 64,
            .tile_n = 64,
            .tile_k = 32,
            .item_m = 4,
            .item_n = 4,
        };
    }
    if (!tnd_gpu_tiles_fit(caps, out)) {
        *out = (struct tnd_gpu_tiles){
            .matvec_lanes = 1,
            .matvec_rows = 1,
            .skinny_lanes = 1,
            .skinny_rows = 1,
            .skinny_columns = 4,
            .skinny_most = 1 << 30,
            .tile_m = 8,
            .tile_n = 8,
            .tile_k = 16,
            .item_m = 8,
            .item_n = 8,
        };
    }
}

static bool is_power_of_two(int32_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

/* LANES work-items with one partial sum each for all results of a group. */
static bool lanes_fit(const struct tnd_gpu_caps *caps, int32_t lanes, int32_t results)
{
    size_t local_bytes = lanes > 1 ? (size_t)lanes * (size_t)results * sizeof(float) : 0;
    return is_power_of_two(lanes) && (size_t)lanes <= caps->max_group &&
           (size_t)lanes <= caps->max_items[0] && local_bytes <= caps->local_bytes;
}

uint64_t tnd_gpu_tiles_local_bytes(const struct tnd_gpu_tiles *tiles)
{
    const uint64_t m = (uint64_t)tiles->tile_m;
    const uint64_t n = (uint64_t)tiles->tile_n;
    const uint64_t k = (uint64_t)tiles->tile_k;
    const uint64_t plain = (m + 1 + n + 1) * k; /* see tiled.clh, and tiled_mma.clh for words */
    const uint64_t words = (2 * n + 3 * m) * (k / 2 + 4) + 2 * n * (k / 16);
    return sizeof(float) * (tiles->mma != 0 && words > plain ? words : plain);
}

/* Warps of fragments of 16 rows and 8 tokens; a work-item stages the same k of all its rows. */
static bool mma_fits(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles)
{
    return caps->mma && 32 % (tiles->tile_k / 4) == 0 && tiles->item_n % 2 == 0 &&
           tiles->item_m % 2 == 0 && tiles->tile_n % (8 * tiles->item_n) == 0 &&
           tiles->tile_m % (4 * tiles->item_m) == 0;
}

static bool tile_fits(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles)
{
    if (tiles->tile_k % 16 != 0 || tiles->tile_m % tiles->item_m != 0 ||
        tiles->tile_n % tiles->item_n != 0 || (tiles->mma != 0 && !mma_fits(caps, tiles))) {
        return false;
    }
    size_t group = (size_t)tnd_gpu_tiles_group(tiles);
    return group <= caps->max_group && group <= caps->max_items[0] &&
           tnd_gpu_tiles_local_bytes(tiles) <= caps->local_bytes;
}

bool tnd_gpu_tiles_fit(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles)
{
#define OUT_OF_RANGE(member, least, most, what)                                                    \
    if (tiles->member < (least) || tiles->member > (most)) {                                       \
        return false;                                                                              \
    }
    TND_GPU_TILE_LIST(OUT_OF_RANGE)
#undef OUT_OF_RANGE
    return lanes_fit(caps, tiles->matvec_lanes, tiles->matvec_rows) &&
           (tiles->skinny_columns == 4 || tiles->skinny_columns == 8) &&
           lanes_fit(caps, tiles->skinny_lanes, tiles->skinny_rows * tiles->skinny_columns) &&
           tile_fits(caps, tiles) && tnd_gpu_gemm_fits(caps, tiles->gemm);
}

/* ---- files ---- */

void tnd_gpu_tiles_print(const struct tnd_gpu_tiles *tiles, const char *device,
                         struct tnd_text *text)
{
    tnd_text_printf(text, "%s %d\ndevice %s\n", first_word, TND_GPU_TILES_VERSION, device);
#define PRINT_ROW(member, least, most, what)                                                       \
    tnd_text_printf(text, "%s %" PRId32 "\n", #member, tiles->member);
    TND_GPU_TILE_LIST(PRINT_ROW)
#undef PRINT_ROW
    tnd_text_add(text, "end\n");
}

struct row {
    const char *name;
    int64_t least, most;
    size_t offset; /* in struct tnd_gpu_tiles */
};
static const struct row rows[] = {
#define ROW(member, least, most, what)                                                             \
    {#member, (least), (most), offsetof(struct tnd_gpu_tiles, member)},
    TND_GPU_TILE_LIST(ROW)
#undef ROW
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool token_is(const char *token, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(token, word, n) == 0;
}

static enum tandem_status refuse(const struct tnd_scan *scan, const char *source,
                                 const char *expected, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, source, scan->line, 0,
                         "%s: line %" PRId64 " column %" PRId64 ": expected %s", source, scan->line,
                         tnd_scan_column(scan), expected);
}

/* "member number": the member must be known and new. */
static enum tandem_status read_row(struct tnd_scan *scan, const char *name, size_t n,
                                   const char *source, struct tnd_gpu_tiles *tiles, uint32_t *seen,
                                   struct tandem_error *error)
{
    int64_t value = 0;
    int i = 0;
    while (i < N_ROWS && !token_is(name, n, rows[i].name)) {
        i++;
    }
    if (i == N_ROWS || (*seen >> i & 1) != 0) {
        return refuse(scan, source, "the name of a number that has not come yet", error);
    }
    if (!tnd_scan_i64(scan, &value) || value < rows[i].least || value > rows[i].most) {
        return refuse(scan, source, "a number in this row's range", error);
    }
    int32_t narrow = (int32_t)value;
    memcpy((char *)tiles + rows[i].offset, &narrow, sizeof(narrow));
    *seen |= 1u << i;
    return TANDEM_OK;
}

static void skip_line(struct tnd_scan *scan)
{
    const char *token = NULL;
    size_t n = 0;
    while (tnd_scan_token(scan, &token, &n)) {
    }
}

enum tandem_status tnd_gpu_tiles_read(const void *bytes, size_t n, const char *source,
                                      struct tnd_gpu_tiles *out, struct tandem_error *error)
{
    struct tnd_scan scan;
    struct tnd_gpu_tiles tiles = {0};
    const char *token = NULL;
    size_t token_n = 0;
    int64_t version = 0;
    uint32_t seen = 0;
    tnd_scan_init(&scan, bytes, n);
    if (!tnd_scan_token(&scan, &token, &token_n) || !token_is(token, token_n, first_word) ||
        !tnd_scan_i64(&scan, &version) || version != TND_GPU_TILES_VERSION ||
        !tnd_scan_end_of_line(&scan)) {
        return refuse(&scan, source, "\"tandem-opencl-tiles 2\"", error);
    }
    while (tnd_scan_token(&scan, &token, &token_n)) {
        if (token_is(token, token_n, "end")) {
            if (seen != (1u << N_ROWS) - 1) {
                return refuse(&scan, source, "all numbers before the end", error);
            }
            *out = tiles;
            return TANDEM_OK;
        }
        if (token_is(token, token_n, "device")) {
            skip_line(&scan);
        } else {
            TND_TRY(read_row(&scan, token, token_n, source, &tiles, &seen, error));
        }
        if (!tnd_scan_end_of_line(&scan)) {
            return refuse(&scan, source, "the end of the line", error);
        }
    }
    return refuse(&scan, source, "a number's name or \"end\"", error);
}
