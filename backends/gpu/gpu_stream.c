/* SPDX-License-Identifier: MIT
 * Events between the work queue and the stream queue. Launches need not know of them: a wait is a
 * command of its own. */
#include "backends/gpu/gpu_stream.h"

#include "backends/gpu/gpu_memory_state.h"
#include "backends/gpu/gpu_transfer.h"

/* Guards the events of all blocks; held while pointers are exchanged, never while waiting. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Takes an event out of its place. */
static struct tnd_gpu_event *take(struct tnd_gpu_event **place)
{
    pthread_mutex_lock(&lock);
    struct tnd_gpu_event *event = *place;
    *place = NULL;
    pthread_mutex_unlock(&lock);
    return event;
}

static void put(const struct tnd_gpu_device *device, struct tnd_gpu_event **place,
                struct tnd_gpu_event *event)
{
    pthread_mutex_lock(&lock);
    struct tnd_gpu_event *before = *place;
    *place = event;
    pthread_mutex_unlock(&lock);
    if (before != NULL) {
        device->driver->event_free(device->context, before);
    }
}

static bool is_streamed(const struct tnd_gpu_block *block)
{
    /* acquire: pairs with the release of the first stream */
    return block != NULL && atomic_load_explicit(&block->is_streamed, memory_order_acquire);
}

enum tandem_status tnd_gpu_stream(struct tnd_gpu_device *device, struct tandem_place to,
                                  const void *from, size_t bytes, struct tandem_error *error)
{
    struct tnd_gpu_block *block = to.handle;
    struct tnd_gpu_range range = {NULL, 0};
    struct tnd_gpu_event *arrives = NULL;
    if (bytes == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_find(device, to, bytes, &range, error));
    /* work before the first stream has left no event */
    const bool is_first =
        !atomic_exchange_explicit(&block->is_streamed, true, memory_order_acq_rel);
    int n_reads = 0;
    TND_TRY(tnd_gpu_await_reads(device, to, bytes, &n_reads, error));
    if (is_first || n_reads > 0) { /* the stream waits for the works, and they for downloads */
        TND_TRY(tnd_gpu_stream_mark(device, block, error));
    }
    struct tnd_gpu_event *used = take(&block->used);
    enum tandem_status status = TANDEM_OK;
    if (used != NULL) { /* the other queue may only wait for commands that were flushed */
        status = device->driver->flush(device->context, TND_GPU_QUEUE_WORK, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_write_stream(device, used, range, from, bytes, &arrives, error);
    }
    device->driver->event_free(device->context, used);
    if (arrives != NULL) {
        put(device, &block->arrives, arrives);
    }
    return status;
}

enum tandem_status tnd_gpu_stream_await(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                        struct tandem_error *error)
{
    struct tnd_gpu_event *arrives = is_streamed(block) ? take(&block->arrives) : NULL;
    if (arrives == NULL) {
        return TANDEM_OK;
    }
    enum tandem_status status =
        device->driver->await(device->context, TND_GPU_QUEUE_WORK, arrives, error);
    device->driver->event_free(device->context, arrives);
    return status;
}

enum tandem_status tnd_gpu_stream_mark(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                       struct tandem_error *error)
{
    struct tnd_gpu_event *event = NULL;
    if (!is_streamed(block)) {
        return TANDEM_OK;
    }
    TND_TRY(device->driver->mark(device->context, TND_GPU_QUEUE_WORK, &event, error));
    put(device, &block->used, event);
    return TANDEM_OK;
}

/* The i-th block of a work; NULL beyond the last one, or if the work has no such block. */
enum { N_BLOCKS = TANDEM_MAX_SRC + 2 };
static struct tnd_gpu_block *block_of(const struct tandem_work *work, int i)
{
    const struct tandem_places *places = work->places;
    if (places == NULL) {
        return NULL;
    }
    return i < TANDEM_MAX_SRC    ? places->src[i].handle
           : i == TANDEM_MAX_SRC ? places->result.handle
                                 : places->workspace.handle;
}

enum tandem_status tnd_gpu_stream_begin_work(struct tnd_gpu_device *device,
                                             const struct tandem_work *work,
                                             struct tandem_error *error)
{
    for (int i = 0; i < N_BLOCKS; i++) {
        TND_TRY(tnd_gpu_stream_await(device, block_of(work, i), error));
    }
    const struct tandem_places *places = work->places;
    int n_reads = 0;
    if (places == NULL) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_await_reads(device, places->result, tnd_gpu_span(work->node), &n_reads, error));
    return tnd_gpu_await_reads(device, places->workspace, work->workspace_bytes, &n_reads, error);
}

enum tandem_status tnd_gpu_stream_end_work(struct tnd_gpu_device *device,
                                           const struct tandem_work *work,
                                           struct tandem_error *error)
{
    for (int i = 0; i < N_BLOCKS; i++) {
        TND_TRY(tnd_gpu_stream_mark(device, block_of(work, i), error));
    }
    return TANDEM_OK;
}

void tnd_gpu_stream_forget(const struct tnd_gpu_device *device, struct tnd_gpu_block *block)
{
    put(device, &block->arrives, NULL);
    put(device, &block->used, NULL);
}
