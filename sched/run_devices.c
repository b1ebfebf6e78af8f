/* SPDX-License-Identifier: MIT
 * What a run needs on devices with memory of their own: mirrors of its buffers, of leaves and of
 * outputs; prepared weights. */
#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/run.h"
#include "sched/stream.h"

void *tnd_run_address(const struct tnd_run *run, const struct tnd_extent *extent)
{
    switch (extent->space) {
    case TND_SPACE_INTERMEDIATES:
        return run->intermediates.base + extent->begin;
    case TND_SPACE_WORKSPACE:
        return run->workspace.base + extent->begin;
    default:
        return (void *)extent->begin;
    }
}

/* The place of a region on a side; offset 0 is the region's begin. */
static struct tandem_place place_of(const struct tnd_residency *residency,
                                    const struct tnd_region *region, int side)
{
    const struct tnd_mirror *mirror = tnd_residency_copy(residency, region, side)->mirror;
    TND_ASSERT(region->extent.space == TND_SPACE_MEMORY);
    return (struct tandem_place){mirror != NULL ? mirror->handle : NULL, 0};
}

struct tandem_place tnd_run_place(const struct tnd_run *run, int slot,
                                  const struct tnd_extent *extent)
{
    const struct tnd_residency *residency = run->steps->residency;
    if (extent->space == TND_SPACE_INTERMEDIATES) {
        return (struct tandem_place){run->intermediates.handles[slot], extent->begin};
    }
    if (extent->space == TND_SPACE_WORKSPACE) {
        return (struct tandem_place){run->workspace.handles[slot], extent->begin};
    }
    TND_ASSERT(extent->region >= residency->n_nodes && extent->region < residency->n_regions);
    const struct tnd_region *region = &residency->regions[extent->region];
    struct tandem_place place = place_of(residency, region, residency->side_of[slot]);
    place.offset = extent->begin - region->extent.begin;
    return place;
}

/* The place of the i-th operand of a node, -1: of its result. */
static struct tandem_place place_operand(const struct tnd_run *run, int slot,
                                         const struct tandem_tensor *node, int i)
{
    const struct tnd_residency *residency = run->steps->residency;
    const struct tnd_region *region = tnd_residency_region(residency, node, i);
    size_t begin = tnd_residency_span(region, i < 0 ? node : node->src[i]).begin;
    if (region->extent.space == TND_SPACE_INTERMEDIATES) {
        return (struct tandem_place){run->intermediates.handles[slot],
                                     region->extent.begin + begin};
    }
    struct tandem_place place = place_of(residency, region, residency->side_of[slot]);
    place.offset = begin;
    return place;
}

void tnd_run_places(const struct tnd_run *run, const struct tnd_step *step,
                    struct tandem_places *out)
{
    const struct tandem_tensor *node = tnd_run_item_of(run, step)->tensor;
    memset(out, 0, sizeof(*out));
    out->result = place_operand(run, step->backend, node, -1);
    for (int i = 0; i < node->n_src; i++) {
        if (node->src[i] != NULL) {
            out->src[i] = place_operand(run, step->backend, node, i);
        }
    }
    if (step->stream > 0) {
        out->src[0] = tnd_stream_place(run, step);
    }
    out->workspace =
        (struct tandem_place){run->workspace.handles[step->backend], step->workspace_offset};
}

void tnd_run_unmap(const struct tnd_registry *registry, struct tnd_run_memory *memory)
{
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        if (memory->handles[slot] != NULL) {
            tnd_backend_unmap(tnd_registry_backend(registry, slot), memory->handles[slot]);
            memory->handles[slot] = NULL;
        }
    }
}

static enum tandem_status map_buffer(struct tnd_run *run, int slot, struct tnd_run_memory *memory,
                                     struct tandem_error *error)
{
    if (memory->bytes == 0 || memory->handles[slot] != NULL ||
        (run->steps->device_slots >> slot & 1) == 0) {
        return TANDEM_OK;
    }
    return tnd_backend_map(tnd_registry_backend(run->registry, slot), memory->bytes,
                           &memory->handles[slot], error);
}

static enum tandem_status attach_region(struct tnd_run *run, struct tnd_region *region, int side,
                                        struct tnd_exec_failure *out_failure,
                                        struct tandem_error *error)
{
    const struct tnd_residency *residency = run->steps->residency;
    struct tnd_copy *copy = tnd_residency_copy(residency, region, side);
    int slot = residency->slot_of[side];
    if ((region->sides >> side & 1) == 0 || copy->mirror != NULL || region->extent.bytes == 0) {
        return TANDEM_OK;
    }
    if (region->kind != TND_REGION_CONSTANT) {
        return tnd_mirrors_hold(
            run->mirrors, slot, (void *)region->extent.begin, region->extent.bytes,
            region->kind == TND_REGION_STATE ? region->root : NULL, &copy->mirror, error);
    }
    enum tandem_status status =
        tnd_mirrors_prepare(run->mirrors, slot, region->root, &copy->mirror, error);
    if (status != TANDEM_E_DEVICE_MEMORY) {
        return status;
    }
    out_failure->kind = TND_FAILURE_WEIGHT;
    out_failure->slot = slot;
    return TANDEM_OK; /* go on with the other weights, so that one new plan avoids all that do not
                       * fit */
}

/* Devices without free memory are not faulty, nor are those whose memory another run uses. */
static enum tandem_status fail(struct tnd_exec_failure *out_failure, int slot,
                               enum tandem_status status)
{
    bool is_fault = status >= TANDEM_E_DEVICE && status <= TANDEM_E_DEVICE_TIMEOUT &&
                    status != TANDEM_E_DEVICE_MEMORY;
    bool is_room = status == TANDEM_E_DEVICE_MEMORY || status == TANDEM_E_BUSY;
    out_failure->kind = is_fault  ? TND_FAILURE_FAULT
                        : is_room ? TND_FAILURE_ROOM
                                  : TND_FAILURE_NONE;
    out_failure->slot = slot;
    return status;
}

enum tandem_status tnd_run_attach(struct tnd_run *run, struct tnd_exec_failure *out_failure,
                                  struct tandem_error *error)
{
    struct tnd_residency *residency = run->steps->residency;
    struct tandem_error why = {0};
    for (int side = 1; side < residency->n_sides; side++) {
        int slot = residency->slot_of[side];
        enum tandem_status status = map_buffer(run, slot, &run->intermediates, &why);
        if (status == TANDEM_OK) {
            status = map_buffer(run, slot, &run->workspace, &why);
        }
        if (status == TANDEM_OK) {
            status = tnd_stream_map(run, slot, &why);
        }
        for (int i = residency->n_nodes; i < residency->n_regions && status == TANDEM_OK; i++) {
            status = attach_region(run, &residency->regions[i], side, out_failure, &why);
        }
        if (status != TANDEM_OK) {
            if (error != NULL) {
                *error = why;
            }
            return fail(out_failure, slot, status);
        }
    }
    if (out_failure->kind == TND_FAILURE_WEIGHT) {
        if (error != NULL) {
            *error = why;
        }
        return TANDEM_E_DEVICE_MEMORY;
    }
    return TANDEM_OK;
}

void tnd_run_detach(struct tnd_run *run, bool is_success)
{
    if (run->steps->residency != NULL) {
        tnd_residency_release(run->steps->residency, is_success);
    }
}
