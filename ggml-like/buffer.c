/* SPDX-License-Identifier: MIT
 * Handles of buffers: attached under one lock, found without it. */
#include "ggml-like/buffer.h"

#include "base/alloc.h"
#include "base/fork.h"
#include "base/tnd_assert.h"
#include "ggml-like/tensor_internal.h"

static struct tnd_fork_lock lock = TND_FORK_LOCK_INIT; /* guards lists that grow */

uint64_t tnd_buffer_owners(int n)
{
    static _Atomic uint64_t last;
    /* relaxed: only uniqueness of the numbers matters */
    return atomic_fetch_add_explicit(&last, (uint64_t)n, memory_order_relaxed) + 1;
}

static void release(struct tnd_handle *handle)
{
    int before = atomic_fetch_sub_explicit(&handle->n_holders, 1, memory_order_acq_rel);
    TND_ASSERT(before == 1 || before == 2);
    if (before == 1) {
        tnd_free(handle);
    }
}

/* A handle whose owner has detached its object, or NULL. Called under the lock. */
static struct tnd_handle *find_unused(struct tnd_buffer *buffer)
{
    struct tnd_handle *handle = atomic_load_explicit(&buffer->handles, memory_order_acquire);
    while (handle != NULL && atomic_load_explicit(&handle->n_holders, memory_order_acquire) != 1) {
        handle = handle->next;
    }
    return handle;
}

/* Adds a handle at the head of the buffer's list and of the context's. Called under the lock. */
static struct tnd_handle *add(struct tandem_context *context, struct tnd_buffer *buffer)
{
    struct tnd_handle *handle = tnd_calloc(1, sizeof(*handle));
    if (handle != NULL) {
        handle->next = atomic_load_explicit(&buffer->handles, memory_order_relaxed);
        handle->next_in_context = context->handles;
        context->handles = handle;
        atomic_store_explicit(&buffer->handles, handle, memory_order_release);
    }
    return handle;
}

struct tnd_handle *tnd_buffer_attach(struct tandem_context *context, struct tnd_buffer *buffer,
                                     uint64_t owner, void *object)
{
    TND_ASSERT(object != NULL);
    tnd_fork_lock_take(&lock);
    struct tnd_handle *handle = find_unused(buffer);
    handle = handle != NULL ? handle : add(context, buffer);
    if (handle != NULL) {
        atomic_store_explicit(&handle->n_holders, 2, memory_order_relaxed);
        atomic_store_explicit(&handle->object, object, memory_order_release);
        atomic_store_explicit(&handle->owner, owner, memory_order_release);
    }
    tnd_fork_lock_give(&lock);
    return handle;
}

bool tnd_handle_is_alone(const struct tnd_handle *handle)
{
    /* acquire: pairs with the context's release, so no thread reads the buffer any more */
    return atomic_load_explicit(&handle->n_holders, memory_order_acquire) == 1;
}

void tnd_buffer_detach(struct tnd_handle *handle)
{
    if (handle != NULL) {
        atomic_store_explicit(&handle->owner, 0, memory_order_release);
        atomic_store_explicit(&handle->object, NULL, memory_order_release);
        release(handle);
    }
}

static _Atomic uint64_t n_releases;

uint64_t tnd_buffer_releases(void)
{
    return atomic_load_explicit(&n_releases, memory_order_acquire);
}

void tnd_buffer_release_all(struct tnd_handle *first)
{
    const bool any = first != NULL;
    while (first != NULL) {
        struct tnd_handle *next = first->next_in_context;
        release(first);
        first = next;
    }
    if (any) { /* release: a thread that sees the count also sees that the handles are alone */
        atomic_fetch_add_explicit(&n_releases, 1, memory_order_release);
    }
}
