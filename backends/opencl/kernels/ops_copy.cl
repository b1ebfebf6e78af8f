/* SPDX-License-Identifier: MIT
 * Moving values: cpy, cont and both halves of concat. Both sides have extents and strides of their
 * own and the same number of values, which meet in the order of ne. Quantised rows come from
 * F32. */
#include "ops.clh"
#pragma OPENCL FP_CONTRACT OFF

#define KIND_WORD  0 /* 4 bytes that are kept as they are */
#define KIND_SHORT 1 /* 2 bytes that are kept as they are */
#define KIND_F32   2
#define KIND_F16   3
#define KIND_BF16  4

/* Bytes from the begin to value i in the order of ne; ne0 of 0: one row has them all. */
static ulong place_of(uint i, uint ne0, uint ne1, uint ne2, ulong nb0, ulong nb1, ulong nb2,
                      ulong nb3)
{
    if (ne0 == 0) {
        return i * nb0;
    }
    const uint row = i / ne0;
    const uint matrix = row / ne1;
    const uint i3 = matrix / ne2;
    return (i - row * ne0) * nb0 + (row - matrix * ne1) * nb1 + (matrix - i3 * ne2) * nb2 +
           i3 * nb3;
}

/* Nearest, ties to even; not-a-numbers stay quiet ones. */
static ushort bf16_of(float value)
{
    const uint bits = as_uint(value);
    return isnan(value) ? (ushort)(bits >> 16 | 0x40u)
                        : (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static float load_kind(uint kind, global const uchar *at)
{
    if (kind == KIND_F32) {
        return *(global const float *)at;
    }
    if (kind == KIND_F16) {
        return vload_half(0, (global const half *)at);
    }
    return as_float((uint)*(global const ushort *)at << 16);
}

work_group(GROUP)
kernel void copy_values(global uchar *to, ulong to_at, global const uchar *from, ulong from_at,
                        uint to_kind, uint from_kind, uint n, uint to_ne0, uint to_ne1,
                        uint to_ne2, ulong to_nb0, ulong to_nb1, ulong to_nb2, ulong to_nb3,
                        uint from_ne0, uint from_ne1, uint from_ne2, ulong from_nb0,
                        ulong from_nb1, ulong from_nb2, ulong from_nb3)
{
    const uint i = get_global_id(0);
    if (i >= n) {
        return;
    }
    to += to_at + place_of(i, to_ne0, to_ne1, to_ne2, to_nb0, to_nb1, to_nb2, to_nb3);
    from += from_at +
            place_of(i, from_ne0, from_ne1, from_ne2, from_nb0, from_nb1, from_nb2, from_nb3);
    if (to_kind == KIND_WORD) {
        *(global uint *)to = *(global const uint *)from;
    } else if (to_kind == KIND_SHORT) {
        *(global ushort *)to = *(global const ushort *)from;
    } else if (to_kind == KIND_F32) {
        *(global float *)to = load_kind(from_kind, from);
    } else if (to_kind == KIND_F16) {
        vstore_half_rte(load_kind(from_kind, from), 0, (global half *)to);
    } else {
        *(global ushort *)to = bf16_of(load_kind(from_kind, from));
    }
}

/* a / b rounded to the nearest also where the device's division is not (Markstein 1990). */
static float exact_quotient(float a, float b)
{
    const float q = a / b;
    const float better = fma(fma(-q, b, a), 1.0f / b, q);
    return isfinite(better) ? better : q;
}

/* A level of 0 to 15; what is no number becomes 0. */
static uint level_of(float x)
{
    return x > 0.0f ? (x < 15.0f ? (uint)x : 15u) : 0u;
}

/* Levels of two values in a byte. Product and sum are rounded one by one, as vectors are. */
static uint nibbles_of(float low, float high, float inverse)
{
    const float2 level = float2_of(low, high) * inverse + float2_of(8.5f, 8.5f);
    return level_of(level.x) | level_of(level.y) << 4;
}

/* Rows of F32 to blocks of 32 as tnd_quantize_Q8_0 makes them: the same bits. Work item: a
 * block. */
work_group(GROUP)
kernel void copy_to_q8_0(global uchar *to, ulong to_at, global const uchar *from, ulong from_at,
                         uint n, uint row_blocks, uint ne1, uint ne2, ulong to_nb1, ulong to_nb2,
                         ulong to_nb3, ulong from_nb1, ulong from_nb2, ulong from_nb3)
{
    const uint block = get_global_id(0);
    if (block >= n) {
        return;
    }
    const uint row = block / row_blocks;
    const uint i0 = block - row * row_blocks;
    const uint matrix = row / ne1;
    const uint i1 = row - matrix * ne1;
    const uint i3 = matrix / ne2;
    const uint i2 = matrix - i3 * ne2;
    from += from_at + i1 * from_nb1 + i2 * from_nb2 + i3 * from_nb3;
    to += to_at + i1 * to_nb1 + i2 * to_nb2 + i3 * to_nb3 + i0 * 34;
    global const float *x = (global const float *)from + i0 * 32;
    float largest = 0.0f;
    bool starts_with_nan = isnan(x[0]);
    for (uint i = 0; i < 32; i++) {
        const float magnitude = fabs(x[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    /* nothing is larger than a not-a-number that comes first */
    const float d = starts_with_nan ? fabs(x[0]) : exact_quotient(largest, 127.0f);
    const float inverse = d != 0.0f ? exact_quotient(1.0f, d) : 0.0f;
    vstore_half_rte(d, 0, (global half *)to);
    global ushort *levels = (global ushort *)(to + 2); /* blocks lie at even places */
    for (uint i = 0; i < 32; i += 2) {
        const float2 level = round(float2_of(x[i], x[i + 1]) * inverse);
        /* what is no number becomes the lowest level */
        const int low = level.x > -127.0f ? (int)fmin(level.x, 127.0f) : -127;
        const int high = level.y > -127.0f ? (int)fmin(level.y, 127.0f) : -127;
        levels[i / 2] = (ushort)(low & 0xff) | (ushort)((high & 0xff) << 8);
    }
}

/* The same to blocks of Q4_0, as tnd_quantize_Q4_0 makes them: the largest magnitude, with its
 * sign, is level 0 of 16. */
work_group(GROUP)
kernel void copy_to_q4_0(global uchar *to, ulong to_at, global const uchar *from, ulong from_at,
                         uint n, uint row_blocks, uint ne1, uint ne2, ulong to_nb1, ulong to_nb2,
                         ulong to_nb3, ulong from_nb1, ulong from_nb2, ulong from_nb3)
{
    const uint block = get_global_id(0);
    if (block >= n) {
        return;
    }
    const uint row = block / row_blocks;
    const uint i0 = block - row * row_blocks;
    const uint matrix = row / ne1;
    const uint i1 = row - matrix * ne1;
    const uint i3 = matrix / ne2;
    const uint i2 = matrix - i3 * ne2;
    from += from_at + i1 * from_nb1 + i2 * from_nb2 + i3 * from_nb3;
    to += to_at + i1 * to_nb1 + i2 * to_nb2 + i3 * to_nb3 + i0 * 18;
    global const float *x = (global const float *)from + i0 * 32;
    float best = 0.0f;
    for (uint i = 0; i < 32; i++) {
        best = fabs(x[i]) > fabs(best) ? x[i] : best;
    }
    const float d = best * -0.125f;
    const float inverse = d != 0.0f ? exact_quotient(1.0f, d) : 0.0f;
    vstore_half_rte(d, 0, (global half *)to);
    global ushort *words = (global ushort *)(to + 2); /* blocks lie at even places */
    for (uint i = 0; i < 16; i += 2) {
        words[i / 2] = (ushort)(nibbles_of(x[i], x[i + 16], inverse) |
                                nibbles_of(x[i + 1], x[i + 17], inverse) << 8);
    }
}
