/* SPDX-License-Identifier: MIT
 * What the kernels of packed weights share: the shape of a type's units, and how the codes of half
 * a group are put together. A file includes it after it has defined, for its vectors of SIDE_BYTES
 * bytes: `codes`, load, unpack_nibbles, unpack_pairs, add_upper_pairs, add_top_bits, load_book (16
 * bytes, repeated) and look_up; with HAS_THREES also unpack_threes, half a group of 3 bits. */

/* Properties of a type, constants after inlining. */
struct shape {
    int bits;
    int code_bits; /* of codes after codebook look-up; without a codebook as `bits` */
    int form;      /* as in kernel-list.h */
    int blocks;    /* of 32 values, per unit */
    int header;    /* in bytes */
    int group;     /* bytes per 32 values */
    bool is_super; /* integer scales times one half */
};

#define SHAPE(form, bits, is_super)                                                                \
    ((struct shape){TND_PACKED_BITS(form, bits), bits, form, (is_super) ? 8 : 2,                   \
                    TND_PACKED_HEADER(form, is_super), TND_PACKED_BITS(form, bits) * 64,           \
                    is_super})

/* Unpacks four steps, one half of a group, for the rows of one vector (`side`) of a panel. */
TND_INLINE void unpack_half(const uint8_t *group, const int side, const int half,
                            const struct shape shape, codes w[4])
{
    const uint8_t *p = group + side * SIDE_BYTES;
    const uint8_t *top_bits = group + 32 * half + side * SIDE_BYTES / 8;
    switch (shape.bits) {
    case 8:
        TND_UNROLL
        for (int s = 0; s < 4; s++) {
            w[s] = load(p + (4 * half + s) * STEP);
        }
        break;
    case 6:
        unpack_nibbles(p + 2 * half * STEP, w);
        add_upper_pairs(p + (4 + half) * STEP, w);
        break;
    case 5:
        unpack_nibbles(p + 2 * half * STEP, w);
        add_top_bits(top_bits + 4 * STEP, 16, w);
        break;
    case 4:
        unpack_nibbles(p + 2 * half * STEP, w);
        break;
    case 3:
#if defined(HAS_THREES)
        unpack_threes(group, half, w);
#else
        unpack_pairs(p + half * STEP, w);
        add_top_bits(top_bits + 2 * STEP, 4, w);
#endif
        break;
    default:
        unpack_pairs(p + half * STEP, w);
        break;
    }
    if ((shape.form & TND_BOOKS) != 0) {
        const codes book = load_book(tnd_book_codes(shape.form));
        TND_UNROLL
        for (int s = 0; s < 4; s++) {
            w[s] = look_up(book, w[s]);
        }
    }
}

TND_INLINE void fetch_lines(const uint8_t *p, const int bytes)
{
    TND_UNROLL
    for (int i = 0; i < bytes; i += 64) {
        __builtin_prefetch(p + i, 0, 3);
    }
}

/* Prefetches as the tile asks: a unit's header, before the loop over its blocks (inside it,
 * products of one token took up to 1.17 times as long), and its block `b`. */
TND_INLINE void fetch_header(const struct tnd_tile_packed *tile, const uint8_t *unit,
                             const struct shape shape)
{
    if (!tile->is_fetched && tile->ahead == 0) {
        fetch_lines(unit, shape.header);
    }
}

TND_INLINE void fetch_block(const struct tnd_tile_packed *tile, const uint8_t *unit,
                            const struct shape shape, int b)
{
    const int block_bytes = shape.header / shape.blocks + shape.group;
    if (tile->is_fetched) {
        return;
    }
    if (tile->ahead == 0) {
        fetch_lines(unit + shape.header + b * shape.group, shape.group);
        return;
    }
    const uint8_t *next = unit + tile->ahead + b * block_bytes;
    if (!tile->into_l2) {
        fetch_lines(next, block_bytes);
        return;
    }
    TND_UNROLL
    for (int i = 0; i < block_bytes; i += 64) {
        __builtin_prefetch(next + i, 0, 2);
    }
}

/* One function per type, for kernels that keep the results of one token in registers. */
#if defined(TND_IS_CHECKED) /* one function for any number of tokens; see TND_UNROLL */
#define IS_ONE(n_tokens) false
#else
#define IS_ONE(n_tokens) ((n_tokens) == 1)
#endif
#define PACKED_ONE_OR_MANY(NAME, form, offset, bits, is_super)                                     \
    static void packed_##NAME(const struct tnd_tile_packed *tile)                                  \
    {                                                                                              \
        if (IS_ONE(tile->n_tokens)) {                                                              \
            multiply(tile, SHAPE(form, bits, is_super), 1);                                        \
        } else {                                                                                   \
            multiply(tile, SHAPE(form, bits, is_super), tile->n_tokens);                           \
        }                                                                                          \
    }
#define FILL_PACKED(NAME, form, offset, bits, is_super)                                            \
    out->packed[TANDEM_TYPE_##NAME] = (struct tnd_packed_kernels){.multiply = packed_##NAME};
