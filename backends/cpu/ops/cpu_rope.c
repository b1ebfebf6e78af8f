/* SPDX-License-Identifier: MIT
 * Rotary position embedding (Su et al. 2021), in single precision: the angle of pair i at position
 * p is p * freq_scale * freq_base^(-2i / n_rot), divided by factors[i] if there are factors. */
#include <math.h>
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_status.h"

/* A worker's scratch memory. */
struct angles {
    float *frequencies; /* {n_rot / 2} */
    float *cosines;     /* {n_rot}; halves use the first half */
    float *sines;       /* {n_rot} */
};

size_t tnd_cpu_rope_scratch(const struct tandem_tensor *node)
{
    return (size_t)(node->params.rope.n_rot / 2 + 2 * node->params.rope.n_rot) * sizeof(float);
}

static void set_frequencies(const struct tandem_tensor *node, float *frequencies)
{
    float n_rot = (float)node->params.rope.n_rot;
    const float *factors = node->n_src > 2 ? node->src[2]->data : NULL;
    for (int64_t i = 0; i < node->params.rope.n_rot / 2; i++) {
        frequencies[i] = 1.0f / powf(node->params.rope.freq_base, (float)(2 * i) / n_rot);
        if (factors != NULL) {
            frequencies[i] /= factors[i];
        }
    }
}

static void set_angles(const struct tandem_tensor *node, int32_t position, struct angles *out)
{
    float position_angle = (float)position * node->params.rope.freq_scale;
    bool is_adjacent = node->params.rope.pairs == TANDEM_ROPE_ADJACENT;
    for (int64_t i = 0; i < node->params.rope.n_rot / 2; i++) {
        float angle = position_angle * out->frequencies[i];
        float cosine = cosf(angle);
        float sine = sinf(angle);
        if (is_adjacent) { /* in the layout of vec.h */
            out->cosines[2 * i] = cosine;
            out->cosines[2 * i + 1] = cosine;
            out->sines[2 * i] = -sine;
            out->sines[2 * i + 1] = sine;
        } else {
            out->cosines[i] = cosine;
            out->sines[i] = sine;
        }
    }
}

static void rotate_row(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                       const struct angles *angles, const float *x, float *y)
{
    int64_t n_rot = node->params.rope.n_rot;
    if (node->params.rope.pairs == TANDEM_ROPE_ADJACENT) {
        kernels->vec.rope_adjacent(x, angles->cosines, angles->sines, y, n_rot);
    } else {
        kernels->vec.rope_halves(x, angles->cosines, angles->sines, y, n_rot / 2);
    }
    memcpy(y + n_rot, x + n_rot, (size_t)(node->ne[0] - n_rot) * sizeof(float));
}

enum tandem_status tnd_cpu_rope(const struct tnd_cpu_kernels *kernels,
                                const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0]; /* {head size, heads, M, ...} */
    const char *positions = node->src[1]->data;   /* I32 {M} */
    int64_t n_rot = node->params.rope.n_rot;
    int64_t n_rows = tnd_tensor_rows(node);
    int64_t chunk = tnd_rows_chunk(n_rows, node->ne[0], worker->count);
    int64_t begin, end, known = -1; /* position whose angles are there */
    size_t scratch = tnd_cpu_rope_scratch(node);
    if (worker->scratch_bytes < scratch) {
        return tnd_error_set(worker->error, TANDEM_E_ARGUMENT, node->name,
                             (int64_t)worker->scratch_bytes, (int64_t)scratch,
                             "cpu rope: %zu bytes of scratch, needs %zu", worker->scratch_bytes,
                             scratch);
    }
    struct angles angles = {worker->scratch, (float *)worker->scratch + n_rot / 2,
                            (float *)worker->scratch + n_rot / 2 + n_rot};
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            if (known == -1) {
                set_frequencies(node, angles.frequencies);
            }
            if (known != row.i2) {
                int32_t position;
                memcpy(&position, positions + (size_t)row.i2 * sizeof(position), sizeof(position));
                set_angles(node, position, &angles);
                known = row.i2;
            }
            rotate_row(kernels, node, &angles, tnd_row_f32(a, row), tnd_row_f32(node, row));
        }
    }
    return TANDEM_OK;
}
