/* SPDX-License-Identifier: MIT
 * Products of many rows with many rows, tile by tile through local memory: attention with a running
 * soft_max (Milakov and Gimelshein 2018), and matrix products of operands that are views. The first
 * operand (keys and values; W) has the type that the program is built for.
 *
 * ROWS: rows of the second operand (queries; X) in a work group. Each work item meets one of TILE
 * rows of the first operand with ROWS * TILE / GROUP of the second. */
#include "ops.clh"
#include "decode.clh"

/* What is summed here need not have the bits of another device. */
#pragma OPENCL FP_CONTRACT ON

#ifndef ROWS
#define ROWS 4
#endif
#define TILE     64 /* rows of the first operand that are met together */
#define CHUNK    32 /* values of a row at a time */
#define PITCH    (CHUNK + 1) /* so that work items read different banks */
#define STAGED   (TILE * PITCH)
#define TEAMS    (GROUP / TILE)
#define PER_ITEM (ROWS / TEAMS)
#define MEMBERS  (GROUP / ROWS) /* work items that share a row in sums over keys */

/* Values first .. first + width - 1 of rows row .. row + height - 1 into local memory; 0 where the
 * row (of `length` values) or the matrix (of `n_rows` rows) ends. `width` is a power of 2 from 16
 * on, given by its logarithm. */
static void stage(local float *to, uint pitch, uint log_width, uint height,
                  global const uchar *rows, ulong nb1, uint row, uint n_rows, uint first,
                  uint length)
{
#ifdef FLOAT_TYPE
    for (uint i = get_local_id(0); i < height << log_width; i += GROUP) {
        const uint r = i >> log_width;
        const uint c = i & ((1u << log_width) - 1);
        const bool is_there = row + r < n_rows && first + c < length;
        to[r * pitch + c] = is_there ? value_at(rows + (row + r) * nb1, first + c) : 0.0f;
    }
#else
    const uint log_parts = log_width - 4;
    for (uint i = get_local_id(0); i < height << log_parts; i += GROUP) {
        const uint r = i >> log_parts;
        const uint c = (i & ((1u << log_parts) - 1)) * 16;
        float16 part = 0.0f;
        if (row + r < n_rows && first + c < length) {
            const uint place = (first + c) / 16;
            part = decode16(rows + (row + r) * nb1 + (ulong)(place / BLOCK_PARTS) * BLOCK_BYTES,
                            place % BLOCK_PARTS);
        }
        vstore16(part, 0, to + r * pitch + c);
    }
#endif
}

/* ---- attention ---- */

#define MASK_NONE   0
#define MASK_ADDED  1 /* F32 rows are added to the scores */
#define MASK_ORDERS 2 /* I32 places of keys, then of queries */

/* What query `token` sees of key t: a number to add to the score. */
static float mask_of(uint kind, global const uchar *mask, ulong nb1, long window, uint n_keys,
                     uint token, uint t)
{
    if (kind == MASK_ADDED) {
        return ((global const float *)(mask + token * nb1))[t];
    }
    if (kind == MASK_ORDERS) {
        global const int *orders = (global const int *)mask;
        const long distance = (long)orders[n_keys + token] - (long)orders[t];
        return distance >= 0 && distance < window ? 0.0f : -INFINITY;
    }
    return 0.0f;
}

/* A weight with the share of the head's sink, a score without a value, where there are sinks. */
static float with_sink(float weight, float largest, uint has_sinks, global const uchar *sinks,
                       uint head)
{
    const bool is_there = has_sinks != 0 && weight != 0.0f;
    return is_there ? weight + exp(((global const float *)sinks)[head] - largest) : weight;
}

/* A work group takes ROWS queries of a KV head (in the order token, head of its group), GROUP
 * columns of the result, and one of `splits` parts of the keys. With one part it writes the result;
 * else sums to `partial` {value, splits, rows, KV heads}, and to `stats` the largest score and the
 * sum of weights behind it, which attention_join puts together. */
work_group(GROUP)
kernel void attention(global uchar *y, ulong y_at, global uchar *partial, ulong partial_at,
                      global uchar *stats, ulong stats_at, global const uchar *q, ulong q_at,
                      global const uchar *k, ulong k_at, global const uchar *v, ulong v_at,
                      global const uchar *mask, ulong mask_at, uint mask_kind, uint head,
                      uint value, uint n_keys, uint n_queries, uint heads, uint group,
                      uint row_blocks, uint column_blocks, uint splits, ulong q_nb1, ulong q_nb2,
                      ulong k_nb1, ulong k_nb2, ulong v_nb1, ulong v_nb2, ulong mask_nb1,
                      long window, float scale, float cap, global const uchar *sinks,
                      ulong sinks_at, uint has_sinks)
{
    shared float staged[STAGED];        /* keys {CHUNK, TILE}, then values {width, a part of TILE} */
    shared float queries[ROWS * CHUNK]; /* {ROWS, CHUNK}, so that rows are read together */
    shared float scores[ROWS * TILE];   /* {ROWS, TILE}; then weights */
    shared float members[GROUP];
    shared float largest[ROWS], weight[ROWS], shrink[ROWS];
    shared int is_seen;

    const uint item = get_local_id(0);
    uint block = get_group_id(0);
    const uint split = block % splits;
    block /= splits;
    const uint column_block = block % column_blocks;
    block /= column_blocks;
    const uint first_row = block % row_blocks * ROWS;
    const uint kv_head = block / row_blocks;
    const uint n_rows = n_queries * group;

    /* for scores: key `key` of a tile, rows `rows` .. rows + PER_ITEM - 1 */
    const uint key = item % TILE;
    const uint rows = item / TILE * PER_ITEM;
    /* for sums of weights: row `team_row`, with MEMBERS - 1 others */
    const uint team_row = item % ROWS;
    const uint member = item / ROWS;
    /* for values: a column; narrow results leave half the work items to every other key */
    const uint first_column = column_block * GROUP;
    const uint n_columns = min(value - first_column, (uint)GROUP);
    const uint halves = n_columns <= GROUP / 2 ? 2 : 1;
    const uint width = GROUP / halves;
    const uint log_width = 31 - clz(width);
    const uint column = item % width;
    const uint half_index = item / width;
    const uint step = TILE * CHUNK / width; /* keys whose values are staged together */

    global const uchar *keys = k + k_at + kv_head * k_nb2;
    global const uchar *values = v + v_at + kv_head * v_nb2;
    q += q_at;
    mask += mask_at;

    float sums[ROWS];
    for (uint r = 0; r < ROWS; r++) {
        sums[r] = 0.0f;
    }
    if (item < ROWS) {
        largest[item] = -INFINITY;
        weight[item] = 0.0f;
    }

    const uint tiles = (n_keys + TILE - 1) / TILE;
    const uint tiles_each = (tiles + splits - 1) / splits;
    const uint end = min(n_keys, (split + 1) * tiles_each * TILE);
    for (uint t = split * tiles_each * TILE; t < end; t += TILE) {
        /* what is seen */
        float add[PER_ITEM];
        bool sees = false;
        for (uint i = 0; i < PER_ITEM; i++) {
            const uint row = first_row + rows + i;
            add[i] = -INFINITY;
            if (t + key < n_keys && row < n_rows) {
                add[i] = mask_of(mask_kind, mask, mask_nb1, window, n_keys, row / group, t + key);
            }
            sees = sees || add[i] != -INFINITY;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) {
            is_seen = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (sees) {
            atomic_or(&is_seen, 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (is_seen == 0) {
            continue;
        }

        /* scores */
        float dots[PER_ITEM];
        for (uint i = 0; i < PER_ITEM; i++) {
            dots[i] = 0.0f;
        }
        for (uint first = 0; first < head; first += CHUNK) {
            barrier(CLK_LOCAL_MEM_FENCE);
            stage(staged, PITCH, 5, TILE, keys, k_nb1, t, n_keys, first, head);
            for (uint i = item; i < ROWS * CHUNK; i += GROUP) {
                const uint row = first_row + i / CHUNK;
                const uint place = first + i % CHUNK;
                float x = 0.0f;
                if (row < n_rows && place < head) {
                    x = ((global const float *)(q + row / group * q_nb1 +
                                                (kv_head * group + row % group) * q_nb2))[place];
                }
                queries[i % CHUNK * ROWS + i / CHUNK] = x;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint d = 0; d < CHUNK; d++) {
                const float x = staged[key * PITCH + d];
#pragma unroll
                for (uint i = 0; i < PER_ITEM; i++) {
                    dots[i] += queries[d * ROWS + rows + i] * x;
                }
            }
        }
        for (uint i = 0; i < PER_ITEM; i++) {
            float score = dots[i] * scale;
            if (cap > 0.0f) {
                score = cap * tanh(score / cap);
            }
            scores[key * ROWS + rows + i] = add[i] == -INFINITY ? add[i] : score + add[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* weights, against the largest score so far */
        float best = -INFINITY;
        for (uint j = member; j < TILE; j += MEMBERS) {
            best = fmax(best, scores[j * ROWS + team_row]);
        }
        members[item] = best;
        barrier(CLK_LOCAL_MEM_FENCE);
        const float before = largest[team_row];
        float now = before;
        for (uint i = 0; i < MEMBERS; i++) {
            now = fmax(now, members[i * ROWS + team_row]);
        }
        float sum = 0.0f;
        for (uint j = member; j < TILE; j += MEMBERS) {
            const float score = scores[j * ROWS + team_row];
            /* without any number above -infinity only what is no number counts */
            const float share =
                now == -INFINITY ? (isnan(score) ? score : 0.0f) : exp(score - now);
            scores[j * ROWS + team_row] = share;
            sum += share;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        members[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (member == 0) {
            const float less = before == now ? 1.0f : exp(before - now);
            float total = weight[team_row] * less;
            for (uint i = 0; i < MEMBERS; i++) {
                total += members[i * ROWS + team_row];
            }
            weight[team_row] = total;
            shrink[team_row] = less;
            largest[team_row] = now;
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* weighted values */
        for (uint r = 0; r < ROWS; r++) {
            sums[r] *= shrink[r];
        }
        for (uint j0 = 0; j0 < TILE && t + j0 < n_keys; j0 += step) {
            stage(staged, width, log_width, step, values, v_nb1, t + j0, n_keys, first_column,
                  value);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint j = half_index; j < step; j += halves) {
                const float x = staged[j * width + column];
#pragma unroll
                for (uint r = 0; r < ROWS; r++) {
                    sums[r] += scores[(j0 + j) * ROWS + r] * x;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    for (uint r = 0; r < ROWS; r++) {
        const uint row = first_row + r;
        barrier(CLK_LOCAL_MEM_FENCE); /* members is free, and weight there for all */
        members[item] = sums[r];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row >= n_rows || item >= n_columns) {
            continue;
        }
        const float sum = members[item] + (halves == 2 ? members[item + width] : 0.0f);
        if (splits == 1) {
            global float *to = (global float *)(y + y_at) +
                               ((ulong)(row / group) * heads + kv_head * group + row % group) *
                                   value;
            /* who saw nothing gets zeros; a weight that is no number goes on */
            const float all = with_sink(weight[r], largest[r], has_sinks, sinks + sinks_at,
                                        kv_head * group + row % group);
            to[first_column + item] = all == 0.0f ? 0.0f : sum / all;
        } else {
            const ulong place = ((ulong)kv_head * n_rows + row) * splits + split;
            ((global float *)(partial + partial_at))[place * value + first_column + item] = sum;
            if (item == 0 && column_block == 0) { /* the others have the same */
                ((global float2 *)(stats + stats_at))[place] = float2_of(largest[r], weight[r]);
            }
        }
    }
}

/* Work item: a column of a query. */
work_group(GROUP)
kernel void attention_join(global uchar *y, ulong y_at, global const uchar *partial,
                           ulong partial_at, global const uchar *stats, ulong stats_at, uint n,
                           uint value, uint n_rows, uint heads, uint group, uint splits,
                           global const uchar *sinks, ulong sinks_at, uint has_sinks)
{
    const uint i = get_global_id(0);
    if (i >= n) {
        return;
    }
    const uint row_of_all = i / value;
    const uint column = i - row_of_all * value;
    const uint kv_head = row_of_all / n_rows;
    const uint row = row_of_all - kv_head * n_rows;
    global const float *sums =
        (global const float *)(partial + partial_at) + (ulong)row_of_all * splits * value + column;
    global const float2 *parts =
        (global const float2 *)(stats + stats_at) + (ulong)row_of_all * splits;
    float largest = -INFINITY;
    for (uint s = 0; s < splits; s++) {
        largest = fmax(largest, parts[s].x);
    }
    float weight = 0.0f;
    float sum = 0.0f;
    for (uint s = 0; s < splits; s++) {
        const float less = parts[s].x == largest ? 1.0f : exp(parts[s].x - largest);
        weight += parts[s].y * less;
        sum += sums[(ulong)s * value] * less;
    }
    weight = with_sink(weight, largest, has_sinks, sinks + sinks_at,
                       kv_head * group + row % group);
    ((global float *)(y + y_at))[((ulong)(row / group) * heads + kv_head * group + row % group) *
                                     value +
                                 column] = weight == 0.0f ? 0.0f : sum / weight;
}

/* ---- products of views ---- */

/* A work group takes TILE rows of a matrix of W (from row_begin on) and ROWS rows of a matrix of X:
 * matrix (i2, i3) of X meets matrix (i2 / repeat2, i3 / repeat3) of W. */
work_group(GROUP)
kernel void mul_mat_views(global uchar *y, ulong y_at, global const uchar *w, ulong w_at,
                          global const uchar *x, ulong x_at, uint n, uint m, uint k,
                          uint row_begin, uint row_end, uint n_blocks, uint m_blocks, uint ne2,
                          uint repeat2, uint repeat3, ulong w_nb1, ulong w_nb2, ulong w_nb3,
                          ulong x_nb1, ulong x_nb2, ulong x_nb3)
{
    shared float staged[STAGED];        /* W {CHUNK, TILE} */
    shared float vectors[ROWS * CHUNK]; /* X {ROWS, CHUNK} */
    const uint item = get_local_id(0);
    uint block = get_group_id(0);
    const uint first_row = row_begin + block % n_blocks * TILE;
    block /= n_blocks;
    const uint first_m = block % m_blocks * ROWS;
    block /= m_blocks;
    const uint i2 = block % ne2;
    const uint i3 = block / ne2;
    const uint key = item % TILE;
    const uint rows = item / TILE * PER_ITEM;
    w += w_at + i2 / repeat2 * w_nb2 + i3 / repeat3 * w_nb3;
    x += x_at + i2 * x_nb2 + i3 * x_nb3;
    float dots[PER_ITEM];
    for (uint i = 0; i < PER_ITEM; i++) {
        dots[i] = 0.0f;
    }
    for (uint first = 0; first < k; first += CHUNK) {
        barrier(CLK_LOCAL_MEM_FENCE);
        stage(staged, PITCH, 5, TILE, w, w_nb1, first_row, row_end, first, k);
        for (uint i = item; i < ROWS * CHUNK; i += GROUP) {
            const uint row = first_m + i / CHUNK;
            const uint place = first + i % CHUNK;
            vectors[i % CHUNK * ROWS + i / CHUNK] =
                row < m && place < k ? ((global const float *)(x + row * x_nb1))[place] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint d = 0; d < CHUNK; d++) {
            const float u = staged[key * PITCH + d];
            for (uint i = 0; i < PER_ITEM; i++) {
                dots[i] += vectors[d * ROWS + rows + i] * u;
            }
        }
    }
    global float *to = (global float *)(y + y_at) + ((ulong)i3 * ne2 + i2) * m * n;
    for (uint i = 0; i < PER_ITEM; i++) {
        if (first_row + key < row_end && first_m + rows + i < m) {
            to[(ulong)(first_m + rows + i) * n + first_row + key] = dots[i];
        }
    }
}
