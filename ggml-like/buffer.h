/* SPDX-License-Identifier: MIT
 * The memory of a root tensor as an object, with what devices keep for it. A leaf or output owns a
 * buffer; views share their root's. Intermediate results have none: their memory belongs to a run.
 *
 * An owner (a slot of an executor) attaches its own objects to a buffer: its mirror, and what it
 * prepared from the weight or from ranges of it. Owner numbers are never reused in a process, so
 * several runtimes may use one tensor at once, and objects that a closed runtime left behind are
 * never found again. Looking at the first object takes one comparison and no lock. Knows neither
 * owners nor objects. */
#ifndef TND_BUFFER_H
#define TND_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tandem_context;

/** One object of one owner. Both the buffer's context and the owner hold it, and the last of them
 * to let go frees it: either may go away first. */
struct tnd_handle {
    _Atomic(void *) object; /* NULL: detached */
    _Atomic uint64_t owner;
    atomic_int n_holders;
    struct tnd_handle *next;            /* in the buffer; set once */
    struct tnd_handle *next_in_context; /* under the lock of buffer.c */
};

struct tnd_buffer {
    _Atomic(struct tnd_handle *) handles; /* grows at the head; freed with the context */
    /** Index among the leaves of the graph that was unfolded last. A hint that any thread may
     * overwrite, so readers check the leaf that they find there. Relaxed. */
    _Atomic int32_t leaf;
    /** A device was lost that held the newest values of a lazy state. Any thread, relaxed. */
    atomic_bool is_lost;
};

/** Reserves `n` owner numbers that were never used; returns the first. */
uint64_t tnd_buffer_owners(int n);

/** The owner's next object behind *io_handle (NULL: the first one), or NULL. Any thread; pairs with
 *  the release in tnd_buffer_attach. */
static inline void *tnd_buffer_next(const struct tnd_buffer *buffer, uint64_t owner,
                                    struct tnd_handle **io_handle)
{
    struct tnd_handle *handle = *io_handle != NULL
                                    ? (*io_handle)->next
                                    : atomic_load_explicit(&buffer->handles, memory_order_acquire);
    while (handle != NULL && atomic_load_explicit(&handle->owner, memory_order_acquire) != owner) {
        handle = handle->next;
    }
    *io_handle = handle;
    return handle != NULL ? atomic_load_explicit(&handle->object, memory_order_acquire) : NULL;
}

/** Attaches one more object for an owner. NULL without memory. Any thread, but one at a time for
 *  each owner. */
struct tnd_handle *tnd_buffer_attach(struct tandem_context *context, struct tnd_buffer *buffer,
                                     uint64_t owner, void *object);
/** Whether the buffer's context is gone or reset, so that only the owner holds the handle. */
bool tnd_handle_is_alone(const struct tnd_handle *handle);
/** The owner detaches its object; no thread finds it any more. NULL is allowed. Any thread. */
void tnd_buffer_detach(struct tnd_handle *handle);

/** Releases all handles of a context that is being freed or reset; `first` is the head of its
 * list. */
void tnd_buffer_release_all(struct tnd_handle *first);
/** How many contexts with handles were freed or reset: when it has changed, owners look for
 * handles that they hold alone. Any thread. */
uint64_t tnd_buffer_releases(void);

#endif
