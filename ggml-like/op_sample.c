/* SPDX-License-Identifier: MIT
 * Selecting one value of each row, as samplers do: builder and reference. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tnd_sample.h"
#include "ggml-like/tensor_internal.h"

enum {
    SETTINGS_INTEGERS = sizeof(struct tandem_sample_settings) / sizeof(int32_t),
    CHOICE_INTEGERS = sizeof(struct tandem_sample_choice) / sizeof(int32_t),
    ALL_STEPS = TANDEM_SAMPLE_DRAWS | TANDEM_SAMPLE_K | TANDEM_SAMPLE_SHARE
};

/* Whether an operand is I32 {n, m}, dense. */
static bool integers_ready(tandem_context *context, const char *role, const tandem_tensor *a,
                           int64_t n, int64_t m)
{
    char shape[TND_SHAPE_TEXT_BYTES];
    if (!tnd_build_ready(context, TANDEM_OP_SAMPLE, role, a)) {
        return false;
    }
    if (a->type != TANDEM_TYPE_I32) {
        tnd_build_fail(context, TANDEM_E_TYPE, "sample", a->type, TANDEM_TYPE_I32,
                       "sample: %s is %s, expected i32", role, tandem_type_name(a->type));
        return false;
    }
    if (a->ne[0] != n || tnd_tensor_rows(a) != m || a->ne[1] != m ||
        !tandem_tensor_is_contiguous(a)) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "sample", a->ne[0], n,
                       "sample: %s %s, expected {%lld, %lld} without gaps", role,
                       tnd_shape_text(a->ne, shape), (long long)n, (long long)m);
        return false;
    }
    return true;
}

tandem_tensor *tandem_sample(tandem_context *context, tandem_tensor *logits,
                             tandem_tensor *settings, tandem_tensor *mask, int steps)
{
    char shape[TND_SHAPE_TEXT_BYTES];
    if (!tnd_build_ready_f32(context, TANDEM_OP_SAMPLE, "logits", logits)) {
        return NULL;
    }
    if ((steps & ~ALL_STEPS) != 0) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "sample", steps, ALL_STEPS,
                              "sample: steps are %d, expected bits of %d", steps, ALL_STEPS);
    }
    if (logits->ne[0] < 1 || logits->ne[0] > INT32_MAX || logits->ne[2] != 1 ||
        logits->ne[3] != 1) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "sample", logits->ne[0], INT32_MAX,
                              "sample: logits %s are no rows of 1 to 2^31 - 1 values",
                              tnd_shape_text(logits->ne, shape));
    }
    if (!integers_ready(context, "settings", settings, SETTINGS_INTEGERS, logits->ne[1]) ||
        (mask != NULL && !integers_ready(context, "mask", mask, (logits->ne[0] + 31) / 32, 1))) {
        return NULL;
    }
    const int64_t ne[TANDEM_MAX_DIMS] = {CHOICE_INTEGERS, logits->ne[1], 1, 1};
    tandem_tensor *node =
        tnd_build_node(context, TANDEM_OP_SAMPLE, TANDEM_TYPE_I32, ne, logits, settings);
    if (node != NULL) {
        node->params.sample_steps = (steps & TANDEM_SAMPLE_DRAWS) != 0 ? steps : 0;
        node->src[2] = mask;
        node->n_src = mask != NULL ? 3 : 2;
    }
    return node;
}

struct tandem_sample_settings tnd_sample_settings_of(const tandem_tensor *node, int64_t m)
{
    struct tandem_sample_settings settings;
    const int steps = node->params.sample_steps;
    memcpy(&settings, (const char *)node->src[1]->data + (size_t)m * sizeof(settings),
           sizeof(settings));
    settings.scale = (steps & TANDEM_SAMPLE_DRAWS) != 0 ? settings.scale : 0;
    settings.k = (steps & TANDEM_SAMPLE_K) != 0 ? settings.k : 0;
    settings.share = (steps & TANDEM_SAMPLE_SHARE) != 0 ? settings.share : 0;
    return settings;
}

/* ---- reference ---- */

enum tandem_status tnd_ref_sample(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *logits = node->src[0];
    const uint32_t *mask = node->n_src > 2 ? node->src[2]->data : NULL;
    void *memory = tnd_alloc(tandem_sample_memory(logits->ne[0]));
    if (memory == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, node->name, 0, 0, "sample: no memory");
    }
    for (int64_t m = 0; m < node->ne[1]; m++) {
        const struct tandem_sample_settings settings = tnd_sample_settings_of(node, m);
        const float *row = (const float *)(void *)tnd_ref_at(logits, 0, m, 0, 0);
        struct tandem_sample_choice choice;
        tnd_sample_row(&settings, row, logits->ne[0], mask, memory, &choice);
        memcpy(tnd_ref_at(node, 0, m, 0, 0), &choice, sizeof(choice));
    }
    tnd_free(memory);
    return TANDEM_OK;
}
