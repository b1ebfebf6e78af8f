/* SPDX-License-Identifier: MIT
 * The memory of a root tensor as an object, and what devices keep of it. A leaf or output owns a
 * buffer; views share that of their root. Intermediate results have none: their memory is a run's.
 *
 * An owner (a slot of an executor) attaches objects of its own to a buffer: its mirror, what it
 * prepared of the weight or of ranges of it. Owners have numbers that are never used twice in a
 * process, so several runtimes may use one tensor at once, and what a closed runtime has left is
 * never found again. The first look is one comparison, without a lock. Knows no owner and no
 * object. */
#ifndef TND_BUFFER_H
#define TND_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tandem_context;

/** One object of one owner. Held by the buffer's context and by the owner; the last one frees it,
 *  so that a context may go away before its owners, and the other way round. */
struct tnd_handle {
    _Atomic(void *) object; /* NULL: given up */
    _Atomic uint64_t owner;
    atomic_int n_holders;
    struct tnd_handle *next;            /* in the buffer; set once */
    struct tnd_handle *next_in_context; /* under the lock of buffer.c */
};

struct tnd_buffer {
    _Atomic(struct tnd_handle *) handles; /* grows at the front; released with the context */
    /** Place in the list of leaves of the graph that was unfolded last. A hint that anybody may
     *  overwrite: whoever reads it compares what is there. Relaxed. */
    _Atomic int32_t leaf;
    /** A device was lost with the newest of a lazy state. Any thread, relaxed. */
    atomic_bool is_lost;
};

/** The first of `n` numbers that nobody has had. */
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
/** Whether the context of the buffer is gone, or reset, and the owner alone holds the handle. */
bool tnd_handle_is_alone(const struct tnd_handle *handle);
/** The owner gives its object up; nobody finds it any more. NULL is allowed. Any thread. */
void tnd_buffer_detach(struct tnd_handle *handle);

/** Releases all handles of a context that is freed or reset; `first` is the head of its list. */
void tnd_buffer_release_all(struct tnd_handle *first);
/** How many contexts with handles were freed or reset: owners look for handles that are alone when
 *  it has changed. Any thread. */
uint64_t tnd_buffer_releases(void);

#endif
