/* SPDX-License-Identifier: MIT
 * Items as fibers. A fiber runs one item after the other until one waits; then another fiber takes
 * what is left of the group. So a kernel without barriers needs one fiber, one with barriers as
 * many as a group has items. An item that waits goes on when all items of its group (barrier) or of
 * its warp have come. */
#include "tests/fake_cuda/fake_run.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/fake_cuda/fake_check.h"
#include "tests/fake_cuda/fake_state.h"

enum { STACK_BYTES = 256 << 10, MAX_ITEMS = 1024, WARP = TND_FAKE_WARP, GUARD_BYTES = 256 };
enum state { UNUSED, RUNS, AT_BARRIER, AT_WARP, IDLE };

struct fiber {
    ucontext_t context;
    char *stack;
    enum state state;
    unsigned item;
};

static _Thread_local struct runner {
    const struct tnd_fake_launch *launch;
    struct tnd_fake_item item;
    ucontext_t scheduler;
    struct fiber fibers[MAX_ITEMS];
    struct fiber *now;
    unsigned n_items, next_item, n_done;
    char given[MAX_ITEMS][TND_FAKE_GIVEN]; /* what items show their warp */
    uint32_t group;
    uint16_t epoch;                      /* barriers of the group so far */
    struct tnd_fake_range locals, asked; /* variables in local memory; what the launch asked for */
    struct tnd_fake_range device;        /* the allocation that was touched last */
    char wrong[160];                     /* the first access that was */
} * self;

static void show_item(unsigned number)
{
    const unsigned *size = self->launch->local_size;
    self->item.place[0] = number % size[0];
    self->item.place[1] = number / size[0] % size[1];
    self->item.place[2] = number / size[0] / size[1];
}

static void wait_as(enum state state)
{
    struct fiber *fiber = self->now;
    fiber->state = state;
    swapcontext(&fiber->context, &self->scheduler);
    show_item(fiber->item);
}

static void at_barrier(void)
{
    wait_as(AT_BARRIER);
}

static unsigned warp_share(const void *mine, size_t bytes, void *all)
{
    const unsigned item = self->now->item;
    const unsigned first = item / WARP * WARP;
    const unsigned n = self->n_items - first < WARP ? self->n_items - first : WARP;
    memcpy(self->given[item], mine, bytes);
    wait_as(AT_WARP);
    for (unsigned i = 0; i < n; i++) {
        memcpy((char *)all + i * bytes, self->given[first + i], bytes);
    }
    wait_as(AT_WARP); /* nobody gives anew before all have read */
    return n;
}

static bool holds(const char *begin, const char *end, const char *at, size_t bytes)
{
    return at >= begin && at < end && bytes <= (size_t)(end - at);
}

static void note(const char *wrong, const void *address)
{
    if (self->wrong[0] == '\0') {
        snprintf(self->wrong, sizeof(self->wrong), "item %u of group %u %s (%p)", self->now->item,
                 self->group, wrong, address);
    }
}

static void access(const void *address, size_t bytes, size_t alignment, unsigned what)
{
    const char *at = address;
    const struct fiber *fiber = self->now;
    const struct tnd_fake_toucher who = {self->launch->number, self->group, fiber->item,
                                         self->epoch};
    const struct tnd_fake_range *range = NULL;
    if (holds(fiber->stack, fiber->stack + STACK_BYTES, at, bytes) ||
        holds((const char *)self, (const char *)(self + 1), at, bytes) ||
        holds(self->launch->values, self->launch->values_end, at, bytes)) {
        return;
    }
    if (holds(self->locals.begin, self->locals.end, at, bytes)) {
        range = &self->locals;
    } else if (holds(self->asked.begin, self->asked.end, at, bytes)) {
        range = &self->asked;
    } else if (holds(self->device.begin, self->device.end, at, bytes) ||
               tnd_fake_range_of(at, bytes, &self->device)) {
        range = &self->device;
    }
    if (range == NULL) {
        if (!holds(self->launch->program, self->launch->program_end, at, bytes) &&
            !tnd_fake_is_pinned(at)) {
            note("touches memory that is not the device's", address);
        }
        return;
    }
    if ((size_t)(uintptr_t)at % alignment != 0) {
        note("touches a place that is not aligned", address);
    }
    const char *wrong = tnd_fake_touch(range, at, bytes, what, &who);
    if (wrong == NULL && range->orders != NULL && tnd_fake_command()->is_checked) {
        wrong = tnd_fake_follow(range->orders + (at - range->begin), bytes,
                                (what & TND_FAKE_WRITE) != 0, false, tnd_fake_command());
    }
    if (wrong != NULL) {
        note(wrong, address);
    }
}

static void run_items(void)
{
    struct fiber *fiber = self->now;
    for (;;) {
        while (self->next_item < self->n_items) {
            fiber->item = self->next_item++;
            show_item(fiber->item);
            self->launch->kernel->call(self->launch->arguments);
            self->n_done++;
        }
        fiber->state = IDLE;
        swapcontext(&fiber->context, &self->scheduler);
        fiber = self->now;
    }
}

static bool resume(struct fiber *fiber)
{
    self->now = fiber;
    if (fiber->state == UNUSED) {
        fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (fiber->stack == MAP_FAILED) {
            return false;
        }
        mprotect(fiber->stack, 4096, PROT_NONE);
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack;
        fiber->context.uc_stack.ss_size = STACK_BYTES;
        makecontext(&fiber->context, run_items, 0);
    }
    fiber->state = RUNS;
    swapcontext(&self->scheduler, &fiber->context);
    return true;
}

/* Fibers that wait as `state` with items first .. first + n - 1. */
static unsigned count(enum state state, unsigned first, unsigned n)
{
    unsigned found = 0;
    for (unsigned i = 0; i < self->n_items; i++) {
        const struct fiber *fiber = &self->fibers[i];
        found += fiber->state == state && fiber->item - first < n;
    }
    return found;
}

static bool let_go(enum state state, unsigned first, unsigned n)
{
    struct fiber *ready[MAX_ITEMS];
    unsigned n_ready = 0;
    for (unsigned i = 0; i < self->n_items; i++) {
        if (self->fibers[i].state == state && self->fibers[i].item - first < n) {
            ready[n_ready++] = &self->fibers[i];
        }
    }
    for (unsigned i = 0; i < n_ready; i++) {
        if (!resume(ready[i])) {
            return false;
        }
    }
    return true;
}

static struct fiber *free_fiber(void)
{
    for (unsigned i = 0; i < self->n_items; i++) {
        if (self->fibers[i].state == UNUSED || self->fibers[i].state == IDLE) {
            return &self->fibers[i];
        }
    }
    return NULL;
}

static const char *run_group(void)
{
    self->next_item = 0;
    self->n_done = 0;
    self->epoch = 0;
    while (self->n_done < self->n_items) {
        while (self->next_item < self->n_items) {
            struct fiber *fiber = free_fiber();
            if (fiber == NULL || !resume(fiber)) {
                return "no memory for a work item's stack";
            }
        }
        bool went_on = false;
        for (unsigned first = 0; first < self->n_items; first += WARP) {
            const unsigned n = self->n_items - first < WARP ? self->n_items - first : WARP;
            if (count(AT_WARP, first, n) == n) {
                went_on = true;
                if (!let_go(AT_WARP, first, n)) {
                    return "no memory for a work item's stack";
                }
            }
        }
        if (count(AT_BARRIER, 0, self->n_items) == self->n_items) {
            went_on = true;
            self->epoch++;
            if (!let_go(AT_BARRIER, 0, self->n_items)) {
                return "no memory for a work item's stack";
            }
        }
        if (!went_on && self->n_done < self->n_items) {
            return "some work items of a group wait at a barrier that others do not come to";
        }
    }
    return NULL;
}

static void new_range(struct tnd_fake_range *range, char *begin, size_t bytes)
{
    *range = (struct tnd_fake_range){begin, begin + bytes, NULL, NULL, NULL};
    range->touches = calloc(bytes + 1, sizeof(*range->touches));
    range->written = calloc(bytes + 1, 1);
    if (range->touches == NULL || range->written == NULL) {
        abort();
    }
}

static void fill(struct tnd_fake_range *range, size_t n_filled)
{
    memset((char *)(uintptr_t)range->begin, 0xff, n_filled);
    memset(range->written, 0, (size_t)(range->end - range->begin));
    memset(range->touches, 0, (size_t)(range->end - range->begin) * sizeof(*range->touches));
}

static void free_range(struct tnd_fake_range *range)
{
    free(range->touches);
    free(range->written);
}

static void free_fibers(void)
{
    for (int i = 0; i < MAX_ITEMS; i++) {
        if (self->fibers[i].stack != NULL && self->fibers[i].stack != MAP_FAILED) {
            munmap(self->fibers[i].stack, STACK_BYTES);
        }
    }
}

const char *tnd_fake_run(const struct tnd_fake_launch *launch)
{
    static _Thread_local char complaint[160];
    const char *wrong = NULL;
    const unsigned *size = launch->local_size;
    char *local_memory = NULL;
    const size_t local_bytes = (launch->local_bytes + 63) / 64 * 64 + GUARD_BYTES;
    self = calloc(1, sizeof(*self));
    if (self == NULL || posix_memalign((void **)&local_memory, 64, local_bytes) != 0) {
        free(self);
        return "no memory for a launch";
    }
    self->launch = launch;
    self->n_items = size[0] * size[1] * size[2];
    self->item.barrier = at_barrier;
    self->item.warp_share = warp_share;
    self->item.local_memory = local_memory;
    memcpy(self->item.local_size, size, sizeof(self->item.local_size));
    memcpy(self->item.n_groups, launch->n_groups, sizeof(self->item.n_groups));
    self->item.access = access;
    new_range(&self->locals, launch->local, (size_t)(launch->local_end - launch->local));
    new_range(&self->asked, local_memory, launch->local_bytes);
    *launch->item_now = &self->item;
    const unsigned *n = launch->n_groups;
    const size_t n_groups = (size_t)n[0] * n[1] * n[2];
    for (size_t i = 0; i < n_groups && wrong == NULL; i++) {
        self->item.group[0] = (unsigned)(i % n[0]);
        self->item.group[1] = (unsigned)(i / n[0] % n[1]);
        self->item.group[2] = (unsigned)(i / n[0] / n[1]);
        self->group = (uint32_t)i;
        fill(&self->locals, (size_t)(launch->local_end - launch->local));
        fill(&self->asked, local_bytes);
        wrong = run_group();
        if (wrong == NULL && self->wrong[0] != '\0') {
            snprintf(complaint, sizeof(complaint), "%s", self->wrong);
            wrong = complaint;
        }
        for (size_t b = local_bytes - GUARD_BYTES; b < local_bytes && wrong == NULL; b++) {
            if ((unsigned char)local_memory[b] != 0xff) {
                wrong = "a work item wrote behind the local memory of its launch";
            }
        }
    }
    free_fibers();
    free_range(&self->locals);
    free_range(&self->asked);
    free(local_memory);
    free(self);
    self = NULL;
    return wrong;
}
