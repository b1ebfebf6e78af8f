/* SPDX-License-Identifier: MIT
 * Downloads outside of runs, one by one. A device that has failed once is not asked again. */
#include "sched/debts.h"

#include "base/tnd_status.h"

static enum tandem_status fetch(const struct tnd_registry *registry, struct tnd_run_device *devices,
                                const struct tnd_mirror *mirror, struct tnd_span debt,
                                struct tandem_error *error)
{
    struct tnd_run_device *device = &devices[mirror->slot];
    tandem_backend *backend = tnd_registry_backend(registry, mirror->slot);
    struct tandem_place place = {mirror->handle, debt.begin};
    void *to = (void *)((uintptr_t)mirror->begin + debt.begin);
    uint64_t ticket = 0;
    if (tnd_handle_is_alone(mirror->at)) {
        return TANDEM_OK; /* the host's bytes are not needed any more */
    }
    pthread_mutex_lock(&device->lock);
    enum tandem_status status =
        tnd_backend_download(backend, place, to, debt.end - debt.begin, &ticket, error);
    if (status == TANDEM_OK) {
        status = tnd_backend_sync(backend, ticket, error);
    }
    device->n_failures += status != TANDEM_OK;
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Devices in *io_failed are skipped. */
static enum tandem_status collect(struct tnd_mirrors *mirrors, const struct tnd_registry *registry,
                                  struct tnd_run_device *devices, const struct tnd_mirror *mirror,
                                  struct tnd_span debt, uint32_t *io_failed,
                                  struct tandem_error *error)
{
    enum tandem_status status = TANDEM_E_DEVICE_LOST;
    if ((*io_failed >> mirror->slot & 1) == 0) {
        status = fetch(registry, devices, mirror, debt, error);
    }
    if (status != TANDEM_OK) {
        *io_failed |= UINT32_C(1) << mirror->slot;
        tnd_mirrors_note_lost(mirrors, mirror);
    }
    return status;
}

enum tandem_status tnd_debts_collect(struct tnd_mirrors *mirrors,
                                     const struct tnd_registry *registry,
                                     struct tnd_run_device *devices, int slot, const void *begin,
                                     size_t bytes, struct tandem_error *error)
{
    enum tandem_status first = TANDEM_OK;
    struct tnd_mirror *mirror;
    struct tnd_span debt;
    uint32_t failed = 0;
    while (tnd_mirrors_owes(mirrors) &&
           (mirror = tnd_mirrors_take_debt(mirrors, slot, begin, bytes, &debt)) != NULL) {
        struct tandem_error why = {0};
        enum tandem_status status =
            collect(mirrors, registry, devices, mirror, debt, &failed, &why);
        if (status != TANDEM_OK && first == TANDEM_OK) {
            first = status;
            if (error != NULL) {
                *error = why;
            }
        }
        tnd_mirrors_end_debt(mirrors, mirror);
    }
    return first;
}

void tnd_debts_collect_failed(struct tnd_run *run)
{
    const struct tnd_residency *residency = run->steps->residency;
    uint32_t failed = tnd_registry_quarantined(run->registry);
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        for (int side = 1; side < residency->n_sides; side++) {
            struct tnd_copy *copy = tnd_residency_copy(residency, &residency->regions[i], side);
            if (copy->mirror != NULL && copy->debt.begin < copy->debt.end) {
                (void)collect(run->mirrors, run->registry, run->devices, copy->mirror, copy->debt,
                              &failed, NULL);
                copy->debt = (struct tnd_span){0, 0};
                run->has_collected = true;
            }
        }
    }
}

enum tandem_status tnd_debts_check_root(const struct tandem_tensor *root,
                                        struct tandem_error *error)
{
    if (root->buffer == NULL ||
        !atomic_load_explicit(&root->buffer->is_lost, memory_order_relaxed)) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_DEVICE_LOST, root->name, 0, 0,
                         "exec: the newest values of '%s' are lost with a device; they have to be "
                         "computed once more",
                         root->name);
}

enum tandem_status tnd_debts_check(const struct tnd_mirrors *mirrors,
                                   const struct tandem_graph *graph, struct tandem_error *error)
{
    for (int i = 0; i < graph->n_nodes && tnd_mirrors_has_lost(mirrors); i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        TND_TRY(tnd_debts_check_root(node->root, error));
        for (int j = 0; j < node->n_src; j++) {
            TND_TRY(node->src[j] != NULL ? tnd_debts_check_root(node->src[j]->root, error)
                                         : TANDEM_OK);
        }
    }
    return TANDEM_OK;
}
