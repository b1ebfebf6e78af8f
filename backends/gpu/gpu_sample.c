/* SPDX-License-Identifier: MIT
 * Choosing one value of each row on a device: the launches of kernels/ops_sample.cl. */
#include "backends/gpu/gpu_ops_parts.h"
#include "tandem/sample.h"

/* As in the kernels. */
enum { STATE = 32, DIGITS = 2048, HISTOGRAMS = 2, PER_DIGIT = 3, PER_SLICE = 4, LEVELS = 3 };

/* Fewer values are not worth a group. */
enum { LEAST_SLICE = 1024 };

struct sample {
    struct tnd_gpu_device *device;
    struct tnd_gpu_range work, y, logits, settings, mask;
    bool has_mask;
    uint32_t n, slice, n_slices;
    uint64_t rows, nb1;
};

/* Begins a launch over the slices of all rows, or over all rows. */
static enum tandem_status begin(const struct sample *s, struct tnd_gpu_launch *launch,
                                struct tandem_error *error)
{
    return tnd_gpu_ops_begin(launch, s->device, TND_GPU_SOURCE_OPS_SAMPLE, 0, 0, error);
}

static enum tandem_status run_slices(const struct sample *s, struct tnd_gpu_launch *launch,
                                     struct tandem_error *error)
{
    const size_t local[2] = {tnd_gpu_ops_group(s->device), 1};
    const size_t global[2] = {s->n_slices * local[0], (size_t)s->rows};
    return tnd_gpu_launch_run(launch, 2, global, local, error);
}

static enum tandem_status find_largest(const struct sample *s, bool draws,
                                       struct tandem_error *error)
{
    struct tnd_gpu_launch launch;
    TND_TRY(begin(s, &launch, error));
    TND_TRY(tnd_gpu_bind_sample_largest(&launch, s->work, s->logits, s->mask, s->has_mask, s->n,
                                        s->slice, s->nb1, error));
    TND_TRY(run_slices(s, &launch, error));
    TND_TRY(begin(s, &launch, error));
    TND_TRY(
        tnd_gpu_bind_sample_begin(&launch, s->work, s->y, s->settings, draws, s->n_slices, error));
    return tnd_gpu_ops_run_groups(&launch, s->rows, error);
}

static enum tandem_status count(const struct sample *s, uint32_t level, struct tandem_error *error)
{
    struct tnd_gpu_launch launch;
    TND_TRY(begin(s, &launch, error));
    TND_TRY(tnd_gpu_bind_sample_count(&launch, s->work, s->logits, s->mask, s->settings, level,
                                      s->n, s->slice, s->nb1, error));
    return run_slices(s, &launch, error);
}

/* Finds the last value that top-k keeps, or that top-p keeps of these. The first digits are counted
 * already. */
static enum tandem_status cut(const struct sample *s, bool is_share, struct tandem_error *error)
{
    struct tnd_gpu_launch launch;
    for (uint32_t level = 0; level < LEVELS; level++) {
        if (level > 0) {
            TND_TRY(count(s, level, error));
        }
        TND_TRY(begin(s, &launch, error));
        TND_TRY(tnd_gpu_bind_sample_find(&launch, s->work, s->settings, is_share, level, error));
        TND_TRY(tnd_gpu_ops_run_groups(&launch, s->rows, error));
    }
    return TANDEM_OK;
}

static enum tandem_status draw(const struct sample *s, struct tandem_error *error)
{
    struct tnd_gpu_launch launch;
    TND_TRY(begin(s, &launch, error));
    TND_TRY(tnd_gpu_bind_sample_weigh(&launch, s->work, s->logits, s->mask, s->settings, s->n,
                                      s->slice, s->nb1, error));
    TND_TRY(run_slices(s, &launch, error));
    TND_TRY(begin(s, &launch, error));
    TND_TRY(tnd_gpu_bind_sample_draw(&launch, s->work, s->y, s->logits, s->mask, s->settings, s->n,
                                     s->slice, s->n_slices, s->nb1, error));
    return tnd_gpu_ops_run_groups(&launch, s->rows, error);
}

/* Divides the logits into at most as many slices as a group has work-items, because one group
 * processes all their results. */
static void slice(struct sample *s)
{
    const uint32_t most = (uint32_t)tnd_gpu_ops_group(s->device);
    const uint32_t n = s->n / LEAST_SLICE;
    s->n_slices = n < 1 ? 1 : n < most ? n : most;
    s->slice = (s->n + s->n_slices - 1) / s->n_slices;
    s->n_slices = (s->n + s->slice - 1) / s->slice;
}

enum tandem_status tnd_gpu_sample(struct tnd_gpu_device *device, const struct tandem_work *work,
                                  struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const tandem_tensor *logits = node->src[0];
    const int steps = node->params.sample_steps;
    struct sample s = {.device = device,
                       .has_mask = node->n_src > 2,
                       .n = (uint32_t)logits->ne[0],
                       .rows = (uint64_t)node->ne[1],
                       .nb1 = logits->nb[1]};
    slice(&s);
    const size_t row = sizeof(uint32_t) * (STATE + (size_t)HISTOGRAMS * PER_DIGIT * DIGITS +
                                           PER_SLICE * tnd_gpu_ops_group(device));
    TND_TRY(tnd_gpu_scratch(device, TND_GPU_SCRATCH_SAMPLE, row * (size_t)s.rows, &s.work, error));
    TND_TRY(tnd_gpu_operand(device, work, -1, &s.y, error));
    TND_TRY(tnd_gpu_operand(device, work, 0, &s.logits, error));
    TND_TRY(tnd_gpu_operand(device, work, 1, &s.settings, error));
    TND_TRY(tnd_gpu_ops_find(device, work, 2, s.settings, &s.mask, error));
    TND_TRY(find_largest(&s, (steps & TANDEM_SAMPLE_DRAWS) != 0, error));
    if ((steps & (TANDEM_SAMPLE_K | TANDEM_SAMPLE_SHARE)) != 0) {
        TND_TRY(count(&s, 0, error));
    }
    if ((steps & TANDEM_SAMPLE_K) != 0) {
        TND_TRY(cut(&s, false, error));
    }
    if ((steps & TANDEM_SAMPLE_SHARE) != 0) {
        TND_TRY(cut(&s, true, error));
    }
    return (steps & TANDEM_SAMPLE_DRAWS) != 0 ? draw(&s, error) : TANDEM_OK;
}
