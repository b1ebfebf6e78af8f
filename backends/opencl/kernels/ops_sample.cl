/* SPDX-License-Identifier: MIT
 * Choosing one value of each row as tandem/sample.h defines it, in integers alone: the same choice
 * as ggml-like/sample.c. A row is cut into slices, one for each work group. Launches, with what
 * they leave in the row's part of the working memory for the next ones:
 *
 *     sample_largest   the largest value of each slice, with the mask and without
 *     sample_begin     of the row; that is the choice where nothing is drawn
 *     sample_count     how many values have each digit of the key, and what they weigh
 *     sample_find      the digit that the last kept value has; three digits are its key
 *     sample_weigh     what is kept of each slice weighs so much
 *     sample_draw      in which slice the choice lies, and where in it
 *
 * Sums have 64 bits in two integers, since atomic additions have 32. */
#include "ops.clh"

#define ONE    0x80000000u
#define DIGITS 2048 /* of 11 bits, 11 and 10 */

/* Integers of a row's working memory. */
#define HISTOGRAM 32                           /* of the first digit: counts, sums */
#define LATER     (HISTOGRAM + 3 * DIGITS)     /* of a later one */
#define SLICES    (LATER + 3 * DIGITS)         /* 4 for each slice */
#define ROW       (SLICES + 4 * GROUP)         /* there are at most GROUP slices */

/* The first of them. Sums: low half, high half. */
enum {
    LARGEST,    /* key */
    IS_MASKED,  /* the mask leaves a value that has a chance */
    IS_DONE,    /* the choice is made */
    IS_CUT,     /* the step in hand keeps less than all */
    PREFIX,     /* digits of the border that are known */
    BORDER,     /* key of the last one that is kept; 0: all are kept */
    TAKEN,      /* of those with this key, the first ones */
    COUNT_LEFT, /* of top-k: values to keep at or below the digits that are known */
    SUM_ABOVE,  /* of what stands above these digits, */
    SUM_ABOVE_HIGH,
    TARGET, /* and what it has to become */
    TARGET_HIGH,
    TOTAL, /* of what top-k keeps; 0: there is no top-k */
    TOTAL_HIGH,
    STATE
};

/* A row of the settings. */
enum { SCALE, EXPONENT, K, LEAST, SHARE, SHARE_HIGH, DRAW, DRAW_HIGH, SETTINGS };

/* Digit `level` of a key, and what stands above it. */
static uint shift_of(uint level)
{
    return level == 0 ? 21 : level == 1 ? 10 : 0;
}
static uint digit_of(uint key, uint level)
{
    return key >> shift_of(level) & (level < 2 ? 2047u : 1023u);
}
static bool has_prefix(uint key, uint prefix, uint level)
{
    return level == 0 || key >> shift_of(level - 1) == prefix >> shift_of(level - 1);
}

/* ---- keys and weights: ggml-like/sample.c ---- */

static uint key_of(uint bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u || bits == 0xff800000u) {
        return 0;
    }
    return bits >> 31 == 0 ? bits | 0x80000000u : bits == 0x80000000u ? bits : ~bits;
}

static float value_of(uint key)
{
    const uint bits = key >> 31 != 0 ? key & 0x7fffffffu : ~key;
    return as_float((bits & 0x7f800000u) == 0 ? 0u : bits);
}

static uint high(uint a, uint b)
{
    return (uint)((ulong)a * b >> 32);
}

static uint power(uint f)
{
    uint p = 0x9c200u - high(f, 0xbda6u);
    p = 0x5728b0u - high(f, p);
    p = 0x27641a9u - high(f, p);
    p = 0xe358127u - high(f, p);
    p = 0x3d7f7bcbu - high(f, p);
    p = 0xb17217f7u - high(f, p);
    return ONE - ((high(f, p) + 1) >> 1);
}

static uint weight_of(uint scale, int exponent, uint largest, uint key)
{
    if (key == largest) {
        return ONE;
    }
    const uint distance = as_uint(value_of(largest) - value_of(key));
    const uint biased = distance >> 23;
    if (biased == 0) {
        return ONE;
    }
    const int shift = 118 - (int)biased - min(max(exponent, -1000), 1000);
    if (biased == 255 || shift < 0 || shift > 63) {
        return shift > 63 && biased != 255 ? ONE : 0;
    }
    const ulong x = (ulong)((distance & 0x7fffffu) | 0x800000u) * scale >> shift;
    if (x >> 37 != 0) {
        return 0;
    }
    const uint whole = (uint)(x >> 32);
    const uint one = power((uint)x);
    return whole == 0 ? one : (one + (1u << (whole - 1))) >> whole;
}

/* ---- values of a row ---- */

static bool may(global const uint *mask, uint i)
{
    return (mask[i / 32] >> (i % 32) & 1u) != 0;
}

/* Key of value i; 0: it has no chance. */
static uint key_at(global const uint *x, global const uint *mask, uint is_masked, uint largest,
                   uint i)
{
    const uint key = key_of(x[i]);
    return key > largest || (is_masked != 0 && !may(mask, i)) ? 0 : key;
}

static ulong pair(uint low, uint high_half)
{
    return (ulong)high_half << 32 | low;
}

/* ---- the largest ---- */

/* The first of the largest of the work group, for item 0. */
static void first_largest(local uint *keys, local uint *places, uint key, uint place)
{
    const uint item = get_local_id(0);
    keys[item] = key;
    places[item] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_count = GROUP / 2; half_count > 0; half_count /= 2) {
        if (item < half_count) {
            const uint other = keys[item + half_count];
            if (other > keys[item] ||
                (other == keys[item] && places[item + half_count] < places[item])) {
                keys[item] = other;
                places[item] = places[item + half_count];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

work_group(GROUP)
kernel void sample_largest(global uchar *work, ulong work_at, global const uchar *logits,
                           ulong logits_at, global const uchar *mask, ulong mask_at, uint has_mask,
                           uint n, uint slice, ulong nb1)
{
    shared uint keys[GROUP];
    shared uint places[GROUP];
    const uint row = get_group_id(1);
    global uint *to = (global uint *)(work + work_at) + (ulong)row * ROW + SLICES +
                      4 * get_group_id(0);
    global const uint *x = (global const uint *)(logits + logits_at + row * nb1);
    global const uint *bits = (global const uint *)(mask + mask_at);
    const uint begin = get_group_id(0) * slice;
    const uint end = min(begin + slice, n);
    uint best = 0, best_at = ~0u, allowed = 0, allowed_at = ~0u;
    for (uint i = begin + get_local_id(0); i < end; i += GROUP) {
        const uint key = key_of(x[i]);
        if (key > best) {
            best = key;
            best_at = i;
        }
        if (has_mask != 0 && key > allowed && may(bits, i)) {
            allowed = key;
            allowed_at = i;
        }
    }
    first_largest(keys, places, best, best_at);
    if (get_local_id(0) == 0) {
        to[0] = keys[0];
        to[1] = places[0];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    first_largest(keys, places, allowed, allowed_at);
    if (get_local_id(0) == 0) {
        to[2] = keys[0];
        to[3] = places[0];
    }
}

static void tell(global uchar *y, uint row, uint index, uint weight, ulong total)
{
    global uint *to = (global uint *)y + 4 * (ulong)row;
    to[0] = index;
    to[1] = weight;
    to[2] = (uint)total;
    to[3] = (uint)(total >> 32);
}

work_group(GROUP)
kernel void sample_begin(global uchar *work, ulong work_at, global uchar *y, ulong y_at,
                         global const uchar *settings, ulong settings_at, uint draws,
                         uint n_slices)
{
    shared uint keys[GROUP];
    shared uint places[GROUP];
    const uint row = get_group_id(0);
    const uint item = get_local_id(0);
    global uint *state = (global uint *)(work + work_at) + (ulong)row * ROW;
    global const uint *s = (global const uint *)(settings + settings_at) + row * SETTINGS;
    global const uint *from = state + SLICES + 4 * item;
    const bool has_slice = item < n_slices;
    first_largest(keys, places, has_slice ? from[2] : 0, has_slice ? from[3] : ~0u);
    const uint allowed = keys[0];
    const uint allowed_at = places[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    first_largest(keys, places, has_slice ? from[0] : 0, has_slice ? from[1] : ~0u);
    for (uint i = item; i < 6 * DIGITS; i += GROUP) {
        state[HISTOGRAM + i] = 0;
    }
    if (item == 0) { /* what follows looks at some of these before it knows that they count */
        for (uint i = 0; i < STATE; i++) {
            state[i] = 0;
        }
        const uint largest = allowed != 0 ? allowed : keys[0];
        const bool is_done = draws == 0 || s[SCALE] == 0 || largest == 0;
        state[LARGEST] = largest;
        state[IS_MASKED] = allowed != 0;
        state[IS_DONE] = is_done;
        if (is_done) {
            const uint weight = largest != 0 ? ONE : 0;
            tell(y + y_at, row, largest == 0 ? 0 : allowed != 0 ? allowed_at : places[0], weight,
                 weight);
        }
    }
}

/* ---- what is kept ---- */

/* A value's weight is added to that of its digit. */
work_group(GROUP)
kernel void sample_count(global uchar *work, ulong work_at, global const uchar *logits,
                         ulong logits_at, global const uchar *mask, ulong mask_at,
                         global const uchar *settings, ulong settings_at, uint level, uint n,
                         uint slice, ulong nb1)
{
    shared uint counts[DIGITS];
    shared uint sums[DIGITS];
    shared uint sums_high[DIGITS];
    const uint row = get_group_id(1);
    global uint *state = (global uint *)(work + work_at) + (ulong)row * ROW;
    if (state[IS_DONE] != 0 || (level > 0 && state[IS_CUT] == 0)) {
        return;
    }
    global volatile uint *all = state + (level == 0 ? HISTOGRAM : LATER);
    global const uint *x = (global const uint *)(logits + logits_at + row * nb1);
    global const uint *bits = (global const uint *)(mask + mask_at);
    global const uint *s = (global const uint *)(settings + settings_at) + row * SETTINGS;
    const uint scale = s[SCALE];
    const int exponent = (int)s[EXPONENT];
    const uint largest = state[LARGEST];
    const uint is_masked = state[IS_MASKED];
    const uint prefix = level > 0 ? state[PREFIX] : 0;
    const uint begin = get_group_id(0) * slice;
    const uint end = min(begin + slice, n);
    for (uint i = get_local_id(0); i < DIGITS; i += GROUP) {
        counts[i] = 0;
        sums[i] = 0;
        sums_high[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = begin + get_local_id(0); i < end; i += GROUP) {
        const uint key = key_at(x, bits, is_masked, largest, i);
        const uint weight = key != 0 && has_prefix(key, prefix, level)
                                ? weight_of(scale, exponent, largest, key)
                                : 0;
        if (weight != 0) {
            const uint digit = digit_of(key, level);
            const uint before = atomic_add((local volatile uint *)&sums[digit], weight);
            atomic_add((local volatile uint *)&counts[digit], 1u);
            if (before + weight < before) {
                atomic_add((local volatile uint *)&sums_high[digit], 1u);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < DIGITS; i += GROUP) {
        if (counts[i] != 0) {
            const uint before = atomic_add(&all[DIGITS + i], sums[i]);
            const uint more = sums_high[i] + (before + sums[i] < before ? 1u : 0u);
            atomic_add(&all[i], counts[i]);
            if (more != 0) {
                atomic_add(&all[2 * DIGITS + i], more);
            }
        }
    }
}

/* Sum of a digit. */
static ulong sum_at(global const uint *all, uint digit)
{
    return pair(all[DIGITS + digit], all[2 * DIGITS + digit]);
}

/* What the step in hand has to reach, when its first digit is looked for; false: it keeps all. */
static bool begin_cut(global uint *state, global const uint *s, uint is_share, uint count,
                      ulong sum)
{
    if (is_share == 0) {
        const bool is_cut = s[K] != 0 && s[K] < count;
        state[COUNT_LEFT] = s[K];
        state[TOTAL] = (uint)sum;
        state[TOTAL_HIGH] = (uint)(sum >> 32);
        return is_cut;
    }
    const ulong share = pair(s[SHARE], s[SHARE_HIGH]);
    const ulong of_top_k = pair(state[TOTAL], state[TOTAL_HIGH]);
    const ulong total = of_top_k != 0 ? of_top_k : sum;
    const ulong target = mul_hi(total, share) + (total * share != 0 ? 1u : 0u);
    state[TARGET] = (uint)target;
    state[TARGET_HIGH] = (uint)(target >> 32);
    return share != 0;
}

work_group(GROUP)
kernel void sample_find(global uchar *work, ulong work_at, global const uchar *settings,
                        ulong settings_at, uint is_share, uint level)
{
    shared uint counts[GROUP];
    shared ulong sums[GROUP];
    const uint row = get_group_id(0);
    const uint item = get_local_id(0);
    global uint *state = (global uint *)(work + work_at) + (ulong)row * ROW;
    if (state[IS_DONE] != 0 || (level > 0 && state[IS_CUT] == 0)) {
        return;
    }
    global const uint *s = (global const uint *)(settings + settings_at) + row * SETTINGS;
    global uint *all = state + (level == 0 ? HISTOGRAM : LATER);
    const uint run = DIGITS / GROUP; /* each item has so many digits, the first the highest ones */
    uint count = 0;
    ulong sum = 0;
    for (uint i = 0; i < run; i++) {
        const uint digit = DIGITS - 1 - (item * run + i);
        count += all[digit];
        sum += sum_at(all, digit);
    }
    counts[item] = count;
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        bool is_cut = true;
        if (level == 0) {
            for (uint i = 1; i < GROUP; i++) {
                count += counts[i];
                sum += sums[i];
            }
            is_cut = begin_cut(state, s, is_share, count, sum);
            state[IS_CUT] = is_cut;
            state[PREFIX] = 0;
            state[SUM_ABOVE] = 0;
            state[SUM_ABOVE_HIGH] = 0;
        }
        if (is_cut) {
            const ulong target = pair(state[TARGET], state[TARGET_HIGH]);
            const uint wanted = state[COUNT_LEFT];
            ulong above = pair(state[SUM_ABOVE], state[SUM_ABOVE_HIGH]);
            uint n_above = 0;
            uint at = 0;
            while (at < GROUP - 1 && (is_share != 0 ? above + sums[at] < target
                                                    : n_above + counts[at] < wanted)) {
                n_above += counts[at];
                above += sums[at];
                at++;
            }
            uint digit = DIGITS - 1 - at * run;
            while (digit > 0 && (is_share != 0 ? above + sum_at(all, digit) < target
                                               : n_above + all[digit] < wanted)) {
                n_above += all[digit];
                above += sum_at(all, digit);
                digit--;
            }
            const uint key = state[PREFIX] | digit << shift_of(level);
            state[PREFIX] = key;
            if (is_share == 0) {
                state[COUNT_LEFT] = wanted - n_above;
            }
            state[SUM_ABOVE] = (uint)above;
            state[SUM_ABOVE_HIGH] = (uint)(above >> 32);
            if (level == 2) {
                const uint weight =
                    weight_of(s[SCALE], (int)s[EXPONENT], state[LARGEST], key);
                const uint taken = is_share != 0
                                       ? (uint)((target - above + weight - 1) / weight)
                                       : wanted - n_above;
                const ulong total = above + (ulong)taken * weight;
                state[BORDER] = key;
                state[TAKEN] = taken;
                state[TOTAL] = (uint)total;
                state[TOTAL_HIGH] = (uint)(total >> 32);
            }
        }
    }
    if (level > 0) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint i = item; i < 3 * DIGITS; i += GROUP) {
            all[i] = 0;
        }
    }
}

/* ---- the draw ---- */

/* Adds what values begin .. end - 1 weigh that are kept, in steps; those at the border are counted
 * apart. */
static ulong weigh(global const uint *state, global const uint *s, global const uint *x,
                   global const uint *mask, uint begin, uint end, uint step, uint *out_equal)
{
    const uint scale = s[SCALE];
    const int exponent = (int)s[EXPONENT];
    const uint least = min(s[LEAST], ONE);
    const uint largest = state[LARGEST];
    const uint border = state[BORDER];
    const uint is_masked = state[IS_MASKED];
    ulong sum = 0;
    uint equal = 0;
    for (uint i = begin; i < end; i += step) {
        const uint key = key_at(x, mask, is_masked, largest, i);
        if (key != 0 && key == border) {
            equal++;
        } else if (key > border) {
            const uint weight = weight_of(scale, exponent, largest, key);
            sum += weight >= least ? weight : 0;
        }
    }
    *out_equal = equal;
    return sum;
}

work_group(GROUP)
kernel void sample_weigh(global uchar *work, ulong work_at, global const uchar *logits,
                         ulong logits_at, global const uchar *mask, ulong mask_at,
                         global const uchar *settings, ulong settings_at, uint n, uint slice,
                         ulong nb1)
{
    shared uint counts[GROUP];
    shared ulong sums[GROUP];
    const uint row = get_group_id(1);
    const uint item = get_local_id(0);
    global uint *state = (global uint *)(work + work_at) + (ulong)row * ROW;
    if (state[IS_DONE] != 0) {
        return;
    }
    global const uint *x = (global const uint *)(logits + logits_at + row * nb1);
    global const uint *bits = (global const uint *)(mask + mask_at);
    global const uint *s = (global const uint *)(settings + settings_at) + row * SETTINGS;
    const uint begin = get_group_id(0) * slice;
    uint equal = 0;
    sums[item] = weigh(state, s, x, bits, begin + item, min(begin + slice, n), GROUP, &equal);
    counts[item] = equal;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_count = GROUP / 2; half_count > 0; half_count /= 2) {
        if (item < half_count) {
            counts[item] += counts[item + half_count];
            sums[item] += sums[item + half_count];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        global uint *to = state + SLICES + 4 * get_group_id(0);
        to[0] = (uint)sums[0];
        to[1] = (uint)(sums[0] >> 32);
        to[2] = counts[0];
    }
}

/* Finds among n parts, of which each has a sum and `counts` values of `weight` at the border, the
 * first one up to which more than `left` is kept; fewer of the border are kept if `taken` says so.
 * What stands before it is taken from both. */
static uint find_part(local const ulong *sums, local const uint *counts, uint n, uint weight,
                      ulong *left, uint *taken)
{
    uint at = 0;
    for (; at + 1 < n; at++) {
        const uint equal = min(counts[at], *taken);
        const ulong sum = sums[at] + (ulong)equal * weight;
        if (*left < sum) {
            break;
        }
        *left -= sum;
        *taken -= equal;
    }
    return at;
}

work_group(GROUP)
kernel void sample_draw(global uchar *work, ulong work_at, global uchar *y, ulong y_at,
                        global const uchar *logits, ulong logits_at, global const uchar *mask,
                        ulong mask_at, global const uchar *settings, ulong settings_at, uint n,
                        uint slice, uint n_slices, ulong nb1)
{
    shared uint counts[GROUP];
    shared ulong sums[GROUP];
    shared uint found[2];       /* the slice; what of the border is left for it */
    shared ulong found_left[2]; /* of the draw; all that is kept */
    const uint row = get_group_id(0);
    const uint item = get_local_id(0);
    global uint *state = (global uint *)(work + work_at) + (ulong)row * ROW;
    if (state[IS_DONE] != 0) {
        return;
    }
    global const uint *x = (global const uint *)(logits + logits_at + row * nb1);
    global const uint *bits = (global const uint *)(mask + mask_at);
    global const uint *s = (global const uint *)(settings + settings_at) + row * SETTINGS;
    const uint scale = s[SCALE];
    const int exponent = (int)s[EXPONENT];
    const uint largest = state[LARGEST];
    const uint border = state[BORDER];
    const uint of_border = border != 0 ? weight_of(scale, exponent, largest, border) : 0;
    const uint least = min(s[LEAST], ONE);
    const uint weight = of_border >= least ? of_border : 0; /* of those at the border */
    if (item < n_slices) {
        global const uint *from = state + SLICES + 4 * item;
        sums[item] = pair(from[0], from[1]);
        counts[item] = from[2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        uint taken = state[TAKEN];
        ulong total = 0;
        for (uint i = 0; i < n_slices; i++) {
            const uint equal = min(counts[i], taken);
            total += sums[i] + (ulong)equal * weight;
            taken -= equal;
        }
        taken = state[TAKEN];
        ulong left = mul_hi(total, pair(s[DRAW], s[DRAW_HIGH]));
        found[0] = find_part(sums, counts, n_slices, weight, &left, &taken);
        found[1] = taken;
        found_left[0] = left;
        found_left[1] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint begin = found[0] * slice;
    const uint end = min(begin + slice, n);
    const uint run = (slice + GROUP - 1) / GROUP; /* each item takes as many values in a row */
    uint equal = 0;
    const uint from = begin + item * run;
    sums[item] = weigh(state, s, x, bits, from, min(from + run, end), 1, &equal);
    counts[item] = equal;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        ulong left = found_left[0];
        uint taken = found[1];
        const uint part = find_part(sums, counts, GROUP, weight, &left, &taken);
        for (uint i = begin + part * run; i < end; i++) {
            const uint key = key_at(x, bits, state[IS_MASKED], largest, i);
            uint one = 0;
            if (key != 0 && key == border) {
                one = taken > 0 ? weight : 0;
                taken -= taken > 0 ? 1u : 0u;
            } else if (key > border) {
                const uint above = weight_of(scale, exponent, largest, key);
                one = above >= least ? above : 0;
            }
            if (left < one) {
                tell(y + y_at, row, i, one, found_left[1]);
                break;
            }
            left -= one;
        }
    }
}
