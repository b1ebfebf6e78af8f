/* SPDX-License-Identifier: MIT
 * Unpacks quantised weights of Hugging Face's models to our types that hold them without loss.
 * Facts: modelling files of DeepSeek V3 (weight_scale_inv), "FP8 Formats for Deep Learning"
 * (Micikevicius et al. 2022, e4m3), AutoGPTQ's qlinear and AutoAWQ's WQLinear_GEMM.
 *
 * - fp8: value * scale of its block of rows and columns, rounded once to F32; BF16 where all scales
 *   are powers of 2, which is exact.
 * - gptq, awq: scale * (q - zero). Q4_0 where all zeros are 8; Q4_1 where scale * zero is exact in
 *   F16; both need groups of whole blocks of 32. Else F32, which holds all of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/checked.h"
#include "formats/cursor.h"
#include "formats/safetensors.h"
#include "ggml-like/tnd_type.h"

enum {
    Q_VALUES = 32,
    IN_WORD = 8, /* 4-bit numbers */
    OFFSET = 8   /* of Q4_0 */
};

/* A quantised matrix and its scales, zeros and groups. */
struct packed {
    const struct tandem_source_tensor *words;  /* F8 bytes, or qweight */
    const struct tandem_source_tensor *scales; /* NULL: missing */
    const struct tandem_source_tensor *zeros;  /* qzeros */
    const struct tandem_source_tensor *groups; /* g_idx, or NULL */
    int64_t k, n;                              /* of the matrix */
    int64_t group;
};

struct unpacker {
    tandem_source *source;
    struct tnd_hf_quantized how;
    enum tandem_type type; /* of all unpacked matrices */
    size_t memory;         /* bytes that may be allocated */
    bool *is_done;         /* {n_tensors}: of those that were unpacked */
};

static enum tandem_status misfit(const struct tandem_source_tensor *t, const char *what,
                                 struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_SHAPE, t->name, t->ne[0], t->ne[1],
                         "%.80s (%s, %lld x %lld): expected %s", t->name,
                         t->type == TND_HF_RAW_F8 ? "f8" : tandem_type_name(t->type),
                         (long long)t->ne[0], (long long)t->ne[1], what);
}

/* The part after the last dot, or "". */
static const char *ending(const char *name)
{
    const char *last = strrchr(name, '.');
    return last != NULL ? last + 1 : "";
}

static const struct tandem_source_tensor *
beside(const struct unpacker *u, const struct tandem_source_tensor *t, const char *end)
{
    char name[TND_SAFETENSORS_MAX_NAME];
    const char *last = ending(t->name);
    snprintf(name, sizeof(name), "%.*s%s", (int)(last - t->name), t->name, end);
    const int64_t at = tnd_source_find(u->source, name);
    return at >= 0 ? &u->source->tensors[at] : NULL;
}

static bool is_float(const struct tandem_source_tensor *t)
{
    return t->type == TANDEM_TYPE_F32 || t->type == TANDEM_TYPE_F16 || t->type == TANDEM_TYPE_BF16;
}

static float float_at(const struct tandem_source_tensor *t, int64_t i)
{
    float y = 0.0f;
    const size_t bytes = tandem_type_block_bytes(t->type);
    tnd_type_traits(t->type)->dequantize((const char *)t->data + (size_t)i * bytes, &y, 1);
    return y;
}

static int32_t word_at(const struct tandem_source_tensor *t, int64_t i)
{
    int32_t word;
    memcpy(&word, (const char *)t->data + (size_t)i * sizeof(word), sizeof(word));
    return word;
}

static int64_t parts_of(int64_t n, int64_t step)
{
    return (n - 1) / step + 1;
}

/* ---- fp8 ---- */

/* e4m3: sign, 4 exponent bits with bias 7, 3 mantissa bits; no infinities. */
static float float_of_e4m3(uint8_t bits)
{
    const int exponent = bits >> 3 & 15;
    const int fraction = bits & 7;
    const float size = exponent == 15 && fraction == 7 ? NAN
                       : exponent == 0                 ? ldexpf((float)fraction, -9)
                                       : ldexpf((float)(8 + fraction), exponent - 10);
    return (bits & 0x80) != 0 ? -size : size;
}

static enum tandem_status find_fp8(const struct unpacker *u, const struct tandem_source_tensor *t,
                                   struct packed *out, struct tandem_error *error)
{
    *out = (struct packed){.words = t, .k = t->ne[0], .n = t->ne[1]};
    if (t->n_dims != 2 || t->ne[0] < 1 || t->ne[1] < 1 || strcmp(ending(t->name), "weight") != 0) {
        return misfit(t, "a matrix .weight", error);
    }
    out->scales = beside(u, t, "weight_scale_inv");
    if (out->scales == NULL) {
        return misfit(t, "weight_scale_inv beside it", error);
    }
    const struct tandem_source_tensor *s = out->scales;
    const int64_t rows = parts_of(out->n, u->how.block[0]);
    const int64_t columns = parts_of(out->k, u->how.block[1]);
    return is_float(s) && s->ne[0] == columns && s->ne[1] == rows && s->ne[2] == 1 && s->ne[3] == 1
               ? TANDEM_OK
               : misfit(s, "a float for each block of weight_block_size", error);
}

/* Whether all scales are powers of 2 that keep every product above BF16's subnormals. */
static bool fits_bf16(const struct packed *p)
{
    for (int64_t i = 0; i < p->scales->ne[0] * p->scales->ne[1]; i++) {
        int exponent = 0;
        const float scale = float_at(p->scales, i);
        if (!isfinite(scale) || frexpf(scale, &exponent) != 0.5f || exponent < -100 ||
            exponent > 100) {
            return false;
        }
    }
    return true;
}

static void unpack_fp8(const struct unpacker *u, const struct packed *p, void *to)
{
    float table[256];
    const uint8_t *from = p->words->data;
    for (int i = 0; i < 256; i++) {
        table[i] = float_of_e4m3((uint8_t)i);
    }
    for (int64_t n = 0; n < p->n; n++) {
        for (int64_t k = 0; k < p->k;) {
            const int64_t column = k / u->how.block[1];
            const int64_t left = p->k - k;
            const int64_t rest = u->how.block[1] - k % u->how.block[1];
            const int64_t end = k + (rest < left ? rest : left);
            const float scale =
                float_at(p->scales, n / u->how.block[0] * p->scales->ne[0] + column);
            for (; k < end; k++) {
                const float y = table[from[n * p->k + k]] * scale;
                if (u->type == TANDEM_TYPE_BF16) {
                    uint32_t bits;
                    memcpy(&bits, &y, sizeof(bits));
                    ((uint16_t *)to)[n * p->k + k] = (uint16_t)(bits >> 16);
                } else {
                    ((float *)to)[n * p->k + k] = y;
                }
            }
        }
    }
}

/* ---- gptq and awq ---- */

/* GPTQ: {N, K / 8}, words of 8 rows; AWQ: {N / 8, K}, words of 8 columns in another order. */
static int q_at(const struct unpacker *u, const struct packed *p, int64_t k, int64_t n)
{
    static const int order[] = {0, 4, 1, 5, 2, 6, 3, 7}; /* nibble of each column in a word */
    const int64_t width = p->words->ne[0];
    const bool is_awq = u->how.method == TND_HF_AWQ;
    const int64_t at = is_awq ? k * width + n / IN_WORD : k / IN_WORD * width + n;
    const int place = is_awq ? order[n % IN_WORD] : (int)(k % IN_WORD);
    return (int)((uint32_t)word_at(p->words, at) >> (4 * place) & 15);
}

/* GPTQ stores zeros minus 1 (zero_step). */
static int zero_at(const struct unpacker *u, const struct packed *p, int64_t group, int64_t n)
{
    static const int order[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int place = u->how.method == TND_HF_AWQ ? order[n % IN_WORD] : (int)(n % IN_WORD);
    const uint32_t word = (uint32_t)word_at(p->zeros, group * p->zeros->ne[0] + n / IN_WORD);
    return (int)(word >> (4 * place) & 15) + u->how.zero_step;
}

static int64_t group_of(const struct packed *p, int64_t k)
{
    return p->groups != NULL ? word_at(p->groups, k) : k / p->group;
}

static bool is_matrix(const struct tandem_source_tensor *t, int64_t columns, int64_t rows)
{
    return t->n_dims == 2 && t->ne[0] == columns && t->ne[1] == rows;
}

static enum tandem_status find_words(const struct unpacker *u, const struct tandem_source_tensor *t,
                                     struct packed *out, struct tandem_error *error)
{
    const bool is_awq = u->how.method == TND_HF_AWQ;
    *out = (struct packed){.words = t,
                           .scales = beside(u, t, "scales"),
                           .zeros = beside(u, t, "qzeros"),
                           .groups = is_awq ? NULL : beside(u, t, "g_idx")};
    if (t->type != TANDEM_TYPE_I32 || t->n_dims != 2 || t->ne[0] < 1 || t->ne[1] < 1 ||
        t->ne[is_awq ? 0 : 1] > INT32_MAX) {
        return misfit(t, "a matrix of i32", error);
    }
    out->k = is_awq ? t->ne[1] : t->ne[1] * IN_WORD;
    out->n = is_awq ? t->ne[0] * IN_WORD : t->ne[0];
    out->group = u->how.group == -1 ? out->k : u->how.group;
    if (out->scales == NULL || out->zeros == NULL) {
        return misfit(t, "scales and qzeros beside it", error);
    }
    const int64_t groups = parts_of(out->k, out->group);
    if (!is_float(out->scales) || !is_matrix(out->scales, out->n, groups)) {
        return misfit(out->scales, "a float for each group and column", error);
    }
    if (out->zeros->type != TANDEM_TYPE_I32 || out->n % IN_WORD != 0 ||
        !is_matrix(out->zeros, out->n / IN_WORD, groups)) {
        return misfit(out->zeros, "4 bits for each group and column", error);
    }
    if (out->groups == NULL) {
        return TANDEM_OK;
    }
    const struct tandem_source_tensor *g = out->groups;
    if (g->type != TANDEM_TYPE_I32 || g->n_dims != 1 || g->ne[0] != out->k) {
        return misfit(g, "the group of each row", error);
    }
    for (int64_t k = 0; k < out->k; k++) {
        if (word_at(g, k) < 0 || word_at(g, k) >= groups) {
            return tnd_error_set(error, TANDEM_E_FORMAT, g->name, word_at(g, k), groups,
                                 "%.80s: row %lld is of group %d, expected 0 to %lld", g->name,
                                 (long long)k, (int)word_at(g, k), (long long)groups - 1);
        }
    }
    return TANDEM_OK;
}

static bool is_half(float x)
{
    uint16_t half = 0;
    float again = 0.0f;
    return isfinite(x) && tandem_quantize(TANDEM_TYPE_F16, &x, &half, 1) == TANDEM_OK &&
           tandem_dequantize(TANDEM_TYPE_F16, &half, &again, 1) == TANDEM_OK && again == x;
}

/* The most compact type that holds the matrix without loss, but not more compact than `least`. */
static enum tandem_type type_of(const struct unpacker *u, const struct packed *p,
                                enum tandem_type least)
{
    if (p->k % Q_VALUES != 0 || least == TANDEM_TYPE_F32) {
        return TANDEM_TYPE_F32;
    }
    for (int64_t k = 0; k < p->k; k++) { /* a block has one scale */
        if (group_of(p, k) != group_of(p, k - k % Q_VALUES)) {
            return TANDEM_TYPE_F32;
        }
    }
    for (int64_t g = 0; g < p->scales->ne[1]; g++) {
        for (int64_t n = 0; n < p->n; n++) {
            const float scale = float_at(p->scales, g * p->n + n);
            const int zero = zero_at(u, p, g, n);
            if (!is_half(scale) || !is_half(scale * (float)zero)) {
                return TANDEM_TYPE_F32;
            }
            least = zero != OFFSET ? TANDEM_TYPE_Q4_1 : least;
        }
    }
    return least;
}

/* Writes ggml's blocks: a scale, for Q4_1 the minimum, then 16 bytes whose low nibbles hold the
 * first 16 values. */
static void unpack_row(const struct unpacker *u, const struct packed *p, int64_t n, char *to)
{
    const size_t bytes = tandem_type_block_bytes(u->type);
    for (int64_t k = 0; k < p->k && u->type == TANDEM_TYPE_F32; k++) {
        const int64_t g = group_of(p, k);
        const int q = q_at(u, p, k, n) - zero_at(u, p, g, n);
        ((float *)(void *)to)[k] = float_at(p->scales, g * p->n + n) * (float)q;
    }
    for (int64_t k = 0; k < p->k && u->type != TANDEM_TYPE_F32; k += Q_VALUES, to += bytes) {
        const int64_t g = group_of(p, k);
        const float scale = float_at(p->scales, g * p->n + n);
        const float least = -scale * (float)zero_at(u, p, g, n);
        uint8_t *at = (uint8_t *)to + sizeof(uint16_t);
        (void)tandem_quantize(TANDEM_TYPE_F16, &scale, to, 1);
        if (u->type == TANDEM_TYPE_Q4_1) {
            (void)tandem_quantize(TANDEM_TYPE_F16, &least, to + sizeof(uint16_t), 1);
            at += sizeof(uint16_t);
        }
        for (int i = 0; i < Q_VALUES / 2; i++) {
            at[i] = (uint8_t)(q_at(u, p, k + i, n) | q_at(u, p, k + i + Q_VALUES / 2, n) << 4);
        }
    }
}

/* ---- all of them ---- */

static bool is_packed(const struct unpacker *u, const struct tandem_source_tensor *t)
{
    return u->how.method == TND_HF_FP8 ? t->type == TND_HF_RAW_F8
                                       : strcmp(ending(t->name), "qweight") == 0;
}

static enum tandem_status find(const struct unpacker *u, const struct tandem_source_tensor *t,
                               struct packed *out, struct tandem_error *error)
{
    return u->how.method == TND_HF_FP8 ? find_fp8(u, t, out, error) : find_words(u, t, out, error);
}

/* Chooses one type for all matrices, as experts of a layer are joined; refuses a model that does
 * not fit in memory. */
static enum tandem_status choose_type(struct unpacker *u, struct tandem_error *error)
{
    struct packed p;
    double values = 0;
    u->type = u->how.method == TND_HF_FP8 ? TANDEM_TYPE_BF16 : TANDEM_TYPE_Q4_0;
    for (size_t i = 0; i < u->source->n_tensors; i++) {
        const struct tandem_source_tensor *t = &u->source->tensors[i];
        if (!is_packed(u, t)) {
            continue;
        }
        TND_TRY(find(u, t, &p, error));
        values += (double)p.k * (double)p.n;
        if (u->how.method != TND_HF_FP8) {
            u->type = type_of(u, &p, u->type);
        } else if (!fits_bf16(&p)) {
            u->type = TANDEM_TYPE_F32;
        }
    }
    const double bytes = values * (double)tandem_type_block_bytes(u->type) /
                         (double)tandem_type_block_values(u->type);
    const double left = tnd_memory_available("/proc", "/sys/fs/cgroup");
    if (left > 0 && bytes > left) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "quantised weights", (int64_t)bytes,
                             (int64_t)left,
                             "quantised weights need %.2f GiB as %s, which holds them without "
                             "loss; %.2f GiB are free",
                             bytes / 1073741824.0, tandem_type_name(u->type), left / 1073741824.0);
    }
    return TANDEM_OK;
}

static enum tandem_status unpack_one(const struct unpacker *u, size_t i, struct tandem_error *error)
{
    struct packed p;
    void *memory = NULL;
    size_t bytes = 0;
    TND_TRY(find(u, &u->source->tensors[i], &p, error));
    const size_t row = tandem_type_row_bytes(u->type, p.k);
    if (row == 0 || !tnd_mul_size(row, (size_t)p.n, &bytes)) {
        return misfit(p.words, "fewer values", error);
    }
    TND_TRY(tnd_source_alloc(u->source, p.words->name, bytes, u->memory, &memory, error));
    if (u->how.method == TND_HF_FP8) {
        unpack_fp8(u, &p, memory);
    }
    for (int64_t n = 0; n < p.n && u->how.method != TND_HF_FP8; n++) {
        unpack_row(u, &p, n, (char *)memory + (size_t)n * row);
    }
    struct tandem_source_tensor *t = &u->source->tensors[i];
    t->type = u->type;
    t->n_dims = 2;
    t->ne[0] = p.k;
    t->ne[1] = p.n;
    t->data = memory;
    t->bytes = bytes;
    return TANDEM_OK;
}

/* Whether a tensor holds the scales, zeros or groups of an unpacked one. */
static bool is_spent(const struct unpacker *u, const struct tandem_source_tensor *t)
{
    static const char *const parts[] = {"weight_scale_inv", "scales", "qzeros", "g_idx"};
    const bool is_fp8 = u->how.method == TND_HF_FP8;
    const struct tandem_source_tensor *of = beside(u, t, is_fp8 ? "weight" : "qweight");
    bool is_part = false;
    for (int i = is_fp8 ? 0 : 1; i < (is_fp8 ? 1 : 4); i++) {
        is_part = is_part || strcmp(ending(t->name), parts[i]) == 0;
    }
    return is_part && of != NULL && u->is_done[of - u->source->tensors];
}

/* Drops scales, zeros and groups, then renames qweight to weight. */
static void clean_up(struct unpacker *u, bool *is_gone)
{
    tandem_source *source = u->source;
    size_t kept = 0;
    for (size_t i = 0; i < source->n_tensors; i++) {
        is_gone[i] = is_spent(u, &source->tensors[i]);
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        struct tandem_source_tensor *t = &source->tensors[i];
        if (is_gone[i]) {
            tnd_free((void *)(uintptr_t)t->name);
            continue;
        }
        char *end = (char *)(uintptr_t)ending(t->name);
        if (u->is_done[i] && strcmp(end, "qweight") == 0) { /* our copy; the name gets shorter */
            memcpy(end, "weight", sizeof("weight"));
        }
        source->tensors[kept++] = *t;
    }
    source->n_tensors = kept;
    tnd_free(source->by_name);
    source->by_name = NULL;
    source->n_by_name = 0;
}

static enum tandem_status unpack(struct unpacker *u, bool *is_gone, struct tandem_error *error)
{
    TND_TRY(choose_type(u, error));
    for (size_t i = 0; i < u->source->n_tensors; i++) {
        u->is_done[i] = is_packed(u, &u->source->tensors[i]);
        if (u->is_done[i]) {
            TND_TRY(unpack_one(u, i, error));
        }
    }
    clean_up(u, is_gone);
    return tnd_source_check(u->source, error);
}

enum tandem_status tnd_hf_unpack(tandem_source *source, struct tandem_error *error)
{
    enum { MOST_GROWTH = 8 }; /* 4 bits become F32 */
    struct unpacker u = {.source = source, .how = source->hf_quantized};
    if (u.how.method == TND_HF_PLAIN) {
        return TANDEM_OK;
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        u.memory += MOST_GROWTH * source->tensors[i].bytes; /* no overflow: files in memory */
    }
    u.memory += source->block_bytes;
    u.is_done = tnd_calloc(2 * source->n_tensors + 1, sizeof(u.is_done[0]));
    if (u.is_done == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "quantised weights", 0, 0,
                             "quantised weights: no memory for a list of them");
    }
    tnd_source_index(source);
    enum tandem_status status = unpack(&u, u.is_done + source->n_tensors, error);
    tnd_free(u.is_done);
    return status == TANDEM_OK ? tnd_source_check_names(source, "config.json", error) : status;
}
