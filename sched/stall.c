/* SPDX-License-Identifier: MIT
 * A device whose work is abandoned keeps the ticket of it, and is used again when that has
 * ended. */
#include "sched/stall.h"

#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

/* For how long, and how many times at most, the caller's thread polls without sleeping; then it
 * sleeps for a twentieth of the time so far, and at least LEAST_SLEEP_NS. Unit: ns, polls. Why:
 * systems wake threads late by 50 us, so that work of a millisecond would end late by a tenth.
 * Test: none. */
enum { EAGER_NS = 200 * 1000, EAGER_POLLS = 1000, LEAST_SLEEP_NS = 20 * 1000 };
/* Largest result that goes through a bounce buffer. Unit: bytes. Why: copying so much takes 0.1 ms,
 * and a run with larger results some ms. Test:
 * a_stall_inside_of_a_wait_is_left_and_the_device_found_again. */
#define MOST_COPIED ((size_t)1 << 20)

struct tnd_bounce {
    struct tnd_bounce *next;
    int slot, step;
    char *to;
    size_t bytes;
    _Alignas(64) char from[];
};

static tandem_backend *backend_of(const struct tnd_run *run, int slot)
{
    return tnd_registry_backend(run->registry, slot);
}

/* ---- results ---- */

void *tnd_stall_target(struct tnd_run *run, const struct tnd_step *step, void *to, size_t bytes)
{
    struct tnd_bounce **end = &run->bounces;
    bool is_over;
    if (run->give_up_ns == 0 || !tnd_backend_poll(backend_of(run, step->backend), 0, &is_over)) {
        return to;
    }
    struct tnd_bounce *bounce = bytes <= MOST_COPIED ? tnd_alloc(sizeof(*bounce) + bytes) : NULL;
    if (bounce == NULL) {
        run->direct |= UINT32_C(1) << step->backend;
        return to;
    }
    *bounce = (struct tnd_bounce){NULL, step->backend, (int)(step - run->steps->steps), to, bytes};
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = bounce;
    return bounce->from;
}

static void take_out(struct tnd_bounce **link)
{
    struct tnd_bounce *bounce = *link;
    *link = bounce->next;
    tnd_free(bounce);
}

void tnd_stall_untarget(struct tnd_run *run, const struct tnd_step *step)
{
    struct tnd_bounce **link = &run->bounces;
    while (*link != NULL && (*link)->step != (int)(step - run->steps->steps)) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        take_out(link);
    }
}

void tnd_stall_deliver(struct tnd_run *run, int slot, int last, bool is_good)
{
    struct tnd_bounce **link = &run->bounces;
    while (*link != NULL) {
        struct tnd_bounce *bounce = *link;
        if (bounce->slot != slot || bounce->step > last) {
            link = &bounce->next;
            continue;
        }
        if (is_good) {
            memcpy(bounce->to, bounce->from, bounce->bytes);
        }
        take_out(link);
    }
    run->direct &= run->device_work[slot].is_open ? ~UINT32_C(0) : ~(UINT32_C(1) << slot);
}

/* ---- abandoning a wait ---- */

/* Whether the device has debts, which cannot be downloaded before its work ends. */
static bool has_debts(const struct tnd_run *run, int slot)
{
    const struct tnd_residency *residency = run->steps->residency;
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        for (int side = 1; side < residency->n_sides; side++) {
            const struct tnd_copy *copy =
                tnd_residency_copy(residency, &residency->regions[i], side);
            if (copy->mirror != NULL && copy->mirror->slot == slot &&
                copy->debt.begin < copy->debt.end) {
                return true;
            }
        }
    }
    return false;
}

static bool may_give_up(struct tnd_run *run, int slot)
{
    int node;
    run->has_collected = true; /* true after the failure */
    const bool can_repeat = tnd_run_can_repeat(run, &node);
    run->has_collected = false;
    return can_repeat && (run->direct >> slot & 1) == 0 && !has_debts(run, slot);
}

/* Called with stall_lock held. */
static void free_orphans(struct tnd_run_device *device)
{
    while (device->orphans != NULL) {
        take_out(&device->orphans);
    }
    atomic_store_explicit(&device->stalled, 0, memory_order_release);
}

static void give_up(struct tnd_run *run, int slot, const struct tnd_step *step)
{
    struct tnd_run_device *device = &run->devices[slot];
    struct tnd_run_device_work *given = &run->device_work[slot];
    pthread_mutex_lock(&device->stall_lock);
    struct tnd_bounce **link = &run->bounces;
    while (*link != NULL) {
        struct tnd_bounce *bounce = *link;
        if (bounce->slot == slot) {
            *link = bounce->next;
            bounce->next = device->orphans;
            device->orphans = bounce;
        } else {
            link = &bounce->next;
        }
    }
    if (given->ticket > atomic_load_explicit(&device->stalled, memory_order_relaxed)) {
        atomic_store_explicit(&device->stalled, given->ticket, memory_order_release);
    }
    pthread_mutex_unlock(&device->stall_lock);
    given->is_open = given->has_download = false;
    if (run->status == TANDEM_OK) {
        run->is_late = true;
        run->failed_step = (int)(step - run->steps->steps);
        run->status = tnd_error_set(&run->error, TANDEM_E_DEVICE_TIMEOUT, "exec", run->group_next,
                                    run->steps->n_groups, "not done after %.0f ms",
                                    (double)run->options->limit_ns / 1e6);
    }
    atomic_store_explicit(&run->stop, true, memory_order_relaxed);
}

bool tnd_stall_await(struct tnd_run *run, int slot, uint64_t ticket, const struct tnd_step *step)
{
    tandem_backend *backend = backend_of(run, slot);
    const uint64_t begin_ns = run->give_up_ns != 0 ? run->clock->now_ns(run->clock) : 0;
    for (int n = 0; run->give_up_ns != 0; n++) {
        bool is_over = true;
        if (!tnd_backend_poll(backend, ticket, &is_over) || is_over) {
            return true;
        }
        const uint64_t now_ns = run->clock->now_ns(run->clock);
        if (now_ns >= run->give_up_ns) {
            if (may_give_up(run, slot)) {
                give_up(run, slot, step);
                return false;
            }
            run->give_up_ns = 0;
        } else if (n >= EAGER_POLLS || now_ns - begin_ns >= EAGER_NS) {
            const uint64_t left_ns = run->give_up_ns - now_ns;
            const uint64_t part_ns = (now_ns - begin_ns) / 20;
            const uint64_t sleep_ns = part_ns > LEAST_SLEEP_NS ? part_ns : LEAST_SLEEP_NS;
            run->clock->wait_until_ns(run->clock,
                                      now_ns + (left_ns < sleep_ns ? left_ns : sleep_ns));
        }
    }
    return true;
}

/* ---- afterwards ---- */

/* True: not stalled, or not any more. */
static bool has_ended(struct tnd_run_device *device, tandem_backend *backend,
                      enum tandem_status *out_status, struct tandem_error *error)
{
    bool is_over = true;
    pthread_mutex_lock(&device->stall_lock);
    const uint64_t ticket = atomic_load_explicit(&device->stalled, memory_order_relaxed);
    if (ticket != 0 && tnd_backend_poll(backend, ticket, &is_over) && is_over) {
        *out_status = tnd_backend_sync(backend, ticket, error);
        free_orphans(device);
    }
    pthread_mutex_unlock(&device->stall_lock);
    return ticket == 0 || is_over;
}

enum tandem_status tnd_stall_check(struct tnd_run *run, struct tnd_exec_failure *out_failure,
                                   struct tandem_error *error)
{
    for (int slot = 1; slot < TND_MAX_SLOTS && run->steps->device_slots >> slot != 0; slot++) {
        struct tnd_run_device *device = &run->devices[slot];
        enum tandem_status status = TANDEM_OK;
        if ((run->steps->device_slots >> slot & 1) == 0 ||
            atomic_load_explicit(&device->stalled, memory_order_acquire) == 0) {
            continue;
        }
        if (!has_ended(device, backend_of(run, slot), &status, error)) {
            *out_failure = (struct tnd_exec_failure){TND_FAILURE_LATE, slot, true, -1};
            return tnd_error_set(error, TANDEM_E_DEVICE_TIMEOUT, "exec", 0, 0,
                                 "has still not ended an earlier computation");
        }
        if (status != TANDEM_OK) {
            *out_failure = (struct tnd_exec_failure){TND_FAILURE_FAULT, slot, true, -1};
            return status;
        }
    }
    return TANDEM_OK;
}

bool tnd_stall_fini(struct tnd_run_device *device, tandem_backend *backend)
{
    enum tandem_status status = TANDEM_OK;
    const bool is_over = backend == NULL || has_ended(device, backend, &status, NULL);
    pthread_mutex_destroy(&device->stall_lock);
    return is_over;
}
