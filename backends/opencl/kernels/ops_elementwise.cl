/* SPDX-License-Identifier: MIT
 * Operations that go element by element; formulas in tandem/ops.h. The result is contiguous F32 and
 * may lie on the bytes of `a`, so nothing here is `restrict`: value i is read before it is written,
 * by one work item.
 *
 * Numbers of operations come from gpu_ops.c. They are the same for a whole launch, so choosing at
 * run time costs next to nothing and saves a program for each. */
#include "ops.clh"

#define OP_ADD 0
#define OP_SUB 1
#define OP_MUL 2
#define OP_DIV 3

#define OP_SCALE 0
#define OP_SQR   1
#define OP_SQRT  2
#define OP_SILU  3
#define OP_GELU  4
#define OP_RELU  5
#define OP_MASK  6
#define OP_GELU_ERF 7
#define OP_SIGMOID 8
#define OP_TANH 9
#define OP_CLAMP 10

/* How operands lie. */
#define LAYOUT_DENSE    0 /* everything like the result */
#define LAYOUT_REPEATED 1 /* b is one dense run that is repeated */
#define LAYOUT_STRIDED  2

/* y = a op b, b repeated to the shape of a. One work item a value. */
work_group(GROUP)
kernel void binary(global uchar *y, ulong y_at, global const uchar *a, ulong a_at,
                   global const uchar *b, ulong b_at, uint op, uint layout, uint n, uint ne0,
                   uint ne1, uint ne2, ulong a_nb1, ulong a_nb2, ulong a_nb3, uint b_ne0,
                   uint b_ne1, uint b_ne2, uint b_ne3, ulong b_nb1, ulong b_nb2, ulong b_nb3)
{
    const uint i = get_global_id(0);
    if (i >= n) {
        return;
    }
    ulong a_place = (ulong)i * sizeof(float);
    ulong b_place = a_place;
    if (layout == LAYOUT_REPEATED) {
        b_place = (ulong)(i % b_ne0) * sizeof(float);
    } else if (layout == LAYOUT_STRIDED) {
        const uint row = i / ne0;
        const uint matrix = row / ne1;
        const uint i0 = i - row * ne0;
        const uint i1 = row - matrix * ne1;
        const uint i3 = matrix / ne2;
        const uint i2 = matrix - i3 * ne2;
        a_place = (ulong)i0 * sizeof(float) + i1 * a_nb1 + i2 * a_nb2 + i3 * a_nb3;
        b_place = (ulong)(i0 % b_ne0) * sizeof(float) + (i1 % b_ne1) * b_nb1 +
                  (i2 % b_ne2) * b_nb2 + (i3 % b_ne3) * b_nb3;
    }
    const float u = *(global const float *)(a + a_at + a_place);
    const float v = *(global const float *)(b + b_at + b_place);
    float result;
    if (op == OP_ADD) {
        result = u + v;
    } else if (op == OP_SUB) {
        result = u - v;
    } else if (op == OP_MUL) {
        result = u * v;
    } else {
        result = u / v;
    }
    ((global float *)(y + y_at))[i] = result;
}

/* y = f(a). `factor` is that of a scale, or the least of a clamp, whose most is `high`; a value
 * whose column is beyond n_past + its row becomes -infinity in OP_MASK. */
work_group(GROUP)
kernel void unary(global uchar *y, ulong y_at, global const uchar *a, ulong a_at, uint op,
                  uint layout, float factor, float high, long n_past, uint n, uint ne0,
                  uint ne1, uint ne2, ulong a_nb1, ulong a_nb2, ulong a_nb3)
{
    const uint i = get_global_id(0);
    if (i >= n) {
        return;
    }
    ulong place = (ulong)i * sizeof(float);
    long beyond = 0; /* columns from the last that is seen */
    if (layout == LAYOUT_STRIDED) {
        const uint row = i / ne0;
        const uint matrix = row / ne1;
        const uint i0 = i - row * ne0;
        const uint i1 = row - matrix * ne1;
        const uint i3 = matrix / ne2;
        const uint i2 = matrix - i3 * ne2;
        place = (ulong)i0 * sizeof(float) + i1 * a_nb1 + i2 * a_nb2 + i3 * a_nb3;
        beyond = (long)i0 - (long)i1 - n_past;
    }
    const float x = *(global const float *)(a + a_at + place);
    float result;
    if (op == OP_SCALE) {
        result = x * factor;
    } else if (op == OP_SQR) {
        result = x * x;
    } else if (op == OP_SQRT) {
        result = sqrt(x);
    } else if (op == OP_SILU) {
        result = x / (1.0f + exp(-x));
    } else if (op == OP_SIGMOID) {
        result = 1.0f / (1.0f + exp(-x));
    } else if (op == OP_TANH) {
        result = tanh(x);
    } else if (op == OP_GELU) {
        /* 0.5 (1 + tanh z) = 1 / (1 + exp(-2 z)), where nothing is cancelled */
        const float z = 0.7978845608028654f * (x + 0.044715f * x * x * x);
        result = x / (1.0f + exp(-2.0f * z));
    } else if (op == OP_GELU_ERF) {
        result = 0.5f * x * erfc(-0.70710678f * x);
    } else if (op == OP_RELU) {
        result = x > 0.0f || isnan(x) ? x : 0.0f;
    } else if (op == OP_CLAMP) {
        result = x < factor ? factor : x > high ? high : x;
    } else {
        result = beyond > 0 ? -INFINITY : x;
    }
    ((global float *)(y + y_at))[i] = result;
}
