/* SPDX-License-Identifier: MIT
 * What a run needs of devices with memory of their own: mirrors of its buffers, of leaves and of
 * outputs; weights prepared. */
#include "base/tnd_status.h"
#include "sched/run.h"

static tandem_backend *backend_in(const struct tnd_run *run, int slot)
{
    return tnd_registry_backend(run->registry, slot);
}

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

void tnd_run_unmap(const struct tnd_registry *registry, struct tnd_run_memory *memory)
{
    for (int slot = 1; slot < TND_MAX_SLOTS && memory->mapped != 0; slot++) {
        if ((memory->mapped >> slot & 1) != 0) {
            tnd_backend_unmap(tnd_registry_backend(registry, slot), memory->base);
        }
    }
    memory->mapped = 0;
}

static enum tandem_status map_buffer(struct tnd_run *run, int slot, struct tnd_run_memory *memory,
                                     struct tandem_error *error)
{
    uint32_t bit = UINT32_C(1) << slot;
    if (memory->bytes == 0 || (memory->mapped & bit) != 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_backend_map(backend_in(run, slot), memory->base, memory->bytes, error));
    memory->mapped |= bit;
    return TANDEM_OK;
}

static enum tandem_status prepare(struct tnd_run *run, const struct tnd_region *region, int slot,
                                  struct tnd_refused *refused, struct tnd_exec_failure *out_failure,
                                  struct tandem_error *error)
{
    enum tandem_status status = tnd_backend_prepare(backend_in(run, slot), region->root, error);
    if (status != TANDEM_E_DEVICE_MEMORY) {
        return status;
    }
    tnd_refused_add(refused, slot, region->root);
    out_failure->kind = TND_FAILURE_WEIGHT;
    out_failure->slot = slot;
    return TANDEM_OK; /* the others are asked as well, so that planning again once will do */
}

static enum tandem_status attach_region(struct tnd_run *run, struct tnd_region *region, int side,
                                        struct tnd_mirrors *mirrors, struct tnd_refused *refused,
                                        struct tnd_exec_failure *out_failure,
                                        struct tandem_error *error)
{
    uint32_t bit = UINT32_C(1) << side;
    int slot = run->steps->residency->slot_of[side];
    if ((region->sides & bit) == 0 || (region->held & bit) != 0 || region->extent.bytes == 0) {
        return TANDEM_OK;
    }
    if (region->kind == TND_REGION_CONSTANT) {
        return prepare(run, region, slot, refused, out_failure, error);
    }
    TND_TRY(tnd_mirrors_hold(mirrors, slot, (void *)region->extent.begin, region->extent.bytes,
                             region->kind == TND_REGION_STATE ? region->root : NULL, error));
    region->held |= bit;
    return TANDEM_OK;
}

/* Devices without room are no faulty devices, and so are those whose memory another run uses. */
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

enum tandem_status tnd_run_attach(struct tnd_run *run, struct tnd_mirrors *mirrors,
                                  struct tnd_refused *refused, struct tnd_exec_failure *out_failure,
                                  struct tandem_error *error)
{
    struct tnd_residency *residency = run->steps->residency;
    struct tandem_error why = {0};
    for (int side = 1; residency != NULL && side < residency->n_sides; side++) {
        int slot = residency->slot_of[side];
        enum tandem_status status = TANDEM_OK;
        if ((run->steps->device_slots >> slot & 1) != 0) {
            status = map_buffer(run, slot, &run->intermediates, &why);
        }
        if (status == TANDEM_OK && (run->steps->device_slots >> slot & 1) != 0) {
            status = map_buffer(run, slot, &run->workspace, &why);
        }
        for (int i = residency->n_nodes; i < residency->n_regions && status == TANDEM_OK; i++) {
            status = attach_region(run, &residency->regions[i], side, mirrors, refused, out_failure,
                                   &why);
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
