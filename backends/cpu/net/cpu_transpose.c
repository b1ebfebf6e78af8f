/* SPDX-License-Identifier: MIT
 * Copies that swap two dimensions, such as layout changes: in blocks of both, so that every cache
 * line is read and written once. */
#include <string.h>

#include "backends/cpu/kernels/tiles.h"
#include "backends/cpu/net/cpu_net.h"

enum {
    FEWEST = 8,         /* shorter rows are narrow: they have no loops of their own */
    BLOCK_ROWS = 64,    /* of the result: few lines of the operand, so that pages are used well */
    LINE = 16,          /* values per cache line: columns that are read together */
    NARROW_ROWS = 1024, /* likewise if rows are narrow: few streams, each read as far as it goes */
    BLOCK_VALUES = 256  /* per row of the result */
};

/* A work item: some rows of the result, some values of each. */
struct block {
    int64_t outer, row, column;
};

static int64_t parts(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

static int64_t block_rows(const struct tnd_fuse_space *space)
{
    return space->shape.dims[space->shape.n - 1] < FEWEST ? NARROW_ROWS : BLOCK_ROWS;
}

static struct block block_of(const struct tnd_fuse_space *space, int64_t item)
{
    const int64_t *extents = space->shape.dims + space->shape.n - 2;
    struct block block = {.column = item % parts(extents[1], BLOCK_VALUES) * BLOCK_VALUES};
    item /= parts(extents[1], BLOCK_VALUES);
    const int64_t n_rows = block_rows(space);
    block.row = item % parts(extents[0], n_rows) * n_rows;
    block.outer = item / parts(extents[0], n_rows);
    return block;
}

/* Rows and columns that are transposed in registers, in vectors that every CPU has. */
enum { SQUARE = 4, BYTES = 16 /* per square of bytes */ };
typedef uint8_t bytes __attribute__((vector_size(BYTES)));
typedef uint32_t four __attribute__((vector_size(SQUARE * sizeof(uint32_t))));
#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#define PICK_BYTES(a, b, ...)  __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (four){i, j, k, l})
#define PICK_BYTES(a, b, ...)  __builtin_shuffle(a, b, (bytes){__VA_ARGS__})
#endif

static inline void copy_square(const uint32_t *from, int64_t stride, uint32_t *to,
                               int64_t to_stride)
{
    four in[SQUARE];
    four out[SQUARE];
    for (int i = 0; i < SQUARE; i++) {
        memcpy(&in[i], from + i * stride, sizeof(in[i]));
    }
    const four even = PICK(in[0], in[1], 0, 4, 1, 5);
    const four odd = PICK(in[2], in[3], 0, 4, 1, 5);
    const four even_behind = PICK(in[0], in[1], 2, 6, 3, 7);
    const four odd_behind = PICK(in[2], in[3], 2, 6, 3, 7);
    out[0] = PICK(even, odd, 0, 1, 4, 5);
    out[1] = PICK(even, odd, 2, 3, 6, 7);
    out[2] = PICK(even_behind, odd_behind, 0, 1, 4, 5);
    out[3] = PICK(even_behind, odd_behind, 2, 3, 6, 7);
    for (int i = 0; i < SQUARE; i++) {
        memcpy(to + i * to_stride, &out[i], sizeof(out[i]));
    }
}

static void copy_part(const uint32_t *restrict from, int64_t stride, int64_t n_rows,
                      int64_t n_columns, uint32_t *restrict to, int64_t to_stride)
{
    int64_t row = 0;
    for (; row + SQUARE <= n_rows; row += SQUARE, to += SQUARE * to_stride) {
        int64_t i = 0;
        for (; i + SQUARE <= n_columns; i += SQUARE) {
            copy_square(from + i * stride + row, stride, to + i, to_stride);
        }
        for (; i < n_columns; i++) {
            for (int k = 0; k < SQUARE; k++) {
                to[k * to_stride + i] = from[i * stride + row + k];
            }
        }
    }
    for (; row < n_rows; row++, to += to_stride) {
        for (int64_t i = 0; i < n_columns; i++) {
            to[i] = from[i * stride + row];
        }
    }
}

/* Dense rows of three values, as in images: four rows at a time. */
static void copy_threes(const uint32_t *restrict from, int64_t stride, int64_t n_rows,
                        uint32_t *restrict to)
{
    int64_t row = 0;
    for (; row + SQUARE <= n_rows; row += SQUARE) {
        four a;
        four b;
        four c;
        memcpy(&a, from + row, sizeof(a));
        memcpy(&b, from + stride + row, sizeof(b));
        memcpy(&c, from + 2 * stride + row, sizeof(c));
        const four out[3] = {PICK(PICK(a, b, 0, 4, 1, 5), c, 0, 1, 4, 2),
                             PICK(PICK(b, c, 1, 5, 2, 6), a, 0, 1, 6, 2),
                             PICK(c, PICK(a, b, 3, 7, 3, 7), 2, 4, 5, 3)};
        memcpy(to + 3 * row, out, sizeof(out));
    }
    for (; row < n_rows; row++) {
        for (int i = 0; i < 3; i++) {
            to[row * 3 + i] = from[i * stride + row];
        }
    }
}

static void copy_block(const uint32_t *from, int64_t stride, int64_t n_rows, int64_t n_columns,
                       uint32_t *to, int64_t to_stride)
{
    if (n_columns == 3 && to_stride == 3) { /* (images) */
        copy_threes(from, stride, n_rows, to);
        return;
    }
    for (int64_t column = 0; column < n_columns; column += LINE) {
        const int64_t columns = n_columns - column;
        copy_part(from + column * stride, stride, n_rows, columns < LINE ? columns : LINE,
                  to + column, to_stride);
    }
}

/* Interleaves the bytes of two vectors: their first halves, and their second halves. */
#define FIRST_BYTES(a, b) PICK_BYTES(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LAST_BYTES(a, b)                                                                           \
    PICK_BYTES(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* Transposes 16 x 16 bytes. The address of byte c of row r has the bits rrrrcccc. Interleaving rows
 * i and i + 8 rotates these bits by one; after four rounds they are ccccrrrr. */
static inline void turn_bit(const bytes *restrict from, bytes *restrict to)
{
    TND_UNROLL
    for (int i = 0; i < BYTES / 2; i++) {
        to[2 * i] = FIRST_BYTES(from[i], from[i + BYTES / 2]);
        to[2 * i + 1] = LAST_BYTES(from[i], from[i + BYTES / 2]);
    }
}

static inline void turn_square(bytes rows[BYTES])
{
    bytes other[BYTES];
    turn_bit(rows, other);
    turn_bit(other, rows);
    turn_bit(rows, other);
    turn_bit(other, rows);
}

/* An incomplete square, with `n_rows` rows of the result. */
static void copy_edge(const uint8_t *from, int64_t stride, int64_t n_rows, int64_t n_columns,
                      uint8_t *to, int64_t to_stride)
{
    bytes rows[BYTES] = {{0}};
    for (int64_t i = 0; i < n_columns; i++) {
        memcpy(&rows[i], from + i * stride, (size_t)n_rows);
    }
    turn_square(rows);
    for (int64_t i = 0; i < n_rows; i++) {
        memcpy(to + i * to_stride, &rows[i], (size_t)n_columns);
    }
}

static inline void copy_byte_square(const uint8_t *from, int64_t stride, uint8_t *to,
                                    int64_t to_stride)
{
    bytes rows[BYTES];
    TND_UNROLL
    for (int i = 0; i < BYTES; i++) {
        memcpy(&rows[i], from + i * stride, BYTES);
    }
    turn_square(rows);
    TND_UNROLL
    for (int i = 0; i < BYTES; i++) {
        memcpy(to + i * to_stride, &rows[i], BYTES);
    }
}

/* Copies a transposed block of bytes, small enough to stay in the cache. */
static void copy_bytes(const uint8_t *restrict from, int64_t stride, int64_t n_rows,
                       int64_t n_columns, uint8_t *restrict to, int64_t to_stride)
{
    if (n_columns == 3 && to_stride == 3) { /* (images) */
        for (int64_t row = 0; row < n_rows; row++) {
            to[3 * row] = from[row];
            to[3 * row + 1] = from[stride + row];
            to[3 * row + 2] = from[2 * stride + row];
        }
        return;
    }
    for (int64_t row = 0; row < n_rows; row += BYTES, to += BYTES * to_stride) {
        const int64_t height = n_rows - row < BYTES ? n_rows - row : BYTES;
        for (int64_t i = 0; i < n_columns; i += BYTES) {
            const int64_t width = n_columns - i < BYTES ? n_columns - i : BYTES;
            if (height == BYTES && width == BYTES) {
                copy_byte_square(from + i * stride + row, stride, to + i, to_stride);
            } else {
                copy_edge(from + i * stride + row, stride, height, width, to + i, to_stride);
            }
        }
    }
}

void tnd_cpu_transpose(const struct tnd_work *work, const struct tandem_tensor *node, int64_t begin,
                       int64_t end)
{
    const struct tnd_fuse_space *space = &work->space;
    const int last = space->shape.n - 1;
    const int64_t n_rows = space->shape.dims[last - 1];
    const int64_t n_columns = space->shape.dims[last];
    const int64_t stride = space->strides[0][last];
    struct tnd_view view;
    tnd_work_views(work, node, &view);
    for (int64_t item = begin; item < end; item++) {
        const struct block at = block_of(space, item);
        int64_t offset = at.row + at.column * stride;
        int64_t outer = at.outer;
        for (int d = last - 2; d >= 0; d--) {
            offset += outer % space->shape.dims[d] * space->strides[0][d];
            outer /= space->shape.dims[d];
        }
        const int64_t rows = n_rows - at.row;
        const int64_t columns = n_columns - at.column;
        const int64_t height = rows < block_rows(space) ? rows : block_rows(space);
        const int64_t width = columns < BLOCK_VALUES ? columns : BLOCK_VALUES;
        const int64_t to = (at.outer * n_rows + at.row) * n_columns + at.column;
        void *y = tandem_tensor_data(node);
        if (tandem_dtype_bytes(work->type) == 1) {
            copy_bytes((const uint8_t *)view.data + offset, stride, height, width,
                       (uint8_t *)y + to, n_columns);
        } else {
            copy_block((const uint32_t *)view.data + offset, stride, height, width,
                       (uint32_t *)y + to, n_columns);
        }
    }
}

bool tnd_cpu_transposes(const struct tnd_work *work)
{
    const struct tnd_fuse_space *space = &work->space;
    const int last = space->shape.n - 1;
    return work->fuse.n_steps == 1 && work->fuse.steps[0].op == TND_NET_COPY && last >= 1 &&
           (tandem_dtype_bytes(work->type) == sizeof(uint32_t) ||
            tandem_dtype_bytes(work->type) == 1) &&
           space->n_units > 0 && space->strides[0][last - 1] == 1 &&
           space->shape.dims[last - 1] >= FEWEST;
}

int64_t tnd_cpu_transpose_items(const struct tnd_work *work)
{
    const struct tnd_fuse_space *space = &work->space;
    const int64_t n_rows = space->shape.dims[space->shape.n - 2];
    const int64_t n_columns = space->shape.dims[space->shape.n - 1];
    return tnd_dims_values(&space->shape) / (n_rows * n_columns) *
           parts(n_rows, block_rows(space)) * parts(n_columns, BLOCK_VALUES);
}
