/* SPDX-License-Identifier: MIT
 * The least-squares fit of a block of BCML1, written once for all instruction sets: eight lines at
 * a time, one a lane, each through all 32 values. The files that include it (quant_bcml1.c,
 * quant_bcml1_avx2.c) bring
 *   vec                              8 floats
 *   v_load(p) v_store(p, v)          any alignment
 *   v_set(f) v_add v_sub v_mul v_div nothing fused
 *   v_min(a, b) v_max(a, b)          a < b ? a : b and a > b ? a : b
 *   v_truncate(v)                    towards zero, of values in 0..15
 *   v_half(v)                        the nearest half
 *   v_if_positive(c, a, b)           c > 0 ? a : b
 *   v_same(a, b)                     whether all lanes are equal
 *   vec_double                       8 doubles
 *   v_no_error()                     zeros
 *   v_add_error(sum, y, x)           sum + ((double)y - (double)x)^2; x is one float
 *   v_store_double(p, v)
 * Every sum has one order, so all of them give the same bits. Start at fit_block. */

enum { VALUES = 32, LANES = 8, TOP = 15, ROUNDS = 8 };

/* One line per lane: value = scale * level + offset. */
struct lines {
    vec scale, offset;
};

/* The best block so far. Levels are those nearest to the line (scale, offset), which plain rounding
 * uses before scale and offset are rounded to halves. */
struct fit {
    float half_scale, half_offset;
    float scale, offset;
    double error;
};

static inline vec inverse_of(vec scale)
{
    const vec zero = v_set(0.0f);
    vec inverse = v_div(v_set(1.0f), scale);
    return v_if_positive(scale, inverse, v_if_positive(v_sub(zero, scale), inverse, zero));
}

/* Nearest level 0..15; NaN becomes 0. */
static inline vec level_of(vec x, vec inverse, vec offset)
{
    vec above = v_add(v_mul(v_sub(x, offset), inverse), v_set(0.5f));
    return v_truncate(v_min(v_max(above, v_set(0.0f)), v_set((float)TOP)));
}

/* Improves each line: least squares through the levels nearest to it, ROUNDS times or until they no
 * longer change. Works on distances from the lowest value, which are exact when a narrow block lies
 * far from 0. */
static inline void improve(const float *above, float sum_above, struct lines *lines)
{
    const vec n = v_set((float)VALUES);
    const vec sum_x = v_set(sum_above);
    for (int round = 0; round < ROUNDS; round++) {
        const vec inverse = inverse_of(lines->scale);
        vec sum_q = v_set(0.0f);
        vec sum_qq = sum_q;
        vec sum_qx = sum_q;
        for (int i = 0; i < VALUES; i++) {
            vec x = v_set(above[i]);
            vec q = level_of(x, inverse, lines->offset);
            sum_q = v_add(sum_q, q);
            sum_qq = v_add(sum_qq, v_mul(q, q));
            sum_qx = v_add(sum_qx, v_mul(q, x));
        }
        /* exact: integers below 2^24; 0 if all levels are equal */
        vec determinant = v_sub(v_mul(n, sum_qq), v_mul(sum_q, sum_q));
        vec scale = v_div(v_sub(v_mul(n, sum_qx), v_mul(sum_x, sum_q)), determinant);
        vec offset = v_div(v_sub(sum_x, v_mul(scale, sum_q)), n);
        scale = v_if_positive(determinant, scale, lines->scale);
        offset = v_if_positive(determinant, offset, lines->offset);
        bool stay = v_same(scale, lines->scale) && v_same(offset, lines->offset);
        lines->scale = scale;
        lines->offset = offset;
        if (stay) {
            return;
        }
    }
}

/* Replaces the best block by the lane of least error, if that is better; the first lane among
 * equals. */
static inline void offer(const float *x, vec scale, vec offset, struct fit *best)
{
    const vec inverse = inverse_of(scale);
    vec_double sum = v_no_error();
    double error[LANES];
    float scales[LANES];
    float offsets[LANES];
    for (int i = 0; i < VALUES; i++) {
        vec q = level_of(v_set(x[i]), inverse, offset);
        sum = v_add_error(sum, v_add(v_mul(scale, q), offset), x[i]);
    }
    v_store_double(error, sum);
    v_store(scales, scale);
    v_store(offsets, offset);
    for (int lane = 0; lane < LANES; lane++) {
        if (error[lane] < best->error) { /* false if the halves overflowed and the error is NaN */
            best->half_scale = best->scale = scales[lane];
            best->half_offset = best->offset = offsets[lane];
            best->error = error[lane];
        }
    }
}

/* Rounds the offset to a half, then refits the scale, which recovers some of the loss. */
static inline void offer_offset_first(const float *x, const struct lines *lines, struct fit *best)
{
    const vec offset = v_half(lines->offset);
    const vec inverse = inverse_of(lines->scale);
    vec sum_qq = v_set(0.0f);
    vec sum_qx = sum_qq;
    for (int i = 0; i < VALUES; i++) {
        vec q = level_of(v_set(x[i]), inverse, offset);
        sum_qq = v_add(sum_qq, v_mul(q, q));
        sum_qx = v_add(sum_qx, v_mul(q, v_sub(v_set(x[i]), offset)));
    }
    vec scale = v_if_positive(sum_qq, v_div(sum_qx, sum_qq), lines->scale);
    offer(x, v_half(scale), offset, best);
}

/* Rounds the scale first, then refits the offset. */
static inline void offer_scale_first(const float *x, const struct lines *lines, struct fit *best)
{
    const vec scale = v_half(lines->scale);
    const vec inverse = inverse_of(scale);
    vec sum = v_set(0.0f);
    for (int i = 0; i < VALUES; i++) {
        vec q = level_of(v_set(x[i]), inverse, lines->offset);
        sum = v_add(sum, v_sub(v_set(x[i]), v_mul(scale, q)));
    }
    offer(x, scale, v_half(v_div(sum, v_set((float)VALUES))), best);
}

/* Q4_1's method: levels between the smallest and the largest value, then halves. */
static inline void offer_plain(const float *x, float low, float step, struct fit *best)
{
    const vec inverse = inverse_of(v_set(step));
    double error = 0;
    *best = (struct fit){.half_scale = tnd_f16_to_f32(tnd_f32_to_f16(step)),
                         .half_offset = tnd_f16_to_f32(tnd_f32_to_f16(low)),
                         .scale = step,
                         .offset = low};
    for (int i = 0; i < VALUES; i += LANES) {
        float y[LANES];
        vec q = level_of(v_load(x + i), inverse, v_set(low));
        v_store(y, v_add(v_mul(v_set(best->half_scale), q), v_set(best->half_offset)));
        for (int j = 0; j < LANES; j++) {
            double difference = (double)y[j] - (double)x[i + j];
            error += difference * difference;
        }
    }
    best->error = error <= DBL_MAX ? error : INFINITY;
}

static inline void find_range(const float *x, float *low, float *high)
{
    float lows[LANES];
    float highs[LANES];
    const vec a[] = {v_load(x), v_load(x + 8), v_load(x + 16), v_load(x + 24)};
    v_store(lows, v_min(v_min(a[0], a[1]), v_min(a[2], a[3])));
    v_store(highs, v_max(v_max(a[0], a[1]), v_max(a[2], a[3])));
    *low = lows[0];
    *high = highs[0];
    for (int i = 1; i < LANES; i++) {
        *low = lows[i] < *low ? lows[i] : *low;
        *high = highs[i] > *high ? highs[i] : *high;
    }
}

/* Distances from the lowest value; returns their sum. */
static inline float measure_above(const float *x, float low, float *above)
{
    float sums[LANES];
    vec sum = v_set(0.0f);
    for (int i = 0; i < VALUES; i += LANES) {
        vec distance = v_sub(v_load(x + i), v_set(low));
        v_store(above + i, distance);
        sum = v_add(sum, distance);
    }
    v_store(sums, sum);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/* The block of least squared error over several starts; false (nothing done) if a value is NaN or
 * the range overflows. Never worse than plain rounding, which is offered first. */
static inline bool fit_block(const float *x, struct fit *best)
{
    /* steps that each start leaves out at the low and the high end of the range: clipping a few
     * outliers can cost less than the other values gain */
    static const float below[LANES] = {0, 0, 0.5f, 0.5f, 0.5f, 1, 1, 1};
    static const float beyond[LANES] = {0.5f, 1, 0, 0.5f, 1, 0, 0.5f, 1};
    static const float counts[LANES] = {1, 2, 3, 4, 5, 6, 7, 8};
    float above[VALUES];
    float low;
    float high;
    find_range(x, &low, &high);
    const float width = high - low;
    const float sum_above = measure_above(x, low, above);
    if (!(width <= FLT_MAX && sum_above <= FLT_MAX)) {
        return false;
    }
    const float step = width / (float)TOP;
    offer_plain(x, low, step, best);
    struct lines lines;
    lines.offset = v_mul(v_load(below), v_set(step));
    lines.scale = v_sub(v_sub(v_set(width), v_mul(v_load(beyond), v_set(step))), lines.offset);
    lines.scale = v_div(lines.scale, v_set((float)TOP));
    improve(above, sum_above, &lines);
    lines.offset = v_add(lines.offset, v_set(low));
    offer_offset_first(x, &lines, best);
    offer_scale_first(x, &lines, best);
    const float magnitude = fabsf(low);
    if (width < magnitude * 0.0625f) {
        /* a narrow block far from 0: adjacent halves of the offset are no closer than the levels;
         * steps from halves further below reach the values in between */
        vec down = v_mul(v_load(counts), v_set(magnitude * 0x1p-11f));
        lines.offset = v_half(v_sub(v_set(low), down));
        lines.scale = v_div(v_sub(v_set(high), lines.offset), v_set((float)TOP));
        offer_offset_first(x, &lines, best);
    }
    return true;
}

static inline void quantize_block(const float *x, unsigned char *to)
{
    struct tnd_block_q4_1 block;
    struct fit fit;
    float level[VALUES];
    if (!fit_block(x, &fit)) { /* plain rounding, which only differs in the order of values */
        tnd_quantize_Q4_1(x, to, VALUES);
        memcpy(&block, to, sizeof(block));
        for (int i = 0; i < VALUES / 2; i++) {
            const int at = 2 * i % (VALUES / 2);
            const int shift = 2 * i < VALUES / 2 ? 0 : 4;
            block.qs[i] =
                (uint8_t)((to[4 + at] >> shift & 15) | (to[4 + at + 1] >> shift & 15) << 4);
        }
        memcpy(to, &block, sizeof(block));
        return;
    }
    const vec inverse = inverse_of(v_set(fit.scale));
    for (int i = 0; i < VALUES; i += LANES) {
        v_store(level + i, level_of(v_load(x + i), inverse, v_set(fit.offset)));
    }
    block.d = tnd_f32_to_f16(fit.half_scale);
    block.m = tnd_f32_to_f16(fit.half_offset);
    for (int i = 0; i < VALUES / 2; i++) {
        block.qs[i] = (uint8_t)((int)level[2 * i] | (int)level[2 * i + 1] << 4);
    }
    memcpy(to, &block, sizeof(block));
}

static inline void quantize_blocks(const float *src, void *dst, int64_t n)
{
    unsigned char *to = dst;
    for (int64_t i = 0; i < n; i += VALUES, to += sizeof(struct tnd_block_q4_1)) {
        quantize_block(src + i, to);
    }
}
