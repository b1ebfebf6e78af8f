/* SPDX-License-Identifier: MIT
 * The least-squares fit of a block of BCML1, written once for all instruction sets. The files that
 * include it (quant_bcml1.c, quant_bcml1_avx2.c) bring 8 floats at a time:
 *   vec
 *   v_load(p) v_store(p, v)          any alignment
 *   v_set(f) v_add v_sub v_mul       nothing fused
 *   v_min(a, b) v_max(a, b)          a < b ? a : b and a > b ? a : b
 *   v_truncate(v)                    towards zero, of values in 0..15
 *   v_same(a, b)                     whether all lanes are equal
 *   v_sum(v)                         ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)), by lane
 *   v_squared_error(x[4], y[4])      in double: 4 sums, value i to sum i % 4, added (0+2) + (1+3)
 * Every sum has one order, so all of them give the same bits. Start at fit_block. */

enum { BLOCK = 32, VECS = BLOCK / 8, TOP = 15, STARTS = 3, ROUNDS = 8 };

/* value = scale * level + offset, with scale and offset as halves, and what it costs. */
struct fit {
    uint16_t scale, offset;
    vec level[VECS];
    double error;
};

/* Nearest levels 0..15; what is not a number becomes 0. */
static inline void choose_levels(const vec *x, float scale, float offset, vec *level)
{
    const vec inverse = v_set(scale != 0.0f ? 1.0f / scale : 0.0f);
    for (int i = 0; i < VECS; i++) {
        vec scaled = v_mul(v_sub(x[i], v_set(offset)), inverse);
        vec above = v_max(v_add(scaled, v_set(0.5f)), v_set(0.0f));
        level[i] = v_truncate(v_min(above, v_set((float)TOP)));
    }
}

static inline float sum_of(const vec *v)
{
    return v_sum(v_add(v_add(v[0], v[1]), v_add(v[2], v[3])));
}

static inline float sum_of_products(const vec *a, const vec *b)
{
    return v_sum(v_add(v_add(v_mul(a[0], b[0]), v_mul(a[1], b[1])),
                       v_add(v_mul(a[2], b[2]), v_mul(a[3], b[3]))));
}

/* The line of least squares through (level, x); false when all levels are equal. */
static inline bool fit_line(const vec *x, float sum_x, const vec *level, float *scale,
                            float *offset)
{
    float sum_q = sum_of(level);
    float sum_qq = sum_of_products(level, level);
    float sum_qx = sum_of_products(level, x);
    float determinant = (float)BLOCK * sum_qq - sum_q * sum_q; /* exact: whole, below 2^24 */
    if (!(determinant > 0)) {
        return false;
    }
    *scale = ((float)BLOCK * sum_qx - sum_x * sum_q) / determinant;
    *offset = (sum_x - *scale * sum_q) / (float)BLOCK;
    return true;
}

/* Keeps the halves and levels when what they decode to is nearer to x. */
static inline void offer(const vec *x, uint16_t scale, uint16_t offset, const vec *level,
                         struct fit *best)
{
    const vec d = v_set(tnd_f16_to_f32(scale));
    const vec m = v_set(tnd_f16_to_f32(offset));
    vec y[VECS];
    for (int i = 0; i < VECS; i++) {
        y[i] = v_add(v_mul(d, level[i]), m);
    }
    double error = v_squared_error(x, y);
    if (error < best->error) { /* false when an overflow of the halves made it no number */
        best->scale = scale;
        best->offset = offset;
        memcpy(best->level, level, sizeof(best->level));
        best->error = error;
    }
}

/* Rounds to halves, each of the two first once: what the first one loses, the second one, fitted
 * again, can take back. */
static inline void offer_rounded(const vec *x, float scale, float offset, struct fit *best)
{
    vec level[VECS];
    vec rest[VECS];
    /* the offset first */
    uint16_t half_offset = tnd_f32_to_f16(offset);
    float m = tnd_f16_to_f32(half_offset);
    choose_levels(x, scale, m, level);
    for (int i = 0; i < VECS; i++) {
        rest[i] = v_sub(x[i], v_set(m));
    }
    float sum_qq = sum_of_products(level, level);
    float refitted = sum_qq > 0 ? sum_of_products(level, rest) / sum_qq : scale;
    uint16_t half_scale = tnd_f32_to_f16(refitted);
    choose_levels(x, tnd_f16_to_f32(half_scale), m, level);
    offer(x, half_scale, half_offset, level, best);
    /* the scale first */
    half_scale = tnd_f32_to_f16(scale);
    float d = tnd_f16_to_f32(half_scale);
    choose_levels(x, d, offset, level);
    for (int i = 0; i < VECS; i++) {
        rest[i] = v_sub(x[i], v_mul(v_set(d), level[i]));
    }
    half_offset = tnd_f32_to_f16(sum_of(rest) / (float)BLOCK);
    choose_levels(x, d, tnd_f16_to_f32(half_offset), level);
    offer(x, half_scale, half_offset, level, best);
}

/* From one line on: levels for the line, the best line for the levels, until they stay. Works on
 * the distances from the lowest value, which lose nothing when a narrow block lies far from 0. */
static inline void alternate(const vec *above, float sum_above, float *scale, float *offset)
{
    vec level[VECS];
    vec before[VECS];
    for (int round = 0; round < ROUNDS; round++) {
        choose_levels(above, *scale, *offset, level);
        bool stays = round > 0;
        for (int i = 0; i < VECS && stays; i++) {
            stays = v_same(level[i], before[i]);
        }
        if (stays || !fit_line(above, sum_above, level, scale, offset)) {
            return;
        }
        memcpy(before, level, sizeof(before));
    }
}

static inline void find_range(const vec *x, float *low, float *high)
{
    float at[2][8];
    v_store(at[0], v_min(v_min(x[0], x[1]), v_min(x[2], x[3])));
    v_store(at[1], v_max(v_max(x[0], x[1]), v_max(x[2], x[3])));
    *low = at[0][0];
    *high = at[1][0];
    for (int i = 1; i < 8; i++) {
        *low = at[0][i] < *low ? at[0][i] : *low;
        *high = at[1][i] > *high ? at[1][i] : *high;
    }
}

/* The block of least squared error found from several starts; false (nothing done) when a value is
 * no number or the range overflows. Never worse than plain rounding between the smallest and the
 * largest value, which is offered first. */
static inline bool fit_block(const float *src, struct fit *best)
{
    vec x[VECS];
    vec above[VECS];
    vec level[VECS];
    float low;
    float high;
    for (int i = 0; i < VECS; i++) {
        x[i] = v_load(src + 8 * i);
    }
    find_range(x, &low, &high);
    for (int i = 0; i < VECS; i++) {
        above[i] = v_sub(x[i], v_set(low));
    }
    const float width = high - low;
    const float sum_above = sum_of(above);
    if (!(width <= FLT_MAX && sum_above <= FLT_MAX)) {
        return false;
    }
    const float step = width / (float)TOP;
    choose_levels(x, step, low, level);
    best->scale = tnd_f32_to_f16(step);
    best->offset = tnd_f32_to_f16(low);
    memcpy(best->level, level, sizeof(best->level));
    best->error = INFINITY;
    offer(x, best->scale, best->offset, level, best);
    /* the range without 0, 1/2 or 1 step at either end: the few values out there cost less than
     * all the others gain */
    for (int start = 0; start < STARTS * STARTS; start++) {
        float offset = 0.5f * (float)(start / STARTS) * step;
        float scale = (width - 0.5f * (float)(start % STARTS) * step - offset) / (float)TOP;
        alternate(above, sum_above, &scale, &offset);
        offer_rounded(x, scale, offset + low, best);
    }
    /* a narrow block far from 0, where the halves of the offset lie further apart than its values:
     * steps from a half below it reach them */
    float below = tnd_f16_to_f32(tnd_f32_to_f16(low - fabsf(low) * 0x1p-11f));
    offer_rounded(x, (high - below) / (float)TOP, below, best);
    return true;
}

static inline void quantize_blocks(const float *src, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / BLOCK; b++, src += BLOCK) {
        unsigned char *to = (unsigned char *)dst + (size_t)b * sizeof(struct tnd_block_q4_1);
        struct fit best;
        if (!fit_block(src, &best)) {
            tnd_quantize_Q4_1(src, to, BLOCK);
            continue;
        }
        struct tnd_block_q4_1 block = {.d = best.scale, .m = best.offset};
        float level[BLOCK];
        for (int i = 0; i < VECS; i++) {
            v_store(level + 8 * i, best.level[i]);
        }
        for (int i = 0; i < BLOCK / 2; i++) {
            block.qs[i] = (uint8_t)((int)level[i] | (int)level[i + BLOCK / 2] << 4);
        }
        memcpy(to, &block, sizeof(block));
    }
}
